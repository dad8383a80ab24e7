#include "cpu/caches.h"

const char *const wherry_cache_source_names[] = {"leaf4", "leaf8000001d", "leaf80000005", "sysfs"};
const char *const wherry_cache_reason_names[] = {"first source within bounds", "bounded to what one slice can hold",
                                                 "no source within bounds; vendor's default"};

enum { SUBLEAVES_MOST = 8 };

/* Leaves 4 and 0x8000001D share one layout. */
static void read_listed(const struct wherry_cpu_source *source, uint32_t leaf, struct wherry_cache *to)
{
    for (uint32_t i = 0; i < SUBLEAVES_MOST; i++) {
        struct wherry_cpuid r = source->cpuid(source->context, leaf, i);
        uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
        if (type == 0)
            return;
        int at = level == 1 && type == 1   ? WHERRY_L1D
                 : level == 1 && type == 2 ? WHERRY_L1I
                 : level == 2              ? WHERRY_L2
                 : level == 3              ? WHERRY_L3
                                           : -1;
        if (at < 0 || to[at].present)
            continue;
        uint32_t line = (r.ebx & 0xfff) + 1, partitions = (r.ebx >> 12 & 0x3ff) + 1, ways = (r.ebx >> 22) + 1;
        to[at] = (struct wherry_cache){.present = true,
                                       .size = (uint64_t)line * partitions * ways * ((uint64_t)r.ecx + 1),
                                       .line = line,
                                       .ways = ways,
                                       .shared = (r.eax >> 14 & 0xfff) + 1,
                                       .fully_associative = r.eax >> 9 & 1};
    }
}

static void put_old(struct wherry_cache *to, uint64_t size, uint32_t line, uint32_t ways, uint32_t full)
{
    *to = (struct wherry_cache){
        .present = size != 0 && ways != 0, .size = size, .line = line, .ways = ways, .fully_associative = ways == full};
    if (to->fully_associative)
        to->ways = line ? (uint32_t)(size / line) : 0;
    if (ways == 9 && full == 15)
        to->ways = 0; /* "see 0x8000001D" */
}

static uint32_t ways_of(uint32_t code)
{
    static const uint8_t ways[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 9, 32, 48, 64, 96, 128, 15};
    return ways[code & 15];
}

static void read_old(const struct wherry_cpu_source *source, uint32_t extended, struct wherry_cache *to)
{
    if (extended >= 0x80000005) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x80000005, 0);
        put_old(&to[WHERRY_L1D], (uint64_t)(r.ecx >> 24) << 10, r.ecx & 255, r.ecx >> 16 & 255, 255);
        put_old(&to[WHERRY_L1I], (uint64_t)(r.edx >> 24) << 10, r.edx & 255, r.edx >> 16 & 255, 255);
    }
    if (extended >= 0x80000006) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x80000006, 0);
        put_old(&to[WHERRY_L2], (uint64_t)(r.ecx >> 16) << 10, r.ecx & 255, ways_of(r.ecx >> 12), 15);
        put_old(&to[WHERRY_L3], (uint64_t)(r.edx >> 18) << 19, r.edx & 255, ways_of(r.edx >> 12), 15);
    }
}

void wherry_cpu_read_caches(const struct wherry_cpu_source *source, struct wherry_caches *caches)
{
    *caches = (struct wherry_caches){0};
    if (source->cpuid(source->context, 0, 0).eax >= 4)
        read_listed(source, 4, caches->of[WHERRY_CACHES_LEAF4]);
    uint32_t extended = source->cpuid(source->context, 0x80000000, 0).eax;
    if (extended >> 16 != 0x8000)
        return;
    read_old(source, extended, caches->of[WHERRY_CACHES_LEAF8_5]);
    /* Without TOPOEXT (0x80000001 ecx bit 22) the leaf is reserved. */
    if (extended >= 0x8000001d && source->cpuid(source->context, 0x80000001, 0).ecx >> 22 & 1)
        read_listed(source, 0x8000001d, caches->of[WHERRY_CACHES_LEAF8_1D]);
}

/* An L3 slice holds at most 96 MiB (a core die with stacked cache) on AMD; beyond that a sum over slices is told. */
static const struct {
    uint64_t least, most, fallback;
} bounds[WHERRY_CACHE_LEVEL_COUNT] = {{8 << 10, 256 << 10, 32 << 10},
                                      {8 << 10, 256 << 10, 32 << 10},
                                      {64 << 10, 16 << 20, 512 << 10},
                                      {512 << 10, 96 << 20, 16 << 20}};

struct wherry_believed wherry_cpu_believe(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches)
{
    bool amd = vendor == WHERRY_CPU_AMD || vendor == WHERRY_CPU_HYGON;
    const enum wherry_cache_source order[] = {amd ? WHERRY_CACHES_LEAF8_1D : WHERRY_CACHES_LEAF4,
                                              amd ? WHERRY_CACHES_LEAF4 : WHERRY_CACHES_LEAF8_1D, WHERRY_CACHES_SYSFS,
                                              WHERRY_CACHES_LEAF8_5};
    struct wherry_believed b;
    for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
        b.size[l] = l == WHERRY_L2 && vendor == WHERRY_CPU_INTEL ? 256 << 10 : bounds[l].fallback;
        b.source[l] = WHERRY_CACHES_SOURCE_COUNT;
        b.reason[l] = WHERRY_CACHE_DEFAULT;
        for (int i = 0; i < 4 && b.reason[l] != WHERRY_CACHE_FIRST_SANE; i++) {
            const struct wherry_cache *c = &caches->of[order[i]][l];
            if (!c->present || c->size < bounds[l].least)
                continue;
            bool sane = c->size <= bounds[l].most;
            if (!sane && (l != WHERRY_L3 || b.reason[l] == WHERRY_CACHE_SHARE))
                continue;
            /* A sum over slices: 32 MiB is the slice of most parts that tell so much. */
            b.size[l] = sane ? c->size : 32 << 20;
            b.source[l] = order[i];
            b.reason[l] = sane ? WHERRY_CACHE_FIRST_SANE : WHERRY_CACHE_SHARE;
        }
    }
    return b;
}
