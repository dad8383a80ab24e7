/* What a checksum may get wrong without the bytes being unusual in length or place: carries that wrap, sums of nothing
 * but zeros or ones, an initial value at the edge. Every
 * length to 4096 at every offset of the source, with contents that make carries. */
#include <stdio.h>

#include "verify.h"

enum { LONGEST = 4096, LARGEST = 8 << 20, OFFSETS = 64, CONTENTS = 7, CHANGING = CONTENTS };

static uint8_t *sources[CONTENTS], *goal;

static const uint32_t values[] = {0, 1, 0xffff, 0xfffe, 0x10000, 0xffff0000, 0xfffffffe, 0xffffffff, 0x00010001};
enum { VALUES = sizeof values / sizeof values[0] };

static void prepare(uint64_t n, uint64_t seed)
{
    static size_t room;
    if (n + 2 * OFFSETS <= room)
        return;
    room = (n < LONGEST ? LONGEST : n) + 2 * OFFSETS;
    for (int i = 0; i < CONTENTS; i++)
        sources[i] = map_or_die(room, 3);
    plain_fill(sources[1], 0xff, room);
    for (size_t k = 0; k < room; k++) {
        sources[2][k] = k % 2 ? 0xff : 0;
        sources[3][k] = k % 2 ? 0 : 0xff;
        sources[4][k] = k % 4 == 3 ? 0x80 : k % 8 == 0 ? 0x01 : 0xff;
    }
    pattern_fill(sources[5], room, seed, PARITY_ANY);
    /* Small numbers of 64 bits, whose upper halves have nothing that could make up for a lower one. */
    pattern_fill(sources[6], room, seed, PARITY_ANY);
    for (size_t k = 0; k < room; k++)
        if (k % 8 >= 4)
            sources[6][k] = 0;
    goal = map_or_die(room + OFFSETS, 3);
}

/* A copy's sum or CRC is that of what it stored, also where somebody else changes the source meanwhile. Here that is
 * done after each instruction, of the first ones where there are many. Deterministic, on one CPU too. */
enum { CHANGED = 8192, MOST_CHANGES = 1000 };

struct changing {
    uint8_t *src;
    size_t n;
    unsigned steps;
};

/* Runs inside the signal handler. */
static bool change_source(void *context, uintptr_t rip)
{
    struct changing *c = context;
    (void)rip;
    pattern_fill(c->src, c->n, ++c->steps, PARITY_ANY);
    return c->steps < MOST_CHANGES;
}

static bool copies_and_sums(const struct target *target)
{
    return sums_as_well(target) || target->op == WHERRY_OP_copy_csum || target->op == WHERRY_OP_copy_crc32c;
}

static void run_changing(struct unit *unit, const struct vcase *one)
{
    static uint8_t *changed;
    if (!changed)
        changed = map_or_die(LARGEST + OFFSETS, 3);
    uint8_t *dst = goal + one->d % OFFSETS, *src = changed + one->s % OFFSETS;
    for (uint64_t i = 0; i < one->calls && !unit->failed && copies_and_sums(unit->target); i++) {
        struct changing c = {.src = src, .n = one->n < CHANGED ? one->n : CHANGED};
        unit->cases++;
        unit->pulse->now = *one;
        call_hook_context = &c;
        call_on_step = change_source;
        const struct outcome seen = call_raw(unit, one, dst, src, one->n);
        call_on_step = NULL;
        if (!seen.faulted)
            plain_copy(src, dst, one->n); /* by which the sum is judged */
        if (call_judge(unit, one, &seen, dst, src, one->n))
            continue;
        const size_t length = __builtin_strlen(unit->failure.message);
        snprintf(unit->failure.message + length, sizeof unit->failure.message - length,
                 " (the source changed after each instruction; what counts is what it has stored)");
    }
}

/* at: which content, and which value before. */
static void run(struct unit *unit, const struct vcase *one)
{
    prepare(one->n, unit->seed);
    if (one->at == CHANGING) {
        run_changing(unit, one);
        return;
    }
    const uint8_t *src = sources[one->at % CONTENTS] + one->s % OFFSETS;
    static bool begun;
    /* Each call leaves the destination to the next. Before the first, which may be the only one that a failure is
     * repeated by, no byte is right already. */
    for (size_t k = 0; k < one->n && !begun; k++)
        goal[one->d % OFFSETS + k] = (uint8_t)~src[k];
    begun = true;
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        if (!call_checked(unit, one, goal + one->d % OFFSETS, src, one->n))
            return;
        if (writes(unit->target) && !plain_equal(goal + one->d % OFFSETS, src, one->n)) {
            const size_t at = first_difference(goal + one->d % OFFSETS, src, one->n);
            fail_byte(unit, one, goal + one->d % OFFSETS, src, "destination", (int64_t)at, src[at],
                      goal[one->d % OFFSETS + at]);
        }
    }
}

static void generate_changing(struct unit *unit)
{
    static const uint32_t larger[] = {511, 1030, 1500, 2049, 4100, 9000, 16384 + 33, 70000, 300000, 1100000, 2000000};
    const bool brief = unit->level == LEVEL_BRIEF, full = unit->level == LEVEL_FULL;
    const unsigned count = 257 + (brief ? 0 : sizeof larger / sizeof larger[0]);
    const unsigned rounds = full ? 8 : 1, each = brief ? 8 : full || unit->few ? 1 : 3;
    const unsigned first = (unsigned)below(unit, each);
    struct vcase one = {.calls = 1, .seed = unit->seed, .at = CHANGING};
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned k = 0; k < count && !unit->failed; k++) {
            if (k <= 256 && k % each != first)
                continue;
            one.n = fit(unit->target, k <= 256 ? k : larger[k - 257] + below(unit, 64));
            one.s = below(unit, OFFSETS);
            one.d = below(unit, OFFSETS);
            one.c = (int)values[k % VALUES];
            run(unit, &one);
        }
}

static void generate(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    const bool full = unit->level == LEVEL_FULL, brief = unit->level == LEVEL_BRIEF;
    unsigned turn = 0;
    for (one.n = 0; one.n <= LONGEST; one.n++) {
        if (!size_fits(unit->target, one.n) || (brief && one.n > 300 && one.n % 61))
            continue;
        for (one.s = 0; one.s < OFFSETS; one.s++)
            for (unsigned k = 0; k < (full ? CONTENTS : 1u) && !unit->failed; k++) {
                one.at = full ? k : turn % CONTENTS;
                one.c = (int)values[turn / CONTENTS % VALUES];
                one.d = turn * 7 % OFFSETS;
                turn++;
                run(unit, &one);
            }
        for (unsigned k = 0; one.n <= 300 && k < CONTENTS * VALUES && !unit->failed; k++) {
            struct vcase other = one;
            other.at = k % CONTENTS;
            other.c = (int)values[k / CONTENTS];
            other.s = below(unit, OFFSETS);
            other.d = below(unit, OFFSETS);
            run(unit, &other);
        }
        if (unit->failed)
            return;
    }
    /* What loops of large sizes leave over, which is large itself where three streams are summed at once: every number
     * of bytes in two lines, beyond each power of two and half between. */
    for (uint64_t power = LONGEST; power <= 65536 && !brief; power *= 2)
        for (uint64_t k = 0; k < 256 && !unit->failed; k++) {
            one.n = fit(unit->target, power + (k < 128 ? 0 : power / 2) + k % 128);
            one.at = turn % CONTENTS;
            one.s = below(unit, OFFSETS);
            one.d = below(unit, OFFSETS);
            one.c = (int)values[turn++ / CONTENTS % VALUES];
            run(unit, &one);
        }
    /* So much of it that lanes of 32 bits wrap, unless what is in them is taken out in time. */
    for (uint64_t power = LONGEST * 2; power <= (brief ? 65536 : unit->few || full ? LARGEST : LARGEST / 4); power *= 2)
        for (one.at = 0; one.at < CONTENTS && !unit->failed; one.at++) {
            one.n = fit(unit->target, power - below(unit, OFFSETS));
            one.s = below(unit, OFFSETS);
            one.d = below(unit, OFFSETS);
            one.c = (int)values[turn++ % VALUES];
            run(unit, &one);
        }
    if (copies_and_sums(unit->target) && !unit->thin)
        generate_changing(unit);
}

static bool sums(const struct target *target) { return op_sums(target->op) || sums_as_well(target); }

static const char *lacks_room(const struct vcase *one) { return one->n > LARGEST ? "8 MiB" : NULL; }
_Static_assert(LARGEST == 8 << 20, "said above");

const struct family family_sums = {
    .name = "sums",
    .what = "checksums: carries that wrap, all ones, all zeros, any value before, a source that changes",
    .applies = sums,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
};
