/* The caches, each source kept apart, and which of them to believe. Reads no file: sysfs is a source that the runner
 * fills in. */
#ifndef WHERRY_CACHES_H
#define WHERRY_CACHES_H

#include "cpu/cpu.h"

enum wherry_cache_source {
    WHERRY_CACHES_LEAF4,    /* Intel, Zhaoxin */
    WHERRY_CACHES_LEAF8_1D, /* AMD, Hygon: 0x8000001D */
    WHERRY_CACHES_LEAF8_5,  /* AMD's old leaves, 0x80000005 and 0x80000006; of Intel L2 only */
    WHERRY_CACHES_SYSFS,
    WHERRY_CACHES_SOURCE_COUNT
};

extern const char *const wherry_cache_source_names[WHERRY_CACHES_SOURCE_COUNT];

enum wherry_cache_level { WHERRY_L1D, WHERRY_L1I, WHERRY_L2, WHERRY_L3, WHERRY_CACHE_LEVEL_COUNT };

struct wherry_cache {
    bool present;
    uint64_t size;
    uint32_t line, ways; /* ways 0: not told; all of the lines when fully associative */
    uint32_t shared;     /* logical CPUs, 0: not told */
    bool fully_associative;
};

struct wherry_caches {
    struct wherry_cache of[WHERRY_CACHES_SOURCE_COUNT][WHERRY_CACHE_LEVEL_COUNT];
};

/* Reads 4 and 0x8000001D (up to eight subleaves each), 0x80000005 and 0x80000006: too many traps for a constructor in
 * a virtual machine. Leaves the sysfs source absent. */
void wherry_cpu_read_caches(const struct wherry_cpu_source *source, struct wherry_caches *caches);

enum wherry_cache_reason {
    WHERRY_CACHE_FIRST_SANE, /* the first source, in the vendor's order, within bounds */
    WHERRY_CACHE_SHARE,      /* that source, but bounded: more than one slice can hold */
    WHERRY_CACHE_DEFAULT     /* no source within bounds */
};

extern const char *const wherry_cache_reason_names[3];

struct wherry_believed {
    uint64_t size[WHERRY_CACHE_LEVEL_COUNT];
    enum wherry_cache_source source[WHERRY_CACHE_LEVEL_COUNT]; /* no meaning for WHERRY_CACHE_DEFAULT */
    enum wherry_cache_reason reason[WHERRY_CACHE_LEVEL_COUNT];
};

struct wherry_believed wherry_cpu_believe(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches);

#endif
