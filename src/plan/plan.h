/* Pure: from a CPU to the routine that serves each public call. No I/O, no state. */
#ifndef WHERRY_PLAN_H
#define WHERRY_PLAN_H

#include "cpu/cpu.h"
#include "routines/registry.h"
#include "routines/thresholds.h"

#include <stdbool.h>

/* The AVX-512 tier looks now and then whether sizes can be foreseen (dispatch/watch.h). The last two do not: one is for
 * sizes that repeat, and for results that are read at once; the other for sizes that nobody can foresee. Each is slower
 * on the other's. No default plan chooses them. */
enum wherry_isa {
    WHERRY_ISA_SSE2,
    WHERRY_ISA_AVX2,
    WHERRY_ISA_AVX512,
    WHERRY_ISA_AVX512_LADDER,
    WHERRY_ISA_AVX512_TOGETHER,
    WHERRY_ISA_COUNT
};

/* "sse2", "avx2", "avx512", "avx512_ladder", "avx512_together" */
extern const char *const wherry_isa_names[WHERRY_ISA_COUNT];

/* Can this CPU, under this operating system, execute routines that need this? */
bool wherry_plan_can_run(const struct wherry_cpu *cpu, enum wherry_needs needs);

/* The tier the public functions use on this CPU by default. */
enum wherry_isa wherry_plan_isa(const struct wherry_cpu *cpu);

/* What the tier needs. */
enum wherry_needs wherry_plan_needs(enum wherry_isa isa);

/* What the CRC of this tier needs: all that the CPU has in the tier that it uses by default; else what the tier's first
 * CPUs had. */
enum wherry_needs wherry_plan_crc(const struct wherry_cpu *cpu, enum wherry_isa isa);

/* What the checksum needs that goes with a tier, and the copy that sums. */
enum wherry_needs wherry_plan_csum(const struct wherry_cpu *cpu, enum wherry_isa isa);
enum wherry_needs wherry_plan_copy_csum(const struct wherry_cpu *cpu, enum wherry_isa isa);

/* The sizes at which the public functions of a tier change method on this CPU, with a last-level cache of this many
 * bytes (0: unknown). */
struct wherry_thresholds wherry_plan_thresholds(const struct wherry_cpu *cpu, enum wherry_isa isa,
                                                uint64_t last_level_bytes);

#endif
