/* Lengths and distances beyond 2, 4 and 5 GiB, lengths to 16 TiB.
 *
 * quick: only both ends of the buffers exist and a hole lies between them. A right routine must fault in the hole;
 * one that cuts the size to 32 or 31 bits returns. So a length of 5 GiB costs a few microseconds. With overlap, the
 * bytes that the routine has written when it faults tell whether it went in the direction that loses none.
 * full, and 4 GiB also where few functions are verified: the hole is filled with one small piece of memory mapped over
 * and over; the ends and the places around 2 and 4 GiB are memory of their own, and all of them are checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify.h"

enum { END = 256 * 1024, FILLED = 1, OVERLAPPING = 2, ACROSS = 4, SIGN = 8 };
static const uint64_t GIB = (uint64_t)1 << 30;

static uint8_t *reserve(size_t length) { return map_or_die(length, PROT_NONE); }

#define TOO_FEW_ADDRESSES "the system gives a process fewer addresses (limits: ulimit -v)"

static void open_window(uint8_t *at, size_t length)
{
    if (mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != at)
        no_room();
}

static uint8_t *page_of(uint8_t *p) { return (uint8_t *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)); }

struct window {
    uint64_t at, length; /* relative to the buffer */
};

static unsigned windows_of(uint64_t n, struct window *w)
{
    unsigned count = 0;
    w[count++] = (struct window){0, END};
    for (uint64_t mark = 2 * GIB; mark <= 4 * GIB; mark += 2 * GIB)
        if (n > mark + 2 * END)
            w[count++] = (struct window){mark - END, 2 * END};
    w[count++] = (struct window){n - END, END};
    return count;
}

/* What is wrong in the source says why the destination is, and a routine may have copied what it had changed: so both
 * are compared with what the source was made of. */
static void compare_window(struct unit *unit, const struct vcase *one, uint8_t *dst, uint8_t *src, struct window w)
{
    uint8_t *model = map_or_die(w.length, PROT_READ | PROT_WRITE);
    pattern_fill(model, w.length, one->seed + w.at, 1);
    size_t at = first_difference(src + w.at, model, w.length);
    if (at < w.length)
        fail_byte(unit, one, dst, src, "source", (int64_t)(w.at + at), model[at], src[w.at + at]);
    at = writes(unit->target) ? first_difference(dst + w.at, model, w.length) : w.length;
    if (at < w.length)
        fail_byte(unit, one, dst, src, "destination", (int64_t)(w.at + at), model[at], dst[w.at + at]);
    munmap(model, w.length);
}

static void run_filled(struct unit *unit, const struct vcase *one)
{
    bool set = is_set(unit->target);
    uint8_t c = (uint8_t)value_of(unit->target, one->c);
    uint8_t *dst = map_repeated(one->n + 6 * PIECE) + PIECE + one->d % PAGE;
    uint8_t *src = set ? NULL : map_repeated(one->n + 6 * PIECE) + PIECE + one->s % PAGE;
    struct window w[4];
    unsigned count = windows_of(one->n, w);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *to = dst + w[i].at;
        open_window(page_of(to - PAGE), w[i].length + 3 * PAGE);
        if (set)
            plain_fill(to - 64, (uint8_t)~c, w[i].length + 128);
        else
            pattern_fill(to - 64, w[i].length + 128, one->seed, 0);
        if (set)
            continue;
        open_window(page_of(src + w[i].at - PAGE), w[i].length + 3 * PAGE);
        pattern_fill(src + w[i].at, w[i].length, one->seed + w[i].at, 1);
    }
    uint8_t before[64], after[64];
    plain_copy(before, dst - 64, 64);
    plain_copy(after, dst + one->n, 64);
    unit->cases++;
    if (!call_checked(unit, one, dst, src, one->n))
        return;
    for (unsigned i = 0; i < count && !unit->failed; i++) {
        uint8_t *to = dst + w[i].at;
        size_t at = set ? first_other(to, c, w[i].length) : w[i].length;
        if (at < w[i].length)
            fail_byte(unit, one, dst, src, "destination", (int64_t)(w[i].at + at), c, to[at]);
        if (!set)
            compare_window(unit, one, dst, src, w[i]);
    }
    if (!plain_equal(before, dst - 64, 64) || !plain_equal(after, dst + one->n, 64))
        fail(unit, one, dst, src, "", "wrote outside the destination");
    munmap(page_of(dst) - PIECE, one->n + 6 * PIECE);
    if (src)
        munmap(page_of(src) - PIECE, one->n + 6 * PIECE);
}

/* Threads that the target has started, and that have not ended. */
static bool others_run(void)
{
    enum { ALONE = 3 }; /* ".", ".." and one thread */
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > ALONE;
}

/* A call that ends by a fault. Threads of the target go on after it, to where nothing is any more: then that was it. */
static struct outcome call_into_hole(struct unit *unit, const struct vcase *one, void *dst, const void *src, size_t n)
{
    unit->pulse->fault_due = true;
    const struct outcome seen = call_raw(unit, one, dst, src, n);
    if (seen.faulted && others_run()) {
        unit->pulse->foreign = seen.signo;
        _exit(4);
    }
    unit->pulse->fault_due = false;
    return seen;
}

enum { WINDOW = END - 2 * PAGE }; /* at least so much of a buffer's beginning is open where a hole follows */

static uint64_t low_bits(uint64_t n, unsigned bits) { return n & (((uint64_t)1 << bits) - 1); }

/* It came back, though it had to fault in the hole. Called once more, with a beginning that shows how much of it is
 * done: that may be what was left of a size that was cut. */
static void fail_returned(struct unit *unit, const struct vcase *one, uint8_t *dst, uint8_t *src)
{
    const uint64_t n = one->n, calls = unit->ordinal;
    const bool writing = writes(unit->target);
    const uint8_t goal = is_set(unit->target) ? (uint8_t)value_of(unit->target, one->c) : 0;
    size_t done = 0;
    if (writing) {
        plain_fill(dst, (uint8_t)~goal, WINDOW);
        if (src)
            plain_fill(src, goal, WINDOW);
        call_into_hole(unit, one, dst, src, n);
        unit->ordinal = calls;
        done = first_other(dst, goal, WINDOW);
    }
    /* Of a call that only reads nothing is seen but that it ended before the hole. */
    unsigned bits = 63;
    while (bits && (n >> bits == 0 || (writing ? low_bits(n, bits) != done : low_bits(n, bits) >= WINDOW)))
        bits--;
    char seen[64] = "", guess[96] = "";
    if (writing && done)
        snprintf(seen, sizeof seen, "; it had written the first %zu bytes", done);
    else if (writing)
        snprintf(seen, sizeof seen, "; it had written nothing of the beginning");
    if (bits >= 32 || (bits && done)) /* nothing written fits many mistakes */
        snprintf(guess, sizeof guess, ": perhaps the size was cut to %u bits (0x%" PRIx64 ")", bits, low_bits(n, bits));
    fail(unit, one, dst, src, "size", "returned without having touched the middle of the buffers%s%s", seen, guess);
}

/* False: there are not so many addresses here, and none need be. */
static bool run_hole(struct unit *unit, const struct vcase *one)
{
    bool set = is_set(unit->target);
    const size_t length = one->n + 4 * PIECE;
    uint8_t *whole[2] = {NULL, NULL};
    for (int side = 0; side < (set ? 1 : 2); side++) {
        whole[side] = one->n < 8 * GIB ? reserve(length) : map_if_possible(length, PROT_NONE);
        if (!whole[side]) {
            if (side)
                munmap(whole[0], length);
            return false;
        }
    }
    uint8_t *start[2] = {whole[0] + PIECE + one->d % PAGE, set ? NULL : whole[1] + PIECE + one->s % PAGE};
    for (int side = 0; side < (set ? 1 : 2); side++) {
        open_window(page_of(start[side]) - PAGE, END);
        open_window(page_of(start[side] + one->n) - END, END + 2 * PAGE);
    }
    unit->cases++;
    unit->pulse->now = *one;
    struct outcome seen = call_into_hole(unit, one, start[0], start[1], one->n);
    uintptr_t a = seen.address, d = (uintptr_t)start[0], s = (uintptr_t)start[1];
    bool in_hole = seen.faulted && !seen.hung && (a - d < one->n || (!set && a - s < one->n));
    /* The address of a fault at 64-byte blocks' width may be reported as the block's. */
    if (seen.faulted && !in_hole)
        call_judge(unit, one, &seen, start[0], start[1], one->n);
    else if (!seen.faulted)
        fail_returned(unit, one, start[0], start[1]);
    munmap(whole[0], length);
    if (!set)
        munmap(whole[1], length);
    return true;
}

/* dst = src + dist, and only the last (or first) 128 KiB have both parts in common; hole between. */
static void run_hole_overlap(struct unit *unit, const struct vcase *one)
{
    enum { COMMON = 128 * 1024 };
    uint64_t reach = (uint64_t)(one->dist < 0 ? -one->dist : one->dist), n = reach + COMMON;
    uint8_t *whole = reserve(2 * n + 8 * PIECE), *low = whole + PIECE + one->s % PAGE;
    uint8_t *src = one->dist < 0 ? low + reach : low, *dst = src + one->dist;
    /* Three places exist: where the lower buffer begins, where the two overlap, where the upper one ends. */
    uint8_t *places[3] = {low, low + reach, low + 2 * reach};
    for (int i = 0; i < 3; i++)
        open_window(page_of(places[i]) - 4 * PAGE, COMMON + 9 * PAGE);
    for (int i = 0; i < 3; i++)
        pattern_fill(places[i] - PAGE, COMMON + 2 * PAGE, one->seed + (unsigned)i, i == 1);
    uint8_t *kept = map_or_die(COMMON, PROT_READ | PROT_WRITE);
    plain_copy(kept, low + reach, COMMON);
    /* The common bytes are source; they belong at the end of the upper or the beginning of the lower buffer. */
    uint8_t *goal = one->dist > 0 ? low + 2 * reach : low;
    struct vcase noted = *one;
    noted.n = n;
    unit->cases++;
    unit->pulse->now = noted;
    struct outcome seen = call_into_hole(unit, &noted, dst, src, n);
    if (seen.faulted && seen.hung)
        call_judge(unit, &noted, &seen, dst, src, n);
    else if (!seen.faulted)
        fail(unit, &noted, dst, src, "size", "returned without having touched the middle of the buffers");
    enum { BLOCK = 1024 };
    _Static_assert(COMMON % BLOCK == 0, "whole blocks");
    for (size_t i = 0; i < COMMON && !unit->failed; i++) {
        while (i % BLOCK == 0 && i < COMMON &&
               (plain_equal(low + reach + i, kept + i, BLOCK) || plain_equal(goal + i, kept + i, BLOCK)))
            i += BLOCK; /* one by one only where each has something that is not in the other */
        if (i < COMMON && low[reach + i] != kept[i] && goal[i] != kept[i]) {
            int64_t byte = (int64_t)(one->dist > 0 ? reach + i : i);
            fail(unit, &noted, dst, src, "direction",
                 "went in the wrong direction: byte %lld of the source was overwritten before it was copied",
                 (long long)byte);
            unit->failure.byte = byte;
        }
    }
    munmap(kept, COMMON);
    munmap(whole, 2 * n + 8 * PIECE);
}

enum { ABOUT = 256 * 1024 };

/* A multiple of 4 GiB, or 2 more, with memory on either side. */
static uint8_t *mark_in_memory(int side, bool sign)
{
    static uint8_t *marks[2][2];
    uint8_t **mark = &marks[side][sign];
    if (!*mark) {
        const uintptr_t at = (uintptr_t)reserve(6 * GIB + 2 * ABOUT) + ABOUT,
                        first = (at + 4 * GIB - 1) & ~(4 * GIB - 1);
        const uintptr_t half = first - 2 * GIB >= at ? first - 2 * GIB : first + 2 * GIB;
        *mark = (uint8_t *)(sign ? half : first);
        open_window(*mark - ABOUT, 2 * ABOUT);
    }
    return *mark;
}

/* d, s: bytes of either side before its mark; dist: overlapping, and d is of the two as one. */
static void run_across(struct unit *unit, const struct vcase *one)
{
    const bool set = is_set(unit->target), sign = one->at & SIGN;
    const uint64_t reach = may_overlap(unit, one) ? reach_of(one) : 0;
    uint8_t *low = mark_in_memory(0, sign) - one->d, *dst = one->dist > 0 && reach ? low + reach : low;
    uint8_t *src = set ? NULL : reach ? dst - one->dist : mark_in_memory(1, sign) - one->s;
    check_placed(unit, one, dst, src, reach);
}

static void run(struct unit *unit, const struct vcase *one)
{
    for (uint64_t i = 0; i < one->calls && i < 1000 && !unit->failed; i++) {
        if (one->at & ACROSS)
            run_across(unit, one);
        else if (one->at & OVERLAPPING && may_overlap(unit, one))
            run_hole_overlap(unit, one);
        else if (one->at & FILLED)
            run_filled(unit, one);
        else if (!run_hole(unit, one))
            snprintf(unit->skipped, sizeof unit->skipped, TOO_FEW_ADDRESSES);
    }
}

/* Nothing that a routine could do is wrong where there is no hole, or where memory ends beside the mark. */
static const char *lacks_room(const struct vcase *one)
{
    if (one->at & ACROSS)
        return one->n + reach_of(one) + PLACED_BESIDE > ABOUT ? "less than 256 KiB across a multiple of 2 GiB" : NULL;
    if (one->at & OVERLAPPING && one->dist != 0 && reach_of(one) < 4 * END)
        return "a dist of 1 MiB or more";
    return one->n < 4 * END ? "n of 1 MiB or more" : NULL;
}

/* The mark in the middle of either buffer, just inside its ends, and, of two that overlap, between their ends. */
static void across(struct unit *unit)
{
    static const uint32_t sizes[] = {2, 13, 40, 100, 300, 1500, 5000, 70000};
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
        one.at = ACROSS | (k % 2 ? SIGN : 0);
        one.n = fit(unit->target, sizes[k / 2]);
        const uint64_t n = one.n, places[] = {0, 1, n / 2, n ? n - 1 : 0, n};
        for (unsigned i = 0; i < 5 && n && !unit->failed; i++) {
            one.d = places[i];
            one.s = places[(i + below(unit, 5)) % 5];
            one.c = (int)next_random(&unit->random);
            one.dist = 0;
            run(unit, &one);
        }
        if (unit->target->op != WHERRY_OP_move || n < 2)
            continue;
        const uint64_t reaches[] = {1, n > 33 ? 33 : 1, n / 2, n - 1};
        for (unsigned i = 0; i < 4; i++)
            for (unsigned place = 0; place < 8 && !unit->failed; place++) {
                const uint64_t reach = reaches[i], within[] = {reach, (reach + 1) / 2, (reach + n) / 2, n + reach / 2};
                one.d = within[place / 2];
                one.dist = place % 2 ? (int64_t)reach : -(int64_t)reach;
                run(unit, &one);
            }
    }
}

static void generate(struct unit *unit)
{
    static const uint64_t marks[] = {2, 4, 5, 6};
    across(unit);
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (size_t k = 0; k < 4; k++)
        for (int shape = 0; shape < 6 && !unit->failed; shape++) {
            /* A few bytes, a kilobyte, a megabyte are left when the upper bits are lost; one is just below. */
            static const int64_t beyond[] = {0, 17, 300, 2100, 300000, -64};
            one.n = fit(unit->target, marks[k] * GIB + (uint64_t)beyond[shape]);
            one.d = below(unit, 64);
            one.s = below(unit, 64);
            one.c = (int)next_random(&unit->random) | 1;
            one.at = 0;
            run(unit, &one);
        }
    for (unsigned bits = 33; bits <= 44 && !unit->failed; bits++) {
        one.n = fit(unit->target, ((uint64_t)1 << bits) + 17 + below(unit, 3000));
        if (!run_hole(unit, &one)) {
            snprintf(unit->skipped, sizeof unit->skipped, "lengths from 2^%u bytes on: " TOO_FEW_ADDRESSES, bits);
            break;
        }
    }
    static const int64_t distances[] = {1, 2, 3, 4, 5};
    for (size_t k = 0; k < 5 && unit->target->op == WHERRY_OP_move; k++)
        for (int sign = -1; sign <= 1 && !unit->failed; sign += 2) {
            one.at = OVERLAPPING;
            one.s = below(unit, 64);
            one.dist = sign * (distances[k] * (int64_t)GIB + 4096 + (int64_t)below(unit, 4096));
            one.n = (uint64_t)(one.dist < 0 ? -one.dist : one.dist) + 128 * 1024;
            run(unit, &one);
        }
    if (unit->level != LEVEL_FULL && !(unit->few && !unit->target->routine))
        return;
    bool slow = unit->target->routine != NULL; /* a historic routine may take 1 s a GiB */
    bool one_length = slow || unit->level != LEVEL_FULL;
    for (size_t k = one_length ? 1 : 0; k < (one_length ? 2u : 3u) && !unit->failed; k++) {
        one.at = FILLED;
        one.dist = 0;
        one.n = fit(unit->target, marks[k] * GIB + 4097);
        one.c = 0x1ab;
        run(unit, &one);
    }
    if (slow) {
        const size_t told = strlen(unit->skipped);
        snprintf(unit->skipped + told, sizeof unit->skipped - told,
                 "%swhole lengths of 2 and 5 GiB (4 GiB was copied; the others were judged by a hole)",
                 told ? "; " : "");
    }
}

const struct family family_huge = {
    .name = "huge",
    .what = "lengths to 16 TiB, overlap distances beyond 2, 4 and 5 GiB",
    .applies = any_target,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
    .farthest = (uint64_t)1 << 45,
};
