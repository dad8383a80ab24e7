/* op=switch: what it takes to go from one thread of execution to another and back, with which registers in use. One
 * call is one round trip, as one iteration of the program in the mail of 1998: two switches. */
#ifndef RUNNER_SWITCH_SWITCH_H
#define RUNNER_SWITCH_SWITCH_H

#include <sys/resource.h>

#include "states.h"
#include "system/system.h"

enum { PART_USER, PART_SYSTEM, PART_PARTNER, PART_IN_USE };

/* What a sample does, taken from the row and the name. */
struct turns {
    enum live live;
    bool parent_live, child_live;
    size_t size; /* bytes that each side copies in a turn; 0: none */
    wherry_copy_fn *copy;
    uint64_t calls;
    struct system_figures *figures;
};

/* A copy of turns->size bytes between buffers of the caller's own, which lie in L1. side: 0 or 1. */
void switch_copy(const struct turns *turns, int side);

/* The caller's user and system time between two readings, for each call. */
void figures_of_usage(const struct turns *turns, const struct rusage *before, const struct rusage *after);

/* Between two processes or threads, by pipe, eventfd or futex. NULL, or what failed. */
const char *handover_sample(const struct system_row *row, const struct turns *turns);
/* Between two stacks of this thread. */
const char *stacks_unavailable(const char *method, enum live live);
/* Does the method keep what it promises? NULL, or what was lost. */
const char *stacks_check(const char *method, enum live live);
const char *stacks_sample(const char *method, const struct turns *turns);
/* Without any switch: the copies; a chain of additions beside wide work; the first wide work after a while without. */
const char *alone_sample(const char *via, const struct turns *turns);

#endif
