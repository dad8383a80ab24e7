#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flags.h"
#include "random.h"
#include "target.h"
#include "words.h"

enum { AROUND = 128, SAMPLES = 48, PATH_SAMPLES = 2, KEPT_ROOM = 8 << 20 };

const char check_no_room[] = "no memory to verify it in beside the buffers; choose a smaller size";

static char problem[256];

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* Each generator is the loop's own while it runs: what is stored might be its state, for all that the compiler knows.
 */
static void fill(unsigned char *at, size_t n, uint64_t *random)
{
    uint64_t state = *random;
    size_t i = 0;
    for (; i + sizeof(unaligned_word) <= n; i += sizeof(unaligned_word))
        *(unaligned_word *)(at + i) = random_next(&state);
    for (; i < n; i++)
        at[i] = (unsigned char)random_next(&state);
    *random = state;
}

/* A copy of what the source held; kept from call to call, since fresh pages of it would take longer than the check. */
static unsigned char *room_for(size_t bytes)
{
    static unsigned char *room;
    static size_t held;
    if (bytes > held || held / 8 > bytes + KEPT_ROOM) {
        free(room);
        room = malloc(bytes);
        held = room ? bytes : 0;
    }
    return room;
}

/* A byte at `at` of the destination is wrong. */
static const char *byte_wrong(enum wherry_op op, size_t n, const unsigned char *dst, ptrdiff_t at, unsigned should)
{
    snprintf(problem, sizeof problem, "%s of %zu bytes: byte %td is 0x%02x and should be 0x%02x%s", wherry_op_names[op],
             n, at, dst[at], should,
             at < 0               ? " (before the destination)"
             : at >= (ptrdiff_t)n ? " (behind the destination)"
                                  : "");
    return problem;
}

static void fill_differing(unsigned char *at, size_t n, const unsigned char *from, unsigned char byte, uint64_t *random)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t state = *random;
    size_t i = 0;
    for (; i + sizeof(unaligned_word) <= n; i += sizeof(unaligned_word)) {
        const uint64_t right = from ? *(const unaligned_word *)(from + i) : ones * byte;
        *(unaligned_word *)(at + i) = right ^ (random_next(&state) | ones);
    }
    *random = state;
    for (; i < n; i++)
        at[i] = (unsigned char)~(from ? from[i] : byte);
}

static uint64_t flags_left;

static uint64_t call(loop_fn *fn, enum wherry_op op, void *dst, const void *src, size_t n, uint32_t value)
{
    typedef uint64_t any(uint64_t, uint64_t, uint64_t, uint64_t);
    const struct target_arguments with = target_arguments(target_abi_of(op), dst, src, n, value);
    const uint64_t returned = ((any *)(void (*)(void))fn)(with.word[0], with.word[1], with.word[2], with.word[3]);
    flags_left = flags_taken();
    return returned;
}

static const char *flags_wrong(enum wherry_op op, size_t n)
{
    if (!(flags_left & (DIRECTION_FLAG | ALIGNMENT_CHECK)))
        return NULL;
    snprintf(problem, sizeof problem, "%s of %zu bytes: left the %s flag set", wherry_op_names[op], n,
             flags_left & DIRECTION_FLAG ? "direction" : "alignment-check");
    return problem;
}

static const char *result_wrong(enum wherry_op op, uint64_t returned, uint32_t value, const unsigned char *src,
                                size_t n)
{
    char text[160];
    if (op_result_right(op, returned, value, src, n))
        return NULL;
    op_result_text(text, sizeof text, op, returned, value, src, n);
    snprintf(problem, sizeof problem, "%s of %zu bytes: %s", wherry_op_names[op], n, text);
    return problem;
}

/* One call, on random bytes: where the sides do not meet, no byte of the destination is right before it. */
static const char *check_call(loop_fn *fn, enum wherry_op op, unsigned char *dst, unsigned char *src, size_t n,
                              uint64_t *random)
{
    const bool copies = op_copies(op);
    const unsigned char byte = (unsigned char)(uintptr_t)src;
    const size_t whole = n + 2 * AROUND;
    const bool meets = copies && src < dst + whole && dst < src + whole;
    unsigned char *kept = copies ? room_for(whole) : NULL, before[AROUND], behind[AROUND];
    if (copies && !kept)
        return check_no_room;
    fill(dst - AROUND, meets ? whole : AROUND, random);
    fill(dst + n, AROUND, random);
    if (copies) {
        fill(src - AROUND, whole, random);
        memcpy(kept, src - AROUND, whole);
    }
    if (!meets)
        fill_differing(dst, n, copies ? src : NULL, byte, random);
    memcpy(before, dst - AROUND, AROUND);
    memcpy(behind, dst + n, AROUND);
    const uint32_t value = op_sums(op) ? (uint32_t)random_next(random) : (uint32_t)(uintptr_t)src;
    const uint64_t returned = call(fn, op, dst, src, n, value);
    if (flags_wrong(op, n))
        return problem;
    if (memcmp(before, dst - AROUND, AROUND) != 0) {
        size_t at = first_difference(before, dst - AROUND, AROUND);
        return byte_wrong(op, n, dst, (ptrdiff_t)at - AROUND, before[at]);
    }
    if (copies ? memcmp(kept + AROUND, dst, n) != 0 : n > 0 && (dst[0] != byte || memcmp(dst, dst + 1, n - 1) != 0)) {
        size_t at = 0;
        while (dst[at] == (copies ? kept[AROUND + at] : byte))
            at++;
        return byte_wrong(op, n, dst, (ptrdiff_t)at, copies ? kept[AROUND + at] : byte);
    }
    if (memcmp(behind, dst + n, AROUND) != 0) {
        size_t at = first_difference(behind, dst + n, AROUND);
        return byte_wrong(op, n, dst, (ptrdiff_t)(n + at), behind[at]);
    }
    /* Of the source everything but what the destination lies on. */
    const unsigned char *from = src - AROUND, *end = from + whole;
    const unsigned char *until = meets && dst < end ? dst : end, *again = meets ? dst + n : end;
    again = again > from ? again : from;
    if (copies && ((until > from && memcmp(kept, from, (size_t)(until - from)) != 0) ||
                   (again < end && memcmp(kept + (again - from), again, (size_t)(end - again)) != 0))) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: changed its source", wherry_op_names[op], n);
        return problem;
    }
    if (target_is_nofault((void (*)(void))fn)) {
        if (!returned)
            return NULL;
        snprintf(problem, sizeof problem, "%s of %zu bytes: returned %llu bytes not done instead of 0",
                 wherry_op_names[op], n, (unsigned long long)returned);
        return problem;
    }
    if (op_is_plain(op) && returned != (uintptr_t)dst) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: returned %p instead of the destination %p",
                 wherry_op_names[op], n, (void *)(uintptr_t)returned, (void *)dst);
        return problem;
    }
    return op_sums(op) ? result_wrong(op, returned, value, src, n) : NULL;
}

/* One call of what only reads. */
static const char *check_read(loop_fn *fn, enum wherry_op op, unsigned char *at, size_t n, uint64_t *random)
{
    const uint32_t value = (uint32_t)random_next(random);
    fill(at, n, random);
    if (op == WHERRY_OP_iszero && n > 0 && value % 4) {
        memset(at, 0, n);
        if (value % 4 == 1) /* all but one */
            at[random_below(random, n)] = (unsigned char)(1u << random_below(random, 8));
    }
    unsigned char *kept = room_for(n + 1);
    if (!kept)
        return check_no_room;
    memcpy(kept, at, n);
    const uint64_t returned = call(fn, op, at, at, n, value);
    if (flags_wrong(op, n))
        return problem;
    if (memcmp(kept, at, n) != 0) {
        snprintf(problem, sizeof problem, "%s of %zu bytes: changed its source", wherry_op_names[op], n);
        return problem;
    }
    const char *wrong = result_wrong(op, returned, value, at, n);
    if (op == WHERRY_OP_iszero)
        memset(at, 0, n); /* as it is timed */
    return wrong;
}

/* A whole walk over the buffers, every byte compared. */
static const char *check_stream(loop_fn *fn, enum wherry_op op, struct pool *pool)
{
    struct walk *walk = &pool->walk;
    bool copies = op_copies(op);
    unsigned char *dst = (unsigned char *)walk->dst, *src = (unsigned char *)walk->src;
    unsigned char byte = (unsigned char)(uintptr_t)src;
    fill_differing(dst, walk->span, copies ? src : NULL, byte, &pool->random);
    unsigned char behind = dst[walk->span];
    loop_for(op, WALK_STREAM, false)(fn, walk, walk->span / walk->step);
    bool right =
        copies ? memcmp(dst, src, walk->span) == 0 : dst[0] == byte && memcmp(dst, dst + 1, walk->span - 1) == 0;
    size_t at = 0;
    while (!right && at < walk->span && dst[at] == (copies ? src[at] : byte))
        at++;
    if (!right || dst[walk->span] != behind) {
        snprintf(problem, sizeof problem, "%s in steps of %zu bytes: byte %zu of the buffer is wrong",
                 wherry_op_names[op], walk->step, right ? walk->span : at);
        return problem;
    }
    return NULL;
}

const char *check_routine(loop_fn *fn, enum wherry_op op, struct pool *pool, const struct row *row)
{
    const char *wrong = NULL;
    const struct walk *walk = &pool->walk;
    size_t largest = 0;
    for (size_t i = 1; i < row->table; i++)
        largest = row->sizes[i] > row->sizes[largest] ? i : largest;
    /* Large sizes take few samples, so that verifying never takes longer than measuring. */
    const size_t most = row->largest;
    size_t samples = most > (16 << 20) ? 1 : most > (1 << 20) ? 2 : most > (1 << 14) ? 8 : SAMPLES;
    for (size_t i = 0; i < samples && !wrong; i++) {
        struct slot slot = {0, 0};
        if (!row->stream)
            slot = pool->slots[random_below(&pool->random, pool->slot_count)];
        size_t at = i == 0 ? largest : random_below(&pool->random, row->table);
        char *src = walk->src + (row_has_source(row) ? (size_t)slot.src << 6 : 0);
        char *dst = walk->dst + ((size_t)slot.dst << 6);
        if (row->placed) {
            src = placed_src(walk, &slot, &row->placed[at]);
            dst = placed_dst(walk, &slot, &row->placed[at], src);
        }
        const size_t n = (size_t)row->sizes[at];
        if (op_reads(op))
            wrong = check_read(fn, op, (unsigned char *)(row_has_source(row) ? src : dst), n, &pool->random);
        else
            wrong = check_call(fn, op, (unsigned char *)dst, (unsigned char *)src, n, &pool->random);
    }
    if (!wrong && row->stream && row->size && !op_reads(op))
        wrong = check_stream(fn, op, pool);
    return wrong;
}

const char *check_path(const struct path *path, struct pool *pool, const struct row *row)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < PATH_SAMPLES && !wrong; i++) {
        const struct slot slot =
            row->stream ? (struct slot){0, 0} : pool->slots[random_below(&pool->random, pool->slot_count)];
        const size_t n = i == 0 ? row->largest : (size_t)row->sizes[random_below(&pool->random, row->table)];
        wrong = path_check(path, (unsigned char *)pool->walk.dst + ((size_t)slot.dst << 6),
                           (unsigned char *)pool->walk.src + ((size_t)slot.src << 6), n);
    }
    return wrong;
}
