/* Inaccessible pages flush against both ends of both buffers, and a source that cannot be written. */
#include <sys/mman.h>

#include "verify.h"

enum { ROOM = 6 * PAGE, LARGEST = 32 << 20, SOURCE_AT_END = 1, DESTINATION_AT_END = 2, PAGE_ONLY = 4 };

static struct arena source, even, odd;

static void prepare(struct unit *unit, uint64_t n, uint64_t seed)
{
    const size_t length = n + 64 <= ROOM ? ROOM : n + ROOM;
    if (even.length >= length)
        return;
    even = arena_make(length, seed, 0);
    if (is_set(unit->target)) {
        odd = arena_make(length, seed, 1);
        return;
    }
    source = arena_make(length, seed, 1);
    mprotect(source.base, source.length, PROT_READ);
}

static void run(struct unit *unit, const struct vcase *one)
{
    const uint64_t reach = may_overlap(unit, one) ? reach_of(one) : 0;
    prepare(unit, one->n + reach, one->seed);
    bool set = is_set(unit->target);
    int c = value_of(unit->target, one->c);
    struct arena *a = set && c % 2 == 0 ? &odd : &even;
    size_t n = one->n;
    /* d and s move the buffer away from the guard, for a case that wants it. */
    uint8_t *dst = a->base + (one->at & DESTINATION_AT_END ? a->length - n - one->d % 64 : one->d % 64);
    const uint8_t *src = NULL, *model = NULL;
    if (reach) { /* the two as one: flush with the beginning or the end */
        uint8_t *low = a->base + (one->at & DESTINATION_AT_END ? a->length - n - reach - one->d % 64 : one->d % 64);
        dst = one->dist > 0 ? low + reach : low;
        src = dst - one->dist;
        model = a->back + (src - a->base);
    } else if (!set) {
        src = source.base + (one->at & SOURCE_AT_END ? source.length - n - one->s % 64 : one->s % 64);
        model = only_reads(unit->target) ? a->back + (dst - a->base) : source.back + (src - source.base);
    }
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        if (!call_checked(unit, one, dst, src, n))
            break;
        if (src ? !plain_equal(dst, model, n) : !plain_all(dst, (uint8_t)c, n)) {
            size_t at = src ? first_difference(dst, model, n) : first_other(dst, (uint8_t)c, n);
            fail_byte(unit, one, dst, src, "destination", (int64_t)at, src ? model[at] : (uint8_t)c, dst[at]);
        }
        plain_copy(dst, a->back + (dst - a->base), n);
        if (!plain_equal(a->base, a->back, a->length) && !unit->failed) {
            int64_t at = (int64_t)first_difference(a->base, a->back, a->length);
            fail_byte(unit, one, dst, src, "destination", at - (dst - a->base), a->back[at], a->base[at]);
        }
    }
    if (unit->failed)
        plain_copy(a->base, a->back, a->length);
}

/* What loops of large sizes leave over: every number of bytes in two lines, with the end of the source, and then that
 * of the destination, flush and the other side at any offset. */
static void remainders(struct unit *unit)
{
    static const uint32_t bases[] = {6016, 8192, 20480, 65536, 1 << 20};
    const size_t count = unit->few || unit->level == LEVEL_FULL ? sizeof bases / sizeof bases[0] : 3;
    const bool set = is_set(unit->target);
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (size_t k = 0; k < count; k++)
        for (uint64_t rest = 0; rest < 128; rest++)
            for (one.at = set ? DESTINATION_AT_END : SOURCE_AT_END; one.at <= DESTINATION_AT_END && !unit->failed;
                 one.at++) {
                one.n = fit(unit->target, bases[k] + rest);
                one.d = one.at == DESTINATION_AT_END ? 0 : below(unit, 64);
                one.s = one.at == DESTINATION_AT_END ? below(unit, 64) : 0;
                one.c = (int)next_random(&unit->random);
                run(unit, &one);
            }
}

static void generate(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    bool set = is_set(unit->target), brief = unit->level == LEVEL_BRIEF;
    for (one.n = 0; one.n <= 6000; one.n++) {
        if (!size_fits(unit->target, one.n) || (brief && one.n > 600 && one.n % 16 > 1 && one.n % 16 < 15))
            continue;
        if (unit->thin && one.n > 600 && next_random(&unit->random) % 4)
            continue;
        for (one.at = 0; one.at < 4 && !unit->failed; one.at++) {
            if (set && one.at & SOURCE_AT_END)
                continue;
            one.c = (int)next_random(&unit->random);
            run(unit, &one);
        }
        /* One side flush, the other anywhere: code that looks at the distance to the page's end comes in stages. */
        for (unsigned k = 0; k < (unit->level == LEVEL_FULL ? 64u : brief ? 1u : 4u) && !unit->failed; k++) {
            uint64_t r = next_random(&unit->random);
            struct vcase other = one;
            other.at = set ? 2 : r & 3;
            other.d = r & 4 || set ? r >> 8 & 63 : 0;
            other.s = r & 4 ? 0 : r >> 16 & 63;
            if (other.n + 64 <= ROOM)
                run(unit, &other);
        }
        for (int k = 0; k < (unit->thin ? 1 : 4) && one.n > 1 && one.n <= (brief ? 600 : 3000) && !unit->failed; k++) {
            struct vcase moved = one;
            const uint64_t way = unit->thin ? one.n : (uint64_t)k;
            moved.at = way & DESTINATION_AT_END;
            moved.dist = 1 + (int64_t)below(unit, one.n > 256 && one.n % 2 ? 255 : one.n - 1);
            moved.dist *= way & 1 ? 1 : -1;
            if (may_overlap(unit, &moved))
                run(unit, &moved);
        }
        if (unit->failed)
            return;
    }
    if (!brief)
        remainders(unit);
    /* Loops that only large sizes have. */
    const uint64_t most = 8 << 20, /* in every shape */
        largest = unit->target->routine && unit->level != LEVEL_FULL ? 65536
                  : past_caches(unit)                                ? LARGEST
                                                                     : most;
    for (uint64_t power = 8192; power <= largest && !brief; power *= 2)
        for (int off = -1; off <= 1; off++)
            for (one.at = 0; one.at < 4 && !unit->failed; one.at++) {
                if ((set && one.at & SOURCE_AT_END) || (power > 1 << 20 && off && !unit->few) ||
                    (power > most && off >= 0))
                    continue;
                one.n = fit(unit->target, power + (uint64_t)(int64_t)off * (1 + below(unit, 300)));
                one.c = (int)next_random(&unit->random);
                run(unit, &one);
                struct vcase moved = one;
                moved.dist = 1 + (int64_t)below(unit, off ? 255 : one.n - 1);
                moved.dist *= one.at & SOURCE_AT_END ? 1 : -1;
                if (may_overlap(unit, &moved) && moved.n + reach_of(&moved) <= largest)
                    run(unit, &moved);
            }
}

static const char *lacks_room(const struct vcase *one)
{
    return one->n + reach_of(one) > LARGEST + ROOM ? "32 MiB and 24576 bytes" : NULL;
}
_Static_assert(LARGEST == 32 << 20 && ROOM == 24576, "said above");

const struct family family_guard = {
    .name = "guard",
    .what = "inaccessible pages against both ends of both buffers; read-only source",
    .applies = any_target,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
};
