#include "target.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cpu/caches.h"
#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "dispatch/watch.h"
#include "measure/packet_loops.h"
#include "target_internal.h"
#include "wherry.h"

enum { LEAST_WITH_METHODS = 128 }; /* below, no routine asks */

static struct wherry_cpu cpu;
static struct wherry_thresholds default_thresholds; /* of the plan in force, as its choice */
/* What each tier has where it is forced: its own defaults where the default is in force, else the plan's. */
static struct wherry_thresholds tier_thresholds[WHERRY_ISA_COUNT];
static enum wherry_isa default_isa;

void targets_init(void)
{
    wherry_cpu_detect_all(&cpu);
    default_thresholds = wherry_thresholds;
    default_isa = wherry_dispatch_isa();
    const struct wherry_cpu_source native = wherry_cpu_native();
    const uint64_t last_level = wherry_cpu_last_level(&native, &cpu);
    const struct wherry_thresholds own =
        wherry_thresholds_complete(wherry_plan_thresholds(&cpu, default_isa, last_level));
    const bool by_default = memcmp(&own, &default_thresholds, sizeof own) == 0;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++)
        tier_thresholds[isa] =
            by_default ? wherry_thresholds_complete(wherry_plan_thresholds(&cpu, (enum wherry_isa)isa, last_level))
                       : default_thresholds;
}

void target_thresholds(const struct target *target)
{
    if (target && target->thresholds)
        wherry_thresholds = wherry_thresholds_complete(*target->thresholds);
    else
        wherry_thresholds = target && target->forced ? tier_thresholds[target->isa] : default_thresholds;
}

const struct wherry_thresholds *target_default_thresholds(void) { return &default_thresholds; }

void target_ways(const struct target *target, const void *dst, size_t n)
{
    const uint64_t mixed = (n << 12 | ((uintptr_t)dst & 4095)) * 0x9e3779b97f4a7c15u;
    if (wherry_dispatch_isa() == WHERRY_ISA_AVX512) {
        const enum wherry_watching held[] = {HELD_APART, HELD_TOGETHER, HELD_LOOKING};
        struct wherry_watch *const watches[] = {&wherry_watch_copies, &wherry_watch_sets};
        for (int i = 0; i < 2; i++) {
            wherry_watch_use(watches[i], held[(mixed >> 32) % 3]);
            /* Whether every call is picked, and whether it goes on as the others when it has been counted. */
            watches[i]->factor = mixed >> 58 & 1 ? 0 : wherry_watch_factors[0];
            watches[i]->left = mixed >> 57 & 1 ? 0 : 2 * WATCH_PICKED;
        }
    }
    if (n < LEAST_WITH_METHODS)
        return;
    const size_t backward[] = {0, ALIAS_SPAN, ALIAS_BYTES - 1};
    wherry_thresholds.copy_backward_ahead = backward[(mixed >> 40) % 3];
    wherry_thresholds.copy_ymm_from = mixed >> 62 & 1 ? YMM_LEAST : SIZE_MAX;
    wherry_thresholds.copy_source_lines_to = mixed >> 61 & 1 ? 0 : SIZE_MAX;
    wherry_thresholds.copy_parts_from = mixed >> 60 & 1 ? 0 : SIZE_MAX;
    if (wherry_thresholds.copy_stream_from == 0)
        wherry_thresholds.copy_stream_recent_from = wherry_thresholds.set_stream_recent_from =
            mixed >> 59 & 1 ? SIZE_MAX : 0;
    wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
    wherry_thresholds.copy_ahead_from = wherry_thresholds.copy_parts_from;
    if (target->op == WHERRY_OP_copy_csum && mixed >> 56 & 1) /* none of these is ever forced to a method */
        wherry_thresholds.copy_stream_any_from = 0;
    for (size_t quarter = 1; quarter < 4; quarter++) { /* near, or not */
        const uint32_t block = (uint32_t)(((uintptr_t)dst + n / 4 * quarter) >> TOUCHED_BLOCK_LOG);
        wherry_touched.seen[touched_place(block)] =
            mixed >> 63 ? touched_entry(block, 0, wherry_touched.clocks[0].now) : 0;
    }
    const uint32_t first = (uint32_t)((uintptr_t)dst >> RECENT_BLOCK_LOG);
    const uint32_t last = (uint32_t)(((uintptr_t)dst + n - 1) >> RECENT_BLOCK_LOG);
    const uint32_t flip = mixed >> 63 ? 0 : ~UINT32_C(0);
    /* The call's row is told by where its stack lies: less than 64 KiB below this. */
    for (uintptr_t beneath = 0; beneath <= 65536; beneath += 65536) {
        const size_t row = recent_row((uintptr_t)__builtin_frame_address(0) - beneath);
        uint32_t *const copies = &wherry_recent_copies[row << RECENT_COPY_ROW_LOG >> 2];
        uint32_t *const sets = &wherry_recent_sets[row << RECENT_SET_ROW_LOG >> 2];
        copies[first % RECENT_COPY_PLACES] = first ^ flip;
        copies[last % RECENT_COPY_PLACES] = last ^ flip;
        sets[first % RECENT_SET_PLACES] = first ^ flip;
        sets[last % RECENT_SET_PLACES] = last ^ flip;
    }
}

void target_prepare(const struct target *target)
{
    enum wherry_isa isa = target->forced ? target->isa : default_isa;
    if (wherry_dispatch_isa() != isa) /* forcing asks CPUID, which a hypervisor makes slow */
        wherry_dispatch_force(isa);
    if (target->kind == TARGET_NOFAULT)
        wherry_nofault_force(isa);
    target_thresholds(target);
    if (target->method == METHOD_PLANNED)
        return;
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = target->method == METHOD_REP ? 0 : SIZE_MAX,
        .copy_rep_to = SIZE_MAX,
        .copy_stream_from = target->method == METHOD_STREAM ? 0 : SIZE_MAX,
        .set_rep_from = target->method == METHOD_REP ? 0 : SIZE_MAX,
        .set_rep_to = SIZE_MAX,
        .set_stream_from = target->method == METHOD_STREAM ? 0 : SIZE_MAX,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
        .copy_parts_from = SIZE_MAX,
    });
}

struct target *target_append(struct target_list *list)
{
    if ((list->count & (list->count + 1)) == 0) { /* the room is one less than a power of two, doubled when full */
        struct target *items = realloc(list->items, (2 * list->count + 1) * sizeof *items);
        if (!items) {
            fputs("wherry-run: out of memory\n", stderr);
            exit(1);
        }
        list->items = items;
    }
    struct target *added = &list->items[list->count++];
    memset(added, 0, sizeof *added);
    return added;
}

const char *target_unavailable(const struct target *target)
{
    enum wherry_needs needs = WHERRY_NEEDS_BASE;
    if (target->routine)
        needs = target->routine->needs;
    else if (target->forced)
        needs = wherry_plan_needs(target->isa);
    if (wherry_plan_can_run(&cpu, needs))
        return NULL;
    switch (needs) {
    case WHERRY_NEEDS_AVX512:
        return "needs AVX-512 (F, BW, VL, DQ), which this CPU or its operating system lacks";
    case WHERRY_NEEDS_CRC32:
        return "needs SSE4.2 and PCLMULQDQ, which this CPU lacks";
    case WHERRY_NEEDS_VPCLMUL:
        return "needs VPCLMULQDQ and AVX-512, which this CPU or its operating system lacks";
    case WHERRY_NEEDS_VPCLMUL_AVX2:
        return "needs VPCLMULQDQ and AVX2, which this CPU or its operating system lacks";
    case WHERRY_NEEDS_CLZERO:
        return "needs CLZERO, which this CPU lacks or its hypervisor hides";
    case WHERRY_NEEDS_VNNI:
        return "needs AVX512_VNNI and AVX-512, which this CPU or its operating system lacks";
    default:
        return "needs AVX2, BMI1 and BMI2, which this CPU or its operating system lacks";
    }
}

static const enum target_abi abi_of[WHERRY_OP_COUNT] = {
    [WHERRY_OP_copy] = ABI_MEMCPY,   [WHERRY_OP_move] = ABI_MEMCPY,
    [WHERRY_OP_set] = ABI_MEMSET,    [WHERRY_OP_zero] = ABI_MEMSET,
    [WHERRY_OP_csum] = ABI_CSUM,     [WHERRY_OP_copy_csum] = ABI_COPY_CSUM,
    [WHERRY_OP_crc32c] = ABI_CRC,    [WHERRY_OP_copy_crc32c] = ABI_COPY_CRC,
    [WHERRY_OP_iszero] = ABI_ISZERO, [WHERRY_OP_pagezero] = ABI_BZERO,
};

enum target_abi target_abi_of(enum wherry_op op) { return abi_of[op]; }

struct target_arguments target_arguments(enum target_abi abi, void *dst, const void *src, size_t n, uint32_t value)
{
    /* Of an argument of 32 bits the upper half is undefined. */
    const uint64_t d = (uintptr_t)dst, s = (uintptr_t)src, v = value | (uint64_t)0xa5c3f00d << 32,
                   nothing = 0x0123456789abcdef;
    switch (abi) {
    case ABI_BCOPY:
        return (struct target_arguments){{s, d, n, nothing}};
    case ABI_MEMSET:
        return (struct target_arguments){{d, v, n, nothing}};
    case ABI_BZERO:
        return (struct target_arguments){{d, n, nothing, nothing}};
    case ABI_CSUM:
        return (struct target_arguments){{s, n, v, nothing}};
    case ABI_COPY_CSUM:
        return (struct target_arguments){{d, s, n, v}};
    case ABI_CRC:
        return (struct target_arguments){{v, s, n, nothing}};
    case ABI_COPY_CRC:
        return (struct target_arguments){{v, d, s, n}};
    case ABI_ISZERO:
        return (struct target_arguments){{s, n, nothing, nothing}};
    case ABI_NOFAULT:
        return (struct target_arguments){{d, s, n, (uintptr_t)target_report}};
    case ABI_SET_NOFAULT:
        return (struct target_arguments){{d, v, n, (uintptr_t)target_report}};
    case ABI_CSUM_NOFAULT:
        return (struct target_arguments){{d, s, n, v}};
    default:
        return (struct target_arguments){{d, s, n, nothing}};
    }
}

void targets_add_routines(struct target_list *list)
{
    for (size_t i = 0; i < wherry_routine_count; i++) {
        const struct wherry_routine *routine = &wherry_routines[i];
        struct target *t = target_append(list);
        snprintf(t->name, sizeof t->name, "%s", routine->name);
        snprintf(t->function, sizeof t->function, "%s", routine->name);
        t->kind = TARGET_ROUTINE;
        t->op = routine->op;
        t->routine = routine;
        t->abi = abi_of[routine->op];
        t->fn = routine->any;
    }
}

static const struct {
    const char *name;
    enum target_abi abi;
    enum wherry_op op;       /* as libc and peers promise it */
    void (*wherry)(void);    /* the public function of this name */
    enum wherry_op promised; /* by the public function */
    void (*libc)(void);
} functions[] = {
#define FUNCTION(f, abi, op, promised) {#f, abi, op, (void (*)(void))wherry_##f, promised, (void (*)(void))f}
    FUNCTION(memcpy, ABI_MEMCPY, WHERRY_OP_copy, WHERRY_OP_move),
    FUNCTION(memmove, ABI_MEMCPY, WHERRY_OP_move, WHERRY_OP_move),
    FUNCTION(mempcpy, ABI_MEMPCPY, WHERRY_OP_copy, WHERRY_OP_move),
    FUNCTION(memset, ABI_MEMSET, WHERRY_OP_set, WHERRY_OP_set),
    FUNCTION(bzero, ABI_BZERO, WHERRY_OP_zero, WHERRY_OP_zero),
    FUNCTION(bcopy, ABI_BCOPY, WHERRY_OP_move, WHERRY_OP_move),
#undef FUNCTION
/* What libc does not have. */
#define OWN(f, abi, op) {#f, abi, op, (void (*)(void))wherry_##f, op, NULL}
    OWN(csum_partial, ABI_CSUM, WHERRY_OP_csum),
    OWN(csum_partial_copy, ABI_COPY_CSUM, WHERRY_OP_copy_csum),
    OWN(crc32c, ABI_CRC, WHERRY_OP_crc32c),
    OWN(crc32c_copy, ABI_COPY_CRC, WHERRY_OP_copy_crc32c),
    OWN(memcpy_stream, ABI_MEMCPY, WHERRY_OP_copy),
    OWN(memset_stream, ABI_MEMSET, WHERRY_OP_set),
    OWN(iszero, ABI_ISZERO, WHERRY_OP_iszero),
    OWN(pagezero, ABI_BZERO, WHERRY_OP_pagezero),
#undef OWN
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static void add_public(struct target_list *list, const char *name, bool forced, enum wherry_isa isa,
                       enum target_method method)
{
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const bool core = functions[i].promised == WHERRY_OP_set || strcmp(functions[i].name, "memmove") == 0;
        if (method != METHOD_PLANNED && !core) /* the others take the same way to the same routines */
            continue;
        struct target *t = target_append(list);
        snprintf(t->name, sizeof t->name, "%s", name);
        snprintf(t->function, sizeof t->function, "wherry_%s", functions[i].name);
        t->kind = TARGET_PUBLIC;
        t->abi = functions[i].abi;
        t->op = functions[i].promised;
        t->forced = forced;
        t->isa = isa;
        t->method = method;
        t->fn = functions[i].wherry;
    }
}

size_t target_add_forced(struct target_list *list, const char *name, enum wherry_isa isa)
{
    const size_t first = list->count;
    add_public(list, name, true, isa, METHOD_PLANNED);
    return first;
}

void targets_add_public(struct target_list *list, bool every_tier)
{
    add_public(list, "wherry", false, wherry_plan_isa(&cpu), METHOD_PLANNED);
    for (int isa = 0; every_tier && isa < WHERRY_ISA_COUNT; isa++) {
        static const char *const suffixes[] = {"", "+stream", "+rep"}; /* by method */
        for (int method = METHOD_PLANNED; method <= METHOD_REP; method++) {
            char name[64];
            snprintf(name, sizeof name, "wherry@%s%s", wherry_isa_names[isa], suffixes[method]);
            add_public(list, name, true, (enum wherry_isa)isa, (enum target_method)method);
        }
    }
}

void targets_add_libc(struct target_list *list)
{
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        if (!functions[i].libc)
            continue;
        struct target *t = target_append(list);
        snprintf(t->name, sizeof t->name, "libc");
        snprintf(t->function, sizeof t->function, "%s", functions[i].name);
        t->kind = TARGET_LIBC;
        t->abi = functions[i].abi;
        t->op = functions[i].op;
        t->fn = functions[i].libc;
    }
}

void targets_add_known(struct target_list *list, const char *name, void (*fn)(void), unsigned links)
{
    struct target *t = target_append(list);
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->function, sizeof t->function, "%s", name);
    t->kind = TARGET_KNOWN;
    t->abi = ABI_MEMCPY;
    t->op = WHERRY_OP_copy;
    t->links = links;
    t->fn = fn;
}

/* Is fn of the object behind handle itself? dlsym also finds what that merely links against, libc's own memcpy above
 * all. */
static bool defined_by(void *handle, void (*fn)(void))
{
    Dl_info info;
    struct link_map *map;
    if (!dladdr((void *)fn, &info) || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return false;
    return info.dli_fbase == (void *)map->l_addr || (info.dli_fname && strcmp(info.dli_fname, map->l_name) == 0);
}

/* `around` before the name, or with the name for its *. */
static void symbol_of(char *symbol, size_t room, const char *around, const char *name)
{
    int before = (int)strcspn(around, "*");
    snprintf(symbol, room, "%.*s%s%s", before, around, name, around[before] ? around + before + 1 : "");
}

const char *target_function_within(const char *symbol, size_t *at)
{
    const char *longest = NULL;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const char *within = strstr(symbol, functions[i].name);
        if (!within || (longest && strlen(functions[i].name) <= strlen(longest)))
            continue;
        longest = functions[i].name;
        *at = (size_t)(within - symbol);
    }
    return longest;
}

/* The loops that a peer's memcpy brings; NULL: it has none. */
static const struct packet_loops *packet_loops(void *handle, const char *prefix)
{
    char symbol[128];
    symbol_of(symbol, sizeof symbol, prefix, "wherry_packet_loops");
    struct packet_loops *loops = dlsym(handle, symbol);
    if (loops && loops->layout == PACKET_LOOPS_LAYOUT) {
        loops->libc = memcpy;
        loops->wherry = wherry_memcpy;
    }
    return loops;
}

size_t target_add_peer_functions(struct target_list *list, const char *name, const char *spec, const char *prefix,
                                 void *handle)
{
    size_t found = 0;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        char symbol[128];
        symbol_of(symbol, sizeof symbol, prefix, functions[i].name);
        void (*fn)(void) = (void (*)(void))dlsym(handle, symbol);
        if (!fn || !defined_by(handle, fn))
            continue;
        struct target *t = target_append(list);
        snprintf(t->name, sizeof t->name, "%s", name);
        snprintf(t->function, sizeof t->function, "%s", symbol);
        t->kind = TARGET_PEER;
        t->abi = functions[i].abi;
        t->op = functions[i].op;
        t->peer_path = spec;
        t->fn = fn;
        if (functions[i].abi == ABI_MEMCPY && functions[i].op == WHERRY_OP_copy)
            t->packets = packet_loops(handle, prefix);
        found++;
    }
    return found;
}

const struct target *target_for(const struct target_list *list, const char *who, enum wherry_op op)
{
    const struct target *second_best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct target *t = &list->items[i];
        if (strcmp(t->name, who) != 0)
            continue;
        if (!op_is_plain(op)) {
            if (t->op == op)
                return t;
            continue;
        }
        const bool sets = op_sets(op);
        if (t->kind == TARGET_NOFAULT && sets == op_sets(t->op))
            return t;
        if (t->abi != (sets ? ABI_MEMSET : ABI_MEMCPY))
            continue;
        if (t->routine) {
            bool serves = t->op == op || (op == WHERRY_OP_copy && t->op == WHERRY_OP_move) ||
                          (op == WHERRY_OP_zero && t->op == WHERRY_OP_set);
            if (serves)
                return t;
        } else if (sets) {
            return t;
        } else {
            bool is_move = strstr(t->function, "memmove") != NULL;
            if (is_move == (op == WHERRY_OP_move))
                return t;
            if (is_move)
                second_best = t;
        }
    }
    return second_best;
}

void (*libc_second_copy(enum wherry_op op))(void)
{
    static void *space;
    if (!op_is_plain(op))
        return NULL;
    if (!space)
        space = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!space)
        return NULL;
    static const char *const names[WHERRY_OP_COUNT] = {"memcpy", "memmove", "memset", "memset"};
    return (void (*)(void))dlsym(space, names[op]);
}
