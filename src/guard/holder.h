/* Who is at what only one thread may do at a time, kept in a word that children of fork inherit with all the rest. */
#ifndef WHERRY_GUARD_HOLDER_H
#define WHERRY_GUARD_HOLDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "guard/kernel.h"

/* This thread, by its process and its own number; never 0. */
static inline uint64_t holder_self(void)
{
    const uint64_t process = (uint64_t)kernel_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return process << 32 | (uint32_t)kernel_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Is that another thread of this process? Else it is this one, or nobody who will ever be done: a child finds what its
 * parent had there, and in a PID namespace of its own it may have its parent's number, but not that thread. Where a
 * sandbox forbids to ask it is taken to be there. */
static inline bool holder_is_another_here(uint64_t holder, uint64_t self)
{
    if (holder >> 32 != self >> 32 || (uint32_t)holder == (uint32_t)self)
        return false;
    return kernel_call(SYS_tgkill, (long)(self >> 32), (uint32_t)holder, 0, 0, 0, 0) != -ESRCH;
}

#endif
