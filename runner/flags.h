/* The flags that a routine may leave set, which compiled code takes for clear: the direction flag and that of alignment
 * checks, which the kernel leaves to a handler. What comes after it would hang or crash. */
#ifndef RUNNER_FLAGS_H
#define RUNNER_FLAGS_H

#include <stdint.h>

enum { DIRECTION_FLAG = 0x400, ALIGNMENT_CHECK = 0x40000 };

/* Clears both and returns the flags as they were. Below the red zone, since flags go by the stack. */
static inline __attribute__((always_inline)) uint64_t flags_taken(void)
{
    uint64_t flags;
    __asm__ volatile(
        "sub $128, %%rsp\n\tpushfq\n\tpushfq\n\tandq %1, (%%rsp)\n\tpopfq\n\tpop %0\n\tadd $128, %%rsp\n\tcld"
        : "=&r"(flags)
        : "i"(~ALIGNMENT_CHECK)
        : "cc", "memory");
    return flags;
}

#endif
