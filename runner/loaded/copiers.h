/* Threads that copy on other CPUs, each between two buffers of its own, for as long as they are wanted. */
#ifndef RUNNER_LOADED_COPIERS_H
#define RUNNER_LOADED_COPIERS_H

#include <stddef.h>

#include "measure/host.h"
#include "target.h"

/* So many of the CPUs that `host` may use, beside the one that it measures on (0: all of them), with two buffers each.
 * CPUs of other cores come first, as far as the kernel tells. NULL, or why they cannot be had; copiers_close follows in
 * any case. */
const char *copiers_open(const struct host *host, unsigned count, size_t buffer);
void copiers_close(void);

unsigned copiers_count(void);
/* Of these, as far as the kernel tells, those that share the core of the CPU that is measured on. */
unsigned copiers_same_core(void);
size_t copiers_bytes(void);

/* Copies a block once and looks at it. NULL, or what is wrong. */
const char *copiers_check(const struct target *target, size_t block);

/* All copy by blocks, from the front of the buffer to the back and again. Returns when each is at it. */
void copiers_begin(const struct target *target, size_t block);
/* Waits for each to end its block. Returns the bytes that all together copied in a nanosecond. */
double copiers_end(void);

#endif
