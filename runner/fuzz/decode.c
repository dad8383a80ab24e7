/* From the bytes of an input to calls and back. */
#include <stdio.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "fuzz.h"

static const struct target *const *targets;
static const struct target *publics[64], *others[256];
static unsigned public_count, other_count;
static enum wherry_isa tiers[WHERRY_ISA_COUNT];
static unsigned tier_count;
static unsigned tier; /* in force; 0: the default plan */
static struct wherry_thresholds of_the_plan;
static size_t edges[64]; /* sizes at which the plan in force changes method, where the arena has room for them */
static unsigned edge_count;

#define COUNT(field) +1
enum { FIELDS = 0 WHERRY_THRESHOLDS(COUNT) };
#undef COUNT
static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(field) {#field, offsetof(struct wherry_thresholds, field)},
    WHERRY_THRESHOLDS(FIELD)
#undef FIELD
};
_Static_assert(FIELDS <= 16, "three bits of the mixed byte for each field");

static size_t *member(struct wherry_thresholds *in, unsigned i) { return (size_t *)((char *)in + fields[i].offset); }

/* Within reach of the sizes tried, and never and always. */
static const size_t moved[] = {0, 128, 300, 512, 1024, 2048, 4096, SIZE_MAX};

static struct wherry_thresholds thresholds_of(uint8_t byte)
{
    struct wherry_thresholds t = of_the_plan;
    const uint64_t mixed = byte * 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; byte % 2 && i < FIELDS; i++) /* any value of any field must be right, in any order */
        *member(&t, i) = moved[mixed >> (61 - 3 * i) & 7];
    return wherry_thresholds_complete(t);
}

void fuzz_use_thresholds(uint8_t byte) { wherry_thresholds = byte % 2 ? thresholds_of(byte) : of_the_plan; }

void fuzz_thresholds_text(char *text, size_t room, uint8_t byte)
{
    text[0] = '\0';
    struct wherry_thresholds t = thresholds_of(byte);
    for (unsigned i = 0; byte % 2 && i < FIELDS; i++) {
        size_t at = strlen(text), value = *member(&t, i);
        if (value == SIZE_MAX)
            snprintf(text + at, room - at, "%s%s=never", i ? " " : "", fields[i].name);
        else
            snprintf(text + at, room - at, "%s%s=%zu", i ? " " : "", fields[i].name, value);
    }
}

void fuzz_targets(const struct target *const *all, size_t count)
{
    targets = all;
    public_count = other_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (targets[i]->kind == TARGET_PUBLIC && public_count < sizeof publics / sizeof *publics)
            publics[public_count++] = targets[i];
        else if (targets[i]->kind != TARGET_PUBLIC && other_count < sizeof others / sizeof *others)
            others[other_count++] = targets[i];
    }
    of_the_plan = wherry_thresholds;
    tier_count = 0;
    const enum wherry_isa by_default = wherry_dispatch_isa();
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++)
        if (wherry_dispatch_force((enum wherry_isa)isa))
            tiers[tier_count++] = (enum wherry_isa)isa;
    wherry_dispatch_force(by_default);
    edge_count = 0;
    for (unsigned i = 0; i < FIELDS; i++)
        if (*member(&of_the_plan, i) + 64 < LARGEST)
            edges[edge_count++] = *member(&of_the_plan, i);
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
        if (moved[i] + 64 < LARGEST && edge_count < sizeof edges / sizeof *edges)
            edges[edge_count++] = moved[i];
}

unsigned fuzz_tiers(void) { return tier_count + 1; }

void fuzz_use_tier(uint8_t byte)
{
    static enum wherry_isa by_default;
    static bool known;
    if (!known)
        by_default = wherry_dispatch_isa();
    known = true;
    tier = byte % (tier_count + 1);
    enum wherry_isa isa = tier ? tiers[tier - 1] : by_default;
    if (wherry_dispatch_isa() != isa) /* forcing asks CPUID, which a hypervisor makes slow */
        wherry_dispatch_force(isa);
}

const char *fuzz_tier_name(void) { return tier ? wherry_isa_names[tiers[tier - 1]] : ""; }

static unsigned u16(const uint8_t *p) { return (unsigned)(p[0] | p[1] << 8); }

static size_t clamp(int64_t value, size_t most) { return value < 0 ? 0 : (size_t)value > most ? most : (size_t)value; }

static const struct target *callee_of(unsigned word)
{
    if (public_count && (word & 0x8000 || !other_count))
        return publics[(word & 0x7fff) % public_count];
    return others[(word & 0x7fff) % other_count];
}

enum { SIZE_PLAIN = 5, PLACE_PLAIN = 2 };

static size_t size_of(unsigned class, unsigned word)
{
    switch (class) {
    case 0:
        return word % 65;
    case 1: /* about a power of two, or half as much again */
        return clamp((int64_t)((word & 1 ? 3u : 2u) << (word >> 1) % 13) + (int)(word >> 8) % 37 - 18, LARGEST);
    case 2: /* about a threshold */
        return clamp((int64_t)edges[(word & 63) % edge_count] + (int)(word >> 6) % 131 - 65, LARGEST);
    case 3: /* about a multiple of a vector */
        return clamp((int64_t)(16 * (word % 128)) + (int)(word >> 8) % 5 - 2, LARGEST);
    case 4:
        return word % 1025;
    case SIZE_PLAIN:
        return word % (LARGEST + 1);
    default:
        return word % 257;
    }
}

static size_t place_of(unsigned class, unsigned word, size_t n)
{
    const size_t last = ARENA - n;
    switch (class) {
    case 0: /* at the lower end, mostly flush */
        return word & 0x100 ? clamp((int64_t)(word & 63), last) : 0;
    case 1: /* at the upper end */
        return last - (word & 0x100 ? clamp((int64_t)(word & 63), last) : 0);
    case 3: /* begins or ends about a page's end */
        return clamp((int64_t)(4096 * (1 + word % 7)) + (int)(word >> 4) % 131 - 65 - (word & 8 ? (int64_t)n : 0),
                     last);
    default:
        return word % (last + 1);
    }
}

/* Near the destination: at a small distance, or at one where overlap just ends. */
static size_t near_place(unsigned word, size_t dst, size_t n)
{
    int64_t distance = (int64_t)(word >> 3 & 0x7f) - 64;
    if (word & 2)
        distance = word & 4 ? distance + (int64_t)n : distance - (int64_t)n;
    else if (word & 4)
        distance = n ? (int64_t)((word >> 3) % (2 * n + 1)) - (int64_t)n : 0;
    return clamp((int64_t)dst + distance, ARENA - n);
}

struct fuzz_call fuzz_decode(const uint8_t *record)
{
    struct fuzz_call call = {.callee = u16(record), .thresholds = record[11], .value = record[10]};
    call.target = callee_of(call.callee);
    if (call.target->kind == TARGET_PEER || call.target->kind == TARGET_LIBC)
        call.thresholds = 0; /* not theirs */
    size_t n = size_of(record[2] & 7, u16(record + 4));
    if (call.target->routine && call.target->routine->quantum > 1)
        n -= n % call.target->routine->quantum;
    call.n = n;
    call.dst = place_of(record[3] & 3, u16(record + 6), n);
    bool sets = call.target->op == WHERRY_OP_set || call.target->op == WHERRY_OP_zero;
    if (sets) {
        call.src = call.dst;
        call.c = call.target->op == WHERRY_OP_zero ? 0 : (int)(call.value * 0x8d654301u); /* beyond 0 .. 255 */
        return call;
    }
    unsigned word = u16(record + 8);
    if (record[3] & 16)
        call.src = near_place(word, call.dst, n);
    else
        call.src = place_of(record[3] >> 2 & 3, word, n);
    bool overlap = call.src < call.dst + n && call.dst < call.src + n;
    if (overlap && call.target->op == WHERRY_OP_copy) { /* moved to the side that has more room */
        size_t below = call.dst, above = ARENA - call.dst - n;
        call.src = below > above ? (call.dst - n) - word % (below - n + 1) : call.dst + n + word % (above - n + 1);
    }
    return call;
}

void fuzz_encode(uint8_t *record, const struct fuzz_call *call)
{
    const unsigned words[4] = {(unsigned)call->n, (unsigned)call->dst, (unsigned)call->src, 0};
    record[0] = (uint8_t)call->callee;
    record[1] = (uint8_t)(call->callee >> 8);
    record[2] = SIZE_PLAIN;
    record[3] = PLACE_PLAIN | PLACE_PLAIN << 2;
    for (int i = 0; i < 3; i++) {
        record[4 + 2 * i] = (uint8_t)words[i];
        record[5 + 2 * i] = (uint8_t)(words[i] >> 8);
    }
    record[10] = call->value;
    record[11] = call->thresholds;
}
