/* What this CPU is, from CPUID and XCR0 alone. Reads no file and keeps no state; a test can feed it the dump of any
 * CPU instead of the one it runs on. */
#ifndef WHERRY_CPU_H
#define WHERRY_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* name in text and JSON; leaf, subleaf, register, bit; register state that the OS must save */
#define WHERRY_CPU_FEATURES(X)                                                                                         \
    X(SSE2, "sse2", 1, 0, EDX, 26, NONE)                                                                               \
    X(AVX, "avx", 1, 0, ECX, 28, YMM)                                                                                  \
    X(AVX2, "avx2", 7, 0, EBX, 5, YMM)                                                                                 \
    X(BMI1, "bmi1", 7, 0, EBX, 3, NONE)                                                                                \
    X(BMI2, "bmi2", 7, 0, EBX, 8, NONE)                                                                                \
    X(AVX512F, "avx512f", 7, 0, EBX, 16, ZMM)                                                                          \
    X(AVX512BW, "avx512bw", 7, 0, EBX, 30, ZMM)                                                                        \
    X(AVX512VL, "avx512vl", 7, 0, EBX, 31, ZMM)                                                                        \
    X(AVX512DQ, "avx512dq", 7, 0, EBX, 17, ZMM)                                                                        \
    X(SSE3, "sse3", 1, 0, ECX, 0, NONE)                                                                                \
    X(PCLMULQDQ, "pclmulqdq", 1, 0, ECX, 1, NONE)                                                                      \
    X(SSSE3, "ssse3", 1, 0, ECX, 9, NONE)                                                                              \
    X(SSE4_1, "sse4.1", 1, 0, ECX, 19, NONE)                                                                           \
    X(SSE4_2, "sse4.2", 1, 0, ECX, 20, NONE)                                                                           \
    X(MOVBE, "movbe", 1, 0, ECX, 22, NONE)                                                                             \
    X(OSXSAVE, "osxsave", 1, 0, ECX, 27, NONE)                                                                         \
    X(CLFLUSH, "clflush", 1, 0, EDX, 19, NONE)                                                                         \
    X(ERMS, "erms", 7, 0, EBX, 9, NONE)                                                                                \
    X(CLFLUSHOPT, "clflushopt", 7, 0, EBX, 23, NONE)                                                                   \
    X(CLWB, "clwb", 7, 0, EBX, 24, NONE)                                                                               \
    X(VPCLMULQDQ, "vpclmulqdq", 7, 0, ECX, 10, YMM)                                                                    \
    X(AVX512_VNNI, "avx512-vnni", 7, 0, ECX, 11, ZMM)                                                                  \
    X(CLDEMOTE, "cldemote", 7, 0, ECX, 25, NONE)                                                                       \
    X(FSRM, "fsrm", 7, 0, EDX, 4, NONE)                                                                                \
    X(AMX_TILE, "amx-tile", 7, 0, EDX, 24, AMX)                                                                        \
    X(FZRM, "fzrm", 7, 1, EAX, 10, NONE)                                                                               \
    X(FSRS, "fsrs", 7, 1, EAX, 11, NONE)                                                                               \
    X(FSRC, "fsrc", 7, 1, EAX, 12, NONE)                                                                               \
    X(AVX10, "avx10", 7, 1, EDX, 19, ZMM)                                                                              \
    X(XSAVEC, "xsavec", 0xd, 1, EAX, 1, NONE)                                                                          \
    X(XGETBV1, "xgetbv1", 0xd, 1, EAX, 2, NONE)                                                                        \
    X(PREFETCHW, "prefetchw", 0x80000001, 0, ECX, 8, NONE)                                                             \
    X(CLZERO, "clzero", 0x80000008, 0, EBX, 0, NONE)

enum wherry_cpu_feature {
#define X(id, name, leaf, subleaf, reg, bit, state) WHERRY_CPU_##id,
    WHERRY_CPU_FEATURES(X)
#undef X
        WHERRY_CPU_FEATURE_COUNT
};

enum wherry_cpu_vendor {
    WHERRY_CPU_OTHER,
    WHERRY_CPU_INTEL,
    WHERRY_CPU_AMD,
    WHERRY_CPU_HYGON,
    WHERRY_CPU_ZHAOXIN,
    WHERRY_CPU_CENTAUR
};

struct wherry_cpuid {
    uint32_t eax, ebx, ecx, edx;
};

/* Where CPUID leaves and XCR0 come from. xcr0 is called only when CPUID says OSXSAVE: XGETBV faults without it. */
struct wherry_cpu_source {
    struct wherry_cpuid (*cpuid)(const void *context, uint32_t leaf, uint32_t subleaf);
    uint64_t (*xcr0)(const void *context);
    const void *context;
};

struct wherry_cpu {
    uint64_t features; /* bit i: enum wherry_cpu_feature i, usable (the OS saves its registers) */
    uint64_t reported; /* the same as CPUID alone says */
    uint64_t unsaved;  /* of the reported: the OS does not save the registers. The rest that is reported and not usable
                          lacks a set that it builds on */
    uint64_t xcr0;     /* 0 without OSXSAVE */
    enum wherry_cpu_vendor vendor;
    char vendor_name[13];
    uint32_t family, model, stepping;  /* as displayed: extended fields added */
    uint32_t last_leaf, last_extended; /* the highest of each range; last_extended 0: no such range */
    bool topology_extensions;          /* AMD's TOPOEXT: 0x8000001D tells caches */
    bool hypervisor;
};

/* CPUID may trap at tens of microseconds a leaf in a virtual machine: this reads 0, 1, 7 (subleaves 0 and 1), 0xd
 * (subleaf 1), 0x80000000 and 0x80000001 at most, and so is fit for a constructor. No libc call. */
void wherry_cpu_decode(const struct wherry_cpu_source *source, struct wherry_cpu *cpu);
void wherry_cpu_detect(struct wherry_cpu *cpu);

/* Adds what no default is made of, of a leaf more: 0x80000008, which has CLZERO. For the workbench. */
void wherry_cpu_read_more(const struct wherry_cpu_source *source, struct wherry_cpu *cpu);
void wherry_cpu_detect_all(struct wherry_cpu *cpu);

/* The instructions themselves. */
struct wherry_cpu_source wherry_cpu_native(void);

static inline bool wherry_cpu_has(const struct wherry_cpu *cpu, enum wherry_cpu_feature feature)
{
    return cpu->features >> feature & 1;
}

/* What only people want to know: reads 0x40000000 under a hypervisor and 0x80000002 to 0x80000004. */
struct wherry_cpu_names {
    char brand[49];
    char hypervisor[13];
};

void wherry_cpu_read_names(const struct wherry_cpu_source *source, const struct wherry_cpu *cpu,
                           struct wherry_cpu_names *names);

#endif
