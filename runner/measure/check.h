/* Is a routine right at just what is about to be timed? */
#ifndef MEASURE_CHECK_H
#define MEASURE_CHECK_H

#include "loops.h"
#include "pool.h"
#include "row.h"

/* Calls fn in the row's own slots, sizes and offsets, on contents that differ from what must come, and compares every
 * byte it should write, the bytes around them and the source. Returns NULL, or what is wrong (a static buffer). */
const char *check_routine(loop_fn *fn, struct pool *pool, const struct row *row);

#endif
