/* The public functions' hidden pointers. Before anything has set them they are null, and null means the baseline. */
#ifndef WHERRY_DISPATCH_H
#define WHERRY_DISPATCH_H

#include "plan/plan.h"
#include "routines/recent.h"
#include "routines/written.h"

/* Of what is neither copy nor set: an enum wherry_choice, but none of those that are about sizes together. */
extern _Atomic(signed char) wherry_choice __attribute__((visibility("hidden")));

/* An enum wherry_needs: what the CRC in force needs, which is no matter of the tier alone. 0 is the baseline. */
extern _Atomic(signed char) wherry_crc_choice __attribute__((visibility("hidden")));

/* The same of the checksum: csum_vnni where the tier is AVX-512 and the CPU has it. */
extern _Atomic(signed char) wherry_csum_choice __attribute__((visibility("hidden")));

/* And of the copy that sums. */
extern _Atomic(signed char) wherry_copy_csum_choice __attribute__((visibility("hidden")));

/* Called after another plan has been put in force, when somebody has set it: the fault-tolerant copies, which the
 * drop-in does not have. */
extern void (*_Atomic wherry_dispatch_follower)(void) __attribute__((visibility("hidden")));

/* The tier in force. */
enum wherry_isa wherry_dispatch_isa(void);

/* Forces a tier for every later public call: for tests and measurements. Returns false, and changes nothing, when
 * this CPU cannot run it. Not to be called while other threads are inside a public call. */
bool wherry_dispatch_force(enum wherry_isa isa);

#endif
