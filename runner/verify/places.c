/* Where in the address space the buffers lie: across every power of two from 128 KiB to 64 TiB, in every pair, and at
 * distances of all magnitudes, which are nothing, or less than the size, once their upper bits are lost.
 *
 * A power of two is a mark, with memory on either side of it; what lies there already, or what the system refuses, is
 * left out.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "verify.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Bits: the lowest mark has its memory above what a process may map at all (64 KiB), the highest is half of what it
 * has. */
enum { MOST = 8192, ABOUT = 32 * 1024, LOWEST = 17, HIGHEST = 46, NEAREST = 20, MARKS = HIGHEST - LOWEST + 1 };
/* A case's at: the destination's mark, and the source's, 0 where dist tells where that lies. */
enum { SOURCE_SHIFT = 8, MARK_BITS = 0xff };
static const uintptr_t LAST = ((uintptr_t)1 << 47) - PAGE;

void check_placed(struct unit *unit, const struct vcase *one, uint8_t *dst, uint8_t *src, uint64_t reach)
{
    static uint8_t *kept, *origin;
    if (!kept) {
        kept = map_or_die(PLACED_ROOM, PROT_READ | PROT_WRITE);
        origin = map_or_die(PLACED_ROOM, PROT_READ | PROT_WRITE);
    }
    uint8_t *const low = src && reach && src < dst ? src : dst;
    const size_t n = one->n, span = n + reach + (size_t)(2 * PLACED_BESIDE);
    const uint8_t c = (uint8_t)value_of(unit->target, one->c);
    pattern_fill(kept, span, one->seed, PARITY_ANY);
    plain_copy(low - PLACED_BESIDE, kept, span);
    pattern_fill(origin, n, one->seed + 1, PARITY_ANY);
    uint8_t *const goal = kept + (dst - (low - PLACED_BESIDE));
    if (reach) /* what the two have in common is the source's as it was */
        plain_copy(origin, kept + (src - (low - PLACED_BESIDE)), n);
    else if (src)
        plain_copy(src, origin, n);
    if (is_set(unit->target))
        plain_fill(goal, c, n);
    else if (writes(unit->target))
        plain_copy(goal, origin, n);
    unit->cases++;
    if (!call_checked(unit, one, dst, src, n))
        return;
    const size_t at = first_difference(low - PLACED_BESIDE, kept, span);
    if (at < span)
        fail_byte(unit, one, dst, src, "destination", low - PLACED_BESIDE + at - dst, kept[at],
                  low[(int64_t)at - PLACED_BESIDE]);
    const size_t changed = src && !reach ? first_difference(src, origin, n) : n;
    if (changed < n)
        fail_byte(unit, one, dst, src, "source", (int64_t)changed, origin[changed], src[changed]);
}

/* Memory at from to to, whole pages, unless some is there already: kernels that do not know the flag go elsewhere. */
static bool open_at(uintptr_t from, uintptr_t to)
{
    void *const there = (void *)from; // NOLINT(performance-no-int-to-ptr): the address is what is meant
    void *const got = mmap(there, to - from, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (got != there)
        munmap(got, to - from);
    return got == there;
}

/* The mark of so many bits, with memory of its own, or NULL. */
static uint8_t *mark_of(unsigned bits)
{
    static enum { UNTRIED, OPEN, CLOSED } marks[MARKS];
    if (bits < LOWEST || bits > HIGHEST)
        return NULL;
    const uintptr_t mark = (uintptr_t)1 << bits;
    if (marks[bits - LOWEST] == UNTRIED)
        marks[bits - LOWEST] = open_at(mark - ABOUT, mark + ABOUT) ? OPEN : CLOSED;
    return marks[bits - LOWEST] == OPEN ? (uint8_t *)mark : NULL; // NOLINT(performance-no-int-to-ptr): as above
}

static const char no_memory[] =
    "something lies there already, or the system gives no memory there: try another mark or distance";

/* d, s: bytes of either side before its mark. What it lacks, or NULL. */
static const char *run_once(struct unit *unit, const struct vcase *one)
{
    const uint64_t n = one->n;
    const uint8_t *const mark = mark_of(one->at & MARK_BITS);
    if (!mark)
        return no_memory;
    uint8_t *const dst = (uint8_t *)(uintptr_t)mark - one->d;
    if (is_set(unit->target)) {
        check_placed(unit, one, dst, NULL, 0);
        return NULL;
    }
    const unsigned bits = one->at >> SOURCE_SHIFT & MARK_BITS;
    if (bits) {
        const uint8_t *const other = mark_of(bits);
        if (other)
            check_placed(unit, one, dst, (uint8_t *)(uintptr_t)other - one->s, 0);
        return other ? NULL : no_memory;
    }
    uint8_t *const src = dst - one->dist;
    if (reach_of(one) < ABOUT / 2) { /* around one mark */
        if (!may_overlap(unit, one) && reach_of(one) < n)
            return "sides that overlap are for moves alone: give a distance of n or more";
        check_placed(unit, one, dst, src, reach_of(one));
        return NULL;
    }
    const uintptr_t page = ~(uintptr_t)(PAGE - 1), from = ((uintptr_t)src - PAGE) & page,
                    to = ((uintptr_t)src + n + 2 * (uintptr_t)PAGE) & page;
    if (from > LAST || to > LAST || from < ABOUT || !open_at(from, to))
        return no_memory;
    check_placed(unit, one, dst, src, 0);
    munmap((void *)from, to - from); // NOLINT(performance-no-int-to-ptr): as above
    return NULL;
}

static void run(struct unit *unit, const struct vcase *one)
{
    const char *lacking = NULL;
    for (uint64_t i = 0; i < one->calls && i < 1000 && !unit->failed && !lacking; i++)
        lacking = run_once(unit, one);
    if (lacking)
        snprintf(unit->skipped, sizeof unit->skipped, "%s", lacking);
}

static const char *lacks_room(const struct vcase *one)
{
    const unsigned dst = one->at & MARK_BITS, src = one->at >> SOURCE_SHIFT & MARK_BITS;
    if (one->n > MOST || one->d > MOST || one->s > MOST)
        return "n, d and s of 8192 bytes";
    if (dst < LOWEST || dst > HIGHEST || (src && (src < LOWEST || src > HIGHEST)) || one->at >> (2 * SOURCE_SHIFT))
        return "marks of 17 to 46 bits: at is the destination's, and 256 times the source's";
    if (src == dst || (!src && one->dist == 0))
        return "a source elsewhere: another mark, or a distance";
    return reach_of(one) > MOST && reach_of(one) < (uint64_t)1 << (NEAREST - 1)
               ? "distances to 8192 bytes and from 512 KiB on"
               : NULL;
}

static size_t some_size(struct unit *unit)
{
    static const uint32_t most[] = {16, 64, 256, 1024, MOST};
    return fit(unit->target, 1 + below(unit, most[below(unit, sizeof most / sizeof most[0])]));
}

/* Both sides of a mark are touched three times in four. */
static uint64_t some_part(struct unit *unit, uint64_t n)
{
    return below(unit, 4) ? below(unit, n + 1) : below(unit, 2) * n;
}

/* Of one pair of marks, or one distance. */
static uint64_t times(struct unit *unit)
{
    if (unit->thin)
        return below(unit, 8) == 0;
    return unit->level == LEVEL_FULL ? 64 : unit->level == LEVEL_BRIEF ? 1 : unit->few ? 12 : 4;
}

static void pairs(struct unit *unit, struct vcase *one)
{
    const bool set = is_set(unit->target);
    for (unsigned dst = LOWEST; dst <= HIGHEST; dst++)
        for (unsigned src = LOWEST; src <= HIGHEST; src++)
            for (uint64_t i = times(unit); i > 0 && !unit->failed; i--) {
                one->n = some_size(unit);
                one->d = some_part(unit, one->n);
                one->s = some_part(unit, one->n);
                one->c = (int)next_random(&unit->random);
                one->at = dst | (set || src == dst ? 0 : src << SOURCE_SHIFT);
                one->dist = 0;
                if (one->n == 0 || (src == dst && !set && (unit->target->op != WHERRY_OP_move || one->n < 2)))
                    continue;
                if (src == dst && !set)
                    one->dist = (1 + (int64_t)below(unit, one->n - 1)) * (below(unit, 2) ? 1 : -1);
                run_once(unit, one);
            }
}

/* From the highest mark, so that either way there is most room, and from one that 32 bits tell. */
static void distances(struct unit *unit, struct vcase *one)
{
    static const unsigned from[] = {HIGHEST, 31};
    one->s = 0;
    for (unsigned k = 0; k < 2; k++)
        for (unsigned bits = NEAREST; bits < HIGHEST; bits++)
            for (unsigned way = 0; way < 10; way++)
                for (uint64_t i = times(unit); i > 0 && !unit->failed; i--) {
                    const int64_t n = (int64_t)(one->n = some_size(unit)), within = (int64_t)below(unit, one->n + 1);
                    const int64_t beside[] = {0, within, -within, n, -n};
                    one->d = some_part(unit, one->n);
                    one->at = from[k];
                    one->c = (int)next_random(&unit->random);
                    one->dist = ((int64_t)1 << bits) * (way % 2 ? -1 : 1) + beside[way / 2];
                    if (one->n)
                        run_once(unit, one);
                }
}

static void generate(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    unsigned open = 0;
    for (unsigned bits = LOWEST; bits <= HIGHEST; bits++)
        open += mark_of(bits) != NULL;
    pairs(unit, &one);
    if (!is_set(unit->target) && !unit->failed)
        distances(unit, &one);
    if (open < MARKS / 2)
        snprintf(unit->skipped, sizeof unit->skipped,
                 "%u of %u powers of two, where something lies already or the system gives no memory", MARKS - open,
                 (unsigned)MARKS);
}

const struct family family_places = {
    .name = "places",
    .what = "buffers across powers of two of the address, and far apart",
    .applies = any_target,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
    .farthest = (uint64_t)1 << 47,
    .tells_addresses = true,
};
