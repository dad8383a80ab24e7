/* Calls of code that the front end of the CPU has lost: between two of them a stretch of other code runs that is larger
 * than the L1 instruction cache and the cache of decoded instructions, and full of branches. */
#ifndef MEASURE_COLD_H
#define MEASURE_COLD_H

#include "loops.h"

/* Made once, used by every thread. */
struct cold {
    void (*stretch)(uint64_t bits); /* NULL until made; each bit decides some of its branches */
    double stretch_ns;              /* what one run of it takes */
    double nothing_ticks;           /* what timing a call costs, in ticks of the time stamp counter */
};

/* Returns NULL, or why it cannot be had here. */
const char *cold_make(struct cold *cold, uint64_t seed);

/* What `calls` calls take in nanoseconds, less the cost of timing them. Each comes after the stretch and is timed
 * alone, from the first fetch of its code to the end of its last instruction. */
double cold_calls(const struct cold *cold, loop_fn *fn, struct walk *walk, uint64_t calls, uint64_t *random);

#endif
