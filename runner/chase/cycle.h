/* Memory that leads through itself: each line of 64 bytes holds the address of another, and all of them are one cycle
 * in random order. Where a load goes is known when the one before has come, and no prefetcher can tell. */
#ifndef RUNNER_CHASE_CYCLE_H
#define RUNNER_CHASE_CYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CYCLE_LINE = 64 };

struct cycle {
    char *base;
    size_t bytes, mapped; /* what is walked, and the mapping it lies in */
    size_t lines;
    uint32_t *order; /* the lines in the order in which the cycle has them */
};

/* What cycle_make takes of the memory, beside the bytes themselves: the order, and a bit for each line. */
size_t cycle_bytes_needed(size_t bytes, bool huge);

/* A cycle through `bytes`, a multiple of 64, in huge pages or in none. Every line is written. NULL, or why there is
 * none (host_interrupted too); cycle_free follows in any case. */
const char *cycle_make(struct cycle *cycle, size_t bytes, bool huge, uint64_t *random);

/* The line that is `steps` along the cycle from where the order begins. */
void *cycle_at(const struct cycle *cycle, uint64_t steps);

/* The share of the mapping that is in huge pages. */
double cycle_huge(const struct cycle *cycle);

void cycle_free(struct cycle *cycle);

#endif
