#include "commands.h"
#include "cpuinfo/sysfs.h"
#include "dispatch/dispatch.h"
#include "json.h"
#include "plan/plan.h"
#include "routines/arrangement.h"
#include "wherry.h"

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
    struct wherry_thresholds by_default;
    uint64_t last_level; /* what the library's thresholds are made for: it asks CPUID alone */
};

enum { LABEL = 14, COLUMNS = 100 };

static void print_label(const char *label) { printf("%-*s", LABEL, label); }

/* The names of a set in columns as wide as a mail, then why they stand here. */
static void print_set(const char *label, uint64_t set, const char *why)
{
    int at = LABEL;
    print_label(label);
    for (int i = 0; i < WHERRY_CPU_FEATURE_COUNT; i++) {
        if (!(set >> i & 1))
            continue;
        int width = (int)strlen(feature_names[i]) + (at > LABEL);
        if (at + width > COLUMNS) {
            printf("\n%*s", LABEL, "");
            at = LABEL;
            width = (int)strlen(feature_names[i]);
        }
        printf("%s%s", at > LABEL ? " " : "", feature_names[i]);
        at += width;
    }
    puts(set ? "" : "none");
    if (set && why)
        printf("%*s%s\n", LABEL, "", why);
}

static void print_state(uint64_t xcr0)
{
    static const struct {
        uint64_t bits;
        const char *name;
    } states[] = {{0x1, "x87"}, {0x2, "SSE"}, {0x4, "AVX"}, {0xe0, "AVX-512"}, {0x200, "PKRU"}, {0x60000, "AMX"}};
    print_label("OS saves");
    if (!xcr0) {
        puts("no more than x87 and SSE (XSAVE is not enabled)");
        return;
    }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if ((xcr0 & states[i].bits) == states[i].bits)
            printf("%s ", states[i].name);
    printf("(XCR0 0x%" PRIx64 ")\n", xcr0);
}

static void print_number(uint64_t number, int width)
{
    if (number)
        printf(" %*" PRIu64, width, number);
    else
        printf(" %*s", width, "-");
}

static void print_caches(const struct info *in)
{
    printf("\n%-5s %-13s %9s %7s %5s %5s\n", "cache", "source", "KiB", "line B", "ways", "CPUs");
    for (int l = 0; l < WHERRY_CACHE_LEVEL_COUNT; l++) {
        for (int s = 0; s < WHERRY_CACHES_SOURCE_COUNT; s++) {
            const struct wherry_cache *c = &in->caches.of[s][l];
            if (!c->present)
                continue;
            printf("%-5s %-13s", level_names[l], wherry_cache_source_names[s]);
            print_number(c->size >> 10, 9);
            print_number(c->line, 7);
            print_number(c->ways, 5);
            print_number(c->shared, 5);
            puts("");
        }
        bool told = in->believed.source[l] != WHERRY_CACHES_SOURCE_COUNT;
        printf("%-5s %-13s", level_names[l], "believed");
        print_number(in->believed.size[l] >> 10, 9);
        printf("  %s%s%s\n", told ? wherry_cache_source_names[in->believed.source[l]] : "", told ? ": " : "",
               wherry_cache_reason_names[in->believed.reason[l]]);
    }
    puts("CPUs: logical CPUs that share it (leaf4 may round up); -: not told");
    const uint64_t believed = wherry_cpu_believed_last_level(&in->believed);
    printf("One thread counts on %" PRIu64 " KiB of last-level cache", believed >> 10);
    if (believed != in->last_level)
        printf("; the library, by CPUID alone, on %" PRIu64 " KiB", in->last_level >> 10);
    puts(".");
}

/* How the library in here was built (meson.options). */
static const char *const first_tier = WHERRY_FIRST_AVX2 ? "avx2" : "avx512";
static const char *const page_edge = WHERRY_EDGE_BRANCH ? "branch" : "select";

static void print_text(const struct info *in)
{
    const struct wherry_cpu *cpu = &in->cpu;
    /* Intel pads the front of its brands. */
    const char *brand = in->names.brand + strspn(in->names.brand, " ");
    print_label("vendor");
    printf("%s (%s)\n", vendor_names[cpu->vendor], cpu->vendor_name);
    print_label("brand");
    puts(*brand ? brand : "not told");
    print_label("model");
    printf("family %" PRIu32 ", model %" PRIu32 ", stepping %" PRIu32 "\n", cpu->family, cpu->model, cpu->stepping);
    print_label("hypervisor");
    puts(!cpu->hypervisor ? "none" : in->names.hypervisor[0] ? in->names.hypervisor : "one that gives no name");
    print_state(cpu->xcr0);
    print_label("tier");
    puts(wherry_isa_names[wherry_plan_isa(cpu)]);
    print_label("build");
    printf("%s's small sizes in place, page edge by %s\n", first_tier, page_edge);
    print_label("plan");
    puts(wherry_plan_status());
    print_set("usable", cpu->features, NULL);
    print_set("not saved", cpu->unsaved, "the CPU has these, the OS does not save their registers");
    const uint64_t orphans = cpu->reported & ~cpu->features & ~cpu->unsaved;
    if (orphans)
        print_set("not believed", orphans, "the CPU reports these without a set that they build on");
    print_caches(in);
}

static void json_features(const char *key, uint64_t set)
{
    json_open(key);
    for (int i = 0; i < WHERRY_CPU_FEATURE_COUNT; i++)
        json_bool(feature_names[i], set >> i & 1);
    json_close();
}

/* A threshold of SIZE_MAX, never, is null. */
static void json_plan(const char *key, enum wherry_isa isa, const struct wherry_thresholds *thresholds)
{
    json_open(key);
    json_string("choice", wherry_isa_names[isa]);
#define FIELD(field) thresholds->field == SIZE_MAX ? json_string(#field, NULL) : json_uint(#field, thresholds->field);
    WHERRY_THRESHOLDS(FIELD)
#undef FIELD
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
    json_string("tier", wherry_isa_names[wherry_plan_isa(cpu)]);
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
        bool told = in->believed.source[l] != WHERRY_CACHES_SOURCE_COUNT;
        json_open(level_names[l]);
        json_uint("size", in->believed.size[l]);
        json_string("source", told ? wherry_cache_source_names[in->believed.source[l]] : NULL);
        json_string("reason", wherry_cache_reason_names[in->believed.reason[l]]);
        json_close();
    }
    json_close();
    json_uint("last_level", in->last_level);
    json_open("build");
    json_string("first_tier", first_tier);
    json_string("page_edge", page_edge);
    json_close();
    json_open("plan");
    json_string("status", wherry_plan_status());
    json_plan("default", wherry_plan_isa(cpu), &in->by_default);
    json_plan("in_force", wherry_dispatch_isa(), &wherry_thresholds);
    json_close();
    json_end();
}

int command_cpu(int argc, char **argv)
{
    bool json = argc == 2 && !strcmp(argv[1], "--json");
    if (argc == 2 && !strcmp(argv[1], "--help")) {
        puts("usage: wherry-run cpu [--json]\n\nWhat this CPU is: features, caches by source and which are believed, "
             "the tier that the library takes.");
        return EXIT_OK;
    }
    if (argc > 1 && !json)
        return misuse("cpu: unknown argument \"%s\"; it takes --json only",
                      argv[argc > 2 && !strcmp(argv[1], "--json") ? 2 : 1]);
    struct info in;
    struct wherry_cpu_source native = wherry_cpu_native();
    wherry_cpu_decode(&native, &in.cpu);
    wherry_cpu_read_more(&native, &in.cpu);
    wherry_cpu_read_names(&native, &in.cpu, &in.names);
    wherry_cpu_read_caches(&native, &in.caches);
    sysfs_caches(&in.caches);
    in.believed = wherry_cpu_believe(in.cpu.vendor, &in.caches);
    in.last_level = wherry_cpu_last_level(&native, &in.cpu);
    in.by_default = wherry_plan_thresholds(&in.cpu, wherry_plan_isa(&in.cpu), in.last_level);
    if (json)
        print_json(&in);
    else
        print_text(&in);
    return EXIT_OK;
}
