/* Pure: from a CPU to the routine that serves each public call. No I/O, no state. */
#ifndef WHERRY_PLAN_H
#define WHERRY_PLAN_H

#include "cpu/cpu.h"
#include "routines/registry.h"
#include "routines/thresholds.h"

#include <stdbool.h>

enum wherry_isa { WHERRY_ISA_SSE2, WHERRY_ISA_AVX2, WHERRY_ISA_AVX512, WHERRY_ISA_COUNT };

extern const char *const wherry_isa_names[WHERRY_ISA_COUNT]; /* "sse2", "avx2", "avx512" */

/* Can this CPU, under this operating system, execute routines that need this? */
bool wherry_plan_can_run(const struct wherry_cpu *cpu, enum wherry_needs needs);

/* The tier the public functions use on this CPU by default. */
enum wherry_isa wherry_plan_isa(const struct wherry_cpu *cpu);

/* The sizes at which the public functions change method, for a last-level cache of this many bytes (0: unknown). */
struct wherry_thresholds wherry_plan_thresholds(uint64_t last_level_bytes);

#endif
