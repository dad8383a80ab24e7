/* The one thing a routine may know of the world outside: the sizes at which the plan in force changes method.
 * The object is hidden plain data, right before any constructor has run. */
#ifndef WHERRY_THRESHOLDS_H
#define WHERRY_THRESHOLDS_H

#include <stddef.h>

struct wherry_thresholds {
    size_t stream_from; /* bytes; disjoint copies and sets of at least this size bypass the caches */
};

extern struct wherry_thresholds wherry_thresholds __attribute__((visibility("hidden")));

#endif
