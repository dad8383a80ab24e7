/* Sizes and offsets, between red zones: the bytes, the bytes around them, the source, the return value. */
#include <stdlib.h>
#include <string.h>

#include "verify.h"

enum { MARGIN = PAGE, RED_ZONE = 128, RING = 32 };

/* Destination bytes are even and source bytes odd, so no byte is right before it is copied; a set of an even value
 * goes into the odd arena. */
static struct arena source, even, odd;
static struct vcase ring[RING];
static unsigned ring_at;

static void prepare(struct unit *unit, uint64_t n, uint64_t seed)
{
    static uint64_t prepared_seed;
    size_t length = n + 2 * MARGIN + 2 * 65536;
    if (even.length >= length && prepared_seed == seed)
        return;
    prepared_seed = seed;
    even = arena_make(length, seed, 0);
    if (is_set(unit->target))
        odd = arena_make(length, seed, 1);
    else
        source = arena_make(length, seed, 1);
}

static struct arena *destination(struct unit *unit, const struct vcase *one)
{
    return is_set(unit->target) && value_of(unit->target, one->c) % 2 == 0 ? &odd : &even;
}

/* True when the source is what it was; else the failure is recorded, and it is made so again. */
static bool source_whole(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src,
                         size_t length)
{
    if (!src || plain_equal(source.base, source.back, length))
        return true;
    int64_t at = (int64_t)first_difference(source.base, source.back, length);
    fail_byte(unit, one, dst, src, "source", at - (src - source.base), source.back[at], source.base[at]);
    plain_copy(source.base, source.back, length);
    return false;
}

static bool as_before(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src, size_t from,
                      size_t to)
{
    struct arena *a = destination(unit, one);
    if (plain_equal(a->base + from, a->back + from, to - from))
        return true;
    const size_t at = from + first_difference(a->base + from, a->back + from, to - from);
    fail_byte(unit, one, dst, src, "destination", (int64_t)at - (dst - a->base), a->back[at], a->base[at]);
    plain_copy(a->base + from, a->back + from, to - from);
    return false;
}

/* Everything outside the last call's destination, and the whole source. True when nothing was touched. */
static bool untouched(struct unit *unit, const struct vcase *one)
{
    struct arena *a = destination(unit, one);
    size_t length = one->n + 2 * MARGIN + 65536 < a->length ? one->n + 2 * MARGIN + 65536 : a->length;
    uint8_t *dst = a->base + MARGIN + one->d;
    const uint8_t *src = is_set(unit->target) ? NULL : source.base + MARGIN + one->s;
    const size_t begin = (size_t)(dst - a->base), end = begin + one->n;
    if (ring_at > 1) { /* what a call wrote to the destination of another is not outside of the last one's */
        if (!as_before(unit, one, dst, src, 0, length))
            return false;
    } else if (!as_before(unit, one, dst, src, 0, begin) || !as_before(unit, one, dst, src, end, length)) {
        return false;
    }
    return source_whole(unit, one, dst, src, length);
}

static bool one_call(struct unit *unit, const struct vcase *one)
{
    struct arena *a = destination(unit, one);
    size_t n = one->n;
    uint8_t *dst = a->base + MARGIN + one->d;
    const uint8_t *src = is_set(unit->target) ? NULL : source.base + MARGIN + one->s;
    unit->cases++;
    if (!call_checked(unit, one, dst, src, n)) {
        plain_copy(a->base, a->back, a->length);
        return false;
    }
    const uint8_t *back = a->back + (dst - a->base);
    const uint8_t *model = only_reads(unit->target) ? back : src ? source.back + (src - source.base) : NULL;
    bool right = src ? plain_equal(dst, model, n) : plain_all(dst, (uint8_t)value_of(unit->target, one->c), n);
    /* What is wrong in the source says why the destination is. */
    if (!right && source_whole(unit, one, dst, src, source.length)) {
        uint8_t c = (uint8_t)value_of(unit->target, one->c);
        size_t at = src ? first_difference(dst, model, n) : first_other(dst, c, n);
        fail_byte(unit, one, dst, src, "destination", (int64_t)at, src ? model[at] : c, dst[at]);
    }
    plain_copy(dst, back, n);
    if (right && (!plain_equal(dst - RED_ZONE, back - RED_ZONE, RED_ZONE) || !plain_equal(dst + n, back + n, RED_ZONE)))
        right = untouched(unit, one);
    return right;
}

static void run(struct unit *unit, const struct vcase *one)
{
    prepare(unit, one->n, one->seed);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++)
        one_call(unit, one);
    if (!unit->failed)
        untouched(unit, one);
}

/* Makes the last calls again, each looked at as a whole; where none of them shows anything, what was seen first stays.
 */
static void look_closer(struct unit *unit, const struct verify_failure *seen)
{
    unit->failed = false;
    for (unsigned i = 0; i < ring_at && !unit->failed; i++)
        run(unit, &ring[i]);
    if (!unit->failed) {
        unit->failure = *seen;
        unit->failed = true;
    }
}

/* A far write and one to the source are noticed some calls later. */
static void sweep_case(struct unit *unit, const struct vcase *one)
{
    if (unit->failed || !size_fits(unit->target, one->n))
        return;
    ring[ring_at++] = *one;
    if (!one_call(unit, one)) {
        if (strcmp(unit->failure.state, "source") == 0) {
            const struct verify_failure seen = unit->failure;
            look_closer(unit, &seen);
        }
        return;
    }
    if (ring_at < RING && one->n < 65536)
        return;
    struct unit probe = *unit;
    if (!untouched(&probe, one))
        look_closer(unit, &probe.failure);
    ring_at = 0;
}

/* Routines have a way of their own for zero, and some for all ones. */
static int some_value(struct unit *unit)
{
    const uint64_t r = next_random(&unit->random);
    return r >> 61 == 0 ? 0 : r >> 60 == 2 ? -1 : (int)r;
}

/* The two offsets within a line, in an order that leaves nothing to chance: of a (0, 2)-sequence in base 2 (Sobol's
 * first two dimensions). Any 64 in a row from a multiple of 64 have every offset of each side once, 256 every pair
 * modulo 16, 4096 every pair; from there on in another order. A few pairs a size make the whole square over some sizes.
 */
static void next_offsets(struct unit *unit, struct vcase *one)
{
    static unsigned turn, first;
    if (turn % 4096 == 0)
        first = (unsigned)next_random(&unit->random);
    const unsigned i = turn++ % 4096;
    unsigned other = 0;
    for (unsigned k = 0, column = 1; k < 12; k++, column ^= column << 1) /* Pascal's triangle modulo 2 */
        other ^= i >> k & 1 ? column : 0;
    one->d = (i ^ first) & 63;
    one->s = (other ^ first >> 6) & 63;
}

static void at_offsets(struct unit *unit, size_t n, unsigned pairs)
{
    bool set = is_set(unit->target), value = takes_value(unit->target);
    struct vcase one = {.n = n, .calls = 1, .seed = unit->seed};
    if (pairs >= 4096) {
        for (one.d = 0; one.d < 64; one.d++)
            for (one.s = 0; one.s < (set ? 4 : 64) && !unit->failed; one.s++) {
                one.c = value ? some_value(unit) : 0;
                sweep_case(unit, &one);
            }
        return;
    }
    for (unsigned i = 0; i < pairs && !unit->failed; i++) {
        next_offsets(unit, &one);
        if (pairs == 16) { /* then any sixteen sizes in a row have every pair modulo 16 */
            one.d = (one.d & 48) + i;
            one.s = (one.s & 48) + (i + n) % 16;
        }
        if (n > 1 << 20 && below(unit, 2)) /* for what looks at the distance of both sides within a page */
            one.d += 64 * below(unit, 64);
        one.c = value ? some_value(unit) : 0;
        sweep_case(unit, &one);
    }
}

/* The public functions and whatever was asked for by name deserve the whole square; the rest a sample. */
static bool thorough(const struct unit *unit) { return unit->few || unit->target->kind != TARGET_ROUTINE; }

static void generate_sweep(struct unit *unit)
{
    prepare(unit, 16384, unit->seed);
    bool full = unit->level == LEVEL_FULL;
    unsigned pairs = full && thorough(unit)       ? 4096
                     : full                       ? 512
                     : unit->level == LEVEL_QUICK ? (unit->few ? 1024 : 192)
                     : unit->thin                 ? 8
                                                  : 40;
    size_t last = full ? 4096 : 1024;
    for (size_t n = 0; n <= last && !unit->failed; n++)
        at_offsets(unit, n, pairs);
    for (size_t n = last + 1; n <= 16384 && !unit->failed; n++) {
        unsigned many = n <= 4160 ? (unit->few ? 256 : 16) : unit->few ? 16 : 2;
        if (unit->thin)
            many = n <= 4160 || n % 61 == 0; /* every remainder of the loops' blocks comes several times */
        else if (unit->level == LEVEL_BRIEF)
            many = n <= 4160 ? 2 : n % 4 == 0;
        at_offsets(unit, n, full ? 32 : many);
    }
}

/* Both sides at a page's beginning, and whole pages, or a byte more or less. */
static void whole_pages(struct unit *unit, uint64_t most)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (uint64_t pages = 1; pages * PAGE <= most && !unit->failed; pages += pages < 16 ? 1 : pages / 4)
        for (int off = -1; off <= 1 && !unit->failed; off++) {
            one.n = fit(unit->target, pages * PAGE + (uint64_t)(int64_t)off);
            one.c = off && takes_value(unit->target) ? some_value(unit) : 0;
            sweep_case(unit, &one);
        }
    /* And whole pages with one side there, the other at each place of a line. */
    const uint64_t last = unit->thin ? 0 : unit->level == LEVEL_BRIEF ? 2 : 4;
    for (uint64_t pages = 2; pages <= last; pages++)
        for (uint64_t place = 0; place < 128 && !unit->failed; place++) {
            one.n = fit(unit->target, pages * PAGE);
            one.d = place < 64 ? place : 0;
            one.s = place < 64 ? 0 : place - 64;
            sweep_case(unit, &one);
        }
}

/* A block of a loop less or more than where a method changes: what turns around once too little there. */
static void blocks_beside(struct unit *unit, size_t size, size_t most)
{
    for (size_t block = 16; block <= 128 && !unit->failed; block *= 2) {
        at_offsets(unit, size - block, 1);
        if (size + block <= most)
            at_offsets(unit, size + block, 1);
    }
}

static void generate_sizes(struct unit *unit)
{
    bool full = unit->level == LEVEL_FULL, brief = unit->level == LEVEL_BRIEF;
    prepare(unit, ((size_t)(brief ? 2 : 8) << 20) + 65536, unit->seed);
    /* Three sizes an octave, each with its neighbours: programs change method at powers of two and at halves,
     * thirds and three quarters of caches. */
    size_t most = brief ? (size_t)1 << 20 : unit->few || full ? (size_t)8 << 20 : (size_t)4 << 20;
    whole_pages(unit, most);
    for (size_t power = 16384; power <= most && !unit->failed; power *= 2) {
        int reach = full ? (power <= (1 << 20) ? 512 : 64) : brief ? 1 : 2;
        unsigned pairs = full ? (power <= 1 << 20 ? 16 : 2) : power <= 65536 && !brief ? 8 : unit->few ? 4 : 1;
        /* A bug in a band of sizes that nothing marks is a matter of luck, which many calls help. */
        unsigned anywhere = full ? (unsigned)(((size_t)256 << 20) / power) : unit->few ? 64 : 8;
        for (int off = -reach; off <= reach && !unit->failed; off++)
            at_offsets(unit, power + (size_t)(int64_t)off, pairs);
        for (unsigned i = 0; !brief && power < most && i < anywhere && !unit->failed; i++)
            at_offsets(unit, fit(unit->target, power + below(unit, power)), 1);
        size_t between = power + power / 2;
        for (int off = -1; !brief && between < most && off <= 1 && !unit->failed; off++)
            at_offsets(unit, between + (size_t)(int64_t)off, 2);
        if (!brief && (unit->few || full)) {
            if (!full) /* that has each size there */
                blocks_beside(unit, power, most);
            if (between < most)
                blocks_beside(unit, between, most);
        }
    }
    /* Where what is larger than a cache has a way of its own. */
    for (size_t power = (size_t)8 << 20; past_caches(unit) && power < (size_t)32 << 20; power *= 2) {
        prepare(unit, 2 * power + 64, unit->seed);
        for (unsigned i = 0; i < (full ? 16u : 6u) && !unit->failed; i++)
            at_offsets(unit, power + below(unit, power), 1);
        for (int off = -1; off <= 1 && !unit->failed; off++)
            at_offsets(unit, 2 * power + (size_t)(int64_t)off, 1);
    }
    /* And beyond all but the largest caches. */
    if (past_caches(unit) && !unit->failed) {
        const size_t largest = (size_t)64 << 20;
        prepare(unit, largest + 64, unit->seed);
        for (unsigned i = 0; i < (full ? 8u : 1u) && !unit->failed; i++)
            at_offsets(unit, largest - 1 - below(unit, largest / 4), 1);
        for (int off = -1; off <= 1 && full && !unit->failed; off++)
            at_offsets(unit, largest + (size_t)(int64_t)off, 1);
    }
    /* Where the plan in force changes its method, or a loop its steps: by byte over a line on either side. Where the
     * other sizes come densely already that adds offsets, and costs little. */
#define WHERRY_THRESHOLD(field) wherry_thresholds.field,
    const size_t thresholds[] = {WHERRY_THRESHOLDS(WHERRY_THRESHOLD) HALVES_FROM};
#undef WHERRY_THRESHOLD
    for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0] && !unit->failed; i++) {
        const size_t edge = thresholds[i];
        if (unit->target->kind != TARGET_PUBLIC || edge < 64 || edge > (size_t)128 << 20 || (brief && edge > most))
            continue;
        prepare(unit, edge + 65536, unit->seed);
        const bool large = edge > (size_t)1 << 20; /* milliseconds a call */
        for (int off = -64; off <= 64 && !unit->failed; off++) {
            const bool near = off >= -1 && off <= 1;
            if (large && !full && !near && off % 16)
                continue;
            at_offsets(unit, edge + (size_t)(int64_t)off, large ? (near ? 2 : 1) : brief ? 2 : full ? 64 : 16);
        }
    }
    /* Beyond 1 MiB every alignment of the destination, and every remainder of loops that take whole pages, by lines: of
     * one page, or of four. */
    const unsigned lines = (unit->few && !brief) || full ? 256 : 64, first = (unsigned)below(unit, lines);
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned k = 0; k < lines && !unit->failed; k += brief ? 4 : 1) {
        one.d = k % 64;
        one.s = below(unit, 64);
        one.n = fit(unit->target, (1 << 20) + 4096 + 64 * ((37 * k + first) % lines) + below(unit, 64) +
                                      64 * lines * below(unit, 65536 / 64 / lines));
        one.c = takes_value(unit->target) ? some_value(unit) : 0;
        sweep_case(unit, &one);
        if (lines == 256 && k % 4 == 0) {
            one.d = k / 4;
            one.n = fit(unit->target, ((size_t)4 << 20) + 64 + below(unit, 262144));
            sweep_case(unit, &one);
        }
    }
}

/* Where a small buffer of either side, or of both, has a page's end in it or up to 16 bytes behind it: every size
 * (thin: those beside half lines, where code asks for other blocks), every place. What ends farther from it the sweep
 * has. */
static void page_ends(struct unit *unit)
{
    enum { DESTINATION, SOURCE, BOTH, SIDES, BESIDE = 16 };
    const bool brief = unit->level == LEVEL_BRIEF, set = is_set(unit->target);
    const uint64_t last = unit->thin ? 65 : brief ? 40 : unit->few || unit->level == LEVEL_FULL ? 160 : 72;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (one.n = 1; one.n <= last; one.n += unit->thin && one.n % 32 == 1 ? 30 : 1)
        for (uint64_t there = 0; size_fits(unit->target, one.n) && there <= one.n + BESIDE; there++)
            for (int side = DESTINATION; side < (set ? SOURCE : SIDES) && !unit->failed; side++) {
                one.d = side == SOURCE ? below(unit, 64) : PAGE - there;
                one.s =
                    side == DESTINATION ? below(unit, 64) : PAGE - (side == SOURCE ? there : below(unit, one.n + 1));
                one.c = some_value(unit);
                sweep_case(unit, &one);
            }
}

/* Large sizes, by lines of the page: with every line of delta each octave has every line of what is left over of whole
 * pages, and every offset of the destination in its line. Beyond the caches, where code may go by several streams at
 * once, fewer of them. */
static void large_deltas(struct unit *unit)
{
    const bool brief = unit->level == LEVEL_BRIEF, many = unit->few || unit->level == LEVEL_FULL;
    const uint64_t dense = brief ? 65536 : many ? 1 << 20 : 128 << 10;
    const uint64_t most = past_caches(unit) ? (uint64_t)32 << 20 : dense;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (uint64_t power = 16384; power <= most && !unit->failed && !unit->thin; power *= 2) {
        const uint64_t first = below(unit, 64), begin = below(unit, 64);
        const uint64_t step = power <= dense ? 1 : power / dense < 16 ? power / dense : 16;
        prepare(unit, 2 * (power <= dense ? dense : power), unit->seed);
        for (uint64_t k = 0; k < 64 && !unit->failed; k += step) {
            /* every other octave exact */
            const uint64_t delta = 64 * (k + begin) + (power >> 14 & 0x55 ? 0 : below(unit, 64));
            one.n = fit(unit->target,
                        power + PAGE * below(unit, power / PAGE) + 64 * ((37 * k + first) % 64) + below(unit, 64));
            one.d = 64 * below(unit, 64) + (27 * k + first) % 64;
            one.s = (one.d - delta) % PAGE;
            one.c = some_value(unit);
            sweep_case(unit, &one);
        }
    }
}

static void generate_delta(struct unit *unit)
{
    prepare(unit, 65536, unit->seed);
    unsigned each = unit->level == LEVEL_FULL ? 64 : unit->level == LEVEL_QUICK ? (unit->few ? 16 : 6) : 2;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    static const uint32_t ceilings[] = {64, 256, 1024, 4096, 16384, 1024, 2048, 512};
    for (uint64_t delta = 0; delta < PAGE && !unit->failed; delta++)
        for (unsigned k = 0; k < each && !unit->failed; k++) {
            uint32_t ceiling = ceilings[k < 8 ? k : next_random(&unit->random) % 8];
            if (unit->level == LEVEL_BRIEF)
                ceiling = ceilings[(delta + k) % 4];
            one.n = fit(unit->target, ceiling / 4 + below(unit, ceiling));
            /* Half of them across a page's end. */
            one.d = k % 2 ? PAGE - 1 - below(unit, ceiling < 512 ? ceiling : 512) : below(unit, PAGE);
            one.s = (one.d - delta) % PAGE;
            one.c = some_value(unit);
            sweep_case(unit, &one);
        }
    page_ends(unit);
    large_deltas(unit);
}

static void run_any(struct unit *unit, const struct vcase *one) { run(unit, one); }

const struct family family_sweep = {
    .name = "sweep",
    .what = "every size, source and destination offsets 0-63, between red zones",
    .applies = any_target,
    .generate = generate_sweep,
    .run = run_any,
};
const struct family family_sizes = {
    .name = "sizes",
    .what = "around powers of two and thresholds, to 1 MiB and beyond",
    .applies = any_target,
    .generate = generate_sizes,
    .run = run_any,
};
const struct family family_delta = {
    .name = "delta",
    .what = "(dst - src) mod 4096 through its whole range, across page ends",
    .applies = any_target,
    .generate = generate_delta,
    .run = run_any,
};
