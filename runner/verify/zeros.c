/* What tells zeros from others: all zeros, one bit that is not, and a page that cannot be written because it need not
 * be. Buffers lie flush with inaccessible pages at either end, amid bytes that are not zero. */
#include <sys/mman.h>

#include "verify.h"

enum { ROOM = 2 * PAGE, FROM_END = 1, ALL_ZERO = 2, READ_ONLY = 4 };

static uint8_t *room;

static void prepare(void)
{
    if (room)
        return;
    uint8_t *base = map_or_die(ROOM + 2 * PAGE, PROT_NONE);
    room = base + PAGE;
    mprotect(room, ROOM, PROT_READ | PROT_WRITE);
}

/* s: the byte that is not zero; c: its bit. */
static void run(struct unit *unit, const struct vcase *one)
{
    prepare();
    const size_t n = one->n;
    uint8_t *p = room + (one->at & FROM_END ? ROOM - n - one->d : one->d);
    const bool looks = only_reads(unit->target);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        plain_fill(room, 0xff, ROOM);
        plain_fill(p, 0, n);
        if (!(one->at & ALL_ZERO))
            p[one->s] = (uint8_t)(1u << (one->c & 7));
        const uint8_t kept = one->s < n ? p[one->s] : 0;
        if (one->at & READ_ONLY)
            mprotect(room, ROOM, PROT_READ);
        const bool right = call_checked(unit, one, p, p, n);
        if (one->at & READ_ONLY)
            mprotect(room, ROOM, PROT_READ | PROT_WRITE);
        if (!right)
            return;
        if (looks && one->s < n && !(one->at & ALL_ZERO)) {
            if (p[one->s] != kept)
                fail_byte(unit, one, p, p, "source", (int64_t)one->s, kept, p[one->s]);
            p[one->s] = 0;
        }
        const size_t at = first_other(p, 0, n), before = (size_t)(p - room);
        if (at < n)
            fail_byte(unit, one, p, p, looks ? "source" : "destination", (int64_t)at, 0, p[at]);
        else if (first_other(room, 0xff, before) < before ||
                 first_other(p + n, 0xff, ROOM - before - n) < ROOM - before - n)
            fail(unit, one, p, p, "", "wrote outside of it");
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
        if (unit->failed)
            return;
    }
}

static bool applies(const struct target *target)
{
    return target->op == WHERRY_OP_iszero || target->op == WHERRY_OP_pagezero;
}

static const char *lacks_room(const struct vcase *one)
{
    if (one->n + one->d > ROOM || (!(one->at & ALL_ZERO) && one->s >= one->n))
        return "8192 bytes, d counted, and s is one of the n";
    return NULL;
}
_Static_assert(ROOM == 8192, "said above");

const struct family family_zeros = {
    "zeros", "zeros, one bit among zeros, zeros that cannot be written", applies, generate, run, lacks_room};
