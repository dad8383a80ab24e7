/* Source and destination in one buffer, at every distance. */
#include "verify.h"

enum { MARGIN = PAGE };

static struct arena both;

static void prepare(uint64_t n, uint64_t reach, uint64_t seed)
{
    static uint64_t prepared_seed;
    size_t length = 2 * n + 2 * reach + 4 * MARGIN + 65536;
    if (both.length >= length && prepared_seed == seed)
        return;
    prepared_seed = seed;
    both = arena_make(length, seed, PARITY_ANY);
}

static void run(struct unit *unit, const struct vcase *one)
{
    uint64_t reach = (uint64_t)(one->dist < 0 ? -one->dist : one->dist);
    prepare(one->n, reach, one->seed);
    size_t n = one->n;
    enum { LOOK = 64 };
    uint8_t *low = both.base + MARGIN + one->s;
    uint8_t *src = one->dist < 0 ? low + reach : low;
    uint8_t *dst = src + one->dist;
    uint8_t *model = both.back + (src - both.base), *back = both.back + (dst - both.base);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        if (!call_checked(unit, one, dst, src, n))
            break;
        if (!plain_equal(dst, model, n)) {
            size_t at = first_difference(dst, model, n);
            fail_byte(unit, one, dst, src, "destination", (int64_t)at, model[at], dst[at]);
        }
        plain_copy(dst, back, n);
        /* What the two have in common is restored, so source and surroundings are compared in one piece. */
        const uint8_t *from = low - LOOK;
        size_t span = n + reach + 2 * LOOK;
        if (!unit->failed && !plain_equal(from, both.back + (from - both.base), span)) {
            int64_t at = (int64_t)first_difference(from, both.back + (from - both.base), span);
            const uint8_t *p = from + at;
            fail_byte(unit, one, dst, src, p >= src && p < src + n ? "source" : "destination",
                      p >= src && p < src + n ? p - src : p - dst, both.back[p - both.base], *p);
        }
    }
    if (unit->failed)
        plain_copy(both.base, both.back, both.length);
}

/* Where programs change method: every alignment of the destination in both directions, close by and at some distance
 * within the size. At several lines of a page, since target_ways goes by the place and the size; most often where most
 * ways are. */
static void about(struct unit *unit, size_t edge)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    const unsigned often = edge <= 2048 ? 16 : 1;
    for (int off = -4; off <= 4; off++)
        for (unsigned k = 0; k < 256 * often && !unit->failed; k++) {
            one.n = edge + (size_t)(int64_t)off;
            const int64_t distance = 1 + (int64_t)below(unit, k % 256 < 128 ? 192 : one.n - 1);
            one.dist = k % 2 ? distance : -distance;
            one.s = (k / 2 - (k % 2 ? (uint64_t)distance : 0)) % 64; /* the lower one of the two */
            one.s += 64 * below(unit, 64);
            run(unit, &one);
        }
    /* Little in common: the destination's end, which a method for buffers apart may store first, and the source's
     * begin; with nothing before the destination's first line. */
    for (unsigned k = 0; k < 64 && !unit->failed; k++) {
        one.n = edge + k;
        one.dist = -(int64_t)(one.n - 1 - below(unit, 4));
        one.s = 64 * below(unit, 64);
        run(unit, &one);
    }
}

static void about_edges(struct unit *unit)
{
#define WHERRY_THRESHOLD(field) wherry_thresholds.field,
    const size_t thresholds[] = {WHERRY_THRESHOLDS(WHERRY_THRESHOLD)};
#undef WHERRY_THRESHOLD
    for (size_t power = 512; power <= 16384; power *= 2) {
        about(unit, power);
        about(unit, power + 64); /* steps of a loop, and the line before them */
        about(unit, power + power / 2);
    }
    for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++)
        if (unit->target->kind == TARGET_PUBLIC && thresholds[i] >= 64 && thresholds[i] <= 65536)
            about(unit, thresholds[i]);
}

/* Only their ends overlap: by about a vector, some of them, the distance then being most of the size; or nothing is in
 * common any more and less than a few vectors lies between. At sizes beyond those that get every distance, by lines of
 * what is left over of them; and halves. */
static void few_in_common(struct unit *unit)
{
    static const int16_t common[] = {-129, -128, -65, -64, -63, -33, -32, -31, -17, -16, -15, -8,
                                     -2,   0,    1,   2,   7,   8,   9,   15,  16,  17,  31,  32,
                                     33,   48,   63,  64,  65,  127, 128, 129, 192, 256};
    const unsigned rounds = unit->level == LEVEL_FULL ? 256 : unit->level == LEVEL_BRIEF ? 8 : unit->few ? 64 : 24;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned k = 0; k < rounds && !unit->failed; k++) {
        one.n = 513 + 64 * k + below(unit, 64) + (k % 8 ? 0 : 16384);
        for (unsigned i = 0; i <= sizeof common / sizeof common[0]; i++)
            for (int sign = -1; sign <= 1 && !unit->failed; sign += 2) {
                const bool half = i == sizeof common / sizeof common[0];
                one.dist = sign * (half ? (int64_t)one.n / 2 : (int64_t)one.n - common[i]);
                one.s = below(unit, 64);
                run(unit, &one);
            }
    }
}

static void generate(struct unit *unit)
{
    bool full = unit->level == LEVEL_FULL, brief = unit->level == LEVEL_BRIEF;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    prepare(32768, 32768, unit->seed);
    unsigned alignments = full ? 64 : unit->few ? 8 : 1;
    enum { FEW = 64 }; /* so many bytes and fewer have ways for two or three sizes alone */
    for (one.n = 0; one.n <= 512; one.n++)
        for (one.dist = -(int64_t)one.n - 1; one.dist <= (int64_t)one.n + 1; one.dist++) {
            /* Each distance with one of four sizes in a row, which take the same way. */
            if (unit->thin && one.n > FEW && (one.n + (uint64_t)one.dist) % 4)
                continue;
            if (brief && (one.dist > 72 || one.dist < -72) && next_random(&unit->random) % 8)
                continue;
            for (unsigned k = 0; k < alignments && !unit->failed; k++) {
                one.s = full ? k : below(unit, 64);
                run(unit, &one);
            }
            if (unit->failed)
                return;
        }
    /* Beyond 512 bytes: every short distance at some sizes, then any distance at any. */
    unsigned sizes = full ? 256 : brief ? 8 : unit->few ? 96 : 24;
    for (unsigned k = 0; k < sizes; k++) {
        one.n = 513 + below(unit, k % 4 ? 4096 : 16384);
        int64_t most = full ? 1100 : 300;
        for (one.dist = -most; one.dist <= most && !unit->failed; one.dist++) {
            one.s = below(unit, 64);
            run(unit, &one);
        }
    }
    unsigned any = full ? 400000 : brief ? 2000 : unit->few ? 40000 : 8000;
    for (unsigned k = 0; k < any && !unit->failed; k++) {
        one.n = 1 + below(unit, k % 2 ? 2048 : 16384);
        one.dist = (int64_t)below(unit, 2 * one.n + 3) - (int64_t)one.n - 1;
        one.s = below(unit, 64);
        run(unit, &one);
    }
    if (unit->failed)
        return;
    few_in_common(unit);
    if (brief || unit->failed)
        return;
    prepare(600000, 65536 + 64, unit->seed);
    about_edges(unit);
    /* Distances that are a power of two or whole pages: both sides at one place in a line, a page, a cache. */
    for (uint64_t reach = 256; reach <= 65536 && !unit->failed; reach += reach < PAGE       ? reach
                                                                         : reach < 4 * PAGE ? PAGE
                                                                                            : reach)
        for (unsigned k = 0; k < (full ? 256u : unit->few ? 64u : 16u) && !unit->failed; k++) {
            const int64_t distance = (int64_t)reach + (k % 8 < 6 ? 0 : k % 8 == 6 ? 1 : -1);
            one.n = reach + 2 + below(unit, k % 4 < 2 ? 65536 : reach);
            one.dist = k % 2 ? distance : -distance;
            one.s = k % 16 < 8 ? 0 : below(unit, 64);
            run(unit, &one);
        }
    /* And a line beside those. */
    for (uint64_t reach = 512; reach <= 65536 && !unit->failed; reach += reach < PAGE       ? reach
                                                                         : reach < 4 * PAGE ? PAGE
                                                                                            : reach)
        for (unsigned k = 0; k < (full ? 64u : unit->few ? 16u : 8u) && !unit->failed; k++) {
            const int64_t distance = (int64_t)reach + (k / 2 % 2 ? 64 : -64);
            one.n = reach + 66 + (k / 4 % 2 ? 32768 : 0) + below(unit, 32768);
            one.dist = k % 2 ? distance : -distance;
            one.s = below(unit, 64);
            run(unit, &one);
        }
    /* Short ones at sizes that lie between those above and those below: of each power of two some within one line, two,
     * three and four, and not as chance has it. */
    const unsigned octaves = 6, lines = 4;
    prepare((size_t)16384 << octaves, 256, unit->seed);
    for (unsigned k = 0; k < 2 * octaves * lines * (full ? 12 : unit->few ? 4 : 1) && !unit->failed; k++) {
        const unsigned octave = k / 2 % octaves, line = k / 2 / octaves % lines;
        const int64_t distance = 64 * line + 1 + (int64_t)below(unit, 64);
        one.n = ((size_t)16384 << octave) + below(unit, (uint64_t)16384 << octave);
        one.dist = k % 2 ? distance : -distance;
        one.s = below(unit, 64);
        run(unit, &one);
    }
    /* The same place, of which a routine may say that there is nothing to do. */
    for (size_t power = 16384; power <= (size_t)1 << 20; power *= 2)
        for (unsigned k = 0; k < 4 && !unit->failed; k++) {
            one.n = power + (power >> 2) * k + below(unit, power >> 2);
            one.dist = 0;
            one.s = below(unit, 64);
            run(unit, &one);
        }
    static const int64_t distances[] = {0, 1, -1, 8, -8, 63, -64, 4096, -4096, 65537, -70000, 1000003};
    size_t most = full ? (size_t)64 << 20 : unit->few ? (size_t)8 << 20 : (size_t)1 << 20;
    most = past_caches(unit) ? (size_t)64 << 20 : most;
    prepare(most + 64, 1000003, unit->seed);
    for (size_t n = (size_t)1 << 20; n <= most; n *= full ? 4 : 8)
        for (size_t k = 0; k < sizeof distances / sizeof distances[0] && !unit->failed; k++) {
            one.n = n + below(unit, 64);
            one.dist = distances[k];
            one.s = below(unit, 64);
            run(unit, &one);
        }
}

static bool moves(const struct target *target) { return target->op == WHERRY_OP_move; }

const struct family family_overlap = {
    .name = "overlap",
    .what = "source and destination overlap at every distance, and are the same",
    .applies = moves,
    .generate = generate,
    .run = run,
};
