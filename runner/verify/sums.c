/* What a checksum may get wrong without the bytes being unusual in length or place: carries that wrap, sums of nothing
 * but zeros or ones, an initial value at the edge. Every
 * length to 4096 at every offset of the source, with contents that make carries. */
#include <stdio.h>

#include "verify.h"

enum { LONGEST = 4096, LARGEST = 8 << 20, OFFSETS = 64, CONTENTS = 6 };

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
    goal = map_or_die(room + OFFSETS, 3);
}

/* at: which content, and which value before. */
static void run(struct unit *unit, const struct vcase *one)
{
    prepare(one->n, unit->seed);
    const uint8_t *src = sources[one->at % CONTENTS] + one->s % OFFSETS;
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
}

static bool sums(const struct target *target) { return op_sums(target->op) || sums_as_well(target); }

static const char *lacks_room(const struct vcase *one) { return one->n > LARGEST ? "8 MiB" : NULL; }
_Static_assert(LARGEST == 8 << 20, "said above");

const struct family family_sums = {
    "sums", "checksums: carries that wrap, all ones, all zeros, any value before", sums, generate, run, lacks_room};
