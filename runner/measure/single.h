/* Calls that are timed one by one, to tell how they differ from each other and not what they take in the mean. */
#ifndef MEASURE_SINGLE_H
#define MEASURE_SINGLE_H

#include <stdbool.h>

#include "loops.h"

/* What a sample has at most. */
enum { SINGLE_MOST = 1 << 22 };

/* The counter that times them. */
struct single {
    double tick_ns;      /* 0 until made */
    uint32_t step_ticks; /* readings differ by multiples of it */
};

void single_make(struct single *single);

/* For the times of SINGLE_MOST calls. NULL: no memory. */
uint32_t *single_room(void);

/* So many calls that some lie beyond this percentile. */
uint64_t single_least(double percentile);

/* Nanoseconds that so many per cent of the calls take at most, the cost of timing included. Each begins when the stores
 * of the one before are done, and ends with its last instruction; what it has stored may still be on its way then.
 * Calls amid which another program had the CPU are made again; *calm becomes false when that did not help. `ticks`:
 * room of single_room. */
double single_calls(const struct single *single, loop_fn *fn, struct walk *walk, uint64_t calls, double percentile,
                    uint32_t *ticks, bool *calm);

#endif
