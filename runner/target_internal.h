/* Shared by target.c and peer.c only. */
#ifndef RUNNER_TARGET_INTERNAL_H
#define RUNNER_TARGET_INTERNAL_H

#include "target.h"

struct target *target_append(struct target_list *list);

/* Appends every function that the object behind handle defines itself; returns how many. */
size_t target_add_peer_functions(struct target_list *list, const char *name, const char *spec, const char *prefix,
                                 void *handle);

#endif
