/* What tells zeros from others: all zeros, one bit that is not, bytes that are the same and may not cancel each other,
 * and a page that cannot be written because it need not be. Buffers lie flush with inaccessible pages at either end,
 * amid bytes that are not zero. Lines that need not be written beside one that must are watched by instruction. */
#include <sys/mman.h>

#include "verify.h"

enum {
    SMALL = 2 * PAGE,
    ROOM = (64 << 20) + 2 * PAGE,
    FROM_END = 1,
    ALL_ZERO = 2,
    READ_ONLY = 4,
    STEPPED = 8,
    REST = 16
};

static uint8_t *room;

static void prepare(void)
{
    if (room)
        return;
    uint8_t *base = map_or_die(ROOM + 2 * PAGE, PROT_NONE);
    room = base + PAGE;
    mprotect(room, ROOM, PROT_READ | PROT_WRITE);
}

enum { LINE = 64, MOST_LINES = 16 };

/* Before one instruction of the call the lines of zeros get other bytes, and after it the zeros again: an instruction
 * that writes zeros there is seen, and no later one finds anything but zeros. */
struct watch {
    uint8_t *p;
    size_t n, dirty; /* dirty: of the line that is to be written */
    unsigned steps, at;
    bool marked;
    size_t wrong; /* the first byte written, or n */
};

static bool clean(const struct watch *w, size_t i)
{
    return ((uintptr_t)(w->p + i) ^ (uintptr_t)(w->p + w->dirty)) / LINE != 0;
}

static bool mark(void *context, uintptr_t rip)
{
    struct watch *w = context;
    (void)rip;
    if (w->marked)
        for (size_t i = 0; i < w->n; i++)
            if (clean(w, i)) {
                if (!w->p[i] && w->wrong == w->n)
                    w->wrong = i;
                w->p[i] = 0;
            }
    w->marked = !w->marked && w->steps++ == w->at;
    for (size_t i = 0; w->marked && i < w->n; i++)
        if (clean(w, i))
            w->p[i] = 1;
    return w->marked || w->steps <= w->at;
}

/* One instruction of the call, the one that calls counts, and whether there was so late a one. */
static bool step(struct unit *unit, const struct vcase *one, unsigned at)
{
    prepare();
    const size_t n = one->n;
    uint8_t *p = room + one->d;
    struct watch w = {.p = p, .n = n, .dirty = one->s, .at = at, .wrong = n};
    plain_fill(p, 0, n);
    p[one->s] = (uint8_t)(1u << (one->c & 7));
    call_hook_context = &w;
    call_on_step = mark;
    unit->cases++;
    const bool right = call_checked(unit, one, p, p, n);
    call_on_step = NULL;
    if (w.marked) /* before its last one, behind which the hook is not called */
        mark(&w, 0);
    if (right && w.wrong < n)
        fail(unit, one, p, p, "", "wrote byte %zu, in a line that was zero already", w.wrong);
    return w.steps > at;
}

/* Each instruction takes a call, which is stepped up to it: of a long one in brief about as many as a routine has that
 * works by lines. */
static void run_stepped(struct unit *unit, const struct vcase *one)
{
    enum { MOST_STEPS = 600, BRIEF_STEPS = 120, ALL = 60 };
    unsigned at = 0, every = 1;
    while (at < MOST_STEPS && !unit->failed && step(unit, one, at)) {
        if (unit->level == LEVEL_BRIEF && at >= ALL)
            every = (MOST_STEPS - ALL) / (BRIEF_STEPS - ALL);
        at += 1 + (unsigned)below(unit, 2 * every - 1);
    }
}

/* Behind a byte that is not zero there may be others, all the same: with REST every one from there on, else one that
 * lies c >> 3 away. Where blocks are added up, or one is taken from the other, such bytes come to nothing. Returns the
 * next one after i, n when there is none. */
static size_t next_marked(const struct vcase *one, size_t i)
{
    const size_t gap = one->at & REST ? 1 : (unsigned)one->c >> 3;
    const bool last = !gap || gap >= one->n - i || (i > one->s && !(one->at & REST));
    return last ? one->n : i + gap;
}

/* s: the byte that is not zero; c: its bit, and how far behind it another is. */
static void run(struct unit *unit, const struct vcase *one)
{
    if (one->at & STEPPED) {
        run_stepped(unit, one);
        return;
    }
    prepare();
    const size_t n = one->n;
    /* What is looked at, from either end of the room: the buffer and a page or two. */
    const size_t span = n + one->d <= SMALL ? SMALL : (n + one->d + 2 * PAGE - 1) / PAGE * PAGE;
    uint8_t *const low = one->at & FROM_END ? room + ROOM - span : room;
    uint8_t *p = one->at & FROM_END ? room + ROOM - n - one->d : room + one->d;
    const bool looks = only_reads(unit->target);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        plain_fill(low, 0xff, span);
        plain_fill(p, 0, n);
        const size_t first = one->at & ALL_ZERO ? n : one->s;
        const uint8_t mark = (uint8_t)(1u << (one->c & 7));
        for (size_t k = first; k < n; k = next_marked(one, k))
            p[k] = mark;
        if (one->at & READ_ONLY)
            mprotect(low, span, PROT_READ);
        const bool right = call_checked(unit, one, p, p, n);
        if (one->at & READ_ONLY)
            mprotect(low, span, PROT_READ | PROT_WRITE);
        if (!right)
            return;
        for (size_t k = first; looks && k < n; k = next_marked(one, k)) {
            if (p[k] != mark)
                fail_byte(unit, one, p, p, "source", (int64_t)k, mark, p[k]);
            p[k] = 0;
        }
        const size_t at = first_other(p, 0, n), before = (size_t)(p - low);
        if (at < n)
            fail_byte(unit, one, p, p, looks ? "source" : "destination", (int64_t)at, 0, p[at]);
        else if (first_other(low, 0xff, before) < before ||
                 first_other(p + n, 0xff, span - before - n) < span - before - n)
            fail(unit, one, p, p, "", "wrote outside of it");
    }
}

/* Two bytes that are the same, as far apart as vectors, lines and blocks are, or as the last block of the buffer is
 * from an earlier one; then the same bytes to the end. */
static void same_bytes(struct unit *unit, struct vcase one)
{
    one.at &= FROM_END;
    for (unsigned width = 4; width <= 512 && !unit->failed; width *= 2)
        for (unsigned k = 0; k < 3 && !unit->failed; k++) {
            const uint64_t gap = k == 0 ? width : k == 1 ? 3 * width : one.n - width;
            if (gap == 0 || gap >= one.n)
                continue;
            one.d = below(unit, 64);
            one.s = below(unit, one.n - gap < 512 ? one.n - gap : 512);
            if (below(unit, 2))
                one.s = one.n - gap - 1 - one.s;
            /* The highest bit has no carry to leave behind. */
            one.c = (int)(gap << 3 | (below(unit, 2) ? 7 : below(unit, 8)));
            run(unit, &one);
        }
    one.at |= REST;
    for (unsigned k = 0; k < 4 && !unit->failed; k++) {
        one.d = below(unit, 64);
        one.s = k == 0 ? 0 : k == 1 ? below(unit, one.n) : one.n - 1 - below(unit, one.n < 128 ? one.n : 128);
        one.c = (int)below(unit, 8);
        run(unit, &one);
    }
}

/* Sizes of the next loops: all zero, and one bit in each of the first bytes, the last ones and a block in the middle.
 */
static void larger_sizes(struct unit *unit)
{
    static const uint32_t quick[] = {513, 1024, 2047, 4096, 8192 - 64, 12289, 66000};
    const bool brief = unit->level == LEVEL_BRIEF;
    const uint64_t block = brief ? 96 : 320;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned k = 0; k < sizeof quick / sizeof quick[0]; k++) {
        one.n = quick[k] + below(unit, 64);
        const uint64_t part = one.n > SMALL ? block / 2 : block, starts[] = {0, one.n / 2 - part / 2, one.n - part};
        for (unsigned i = 0; i < 3; i++)
            for (one.s = starts[i]; one.s < starts[i] + part && !unit->failed; one.s++) {
                one.at = one.s % 2 ? FROM_END : 0;
                one.d = below(unit, 64);
                one.c = (int)below(unit, 8);
                run(unit, &one);
            }
        for (unsigned k = 0; k < (brief ? 4 : 16) && !unit->failed; k++) {
            one.at = k % 2 ? FROM_END : 0;
            same_bytes(unit, one);
        }
    }
    one.s = 0;
    for (uint64_t power = 8192; power <= (brief ? 1u << 16 : 1u << 20); power *= 2)
        for (one.at = ALL_ZERO; one.at < 8 && !unit->failed; one.at += one.at == (ALL_ZERO | FROM_END) ? 3 : 1)
            for (unsigned k = 0; k < 3 && !unit->failed; k++) {
                one.n = power + (k == 1 ? 0 : below(unit, 64)) - (k == 2 ? 64 : 0);
                one.d = k ? below(unit, 64) : 0;
                run(unit, &one);
            }
    for (uint64_t power = 8192; power <= (brief ? 1u << 16 : 1u << 20); power *= 2)
        for (unsigned k = 0; k < 16 && !unit->failed; k++) {
            one.n = power - below(unit, 64);
            one.at = k % 2 ? FROM_END : 0;
            one.d = below(unit, 64);
            one.s = k < 12 ? one.n - 1 - k * 8 - below(unit, k ? 8 : 1) : below(unit, one.n);
            one.c = (int)below(unit, 8);
            run(unit, &one);
        }
    /* Other families ask iszero of bytes of which hardly one is zero: of such sizes all there is to see comes from
     * here. */
    for (uint64_t power = 2 << 20; past_caches(unit) && power <= 64 << 20; power *= 2)
        for (unsigned k = 0; k < 8 && !unit->failed; k++) {
            one.n = power - below(unit, power / 2);
            one.at = (k % 2 ? FROM_END : 0) | (k < 2 ? ALL_ZERO : 0);
            one.d = below(unit, 64);
            one.s = k < 4 ? one.n - 1 : below(unit, one.n);
            one.c = (int)below(unit, 8);
            run(unit, &one);
        }
}

/* One line to write among those that are not, at either end, in the middle and with a buffer that begins or ends within
 * a line; and among sixteen, which pagezero asks together. */
static void clean_lines(struct unit *unit)
{
    const unsigned rounds = unit->level == LEVEL_FULL ? 16 : unit->few ? 4 : 1;
    struct vcase one = {.calls = 1, .seed = unit->seed, .at = STEPPED};
    for (unsigned k = 0; k < 8 * rounds && !unit->failed; k++) {
        const uint64_t lines = k % 8 == 4 ? MOST_LINES + below(unit, 2) : 2 + below(unit, k % 2 ? 4 : MOST_LINES - 2);
        one.n = lines * LINE - (k % 4 < 2 ? 0 : below(unit, LINE));
        one.d = k / 2 % 2 ? below(unit, LINE) : 0;
        one.s = k / 4 % 2 ? below(unit, one.n) : k % 3 ? one.n - 1 : 0;
        one.c = (int)below(unit, 8);
        run(unit, &one);
    }
}

static void generate(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    const size_t every = unit->level == LEVEL_BRIEF ? 96 : unit->level == LEVEL_QUICK ? 400 : 1100;
    for (one.n = 1; one.n <= 5000; one.n += one.n < every ? 1 : 1 + below(unit, 150)) {
        for (one.at = 0; one.at < 8 && !unit->failed; one.at++) {
            const bool zero = one.at & ALL_ZERO;
            if (one.at & READ_ONLY && !zero && !only_reads(unit->target))
                continue;
            /* Every place of a small buffer, then both ends and some between. */
            const size_t places = zero ? 4 : one.n <= every / 2 ? one.n : 12;
            for (size_t k = 0; k < places && !unit->failed; k++) {
                one.d = k % 2 ? below(unit, 64) : 0;
                one.s = zero ? 0 : places == one.n ? k : k == 0 ? 0 : k == 1 ? one.n - 1 : below(unit, one.n);
                one.c = (int)below(unit, 8);
                run(unit, &one);
            }
        }
        for (unsigned k = 0; k < (unit->level == LEVEL_FULL ? 8 : 1) && !unit->failed; k++) {
            one.at = k % 2 == one.n % 2 ? 0 : FROM_END;
            same_bytes(unit, one);
        }
        if (unit->failed)
            return;
    }
    if (!unit->thin)
        larger_sizes(unit);
    if (!unit->thin && writes(unit->target))
        clean_lines(unit);
}

static bool applies(const struct target *target)
{
    return target->op == WHERRY_OP_iszero || target->op == WHERRY_OP_pagezero;
}

static const char *lacks_room(const struct vcase *one)
{
    if (one->n + one->d > ROOM || (!(one->at & ALL_ZERO) && one->s >= one->n))
        return "67117056 bytes, d counted, and s is one of the n";
    return NULL;
}
_Static_assert(ROOM == 67117056, "said above");

const struct family family_zeros = {
    .name = "zeros",
    .what = "zeros, one bit among zeros, bytes that might cancel out, zeros that cannot be written",
    .applies = applies,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
    .marks = true,
};
