/* Between the constructor and the loading of plans. */
#ifndef WHERRY_DISPATCH_LOAD_H
#define WHERRY_DISPATCH_LOAD_H

#include "cpu/cpu.h"
#include "plan/plan.h"

/* Puts the default plan of this CPU in force, then the one that WHERRY_PLAN names, if it is right for it; nothing where
 * one has been loaded already. */
void wherry_plan_begin(const struct wherry_cpu *cpu, uint64_t last_level);

/* Sets the words that the public functions go by. Others may be inside a call. */
void wherry_dispatch_use(const struct wherry_cpu *cpu, enum wherry_isa isa, const struct wherry_thresholds *thresholds);

#endif
