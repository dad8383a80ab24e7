/* What the bytes are, and where the two buffers lie beside each other.
 *
 * Elsewhere source bytes are odd and those of the destination even, so that none is right before it is copied. That
 * hides what a routine does with even bytes, zeros and ones, and whether it trusts a part of a destination that is
 * right already. Elsewhere, too, the buffers are far apart; here they also touch, or nearly do, in either order.
 */
#include "verify.h"

enum { APART, SOURCE_BEHIND, DESTINATION_BEHIND, PLACES };
enum {
    COMPLEMENT,
    ONE_LEFT,
    ENDS_DONE,
    ADDRESS_LINES_DONE,
    LINES_DONE,
    ZERO_SOURCE,
    ZERO_ONE_LEFT,
    ONES_SOURCE,
    HIGH_SOURCE,
    CONTENTS
};
enum { BESIDE = 128, MOST = 1 << 20, ROOM = 4 * PAGE };

static uint8_t *buffer, *kept;
static size_t length;

static void prepare(uint64_t n)
{
    const size_t need = 2 * n + 3 * ROOM;
    if (need <= length)
        return;
    length = need;
    buffer = map_or_die(length, 3);
    kept = map_or_die(length, 3);
}

/* Is byte i of the destination right beforehand? */
static bool done_before(unsigned content, const uint8_t *dst, size_t n, size_t i, size_t left)
{
    switch (content) {
    case ONE_LEFT:
    case ZERO_ONE_LEFT:
        return i != left;
    case ENDS_DONE:
        return i == 0 || i + 1 == n;
    case LINES_DONE:
        return i % 64 < 8;
    case ADDRESS_LINES_DONE:
        return ((uintptr_t)dst + i) % 64 < 8;
    default:
        return false;
    }
}

static void run(struct unit *unit, const struct vcase *one)
{
    const bool set = is_set(unit->target);
    const unsigned place = set ? APART : one->at % PLACES, content = one->at / PLACES % CONTENTS;
    const size_t n = one->n;
    const uint8_t c = (uint8_t)value_of(unit->target, one->c);
    prepare(n);
    const size_t nearly = content % 2 ? 1 + one->s % 64 : 0;
    uint8_t *low = buffer + PAGE + one->d % PAGE,
            *high = low + n + (place == APART ? ROOM / 2 + one->s % PAGE : nearly);
    uint8_t *dst = place == DESTINATION_BEHIND ? high : low, *src = set                           ? NULL
                                                                    : place == DESTINATION_BEHIND ? low
                                                                                                  : high;
    uint8_t *const from = low - BESIDE;
    const size_t span = (size_t)(high - low) + n + 2 * BESIDE;
    const size_t first = (size_t)(dst - from), left = n ? one->seed % n : 0;
    for (uint64_t k = 0; k < one->calls && !unit->failed; k++) {
        pattern_fill(from, span, one->seed, PARITY_ANY);
        if (src && (content == ZERO_SOURCE || content == ZERO_ONE_LEFT))
            plain_fill(src, 0, n);
        if (src && (content == ONES_SOURCE || content == HIGH_SOURCE)) /* every bit, or the sign alone */
            plain_fill(src, content == ONES_SOURCE ? 0xff : 0x80, n);
        for (size_t i = 0; i < n; i++) {
            const uint8_t right = src ? src[i] : c;
            dst[i] = done_before(content, dst, n, i, left) ? right : (uint8_t)~right;
        }
        plain_copy(kept, from, span);
        if (src)
            plain_copy(kept + first, src, n);
        else
            plain_fill(kept + first, c, n);
        unit->cases++;
        if (!call_checked(unit, one, dst, src, n))
            return;
        if (plain_equal(from, kept, span))
            continue;
        const size_t at = first_difference(from, kept, span);
        const bool of_source = src && from + at >= src && from + at < src + n;
        fail_byte(unit, one, dst, src, of_source ? "source" : "destination",
                  of_source ? from + at - src : (int64_t)at - (int64_t)first, kept[at], from[at]);
    }
}

static void generate(struct unit *unit)
{
    const bool full = unit->level == LEVEL_FULL, brief = unit->level == LEVEL_BRIEF;
    const unsigned rounds = full ? 16 : unit->few ? 4 : 1;
    const bool short_form = brief || (unit->target->routine && !unit->few && !full);
    const uint64_t small = short_form ? 200 : 600, most = short_form ? MOST / 16 : MOST;
    for (uint64_t k = 0; !unit->failed; k++) {
        struct vcase one = {.calls = 1};
        one.n = k;
        if (k > small) { /* then larger ones, some of them whole pages */
            const uint64_t larger = k - small;
            one.n = ((uint64_t)1024 << larger / 2) + (larger % 2 ? below(unit, 1024) : 0);
            if (one.n > most)
                return;
        }
        one.n = fit(unit->target, one.n);
        for (unsigned round = 0; round < (one.n > 65536 ? 1 : rounds); round++)
            for (one.at = 0; one.at < PLACES * CONTENTS && !unit->failed; one.at++) {
                if (is_set(unit->target) && (one.at % PLACES != APART || one.at / PLACES >= ONES_SOURCE))
                    continue;
                one.seed = next_random(&unit->random);
                one.d = one.seed >> 8 & 63;
                one.s = one.seed >> 16 & 63;
                one.c = one.at % 2 ? (int)(one.seed >> 32) : 0;
                run(unit, &one);
            }
    }
}

static const char *lacks_room(const struct vcase *one) { return one->n > 64 << 20 ? "64 MiB" : NULL; }

const struct family family_contents = {
    .name = "contents",
    .what = "zeros, ones, bytes that are right beforehand, buffers that touch",
    .applies = writes,
    .generate = generate,
    .run = run,
    .lacks_room = lacks_room,
};
