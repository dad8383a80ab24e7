/* Decodes the dump of a CPU (a file of tests/fixtures/cpus, or "--dump": writes this machine's) and compares it with
 * the expectations that the file states. One line for each that fails.
 *
 * A dump has lines of "leaf subleaf eax ebx ecx edx" and one "xcr0 VALUE", all hexadecimal. Then come expectations:
 *   vendor ID, family N, model N, stepping N, brand TEXT (none: it tells none), hypervisor TEXT (none: no
 *   hypervisor), tier NAME
 *   has FEATURE, has-not FEATURE (usable), os-lacks FEATURE (CPUID reports it, the OS does not save its registers),
 *   orphan FEATURE (CPUID reports it without a set that it builds on)
 *   cache SOURCE LEVEL KiB [LINE WAYS SHARED]   (0: not told)
 *   believed LEVEL KiB REASON                   (REASON: one of the words below)
 *   last-level KiB READS                        (what the short path says, after so many reads of CPUID)
 *   stream KiB                                  (from where copies and sets bypass the caches)
 *   strings BYTES COPY-KiB SET-KiB [SET-BYTES], strings unused   (from where string instructions are used, sets from
 * SET-BYTES where that is another size, up to the former; copies and sets with a destination written lately)
 */
#include "cpu/caches.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAVES_MOST = 128, LEVELS = WHERRY_CACHE_LEVEL_COUNT };
struct dump {
    struct {
        uint32_t leaf, subleaf;
        struct wherry_cpuid r;
    } at[LEAVES_MOST];
    int count;
    uint64_t xcr0;
};
struct decoded {
    struct wherry_cpu cpu;
    struct wherry_cpu_names names;
    struct wherry_caches caches;
    struct wherry_believed believed;
    uint64_t last_level;
    int reads;
};

static const char *const features[] = {
#define X(id, name, leaf, subleaf, reg, bit, state) name,
    WHERRY_CPU_FEATURES(X)
#undef X
};
static const char *const levels[LEVELS] = {"L1d", "L1i", "L2", "L3"};
static const char *const reasons[WHERRY_CACHE_REASON_COUNT] = {"told", "share", "sum", "none", "default"};
static int reads, failures;

static const struct wherry_cpuid *find(const struct dump *d, uint32_t leaf, uint32_t subleaf)
{
    for (int i = 0; i < d->count; i++)
        if (d->at[i].leaf == leaf && d->at[i].subleaf == subleaf)
            return &d->at[i].r;
    return NULL;
}

/* Past the end of its range a real CPU answers with the data of some other leaf; whoever looks there must fail. */
static struct wherry_cpuid dump_cpuid(const void *context, uint32_t leaf, uint32_t subleaf)
{
    const struct wherry_cpuid other = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, none = {0, 0, 0, 0};
    const struct wherry_cpuid *found = find(context, leaf, subleaf), *range = find(context, leaf & 0xc0000000, 0);
    reads++;
    if (leaf >= 0x40000000 && leaf < 0x80000000)
        return found ? *found : none;
    if (!range || leaf > range->eax)
        return other;
    if (leaf == 7 && subleaf && (!find(context, 7, 0) || subleaf > find(context, 7, 0)->eax))
        return other;
    return found ? *found : none;
}

static uint64_t dump_xcr0(const void *context) { return ((const struct dump *)context)->xcr0; }

static int write_dump(void)
{
    static const uint32_t leaves[][2] = {{0, 1},          {1, 1},          {4, 5},          {7, 2},
                                         {0xd, 2},        {0x40000000, 1}, {0x80000000, 1}, {0x80000001, 1},
                                         {0x80000002, 1}, {0x80000003, 1}, {0x80000004, 1}, {0x80000005, 1},
                                         {0x80000006, 1}, {0x80000008, 1}, {0x8000001d, 5}};
    struct wherry_cpu_source s = wherry_cpu_native();
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        for (uint32_t j = 0; j < leaves[i][1]; j++) {
            struct wherry_cpuid r = s.cpuid(NULL, leaves[i][0], j);
            printf("%08x %x %08x %08x %08x %08x\n", leaves[i][0], j, r.eax, r.ebx, r.ecx, r.edx);
        }
    if (s.cpuid(NULL, 1, 0).ecx >> 27 & 1)
        printf("xcr0 %" PRIx64 "\n", s.xcr0(NULL));
    return 0;
}

static void decode(const struct dump *d, struct decoded *to)
{
    const struct wherry_cpu_source s = {dump_cpuid, dump_xcr0, d};
    memset(to, 0xff, sizeof *to); /* what is not decoded is wrong, and no lucky zero */
    wherry_cpu_decode(&s, &to->cpu);
    wherry_cpu_read_more(&s, &to->cpu);
    wherry_cpu_read_names(&s, &to->cpu, &to->names);
    wherry_cpu_read_caches(&s, &to->caches);
    to->believed = wherry_cpu_believe(to->cpu.vendor, &to->caches);
    reads = 0;
    to->last_level = wherry_cpu_last_level(&s, &to->cpu);
    to->reads = reads;
}

static int index_of(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(word, words[i]))
            return i;
    return -1;
}

static bool cache_is(const struct decoded *c, const char *line)
{
    char source[64], level[64];
    unsigned long long kib;
    unsigned want[3];
    int got = sscanf(line, "cache %63s %63s %llu %u %u %u", source, level, &kib, want, want + 1, want + 2);
    int s = got < 3 ? -1 : index_of(source, wherry_cache_source_names, WHERRY_CACHES_SOURCE_COUNT);
    int l = got < 3 ? -1 : index_of(level, levels, LEVELS);
    if (s < 0 || l < 0 || (got != 3 && got != 6))
        return false;
    const struct wherry_cache *cache = &c->caches.of[s][l];
    return cache->size == kib << 10 && cache->present == (kib != 0) &&
           (got == 3 || (cache->line == want[0] && cache->ways == want[1] && cache->shared == want[2]));
}

static bool believed_is(const struct decoded *c, const char *line)
{
    char level[64], reason[64];
    unsigned long long kib;
    if (sscanf(line, "believed %63s %llu %63s", level, &kib, reason) != 3)
        return false;
    int l = index_of(level, levels, LEVELS), r = index_of(reason, reasons, WHERRY_CACHE_REASON_COUNT);
    return l >= 0 && r >= 0 && c->believed.size[l] == kib << 10 && (int)c->believed.reason[l] == r &&
           (c->believed.source[l] == WHERRY_CACHES_SOURCE_COUNT) ==
               (r == WHERRY_CACHE_NONE || r == WHERRY_CACHE_DEFAULT);
}

static bool feature_is(const struct decoded *c, const char *key, const char *name)
{
    int i = index_of(name, features, WHERRY_CPU_FEATURE_COUNT);
    const uint64_t bit = i < 0 ? 0 : (uint64_t)1 << i;
    const bool usable = c->cpu.features & bit, reported = c->cpu.reported & bit, unsaved = c->cpu.unsaved & bit;
    if (i < 0)
        return false;
    if (!strcmp(key, "os-lacks"))
        return reported && unsaved && !usable;
    if (!strcmp(key, "orphan"))
        return reported && !unsaved && !usable;
    return usable == !strcmp(key, "has");
}

/* The text after its padding, up to the end of the line. */
static bool text_is(const char *text, const char *want)
{
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ')
        n--;
    while (n && *text == ' ')
        text++, n--;
    return n == strcspn(want, "\n") && !strncmp(text, want, n);
}

static bool holds(const struct decoded *c, const char *line)
{
    char key[64], word[64];
    int at = 0;
    if (sscanf(line, "%63s %n%63s", key, &at, word) != 2)
        return false;
    char *end;
    unsigned long long n = strtoull(word, &end, 10);
    bool number = !*end;
    if (!strcmp(key, "has") || !strcmp(key, "has-not") || !strcmp(key, "os-lacks") || !strcmp(key, "orphan"))
        return feature_is(c, key, word);
    if (!strcmp(key, "cache"))
        return cache_is(c, line);
    if (!strcmp(key, "believed"))
        return believed_is(c, line);
    if (!strcmp(key, "vendor"))
        return text_is(c->cpu.vendor_name, line + at);
    if (!strcmp(key, "brand"))
        return *c->names.brand ? text_is(c->names.brand, line + at) : !strcmp(word, "none");
    if (!strcmp(key, "hypervisor"))
        return c->cpu.hypervisor ? text_is(c->names.hypervisor, line + at) : !strcmp(word, "none");
    if (!strcmp(key, "tier"))
        return !strcmp(word, wherry_isa_names[wherry_plan_isa(&c->cpu)]);
    const struct wherry_thresholds plan = wherry_plan_thresholds(&c->cpu, wherry_plan_isa(&c->cpu), c->last_level);
    if (!strcmp(key, "stream")) {
        /* Of sets, and of copies where that is another. */
        unsigned long long set, copy;
        const int found = sscanf(line, "stream %llu %llu", &set, &copy);
        return found >= 1 && plan.set_stream_recent_from == set << 10 &&
               plan.copy_stream_recent_from == (found == 2 ? copy : set) << 10;
    }
    if (!strcmp(key, "stream-far")) { /* to where nothing was touched lately; unused: no sooner than elsewhere */
        if (!strcmp(word, "unused"))
            return plan.copy_stream_from == plan.copy_stream_recent_from &&
                   plan.set_stream_from == plan.set_stream_recent_from;
        return number && plan.copy_stream_from == n << 10 && plan.set_stream_from == n << 10;
    }
    if (!strcmp(key, "strings")) {
        const bool none = plan.copy_rep_from == SIZE_MAX && plan.set_rep_from == SIZE_MAX;
        /* Sets from another size, where that is told. */
        unsigned long long from, copy, set, sets_from;
        if (!strcmp(word, "unused"))
            return none;
        const int found = sscanf(line, "strings %llu %llu %llu %llu", &from, &copy, &set, &sets_from);
        return found >= 3 && plan.copy_rep_from == from && plan.set_rep_from == (found == 4 ? sets_from : from) &&
               plan.copy_rep_recent_from == copy << 10 && plan.set_rep_recent_from == set << 10 &&
               plan.copy_rep_to == plan.copy_stream_from && plan.set_rep_to == plan.set_stream_from;
    }
    if (!strcmp(key, "strings-of")) {
        /* Of a tier: where copies, copies to what was written lately, sets, and sets of such begin, which distance is
         * slow, and from where it is no matter, in bytes. */
        char tier[32];
        size_t copy, copy_recent, set, set_recent, slow, all;
        if (sscanf(line, "strings-of %31s %zu %zu %zu %zu %zu %zu", tier, &copy, &copy_recent, &set, &set_recent, &slow,
                   &all) != 7)
            return false;
        for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++)
            if (!strcmp(tier, wherry_isa_names[isa])) {
                const struct wherry_thresholds own =
                    wherry_plan_thresholds(&c->cpu, (enum wherry_isa)isa, c->last_level);
                return own.copy_rep_from == copy && own.copy_rep_recent_from == copy_recent &&
                       own.set_rep_from == set && own.set_rep_recent_from == set_recent &&
                       own.copy_rep_slow_ahead == slow && own.copy_rep_all_from == all;
            }
        return false;
    }
    if (!strcmp(key, "backward"))
        return number && plan.copy_backward_ahead == n;
    if (!strcmp(key, "ymm"))
        return strcmp(word, "unused") ? number && plan.copy_ymm_from == n : plan.copy_ymm_from == SIZE_MAX;
    if (!strcmp(key, "source-lines"))
        return strcmp(word, "any") ? number && plan.copy_source_lines_to == n : plan.copy_source_lines_to == SIZE_MAX;
    if (!strcmp(key, "parts"))
        return strcmp(word, "unused") ? number && plan.copy_parts_from == n : plan.copy_parts_from == SIZE_MAX;
    if (!strcmp(key, "last-level")) {
        unsigned long long kib;
        int most;
        return sscanf(line, "last-level %llu %d", &kib, &most) == 2 && c->last_level == kib << 10 && c->reads == most;
    }
    return number && ((!strcmp(key, "family") && n == c->cpu.family) || (!strcmp(key, "model") && n == c->cpu.model) ||
                      (!strcmp(key, "stepping") && n == c->cpu.stepping));
}

/* The short path must say what the full belief says, also where any one leaf is blank or senseless. */
static void compare_paths(const struct dump *d)
{
    for (int i = -1; i < d->count; i++)
        for (int fill = 0; fill <= (i < 0 ? 0 : 0xff); fill += 0xff) {
            struct dump bent = *d;
            struct decoded c;
            if (i >= 0)
                memset(&bent.at[i].r, fill, sizeof bent.at[i].r);
            decode(&bent, &c);
            uint64_t full = wherry_cpu_believed_last_level(&c.believed);
            if (c.last_level == full && full != 0)
                continue;
            failures++;
            printf("failed: last level %" PRIu64 " KiB by the short path, %" PRIu64 " by the full belief", c.last_level,
                   full);
            if (i >= 0)
                printf("; leaf %08x %x filled with %02x", d->at[i].leaf, d->at[i].subleaf, (unsigned)fill);
            puts("");
        }
}

#define BIT(feature) ((uint64_t)1 << WHERRY_CPU_##feature)
static const uint64_t avx2 = BIT(AVX2) | BIT(BMI1) | BIT(BMI2),
                      avx512 = avx2 | BIT(AVX512F) | BIT(AVX512BW) | BIT(AVX512VL) | BIT(AVX512DQ),
                      crc32 = BIT(SSE4_2) | BIT(PCLMULQDQ);
static const struct need {
    enum wherry_needs needs;
    uint64_t features;
} all_needs[] = {
    {WHERRY_NEEDS_BASE, 0},
    {WHERRY_NEEDS_AVX2, avx2},
    {WHERRY_NEEDS_AVX512, avx512},
    {WHERRY_NEEDS_CRC32, crc32},
    {WHERRY_NEEDS_VPCLMUL, avx512 | crc32 | BIT(VPCLMULQDQ)},
    {WHERRY_NEEDS_VPCLMUL_AVX2, avx2 | crc32 | BIT(VPCLMULQDQ)},
    {WHERRY_NEEDS_VNNI, avx512 | BIT(AVX512_VNNI)},
    {WHERRY_NEEDS_CLZERO, BIT(CLZERO)},
};
enum { NEEDS = sizeof all_needs / sizeof *all_needs };

static bool has_all(const struct wherry_cpu *cpu, enum wherry_needs needs)
{
    for (int i = 0; i < NEEDS; i++)
        if (all_needs[i].needs == needs)
            return (cpu->features & all_needs[i].features) == all_needs[i].features;
    return false;
}

static enum wherry_needs crc_wanted(const struct wherry_cpu *cpu, enum wherry_isa isa, bool own)
{
    if (has_all(cpu, WHERRY_NEEDS_VPCLMUL) && isa >= WHERRY_ISA_AVX512)
        return WHERRY_NEEDS_VPCLMUL;
    if (has_all(cpu, WHERRY_NEEDS_VPCLMUL_AVX2) && own)
        return WHERRY_NEEDS_VPCLMUL_AVX2;
    return has_all(cpu, WHERRY_NEEDS_CRC32) && (own || isa != WHERRY_ISA_SSE2) ? WHERRY_NEEDS_CRC32 : WHERRY_NEEDS_BASE;
}

/* Of every set of the features that routines need: what can run, and what is chosen of it. A hypervisor may hide any.
 */
static void check_choices(void)
{
    static const uint64_t bits[] = {BIT(AVX2),      BIT(BMI1),       BIT(BMI2),        BIT(AVX512F),
                                    BIT(AVX512BW),  BIT(AVX512VL),   BIT(AVX512DQ),    BIT(SSE4_2),
                                    BIT(PCLMULQDQ), BIT(VPCLMULQDQ), BIT(AVX512_VNNI), BIT(CLZERO)};
    enum { BITS = sizeof bits / sizeof *bits };
    static const enum wherry_cpu_vendor vendors[] = {WHERRY_CPU_INTEL, WHERRY_CPU_AMD};
    for (unsigned set = 0; set < 2u << BITS; set++) {
        struct wherry_cpu cpu = {.vendor = vendors[set & 1]};
        for (int i = 0; i < BITS; i++)
            cpu.features |= set >> (i + 1) & 1 ? bits[i] : 0;
        bool good = true;
        for (int i = 0; i < NEEDS; i++)
            good &= wherry_plan_can_run(&cpu, all_needs[i].needs) == has_all(&cpu, all_needs[i].needs);
        const enum wherry_isa own = has_all(&cpu, WHERRY_NEEDS_AVX512) ? WHERRY_ISA_AVX512
                                    : has_all(&cpu, WHERRY_NEEDS_AVX2) ? WHERRY_ISA_AVX2
                                                                       : WHERRY_ISA_SSE2;
        good &= wherry_plan_isa(&cpu) == own;
        for (enum wherry_isa isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
            const enum wherry_needs needs = isa >= WHERRY_ISA_AVX512 ? WHERRY_NEEDS_AVX512
                                            : isa == WHERRY_ISA_AVX2 ? WHERRY_NEEDS_AVX2
                                                                     : WHERRY_NEEDS_BASE;
            const bool vnni = needs == WHERRY_NEEDS_AVX512 && has_all(&cpu, WHERRY_NEEDS_VNNI);
            const enum wherry_needs sum = vnni ? WHERRY_NEEDS_VNNI : needs;
            good &= wherry_plan_needs(isa) == needs && wherry_plan_csum(&cpu, isa) == sum;
            good &= wherry_plan_copy_csum(&cpu, isa) == (cpu.vendor == WHERRY_CPU_INTEL ? sum : needs);
            good &= wherry_plan_crc(&cpu, isa) == crc_wanted(&cpu, isa, isa == own);
        }
        if (!good) {
            failures++;
            printf("failed: the choices for a CPU with the features %016" PRIx64 "\n", cpu.features);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--dump"))
        return write_dump();
    check_choices();
    FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!f)
        return fprintf(stderr, "cpu-test: name one readable dump, or --dump\n"), 2;
    struct dump d = {0};
    struct decoded c;
    int expectations = 0;
    char line[256];
    while (fgets(line, sizeof line, f)) {
        uint32_t v[6];
        unsigned long long n;
        if (*line == '#' || *line == '\n')
            continue;
        bool leaf = sscanf(line, "%x %x %x %x %x %x", v, v + 1, v + 2, v + 3, v + 4, v + 5) == 6;
        if (leaf && d.count < LEAVES_MOST && !expectations) {
            d.at[d.count].leaf = v[0], d.at[d.count].subleaf = v[1];
            d.at[d.count++].r = (struct wherry_cpuid){v[2], v[3], v[4], v[5]};
        } else if (sscanf(line, "xcr0 %llx", &n) == 1) {
            d.xcr0 = n;
        } else {
            if (!expectations++)
                decode(&d, &c);
            if (leaf || !holds(&c, line)) {
                failures++;
                printf("failed: %s", line);
            }
        }
    }
    fclose(f);
    compare_paths(&d);
    if (!expectations)
        puts("failed: the dump states no expectation");
    return failures || !expectations;
}
