/* The public functions' hidden pointers. Before anything has set them they are null, and null means the baseline. */
#ifndef WHERRY_DISPATCH_H
#define WHERRY_DISPATCH_H

#include "plan/plan.h"

/* The tier in force. */
enum wherry_isa wherry_dispatch_isa(void);

/* Forces a tier for every later public call: for tests and measurements. Returns false, and changes nothing, when
 * this CPU cannot run it. Not to be called while other threads are inside a public call. */
bool wherry_dispatch_force(enum wherry_isa isa);

#endif
