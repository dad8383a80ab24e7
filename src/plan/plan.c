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
