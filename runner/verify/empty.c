/* n = 0 with any pointers; and for set, every value as every int that stands for it. */
#include <limits.h>
#include <sys/mman.h>

#include "verify.h"

enum { POINTERS = 6 };

static uint8_t *pointer(unsigned which)
{
    static uint8_t *page, *forbidden;
    if (!page) {
        page = map_or_die(2 * PAGE, PROT_READ | PROT_WRITE);
        forbidden = page + PAGE;
        mprotect(forbidden, PAGE, PROT_NONE);
        plain_fill(page, 0x55, PAGE);
    }
    switch (which) {
    case 0:
        return NULL;
    case 1:
        return (uint8_t *)0xdead000000000001; /* not canonical */
    case 2:
        return forbidden;
    case 3:
        return forbidden + 77;
    case 4:
        return (uint8_t *)UINTPTR_MAX;
    default:
        return page + 64;
    }
}

static void run_empty(struct unit *unit, const struct vcase *one)
{
    uint8_t *dst = pointer(one->at % POINTERS), *src = pointer(one->at / POINTERS % POINTERS);
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        if (!call_checked(unit, one, dst, is_set(unit->target) ? NULL : src, 0))
            return;
        uint8_t *page = pointer(5) - 64;
        if (!plain_all(page, 0x55, PAGE))
            fail(unit, one, dst, src, "", "wrote memory though the size is 0");
    }
}

static void generate_empty(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (one.at = 0; one.at < POINTERS * POINTERS && !unit->failed; one.at++) {
        one.c = (int)next_random(&unit->random);
        run_empty(unit, &one);
    }
}

static void run_values(struct unit *unit, const struct vcase *one)
{
    static uint8_t *buffer;
    if (!buffer)
        buffer = map_or_die(65536, PROT_READ | PROT_WRITE);
    uint8_t c = (uint8_t)value_of(unit->target, one->c), other = (uint8_t)~c;
    uint8_t *dst = buffer + PAGE + one->d % PAGE;
    for (uint64_t i = 0; i < one->calls && !unit->failed; i++) {
        unit->cases++;
        plain_fill(dst - 64, other, one->n + 128);
        if (!call_checked(unit, one, dst, NULL, one->n))
            return;
        size_t at = first_other(dst, c, one->n);
        if (at < one->n)
            fail_byte(unit, one, dst, NULL, "destination", (int64_t)at, c, dst[at]);
        else if (!plain_all(dst - 64, other, 64) || !plain_all(dst + one->n, other, 64))
            fail(unit, one, dst, NULL, "", "wrote outside the destination");
    }
}

static void generate_values(struct unit *unit)
{
    static const int shapes[] = {0, 0x100, -0x100, 0x5a5a5a00, INT_MIN, 0x7fffff00};
    static const uint16_t sizes[] = {1, 2, 3, 4, 7, 8, 15, 16, 31, 33, 63, 65, 127, 130, 257, 512, 1000, 2100, 5000};
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned c = 0; c < 256; c++)
        for (unsigned shape = 0; shape < 6; shape++)
            for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
                if (unit->level == LEVEL_BRIEF && (c + k) % 4)
                    continue;
                one.n = fit(unit->target, sizes[k]);
                one.c = shapes[shape] | (int)c;
                one.d = below(unit, 64);
                run_values(unit, &one);
                if (unit->failed)
                    return;
            }
}

static bool sets_values(const struct target *target) { return target->op == WHERRY_OP_set; }

static const char *lacks_room(const struct vcase *one) { return one->n > 32768 ? "32768 bytes" : NULL; }

const struct family family_empty = {
    .name = "empty",
    .what = "size 0 with null, wild and inaccessible pointers",
    .applies = any_target,
    .generate = generate_empty,
    .run = run_empty,
};
const struct family family_values = {
    .name = "values",
    .what = "every value, as ints within and beyond 0-255",
    .applies = sets_values,
    .generate = generate_values,
    .run = run_values,
    .lacks_room = lacks_room,
};
