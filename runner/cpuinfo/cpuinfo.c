#include "commands.h"
#include "cpuinfo/sysfs.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"L1d", "L1i", "L2", "L3"};
static const char *const vendor_names[] = {"other", "Intel", "AMD", "Hygon", "Zhaoxin", "Centaur"};
static const char *const feature_names[] = {
#define X(id, name, leaf, subleaf, reg, bit, state) name,
    WHERRY_CPU_FEATURES(X)
#undef X
};

struct info {
    struct wherry_cpu cpu;
    struct wherry_cpu_names names;
    struct wherry_caches caches;
    struct wherry_believed believed;
};

static void print_features(const char *title, uint64_t set)
{
    printf("%-12s", title);
    for (int i = 0; i < WHERRY_CPU_FEATURE_COUNT; i++)
        if (set >> i & 1)
            printf(" %s", feature_names[i]);
    puts(set ? "" : " none");
}

static void print_text(const struct info *in)
{
    const struct wherry_cpu *cpu = &in->cpu;
    printf("%-12s %s (%s)\n", "vendor", vendor_names[cpu->vendor], cpu->vendor_name);
    printf("%-12s %s\n", "brand", in->names.brand[0] ? in->names.brand : "not told");
    printf("%-12s family %" PRIu32 ", model %" PRIu32 ", stepping %" PRIu32 "\n", "", cpu->family, cpu->model,
           cpu->stepping);
    printf("%-12s %s\n", "hypervisor",
           !cpu->hypervisor          ? "none"
           : in->names.hypervisor[0] ? in->names.hypervisor
                                     : "unnamed");
    printf("%-12s 0x%" PRIx64 "\n", "xcr0", cpu->xcr0);
    print_features("usable", cpu->features);
    print_features("OS lacks", cpu->reported & ~cpu->features);
    printf("\n%-6s %-14s %10s %6s %6s %10s\n", "cache", "source", "KiB", "line B", "ways", "CPUs");
    for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
        for (int s = 0; s < WHERRY_CACHES_SOURCE_COUNT; s++) {
            const struct wherry_cache *c = &in->caches.of[s][l];
            if (c->present)
                printf("%-6s %-14s %10" PRIu64 " %6" PRIu32 " %6" PRIu32 " %10" PRIu32 "\n", level_names[l],
                       wherry_cache_source_names[s], c->size >> 10, c->line, c->ways, c->shared);
        }
        printf("%-6s %-14s %10" PRIu64 "  %s%s%s\n", level_names[l], "believed", in->believed.size[l] >> 10,
               in->believed.reason[l] == WHERRY_CACHE_DEFAULT ? "" : wherry_cache_source_names[in->believed.source[l]],
               in->believed.reason[l] == WHERRY_CACHE_DEFAULT ? "" : ": ",
               wherry_cache_reason_names[in->believed.reason[l]]);
    }
    puts("CPUs: logical CPUs that share the cache; 0 in ways or CPUs: not told");
}

static void json_features(const char *key, uint64_t set)
{
    json_open(key);
    for (int i = 0; i < WHERRY_CPU_FEATURE_COUNT; i++)
        json_bool(feature_names[i], set >> i & 1);
    json_close();
}

static void print_json(const struct info *in)
{
    const struct wherry_cpu *cpu = &in->cpu;
    json_begin("cpu");
    json_string("vendor", vendor_names[cpu->vendor]);
    json_string("vendor_id", cpu->vendor_name);
    json_string("brand", in->names.brand);
    json_uint("family", cpu->family);
    json_uint("model", cpu->model);
    json_uint("stepping", cpu->stepping);
    json_string("hypervisor", cpu->hypervisor ? in->names.hypervisor : NULL);
    json_uint("xcr0", cpu->xcr0);
    json_features("features", cpu->features);
    json_features("reported", cpu->reported);
    json_open("caches");
    for (int s = 0; s < WHERRY_CACHES_SOURCE_COUNT; s++) {
        json_open(wherry_cache_source_names[s]);
        for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
            const struct wherry_cache *c = &in->caches.of[s][l];
            if (!c->present)
                continue;
            json_open(level_names[l]);
            json_uint("size", c->size);
            json_uint("line", c->line);
            json_uint("ways", c->ways);
            json_uint("shared", c->shared);
            json_close();
        }
        json_close();
    }
    json_close();
    json_open("believed");
    for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
        bool told = in->believed.reason[l] != WHERRY_CACHE_DEFAULT;
        json_open(level_names[l]);
        json_uint("size", in->believed.size[l]);
        json_string("source", told ? wherry_cache_source_names[in->believed.source[l]] : NULL);
        json_string("reason", wherry_cache_reason_names[in->believed.reason[l]]);
        json_close();
    }
    json_close();
    json_end();
}

int command_cpu(int argc, char **argv)
{
    bool json = argc == 2 && !strcmp(argv[1], "--json");
    if (argc > 1 && !json)
        return misuse("cpu: unknown argument \"%s\"; it takes --json only",
                      argv[argc > 2 && !strcmp(argv[1], "--json") ? 2 : 1]);
    struct info in;
    struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &in.cpu);
    wherry_cpu_read_names(&native, &in.cpu, &in.names);
    wherry_cpu_read_caches(&native, &in.caches);
    sysfs_caches(&in.caches);
    in.believed = wherry_cpu_believe(in.cpu.vendor, &in.caches);
    if (json)
        print_json(&in);
    else
        print_text(&in);
    return EXIT_OK;
}
