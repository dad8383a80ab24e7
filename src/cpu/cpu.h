/* What this CPU is, from CPUID and XCR0 alone. Reads no file and keeps no state; a test can feed it the dump of any
 * CPU instead of the one it runs on. */
#ifndef WHERRY_CPU_H
#define WHERRY_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum wherry_cpu_feature {
    WHERRY_CPU_SSE2,
    WHERRY_CPU_AVX,
    WHERRY_CPU_AVX2,
    WHERRY_CPU_BMI1,
    WHERRY_CPU_BMI2,
    WHERRY_CPU_AVX512F,
    WHERRY_CPU_AVX512BW,
    WHERRY_CPU_AVX512VL,
    WHERRY_CPU_AVX512DQ,
    WHERRY_CPU_FEATURE_COUNT
};

struct wherry_cpu {
    uint64_t features; /* bit i: enum wherry_cpu_feature i, usable (the OS saves its registers) */
};

void wherry_cpu_detect(struct wherry_cpu *cpu);

static inline bool wherry_cpu_has(const struct wherry_cpu *cpu, enum wherry_cpu_feature feature)
{
    return cpu->features >> feature & 1;
}

#endif
