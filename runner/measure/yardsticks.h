/* What stands beside routines and is never in the race: the cost of a call, and what memory gives and takes. */
#ifndef MEASURE_YARDSTICKS_H
#define MEASURE_YARDSTICKS_H

#include <stdbool.h>

#include "loops.h"
#include "routines/registry.h"

/* call_floor; read_bandwidth (loads every byte of the source, or of the destination when the op has no source),
 * write_bandwidth (stores every byte of the destination) and write_nt_bandwidth (the same past the caches, fenced),
 * copy_bandwidth (loads and stores), copy_nt_bandwidth (loads, and stores past the caches, fenced) and
 * copy_nt_parts_bandwidth (the same, a line of each of five parts in turn), by the widest vectors of this CPU. NULL
 * when there is none of that name, or none for this op: a set copies nothing. */
loop_fn *yardstick(const char *name, enum wherry_op op);

bool is_yardstick(const char *name);

#endif
