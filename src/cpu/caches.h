/* The caches, each source kept apart, and which of them to believe. Reads no file: sysfs is a source that the runner
 * fills in. */
#ifndef WHERRY_CACHES_H
#define WHERRY_CACHES_H

#include "cpu/cpu.h"

enum wherry_cache_source {
    WHERRY_CACHES_LEAF4,    /* Intel, Zhaoxin: an L3 is told as the whole socket's */
    WHERRY_CACHES_LEAF8_1D, /* AMD, Hygon: 0x8000001D; an L3 is told as one core complex's */
    WHERRY_CACHES_LEAF8_5,  /* AMD's old leaves, 0x80000005 and 0x80000006: the whole package's L3; of Intel L2 only */
    WHERRY_CACHES_SYSFS,
    WHERRY_CACHES_SOURCE_COUNT
};

extern const char *const wherry_cache_source_names[WHERRY_CACHES_SOURCE_COUNT];

enum wherry_cache_level { WHERRY_L1D, WHERRY_L1I, WHERRY_L2, WHERRY_L3, WHERRY_CACHE_LEVEL_COUNT };

struct wherry_cache {
    bool present;
    uint64_t size;
    uint32_t line, ways; /* ways 0: not told; all of the lines when fully associative */
    uint32_t shared;     /* logical CPUs, 0: not told; Intel rounds up to a power of two */
    bool fully_associative;
};

struct wherry_caches {
    struct wherry_cache of[WHERRY_CACHES_SOURCE_COUNT][WHERRY_CACHE_LEVEL_COUNT];
};

/* Reads 4 and 0x8000001D (up to eight subleaves each), 0x80000005 and 0x80000006: too many traps for a constructor in
 * a virtual machine. Leaves the sysfs source absent. */
void wherry_cpu_read_caches(const struct wherry_cpu_source *source, struct wherry_caches *caches);

/* Why that size. What is wanted is not what exists but what one thread can count on. */
enum wherry_cache_reason {
    WHERRY_CACHE_FIRST_SANE, /* as the first source tells it, in the vendor's order */
    WHERRY_CACHE_SHARE,      /* a large L3 that many share: what 16 of them would get, at least a common slice */
    WHERRY_CACHE_SUM,        /* larger than those told to share it can have, or they are not told: a common slice */
    WHERRY_CACHE_NONE,       /* the source that tells L2 tells no L3: size 0 */
    WHERRY_CACHE_DEFAULT,    /* no source within bounds: the vendor's default */
    WHERRY_CACHE_REASON_COUNT
};

extern const char *const wherry_cache_reason_names[WHERRY_CACHE_REASON_COUNT];

struct wherry_believed {
    uint64_t size[WHERRY_CACHE_LEVEL_COUNT];
    enum wherry_cache_source source[WHERRY_CACHE_LEVEL_COUNT]; /* SOURCE_COUNT for NONE and DEFAULT */
    enum wherry_cache_reason reason[WHERRY_CACHE_LEVEL_COUNT];
};

struct wherry_believed wherry_cpu_believe(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches);

/* The size of the last level that is believed: the L3, or the L2 of a CPU without one. Never 0. */
uint64_t wherry_cpu_believed_last_level(const struct wherry_believed *believed);

/* The same for the sources that CPUID has, but reads no further than the first source that settles it: one leaf on
 * most CPUs. Fit for a constructor. */
uint64_t wherry_cpu_last_level(const struct wherry_cpu_source *source, const struct wherry_cpu *cpu);

#endif
