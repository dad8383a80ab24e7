#include "cpu/cpu.h"
void wherry_cpu_detect(struct wherry_cpu *cpu)
{
    cpu->features = 0;
#define F(name, f) if (__builtin_cpu_supports(name)) cpu->features |= (uint64_t)1 << f;
    __builtin_cpu_init();
    F("sse2", WHERRY_CPU_SSE2) F("avx2", WHERRY_CPU_AVX2) F("bmi", WHERRY_CPU_BMI1) F("bmi2", WHERRY_CPU_BMI2)
    F("avx512f", WHERRY_CPU_AVX512F) F("avx512bw", WHERRY_CPU_AVX512BW) F("avx512vl", WHERRY_CPU_AVX512VL) F("avx512dq", WHERRY_CPU_AVX512DQ)
}
