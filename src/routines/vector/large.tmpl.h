/* memmove of more than 8V bytes, one algorithm for every vector width V = VEC_BYTES. The first that fits:
 *
 *   the destination starts inside the source                 backward loop
 *   disjoint, n in the rep window, and below copy_rep_recent_from a destination that was not written lately, above
 *   addresses that suit it                                   rep movsb
 *   disjoint, n >= copy_stream_from                          loop with non-temporal stores, from both ends or, from
 *                                                            copy_parts_from on, in parts side by side
 *   (these two not to new memory, from WRITTEN_FROM on: written.h; the latter below copy_stream_recent_from, and with
 *   V < 64, only where large calls have not touched the destination lately: touched.h)
 *   disjoint, n >= ALIAS_FROM, the destination less than
 *   copy_backward_ahead ahead (mod ALIAS_BYTES)              backward loop
 *   else                                                     forward loop
 *
 * The loops move four vectors a step, the destination aligned to a line. They load the first and the last block before
 * they start and store both last: a store before the loop could overwrite source bytes that the loop has yet to read,
 * and the loop overwrites source bytes of the block at its far end.
 */
#include "../recent.h"
#include "../thresholds.h"
#include "../touched.h"
#include "../vec.h"
#include "../written.h"

/* Copies by 64-byte vectors have no room for the question (tests/test_codegen.py), and every CPU that has them and goes
 * past the caches sooner where a destination is far copies as much by shorter ones (copy_ymm_from). */
#define ASKS_WHETHER_NEAR (VEC_BYTES < 64)

/* Each vector in two loads (HALVES_FROM of thresholds.h). */
#if VEC_BYTES == 32
#define BY_HALVES 1
INLINE vec vec_load_halves(const uint8_t *p)
{
    vec v; /* GCC would make one load of the two */
    __asm__("vmovdqu %1, %x0\n\tvinserti128 $1, %2, %0, %0"
            : "=x"(v)
            : "m"(*(const uint8_t (*)[16])p), "m"(*(const uint8_t (*)[16])(p + 16)));
    return v;
}
INLINE struct step step_load_halves(const uint8_t *p)
{
    return (struct step){
        {vec_load_halves(p), vec_load_halves(p + 32), vec_load_halves(p + 64), vec_load_halves(p + 96)}};
}
#else
#define BY_HALVES 0
#define step_load_halves step_load
#endif

/* Upwards, or from the end down. After the loop up to 4V are left. Four blocks at that end cover them whatever they
 * are; with LADDER two branches on how many whole vectors are left store just those, which costs less when it is always
 * the same. */
INLINE void move_loop(uint8_t *dst, const uint8_t *src, size_t n, const int downwards, const int halves)
{
    uint8_t *const end = dst + n;
    const ptrdiff_t apart = src - dst;
    /* Where a step begins, of whole lines, and what is left from there on: 1 to 64 less, which the head or the tail
     * has. */
    const uintptr_t line = -(uintptr_t)LINE_BYTES;
    uint8_t *to = (uint8_t *)(((uintptr_t)dst & line) + LINE_BYTES), *rest_at = last_boundary(end) - 3 * VEC_BYTES;
    size_t left = (size_t)(end - to);
    ptrdiff_t step = STEP_BYTES;
    if (downwards) {
        to = (uint8_t *)(((uintptr_t)end - 1) & line) - STEP_BYTES;
        rest_at = first_boundary(dst);
        left = (size_t)(to - dst) + STEP_BYTES;
        step = -STEP_BYTES;
    }
    __asm__("" : "+r"(to), "+r"(rest_at), "+r"(left), "+r"(step)); /* loaded in one place, not in two */
    const struct line head = line_load(src), tail = line_load(src + n - LINE_BYTES);
#ifndef LADDER
    const vec rest[] = {vec_load(rest_at + apart), vec_load(rest_at + apart + VEC_BYTES),
                        vec_load(rest_at + apart + 2 * VEC_BYTES)};
#endif
    do {
        const struct step four = halves ? step_load_halves(to + apart) : step_load(to + apart);
        LOADS_THEN_STORES();
        step_store_aligned(to, four);
        to += step;
        left -= STEP_BYTES;
        __asm__("" : "+r"(to), "+r"(left));
    } while (left > STEP_BYTES);

#ifdef LADDER
    if (downwards)
        to += 2 * VEC_BYTES;
    if (left > 2 * VEC_BYTES) {
        const vec a = vec_load(to + apart), b = vec_load(to + apart + VEC_BYTES);
        vec_store_aligned(to, a);
        vec_store_aligned(to + VEC_BYTES, b);
        to += step / 2;
        left -= 2 * VEC_BYTES;
    }
    if (downwards)
        to += VEC_BYTES;
    if (left > VEC_BYTES)
        vec_store_aligned(to, vec_load(to + apart));
#else
    for (int i = 0; i < 3; i++)
        vec_store_aligned(rest_at + i * VEC_BYTES, rest[i]);
#endif
    line_store(end - LINE_BYTES, tail);
    line_store(dst, head);
}

/* Of parts side by side: more pages open at once are faster until they get in each other's way. Of 1 to 8 streams 5
 * were the fastest on a Granite Rapids (docs/performance-intel-large.md). */
enum { PARTS = 5 };

/* From both ends four vectors of each in turn, but of 64 bytes a line: from 64 MiB on 0.90 to 1.02 of the time of four
 * (Zen 5, docs/performance-large.md). Shorter ones were measured in fours alone. */
#define ENDS_BY_LINES (VEC_BYTES == 64)

/* Disjoint; whole lines of the destination, by non-temporal stores that nothing has ordered yet. In several streams, a
 * step of each in turn, so that as many pages are open: one from either end towards the middle, or one for each part. n
 * is that of the whole copy. */
INLINE void stream_lines(uint8_t *dst, uint8_t *dst_end, const uint8_t *src, size_t n)
{
    size_t apart = (size_t)(dst_end - dst), steps = apart / STEP_BYTES;
    size_t closer = 0; /* a step brings the streams */
    unsigned streams = PARTS;
    if (n >= wherry_thresholds.copy_parts_from) {
        steps = steps * (UINT32_MAX / PARTS) >> 32; /* in fewer bytes than a division; too few are right as well */
        apart = steps * -STEP_BYTES;
        dst -= (PARTS - 1) * apart; /* the last part, behind which lines are left */
        src -= (PARTS - 1) * apart;
    } else if (ENDS_BY_LINES) {
        size_t lines = apart / (2 * LINE_BYTES); /* of each */
        dst_end -= lines * LINE_BYTES;
        for (; lines; lines--) {
            KEEP_CURSORS(dst, src);
            apart -= LINE_BYTES;
            const struct line first = line_load(src), last = line_load(src + apart);
            LOADS_THEN_STORES();
            line_store_nt(dst, first);
            line_store_nt(dst + apart, last);
            apart -= LINE_BYTES;
            dst += LINE_BYTES;
            src += LINE_BYTES;
        }
        steps = 0;
    } else {
        steps /= 2;
        apart -= STEP_BYTES;
        closer = 2 * STEP_BYTES;
        dst_end -= steps * STEP_BYTES; /* what the stream from there does */
        streams = 2;
    }
    for (; steps; steps--) {
        KEEP_CURSORS(dst, src);
        uint8_t *to = dst;
        const uint8_t *from = src;
        int left = streams;
        do {
            const struct step step = step_load(from);
            LOADS_THEN_STORES();
            step_store_nt(to, step);
            to += apart;
            from += apart;
            __asm__("" : "+r"(left)); /* a loop, as written */
        } while (--left);
        apart -= closer;
        dst += STEP_BYTES;
        src += STEP_BYTES;
    }
    for (; dst < dst_end; dst += LINE_BYTES, src += LINE_BYTES)
        line_store_nt(dst, line_load(src));
}

/* Disjoint, n at least two lines. A first and a last line that is shared with neighbours goes by ordinary stores. */
INLINE void move_stream(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t *const end = dst + n, *const first_line = line_at_or_above(dst), *const lines_end = line_at_or_below(end);
    if (first_line != dst)
        line_store(dst, line_load(src));
    if (lines_end != end)
        line_store(end - LINE_BYTES, line_load(src + n - LINE_BYTES));
    stream_lines(first_line, lines_end, src + (first_line - dst), n);
    _mm_sfence(); /* the caller's next ordinary store must not become visible before these */
}

/* Disjoint. All of it, aligned or not: a first line by vectors, so that the string instruction begins at a line, gains
 * nothing in the caches, and where it is in memory costs a fifth of the time at 4 KiB, since the string instruction
 * waits for that store. */
INLINE void move_rep(uint8_t *dst, const uint8_t *src, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

/* Whether rep movsb has done it, since the destination was not written lately. */
INLINE int move_when_far(uint8_t *dst, const uint8_t *src, size_t n)
{
    const size_t ahead = (size_t)((uintptr_t)dst - (uintptr_t)src);
    if (n < wherry_thresholds.copy_rep_from || n >= wherry_thresholds.copy_rep_to ||
        n >= wherry_thresholds.copy_rep_recent_from || ahead < n || -ahead < n || copied_to_lately(dst, n))
        return 0;
    move_rep(dst, src, n);
    return 1;
}

/* asked: whoever calls has done what move_when_far does. */
INLINE void move_large(uint8_t *dst, const uint8_t *src, size_t n, const int asked)
{
    const size_t ahead = (size_t)((uintptr_t)dst - (uintptr_t)src); /* huge when dst is below src */
    if (ahead == 0) /* programs that close gaps move much to where it is */
        return;
    int downwards = ahead < n;
    if (!downwards) {
        const size_t ahead_mod = ahead & (ALIAS_BYTES - 1);
        const int disjoint = (uintptr_t)src - (uintptr_t)dst >= n;
        int may_stream =
            n >= (ASKS_WHETHER_NEAR ? wherry_thresholds.copy_stream_from : wherry_thresholds.copy_stream_any_from);
        if (__builtin_expect(n >= wherry_thresholds.copy_rep_from || may_stream, 0) && disjoint) {
            if (ASKS_WHETHER_NEAR && may_stream && n < wherry_thresholds.copy_stream_recent_from)
                may_stream = !touched_before(dst, src, n, (uint32_t)wherry_thresholds.touched_blocks);
            const int written = n >= WRITTEN_FROM || may_stream ? copied_before(dst, src, n) : WRITTEN_SURELY;
            if (written && n >= wherry_thresholds.copy_rep_from &&
                (n < wherry_thresholds.copy_rep_to || written == WRITTEN_UNKNOWN) &&
                (n < wherry_thresholds.copy_rep_recent_from ? !asked && !copied_to_lately(dst, n)
                                                            : ahead_mod - 1 >= wherry_thresholds.copy_rep_slow_ahead ||
                                                                  n >= wherry_thresholds.copy_rep_all_from)) {
                move_rep(dst, src, n);
                return;
            }
            if (may_stream && written == WRITTEN_SURELY) {
                move_stream(dst, src, n);
                return;
            }
        }
        downwards = n >= ALIAS_FROM && ahead_mod - 1 < wherry_thresholds.copy_backward_ahead && disjoint;
    }
    __asm__("" : "+r"(downwards)); /* asked in one place: left alone, GCC has the loop's beginning three times */
    if (BY_HALVES && !downwards && n >= HALVES_FROM && !wherry_thresholds.copy_backward_ahead &&
        wherry_thresholds.copy_ymm_from == SIZE_MAX)
        move_loop(dst, src, n, 0, 1);
    else
        move_loop(dst, src, n, downwards, 0);
}
