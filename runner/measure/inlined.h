/* Copies that are inlined where they are called, as a packet's is. `padded` is wherry_copy_padded in a function, called
 * through the pointer of the shared loop like everybody else (and like a peer's rte_memcpy). The others stand in loops
 * of their own, all made from one text: whoever does his work there differs from the next in nothing else. */
#ifndef MEASURE_INLINED_H
#define MEASURE_INLINED_H

#include <stdbool.h>

#include "loops.h"
#include "target.h"

/* Appends `padded` and the inlined ones: inlined_padded, inlined_memcpy (a call, the size a variable), inlined_wherry
 * (the same of wherry_memcpy), inlined_padded_n and inlined_memcpy_n (the size a constant). */
void targets_add_inlined(struct target_list *list);

/* The loop of an inlined target, or of a peer that brings loops, for this size; NULL: the shared one serves. Sets
 * *reason when there is none. */
loop *inlined_loop(const struct target *target, enum walk_kind kind, enum mode mode, size_t size, bool mix,
                   const char **reason);

/* Copies n bytes with and without room to spare and compares them and what lies past the capacity. NULL, or what is
 * wrong. */
const char *inlined_check(const struct target *target, size_t n);

#endif
