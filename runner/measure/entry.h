/* What a name in a row stands for: a yardstick, whoever serves the row's op, `op:NAME` (NAME for another op in the same
 * memory), or `COPY+SUM` where the row's op is a copy with a sum: COPY's copy and then SUM's sum of the source. */
#ifndef MEASURE_ENTRY_H
#define MEASURE_ENTRY_H

#include "bench.h"

/* Fills cell's target, second, op, fn and loop from its name. Returns NULL, or why it cannot be in this row (a static
 * buffer). */
const char *entry_find(struct cell *cell, const struct target_list *targets, const struct row *row);

/* Does anybody answer to this name, in some row? */
bool entry_known(const char *name, bool (*known)(const void *context, const char *name), const void *context);

/* To be called before the cell's function is: a pair's parts belong to the process. */
void entry_enter(const struct cell *cell);

#endif
