#include "cpu/caches.h"

const char *const wherry_cache_source_names[] = {"leaf4", "leaf8000001d", "leaf80000005", "sysfs"};
const char *const wherry_cache_reason_names[] = {
    "as told by the first source within bounds",
    "many share it; the part of 16, at least 32 MiB",
    "sharers untold, or too few for so much; 32 MiB assumed",
    "none: the source that tells L2 tells no L3",
    "no source within bounds; the vendor's default",
};

enum { SUBLEAVES_MOST = 8, SUBLEAF_OF_L3 = 3 };

/* Leaves 4 and 0x8000001D share one layout. False when the subleaf ends the list. The first entry of a level holds. */
static bool read_entry(const struct wherry_cpu_source *source, uint32_t leaf, uint32_t subleaf, bool only_l3,
                       struct wherry_cache *to)
{
    struct wherry_cpuid r = source->cpuid(source->context, leaf, subleaf);
    uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
    if (type == 0)
        return false;
    int at = level == 1 && type == 1                  ? WHERRY_L1D
             : level == 1 && type == 2                ? WHERRY_L1I
             : level == 2 && (type == 1 || type == 3) ? WHERRY_L2
             : level == 3 && (type == 1 || type == 3) ? WHERRY_L3
                                                      : -1;
    if (at < 0 || to[at].present || (only_l3 && at != WHERRY_L3))
        return true;
    uint32_t line = (r.ebx & 0xfff) + 1, partitions = (r.ebx >> 12 & 0x3ff) + 1, ways = (r.ebx >> 22) + 1;
    to[at] = (struct wherry_cache){.present = true,
                                   .size = (uint64_t)line * partitions * ways * ((uint64_t)r.ecx + 1),
                                   .line = line,
                                   .ways = ways,
                                   .shared = (r.eax >> 14 & 0xfff) + 1,
                                   .fully_associative = r.eax >> 9 & 1};
    return true;
}

static void walk_list(const struct wherry_cpu_source *source, uint32_t leaf, struct wherry_cache *to)
{
    for (uint32_t i = 0; i < SUBLEAVES_MOST && read_entry(source, leaf, i, false, to); i++)
        ;
}

static void put_old(struct wherry_cache *to, uint64_t size, uint32_t line, bool enabled, uint32_t ways, bool full)
{
    if (full)
        ways = line ? (uint32_t)(size / line) : 0;
    *to = (struct wherry_cache){
        .present = size != 0 && enabled, .size = size, .line = line, .ways = ways, .fully_associative = full};
}

static void put_old_l1(struct wherry_cache *to, uint32_t r)
{
    uint32_t ways = r >> 16 & 255;
    put_old(to, (uint64_t)(r >> 24) << 10, r & 255, ways != 0, ways, ways == 255);
}

static void put_old_coded(struct wherry_cache *to, uint64_t size, uint32_t r)
{
    /* 0: disabled; 7 (Intel) and 9 (AMD): told by the list of caches; 15: fully associative */
    static const uint8_t ways[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};
    uint32_t code = r >> 12 & 15;
    put_old(to, size, r & 255, code != 0, ways[code], code == 15);
}

static void read_old(const struct wherry_cpu_source *source, uint32_t last_extended, struct wherry_cache *to)
{
    if (last_extended >= 0x80000005) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x80000005, 0);
        put_old_l1(&to[WHERRY_L1D], r.ecx);
        put_old_l1(&to[WHERRY_L1I], r.edx);
    }
    if (last_extended >= 0x80000006) {
        struct wherry_cpuid r = source->cpuid(source->context, 0x80000006, 0);
        put_old_coded(&to[WHERRY_L2], (uint64_t)(r.ecx >> 16) << 10, r.ecx);
        put_old_coded(&to[WHERRY_L3], (uint64_t)(r.edx >> 18) << 19, r.edx);
    }
}

static bool has_source(enum wherry_cache_source which, uint32_t last_leaf, uint32_t last_extended, bool topology)
{
    if (which == WHERRY_CACHES_LEAF4)
        return last_leaf >= 4;
    /* Without TOPOEXT the leaf is reserved. */
    return which == WHERRY_CACHES_LEAF8_1D ? topology && last_extended >= 0x8000001d : which == WHERRY_CACHES_LEAF8_5;
}

static uint32_t leaf_of(enum wherry_cache_source which) { return which == WHERRY_CACHES_LEAF4 ? 4 : 0x8000001d; }

void wherry_cpu_read_caches(const struct wherry_cpu_source *source, struct wherry_caches *caches)
{
    *caches = (struct wherry_caches){0};
    uint32_t last = source->cpuid(source->context, 0, 0).eax;
    uint32_t extended = source->cpuid(source->context, 0x80000000, 0).eax;
    if (extended >> 16 != 0x8000)
        extended = 0;
    bool topology = extended >= 0x80000001 && (source->cpuid(source->context, 0x80000001, 0).ecx >> 22 & 1);
    for (enum wherry_cache_source s = 0; s < WHERRY_CACHES_SYSFS; s++) {
        if (!has_source(s, last, extended, topology))
            continue;
        if (s == WHERRY_CACHES_LEAF8_5) {
            read_old(source, extended, caches->of[s]);
            continue;
        }
        /* Even where the list seems to end before it: the short path looks there first, and the two must agree. */
        read_entry(source, leaf_of(s), SUBLEAF_OF_L3, true, caches->of[s]);
        walk_list(source, leaf_of(s), caches->of[s]);
    }
}

/* Below and above, a hypervisor made it up. */
static const struct {
    uint64_t least, most;
} bounds[WHERRY_CACHE_LEVEL_COUNT] = {
    {8 << 10, 256 << 10}, {8 << 10, 256 << 10}, {64 << 10, 16 << 20}, {512 << 10, (uint64_t)4 << 30}};

/* A small one of the vendor's common parts. */
static const uint32_t defaults[][WHERRY_CACHE_LEVEL_COUNT] = {
    [WHERRY_CPU_OTHER] = {32 << 10, 32 << 10, 256 << 10, 8 << 20},
    [WHERRY_CPU_INTEL] = {32 << 10, 32 << 10, 256 << 10, 16 << 20},
    [WHERRY_CPU_AMD] = {32 << 10, 32 << 10, 512 << 10, 16 << 20},
    [WHERRY_CPU_HYGON] = {32 << 10, 32 << 10, 512 << 10, 8 << 20},
    [WHERRY_CPU_ZHAOXIN] = {32 << 10, 32 << 10, 256 << 10, 4 << 20},
    [WHERRY_CPU_CENTAUR] = {32 << 10, 32 << 10, 256 << 10, 4 << 20},
};

/* AMD's core complexes have 16 or 32 MiB, 96 MiB with stacked cache, for 16 threads; Intel's desktop parts end at 36.
 * Where more CPUs share a larger one (a server's socket), a thread counts on what it would get among SHARERS. */
static const uint64_t slice = 32 << 20, slice_most = 96 << 20;
enum { SHARERS = 16 };

static bool is_amd(enum wherry_cpu_vendor vendor) { return vendor == WHERRY_CPU_AMD || vendor == WHERRY_CPU_HYGON; }

enum { ORDER = 4 };

static const enum wherry_cache_source *order_of(enum wherry_cpu_vendor vendor)
{
    static const enum wherry_cache_source amd[ORDER] = {WHERRY_CACHES_LEAF8_1D, WHERRY_CACHES_LEAF4,
                                                        WHERRY_CACHES_SYSFS, WHERRY_CACHES_LEAF8_5},
                                          others[ORDER] = {WHERRY_CACHES_LEAF4, WHERRY_CACHES_LEAF8_1D,
                                                           WHERRY_CACHES_SYSFS, WHERRY_CACHES_LEAF8_5};
    return is_amd(vendor) ? amd : others;
}

static bool within_bounds(const struct wherry_cache *cache, int level)
{
    return cache->present && cache->size >= bounds[level].least && cache->size <= bounds[level].most;
}

static void believe_l3(struct wherry_believed *b, const struct wherry_cache *l3)
{
    uint64_t size = l3->size;
    b->reason[WHERRY_L3] = WHERRY_CACHE_FIRST_SANE;
    if (size > slice && l3->shared > SHARERS) {
        size = size / l3->shared * SHARERS;
        size = size < slice ? slice : size > slice_most ? slice_most : size;
        b->reason[WHERRY_L3] = WHERRY_CACHE_SHARE;
    } else if (size > slice && (size > slice_most || l3->shared == 0)) {
        size = slice;
        b->reason[WHERRY_L3] = WHERRY_CACHE_SUM;
    }
    b->size[WHERRY_L3] = size;
}

/* Some source that could tell an L3 tells an L2, and none tells an L3, not even one out of bounds. */
static bool ends_at_l2(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches)
{
    bool l2 = false;
    for (enum wherry_cache_source s = 0; s < WHERRY_CACHES_SOURCE_COUNT; s++) {
        if (caches->of[s][WHERRY_L3].present)
            return false;
        /* Of Intel's old leaf the L3 is reserved, so that its silence says nothing. */
        l2 |= within_bounds(&caches->of[s][WHERRY_L2], WHERRY_L2) && (s != WHERRY_CACHES_LEAF8_5 || is_amd(vendor));
    }
    return l2;
}

static void believe_level(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches, int level,
                          struct wherry_believed *b)
{
    const enum wherry_cache_source *order = order_of(vendor);
    for (int i = 0; i < ORDER; i++) {
        const struct wherry_cache *cache = &caches->of[order[i]][level];
        if (!within_bounds(cache, level))
            continue;
        b->source[level] = order[i];
        b->size[level] = cache->size;
        b->reason[level] = WHERRY_CACHE_FIRST_SANE;
        if (level == WHERRY_L3)
            believe_l3(b, cache);
        return;
    }
    b->source[level] = WHERRY_CACHES_SOURCE_COUNT;
    b->size[level] = defaults[vendor][level];
    b->reason[level] = WHERRY_CACHE_DEFAULT;
    if (level == WHERRY_L3 && ends_at_l2(vendor, caches)) {
        b->size[level] = 0;
        b->reason[level] = WHERRY_CACHE_NONE;
    }
}

struct wherry_believed wherry_cpu_believe(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches)
{
    struct wherry_believed b;
    for (int level = 0; level < WHERRY_CACHE_LEVEL_COUNT; level++)
        believe_level(vendor, caches, level, &b);
    return b;
}

uint64_t wherry_cpu_believed_last_level(const struct wherry_believed *believed)
{
    return believed->size[believed->reason[WHERRY_L3] == WHERRY_CACHE_NONE ? WHERRY_L2 : WHERRY_L3];
}

static bool settles(enum wherry_cpu_vendor vendor, const struct wherry_caches *caches, struct wherry_believed *b)
{
    believe_level(vendor, caches, WHERRY_L3, b);
    return b->source[WHERRY_L3] != WHERRY_CACHES_SOURCE_COUNT;
}

/* Sources in the order of belief: what settles the L3 is not changed by a later one. */
uint64_t wherry_cpu_last_level(const struct wherry_cpu_source *source, const struct wherry_cpu *cpu)
{
    const enum wherry_cache_source *order = order_of(cpu->vendor);
    struct wherry_caches caches = {0};
    struct wherry_believed b;
    for (int i = 0; i < ORDER; i++) {
        struct wherry_cache *to = caches.of[order[i]];
        if (!has_source(order[i], cpu->last_leaf, cpu->last_extended, cpu->topology_extensions))
            continue;
        if (order[i] == WHERRY_CACHES_LEAF8_5) {
            read_old(source, cpu->last_extended, to);
        } else {
            read_entry(source, leaf_of(order[i]), SUBLEAF_OF_L3, true, to);
            if (settles(cpu->vendor, &caches, &b))
                break;
            walk_list(source, leaf_of(order[i]), to);
        }
        if (settles(cpu->vendor, &caches, &b))
            break;
    }
    b = wherry_cpu_believe(cpu->vendor, &caches);
    return wherry_cpu_believed_last_level(&b);
}
