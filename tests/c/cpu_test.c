/* Decodes the dump of a CPU (a file of tests/fixtures/cpus, or "--dump": writes this machine's) and compares it with
 * the expectations that the file states. One line for each that fails. */
#include "cpu/caches.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAVES_MOST = 128 };
struct dump {
    struct {
        uint32_t leaf, subleaf;
        struct wherry_cpuid r;
    } at[LEAVES_MOST];
    int count, failures;
    uint64_t xcr0;
};

static struct wherry_cpuid dump_cpuid(const void *context, uint32_t leaf, uint32_t subleaf)
{
    const struct dump *d = context;
    for (int i = 0; i < d->count; i++)
        if (d->at[i].leaf == leaf && d->at[i].subleaf == subleaf)
            return d->at[i].r;
    return (struct wherry_cpuid){0, 0, 0, 0};
}

static uint64_t dump_xcr0(const void *context) { return ((const struct dump *)context)->xcr0; }

static const char *const features[] = {
#define X(id, name, leaf, subleaf, reg, bit, state) name,
    WHERRY_CPU_FEATURES(X)
#undef X
};

static int write_dump(void)
{
    static const uint32_t leaves[][2] = {{0, 1},          {1, 1},          {4, 5},          {7, 2},
                                         {0xd, 2},        {0x40000000, 1}, {0x80000000, 1}, {0x80000001, 1},
                                         {0x80000002, 1}, {0x80000003, 1}, {0x80000004, 1}, {0x80000005, 1},
                                         {0x80000006, 1}, {0x8000001d, 5}};
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

static void expect(struct dump *d, const char *line, bool right)
{
    if (!right && ++d->failures)
        printf("failed: %s", line);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--dump"))
        return write_dump();
    FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!f)
        return fprintf(stderr, "cpu-test: name one readable dump, or --dump\n"), 2;
    struct dump d = {0};
    struct wherry_cpu_source s = {dump_cpuid, dump_xcr0, &d};
    struct wherry_cpu cpu;
    struct wherry_caches caches;
    struct wherry_believed believed;
    bool decoded = false;
    int expectations = 0;
    static const char *const levels[] = {"L1d", "L1i", "L2", "L3"};
    char line[256], word[64], other[64];
    while (fgets(line, sizeof line, f)) {
        uint32_t v[6];
        unsigned long long n;
        if (*line == '#' || *line == '\n')
            continue;
        if (sscanf(line, "%x %x %x %x %x %x", v, v + 1, v + 2, v + 3, v + 4, v + 5) == 6 && d.count < LEAVES_MOST) {
            d.at[d.count].leaf = v[0], d.at[d.count].subleaf = v[1];
            d.at[d.count++].r = (struct wherry_cpuid){v[2], v[3], v[4], v[5]};
            continue;
        }
        if (sscanf(line, "xcr0 %llx", &n) == 1) {
            d.xcr0 = n;
            continue;
        }
        if (!decoded) {
            wherry_cpu_decode(&s, &cpu);
            wherry_cpu_read_caches(&s, &caches);
            believed = wherry_cpu_believe(cpu.vendor, &caches);
            decoded = true;
        }
        expectations++;
        bool has = !strncmp(line, "has ", 4), seen = false;
        if (sscanf(line, has ? "has %63s" : "has-not %63s", word) == 1) {
            for (int i = 0; i < WHERRY_CPU_FEATURE_COUNT; i++)
                if (!strcmp(features[i], word))
                    seen = true, expect(&d, line, (cpu.features >> i & 1) == has);
            expect(&d, line, seen);
        } else if (sscanf(line, "vendor %63s", word) == 1)
            expect(&d, line, !strcmp(word, cpu.vendor_name));
        else if (sscanf(line, "family %llu", &n) == 1)
            expect(&d, line, n == cpu.family);
        else if (sscanf(line, "model %llu", &n) == 1)
            expect(&d, line, n == cpu.model);
        else if (sscanf(line, "tier %63s", word) == 1)
            expect(&d, line, !strcmp(word, wherry_isa_names[wherry_plan_isa(&cpu)]));
        else if (sscanf(line, "cache %63s %63s %llu", word, other, &n) == 3) {
            for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
                if (!strcmp(levels[l], other) && !strcmp(word, "believed"))
                    seen = true, expect(&d, line, believed.size[l] >> 10 == n);
                for (int k = 0; k < WHERRY_CACHES_SOURCE_COUNT; k++)
                    if (!strcmp(levels[l], other) && !strcmp(word, wherry_cache_source_names[k]))
                        seen = true, expect(&d, line, caches.of[k][l].size >> 10 == n);
            }
            expect(&d, line, seen);
        } else
            expect(&d, line, false);
    }
    fclose(f);
    if (!expectations)
        puts("failed: the dump states no expectation");
    return d.failures || !expectations;
}
