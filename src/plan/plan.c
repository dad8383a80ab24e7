#include "plan/plan.h"

const char *const wherry_isa_names[WHERRY_ISA_COUNT] = {"sse2", "avx2", "avx512"};

static bool has_avx2(const struct wherry_cpu *cpu)
{
    return wherry_cpu_has(cpu, WHERRY_CPU_AVX2) && wherry_cpu_has(cpu, WHERRY_CPU_BMI1) &&
           wherry_cpu_has(cpu, WHERRY_CPU_BMI2);
}

static bool has_avx512(const struct wherry_cpu *cpu)
{
    return has_avx2(cpu) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512F) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512BW) &&
           wherry_cpu_has(cpu, WHERRY_CPU_AVX512VL) && wherry_cpu_has(cpu, WHERRY_CPU_AVX512DQ);
}

bool wherry_plan_can_run(const struct wherry_cpu *cpu, enum wherry_needs needs)
{
    switch (needs) {
    case WHERRY_NEEDS_BASE:
        return true;
    case WHERRY_NEEDS_AVX2:
        return has_avx2(cpu);
    case WHERRY_NEEDS_AVX512:
        return has_avx512(cpu);
    }
    return false;
}

enum wherry_isa wherry_plan_isa(const struct wherry_cpu *cpu)
{
    if (has_avx512(cpu))
        return WHERRY_ISA_AVX512;
    return has_avx2(cpu) ? WHERRY_ISA_AVX2 : WHERRY_ISA_SSE2;
}

/* What is copied comes to twice the size, and others share the cache; below this, finding the destination in the cache
 * afterwards is worth more than the saved read of it. Bounded, because hypervisors report what they like. */
enum { STREAM_LEAST = 4 << 20, STREAM_MOST = 64 << 20, LAST_LEVEL_UNKNOWN = 16 << 20 };

struct wherry_thresholds wherry_plan_thresholds(uint64_t last_level_bytes)
{
    uint64_t from = (last_level_bytes ? last_level_bytes : LAST_LEVEL_UNKNOWN) / 4 * 3;
    if (from < STREAM_LEAST)
        from = STREAM_LEAST;
    if (from > STREAM_MOST)
        from = STREAM_MOST;
    return (struct wherry_thresholds){.stream_from = from};
}
