/* How fast the machine runs just now. The clock speed, a neighbour on the other half of the core and one that crowds
 * the last-level cache are invisible from inside a virtual machine, and steal time does not show them either; fixed
 * work shows them: additions for the core, a copy between buffers larger than the second-level cache for what lies
 * beyond. */
#ifndef MEASURE_PACE_H
#define MEASURE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "routines/registry.h"

struct reading {
    double core;   /* nanoseconds for sixteen additions */
    double memory; /* nanoseconds for a kibibyte copied */
};

struct pace {
    struct reading best; /* the least of each so far */
    double patience_ms;  /* what may still be spent on waiting for it */
    uint64_t waited_ns;  /* when the last wait ended, 0 before the first */
    wherry_copy_fn *copy;
    char *memory; /* two buffers, or NULL: none to be had, the memory is not watched */
    size_t bytes; /* of one */
};

/* Warms up for a few hundredths of a second. l2: bytes of the second-level cache. known: the best that an earlier
 * process saw, zeros where there is none. */
void pace_init(struct pace *pace, size_t l2, struct reading known);

/* About 0.1 ms, and some 2 ms where the memory is slow, or another's lines are in the cache. */
struct reading pace_read(struct pace *pace);

/* Is a reading so much slower than the best that what was measured beside it is not comparable? */
bool pace_is_slow(const struct pace *pace, struct reading reading);

/* Waits until the pace is good again, and reads it. When that takes too long, the slow pace becomes the one to compare
 * with: a CPU that lowers its clock for good would else never be measured. Beyond a second or two all waits together
 * take as long as what is measured between them at most. */
struct reading pace_wait(struct pace *pace);

#endif
