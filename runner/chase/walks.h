/* Walks of several chains at once, each a register that is loaded through itself: walks.S. Within a turn every chain
 * goes WALK_STEPS steps, the chains by turns, and none waits for another. */
#ifndef RUNNER_CHASE_WALKS_H
#define RUNNER_CHASE_WALKS_H

#include <stdint.h>

enum { WALK_STEPS = 16, WALK_CHAINS = 12 };

/* From where the chains stand, to where they stand then. At least one turn. */
typedef void walk_fn(void **places, uint64_t turns);

walk_fn walk_1, walk_2, walk_4, walk_8, walk_12;

#endif
