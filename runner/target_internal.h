/* Shared by target.c, peer.c and planned.c only. */
#ifndef RUNNER_TARGET_INTERNAL_H
#define RUNNER_TARGET_INTERNAL_H

#include "target.h"

struct target *target_append(struct target_list *list);

/* Appends the public functions of this name under a forced tier, planned; returns the index of the first. */
size_t target_add_forced(struct target_list *list, const char *name, enum wherry_isa isa);

const struct wherry_thresholds *target_default_thresholds(void);

/* Appends every function that the object behind handle defines itself; returns how many. */
size_t target_add_peer_functions(struct target_list *list, const char *name, const char *spec, const char *prefix,
                                 void *handle);

/* The function that this symbol has in its name, the longest of several, and where in it; NULL: none. */
const char *target_function_within(const char *symbol, size_t *at);

#endif
