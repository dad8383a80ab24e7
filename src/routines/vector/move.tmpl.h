/* memmove, one algorithm for every vector width V = VEC_BYTES.
 *
 *   n < V          head and tail of the largest power of two <= n, overlapping in the middle
 *   V   .. 2V      head_tail of one vector:     |--V--|
 *                                                  |--V--|
 *   2V  .. 4V      head_tail of two
 *   4V  .. 8V      four to seven vectors from the front, one from the back
 *   > 8V           loop of four vectors a step, the destination aligned to a line, in the direction that reads every
 * byte before it is written
 *   >= stream_from disjoint: the forward loop with non-temporal stores, since what does not fit the last-level cache
 *                  is better off without the read of each destination line that an ordinary store begins with
 *
 * Every size up to 8V loads all it needs before it stores anything, so overlap needs no thought there. The loops load
 * the first and the last block before they start and store both last: a store before the loop could overwrite source
 * bytes that the loop has yet to read, and the loop overwrites source bytes of the block at its far end.
 * The includer defines VEC_BYTES and MOVE (the symbol).
 */
#include "../thresholds.h"
#include "../vec.h"

INLINE void move_small(uint8_t *dst, const uint8_t *src, size_t n)
{
#if VEC_BYTES >= 64
    if (n >= 32) {
        __m256i head = _mm256_loadu_si256((const void *)src);
        __m256i tail = _mm256_loadu_si256((const void *)(src + n - 32));
        _mm256_storeu_si256((void *)dst, head);
        _mm256_storeu_si256((void *)(dst + n - 32), tail);
        return;
    }
#endif
#if VEC_BYTES >= 32
    if (n >= 16) {
        __m128i head = _mm_loadu_si128((const void *)src);
        __m128i tail = _mm_loadu_si128((const void *)(src + n - 16));
        _mm_storeu_si128((void *)dst, head);
        _mm_storeu_si128((void *)(dst + n - 16), tail);
        return;
    }
#endif
    if (n >= 8) {
        uint64_t head = load8(src), tail = load8(src + n - 8);
        store8(dst, head);
        store8(dst + n - 8, tail);
    } else if (n >= 4) {
        uint32_t head = load4(src), tail = load4(src + n - 4);
        store4(dst, head);
        store4(dst + n - 4, tail);
    } else if (n >= 2) {
        uint16_t head = load2(src), tail = load2(src + n - 2);
        store2(dst, head);
        store2(dst + n - 2, tail);
    } else if (n == 1) {
        *dst = *src;
    }
}

INLINE void move_2(uint8_t *dst, const uint8_t *src, size_t n)
{
    vec head = vec_load(src), tail = vec_load(src + n - VEC_BYTES);
    vec_store(dst, head);
    vec_store(dst + n - VEC_BYTES, tail);
}

INLINE void move_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    const uint8_t *src_end = src + n;
    uint8_t *dst_end = dst + n;
    vec head0 = vec_load(src), head1 = vec_load(src + VEC_BYTES);
    vec tail1 = vec_load(src_end - 2 * VEC_BYTES), tail0 = vec_load(src_end - VEC_BYTES);
    vec_store(dst, head0);
    vec_store(dst + VEC_BYTES, head1);
    vec_store(dst_end - 2 * VEC_BYTES, tail1);
    vec_store(dst_end - VEC_BYTES, tail0);
}

/* blocks - 1 vectors from the front and one from the back; (blocks - 1) V <= n <= blocks V. Only the last one can cross
 * a line when both sides are aligned, which head_tail of more than two would pay for. */
INLINE void move_blocks(uint8_t *dst, const uint8_t *src, size_t n, const int blocks)
{
    vec front[7];
#pragma GCC unroll 8
    for (int i = 0; i < blocks - 1; i++)
        front[i] = vec_load(src + i * VEC_BYTES);
    vec back = vec_load(src + n - VEC_BYTES);
    LOADS_THEN_STORES();
#pragma GCC unroll 8
    for (int i = 0; i < blocks - 1; i++)
        vec_store(dst + i * VEC_BYTES, front[i]);
    vec_store(dst + n - VEC_BYTES, back);
}

INLINE void move_5_to_8(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n <= 6 * VEC_BYTES) {
        if (n <= 5 * VEC_BYTES)
            move_blocks(dst, src, n, 5);
        else
            move_blocks(dst, src, n, 6);
    } else if (n <= 7 * VEC_BYTES) {
        move_blocks(dst, src, n, 7);
    } else {
        move_blocks(dst, src, n, 8);
    }
}

/* n > 8V, and no destination byte below one still to be read: the destination lies before the source, or apart. After
 * the loop up to 4V are left; two branches on how many whole vectors those are cost less than four overlapping ones,
 * which would cross lines at both ends. */
INLINE void move_forward(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t *const dst_start = dst;
    uint8_t *const dst_end = dst + n;
    const struct line head = line_load(src);
    const vec tail = vec_load(src + n - VEC_BYTES);

    size_t to_line = LINE_BYTES - ((uintptr_t)dst & (LINE_BYTES - 1)); /* 1 .. 64, covered by the head */
    dst += to_line;
    src += to_line;
    uint8_t *const last = dst_end - STEP_BYTES; /* up to 4V are left from here on */
    do {
        vec a = vec_load(src), b = vec_load(src + VEC_BYTES);
        vec c = vec_load(src + 2 * VEC_BYTES), d = vec_load(src + 3 * VEC_BYTES);
        LOADS_THEN_STORES();
        vec_store_aligned(dst, a);
        vec_store_aligned(dst + VEC_BYTES, b);
        vec_store_aligned(dst + 2 * VEC_BYTES, c);
        vec_store_aligned(dst + 3 * VEC_BYTES, d);
        src += STEP_BYTES;
        dst += STEP_BYTES;
        KEEP_CURSORS(dst, src);
    } while (dst < last);

    if (dst_end - dst > 2 * VEC_BYTES) {
        vec a = vec_load(src), b = vec_load(src + VEC_BYTES);
        vec_store_aligned(dst, a);
        vec_store_aligned(dst + VEC_BYTES, b);
        src += 2 * VEC_BYTES;
        dst += 2 * VEC_BYTES;
    }
    if (dst_end - dst > VEC_BYTES)
        vec_store_aligned(dst, vec_load(src));
    vec_store(dst_end - VEC_BYTES, tail);
    line_store(dst_start, head);
}

/* n > 8V, and the destination starts inside the source: the same from the end down. */
INLINE void move_backward(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t *const dst_end = dst + n;
    uint8_t *to = dst_end; /* what is written already begins here, and at from in the source */
    const uint8_t *from = src + n;
    const vec head = vec_load(src);
    const struct line tail = line_load(from - LINE_BYTES);

    size_t to_line = (((uintptr_t)dst_end - 1) & (LINE_BYTES - 1)) + 1; /* 1 .. 64, covered by the tail */
    to -= to_line;
    from -= to_line;
    uint8_t *const first = dst + STEP_BYTES; /* up to 4V are left from here down */
    do {
        to -= STEP_BYTES;
        from -= STEP_BYTES;
        vec d = vec_load(from + 3 * VEC_BYTES), c = vec_load(from + 2 * VEC_BYTES);
        vec b = vec_load(from + VEC_BYTES), a = vec_load(from);
        LOADS_THEN_STORES();
        vec_store_aligned(to + 3 * VEC_BYTES, d);
        vec_store_aligned(to + 2 * VEC_BYTES, c);
        vec_store_aligned(to + VEC_BYTES, b);
        vec_store_aligned(to, a);
        KEEP_CURSORS(to, from);
    } while (to > first);

    if (to - dst > 2 * VEC_BYTES) {
        to -= 2 * VEC_BYTES;
        from -= 2 * VEC_BYTES;
        vec b = vec_load(from + VEC_BYTES), a = vec_load(from);
        vec_store_aligned(to + VEC_BYTES, b);
        vec_store_aligned(to, a);
    }
    if (to - dst > VEC_BYTES)
        vec_store_aligned(to - VEC_BYTES, vec_load(from - VEC_BYTES));
    vec_store(dst, head);
    line_store(dst_end - LINE_BYTES, tail);
}

/* n > 8V, disjoint. Non-temporal stores fill whole destination lines; the first and the last line may be shared
 * with neighbours and go by ordinary stores. */
INLINE void move_stream(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t *const dst_end = dst + n;
    const uint8_t *const src_end = src + n;
    line_store(dst, line_load(src));
    size_t to_line = LINE_BYTES - ((uintptr_t)dst & (LINE_BYTES - 1)); /* 1 .. 64, covered by the head */
    dst += to_line;
    src += to_line;
    uint8_t *const last = dst_end - STEP_BYTES;
    do {
        vec a = vec_load(src), b = vec_load(src + VEC_BYTES);
        vec c = vec_load(src + 2 * VEC_BYTES), d = vec_load(src + 3 * VEC_BYTES);
        LOADS_THEN_STORES();
        vec_store_nt(dst, a);
        vec_store_nt(dst + VEC_BYTES, b);
        vec_store_nt(dst + 2 * VEC_BYTES, c);
        vec_store_nt(dst + 3 * VEC_BYTES, d);
        src += STEP_BYTES;
        dst += STEP_BYTES;
        KEEP_CURSORS(dst, src);
    } while (dst < last);
    _mm_sfence(); /* the caller's next ordinary store must not become visible before these */
    move_4(dst_end - STEP_BYTES, src_end - STEP_BYTES, STEP_BYTES);
}

void *MOVE(void *dst_, const void *src_, size_t n)
{
    uint8_t *dst = dst_;
    const uint8_t *src = src_;
    if (__builtin_expect(n <= 4 * VEC_BYTES, 1)) {
        if (n < VEC_BYTES)
            move_small(dst, src, n);
        else if (n <= 2 * VEC_BYTES)
            move_2(dst, src, n);
        else
            move_4(dst, src, n);
    } else if (n <= 8 * VEC_BYTES) {
        move_5_to_8(dst, src, n);
    } else if ((uintptr_t)dst - (uintptr_t)src >= n) { /* wraps to a huge distance when dst is below src */
        if (__builtin_expect(n >= wherry_thresholds.stream_from, 0) && (uintptr_t)src - (uintptr_t)dst >= n)
            move_stream(dst, src, n);
        else
            move_forward(dst, src, n);
    } else {
        move_backward(dst, src, n);
    }
    return dst_;
}
