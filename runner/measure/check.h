/* Is a routine right at just what is about to be timed? */
#ifndef MEASURE_CHECK_H
#define MEASURE_CHECK_H

#include "loops.h"
#include "pool.h"
#include "row.h"
#include "usercopy/paths.h"

/* The message where there was no memory to verify in: no word against the routine, which has no speed all the same. */
extern const char check_no_room[];

/* Calls fn, a routine of this op, in the row's own slots, sizes and offsets, on contents that differ from what must
 * come, and compares every byte it should write, the bytes around them, the source and the result, and looks at the
 * flags it left. Returns NULL, or what is wrong (a static buffer). */
const char *check_routine(loop_fn *fn, enum wherry_op op, struct pool *pool, const struct row *row);

/* The same of a copy of the kernel's, as far as it can be seen. */
const char *check_path(const struct path *path, struct pool *pool, const struct row *row);

#endif
