#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { AROUND = 128, SAMPLES = 48 };

static char problem[256];

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

static void fill(unsigned char *at, size_t n, uint64_t *random)
{
    size_t i = 0;
    for (uint64_t some; i + sizeof some <= n; i += sizeof some) {
        some = random_next(random);
        memcpy(at + i, &some, sizeof some);
    }
    for (; i < n; i++)
        at[i] = (unsigned char)random_next(random);
}

/* One call. `expected` has room for n + 2 * AROUND bytes and, behind them, as many for the source. */
static const char *check_call(loop_fn *fn, unsigned char *dst, unsigned char *src, size_t n, const struct row *row,
                              unsigned char *expected, uint64_t *random)
{
    bool copies = row_copies(row);
    unsigned char *kept = expected + n + 2 * AROUND;
    unsigned char byte = (unsigned char)(uintptr_t)src;
    if (copies) {
        fill(src - AROUND, n + 2 * AROUND, random);
        memcpy(kept, src - AROUND, n + 2 * AROUND);
    }
    if (!row->overlaps) {
        fill(dst - AROUND, n + 2 * AROUND, random);
        for (size_t i = 0; i < n; i++) /* a byte that is right already would hide that it was not written */
            if (dst[i] == (copies ? src[i] : byte))
                dst[i] ^= 0xff;
    }
    memcpy(expected, dst - AROUND, n + 2 * AROUND);
    if (copies)
        memcpy(expected + AROUND, kept + AROUND, n);
    else
        memset(expected + AROUND, byte, n);
    void *returned = fn(dst, src, n);
    size_t at = memcmp(expected, dst - AROUND, n + 2 * AROUND) != 0
                    ? first_difference(expected, dst - AROUND, n + 2 * AROUND)
                    : n + 2 * AROUND;
    if (at < n + 2 * AROUND) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: byte %lld is 0x%02x and should be 0x%02x%s",
                 wherry_op_names[row->op], n, (long long)at - AROUND, dst[(long long)at - AROUND], expected[at],
                 at < AROUND        ? " (before the destination)"
                 : at >= AROUND + n ? " (behind the destination)"
                                    : "");
        return problem;
    }
    if (copies && !row->overlaps && memcmp(kept, src - AROUND, n + 2 * AROUND) != 0) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: changed its source", wherry_op_names[row->op], n);
        return problem;
    }
    if (returned != dst) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: returned %p instead of the destination %p",
                 wherry_op_names[row->op], n, returned, (void *)dst);
        return problem;
    }
    return NULL;
}

/* A whole walk over the buffers, every byte compared. */
static const char *check_stream(loop_fn *fn, struct pool *pool, const struct row *row)
{
    struct walk *walk = &pool->walk;
    bool copies = row_copies(row);
    unsigned char *dst = (unsigned char *)walk->dst, *src = (unsigned char *)walk->src;
    unsigned char byte = (unsigned char)(uintptr_t)src;
    for (size_t i = 0; i < walk->span; i++)
        dst[i] = (unsigned char)~(copies ? src[i] : byte);
    unsigned char behind = dst[walk->span];
    loop_stream_throughput(fn, walk, walk->span / walk->step);
    size_t at = 0;
    while (at < walk->span && dst[at] == (copies ? src[at] : byte))
        at++;
    if (at < walk->span || dst[walk->span] != behind) {
        snprintf(problem, sizeof problem, "%s in steps of %zu bytes: byte %zu of the buffer is wrong",
                 wherry_op_names[row->op], walk->step, at);
        return problem;
    }
    return NULL;
}

const char *check_routine(loop_fn *fn, struct pool *pool, const struct row *row)
{
    size_t largest = row_largest(row);
    unsigned char *expected = malloc(2 * (largest + 2 * AROUND));
    if (!expected)
        return "no memory to verify in";
    const char *wrong = NULL;
    const struct walk *walk = &pool->walk;
    /* Large sizes take few samples, so that verifying never takes longer than measuring. */
    size_t samples = largest > (16 << 20) ? 1 : largest > (1 << 20) ? 2 : largest > (1 << 14) ? 8 : SAMPLES;
    for (size_t i = 0; i < samples && !wrong; i++) {
        struct slot slot = {0, 0};
        if (!row->stream)
            slot = pool->slots[random_below(&pool->random, pool->slot_count)];
        size_t n = row->sizes[random_below(&pool->random, row->table)];
        if (i == 0)
            n = largest;
        wrong = check_call(fn, (unsigned char *)walk->dst + ((size_t)slot.dst << 6),
                           (unsigned char *)walk->src + (row_copies(row) ? (size_t)slot.src << 6 : 0), n, row, expected,
                           &pool->random);
    }
    free(expected);
    if (!wrong && row->stream && row->size)
        wrong = check_stream(fn, pool, row);
    return wrong;
}
