/* Whether the kernel took the processor from this thread, or gave it a signal, since a moment. The clock cannot tell a
 * long call from one that waited while another program ran, and a system call may be forbidden to the program.
 *
 * A thread that is registered for restartable sequences, as glibc's are, names the sequence that it may be in. When the
 * kernel gives the processor back to it and finds it elsewhere, it wipes the name out. So one that is never entered is
 * named, and looked for again afterwards. A program that uses sequences of its own names them each time it enters one.
 */
#ifndef WHERRY_RECORDER_SWITCHED_H
#define WHERRY_RECORDER_SWITCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder.h"

/* Since glibc 2.35. The size is 0 where the kernel did not take the registration. */
extern const ptrdiff_t __rseq_offset __attribute__((weak, visibility("default")));
extern const unsigned int __rseq_size __attribute__((weak, visibility("default")));

/* As the kernel has it: a sequence of one instruction, and where it would go on, behind glibc's signature. */
struct recorder_sequence {
    _Alignas(32) uint32_t version;
    uint32_t flags;
    uint64_t begin, bytes, abort;
};
extern const struct recorder_sequence recorder_no_sequence __attribute__((visibility("hidden")));

enum { SEQUENCE_NAMED = 8 }; /* its place in what is registered */

static inline volatile uint64_t *recorder_named_sequence(void)
{
    if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
        return NULL;
    return (volatile uint64_t *)(recorder_thread() + (uintptr_t)__rseq_offset + SEQUENCE_NAMED);
}

static inline void recorder_watch_for_switch(void)
{
    volatile uint64_t *named = recorder_named_sequence();
    if (named)
        *named = (uintptr_t)&recorder_no_sequence;
}

/* Since it was watched for; where nobody can tell, false. */
static inline bool recorder_switched(void)
{
    volatile uint64_t *named = recorder_named_sequence();
    if (!named)
        return false;
    const bool switched = *named != (uintptr_t)&recorder_no_sequence;
    if (!switched)
        *named = 0;
    return switched;
}

#endif
