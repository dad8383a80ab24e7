/* memmove, one algorithm for every vector width V = VEC_BYTES.
 *
 *   n < V = 64       one block under a mask of n bits
 *   n < 16, V < 64   four blocks of 4 bytes, or three of 1
 *   16 .. 64, V = 32 four blocks of 16 bytes, as the next with half vectors
 *   V   .. 4V        four blocks, the first and the last in place:  |--V--|--V--|--V--|
 *                                                                             |--V--|
 *                    The two between cover what is between, or the first block once more when nothing is.
 *   4V  .. 8V        eight blocks: four in place, two where n reaches them, the last two in place
 *                    For V = 32 four in place and the last four.
 *   8V  .. 16V       sixteen: eight, three times two, and two; not for V = 32
 *   beyond           large.tmpl.h
 *
 * So one size class is one run of instructions, whatever n is: no branch can be guessed wrong inside it. That is bought
 * with blocks stored twice. With LADDER each size has just the blocks that it needs, behind branches that are free only
 * when sizes repeat.
 *
 * Everything to 16V loads all it needs before it stores anything, so overlap needs no thought there.
 * The includer defines VEC_BYTES, MOVE (the symbol) and, if wanted, LADDER; where the public functions do the smaller
 * sizes themselves, MOVE_LARGE (the symbol of what is beyond 16V, or 8V for V = 32).
 */
#if VEC_BYTES == 64
#include <immintrin.h>
#endif

#include "../plain.h"
#include "large.tmpl.h"

#ifdef LADDER
/* n < V: head and tail of the largest power of two <= n, overlapping in the middle. */
INLINE void move_ladder(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n >= 32) {
        __m256i head = _mm256_loadu_si256((const void *)src);
        __m256i tail = _mm256_loadu_si256((const void *)(src + n - 32));
        _mm256_storeu_si256((void *)dst, head);
        _mm256_storeu_si256((void *)(dst + n - 32), tail);
    } else if (n >= 16) {
        __m128i head = _mm_loadu_si128((const void *)src);
        __m128i tail = _mm_loadu_si128((const void *)(src + n - 16));
        _mm_storeu_si128((void *)dst, head);
        _mm_storeu_si128((void *)(dst + n - 16), tail);
    } else if (n >= 8) {
        uint64_t head = load8(src), tail = load8(src + n - 8);
        store8(dst, head);
        store8(dst + n - 8, tail);
    } else if (n >= 4) {
        uint32_t head = load4(src), tail = load4(src + n - 4);
        store4(dst, head);
        store4(dst + n - 4, tail);
    } else if (n >= 1) {
        uint8_t head = src[0], middle = src[n / 2], tail = src[n - 1];
        dst[0] = head;
        dst[n / 2] = middle;
        dst[n - 1] = tail;
    }
}
#elif VEC_BYTES < 64
/* n < 16: the same with blocks of 4 bytes, which are four for 8 .. 15 and two, twice, for 4 .. 7; then with bytes. */
INLINE void move_to_15(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n >= 4) {
        const size_t step = n / 2 & 4; /* 4 when n >= 8 */
        uint32_t a = load4(src), b = load4(src + step), c = load4(src + n - 4 - step), d = load4(src + n - 4);
        store4(dst, a);
        store4(dst + step, b);
        store4(dst + n - 4 - step, c);
        store4(dst + n - 4, d);
    } else if (n >= 1) {
        uint8_t a = src[0], b = src[n / 2], c = src[n - 1];
        dst[0] = a;
        dst[n / 2] = b;
        dst[n - 1] = c;
    }
}
#endif

#if VEC_BYTES == 64 && !defined(LADDER)
INLINE void move_masked(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (__builtin_expect((uintptr_t)src < PAGE_0_BYTES, 0) && n == 0)
        return;
    const struct masked block = masked_block(n, line_in_page(dst) | line_in_page(src));
    _mm512_mask_storeu_epi8(dst + block.at, block.mask, _mm512_maskz_loadu_epi8(block.mask, src + block.at));
}
#elif VEC_BYTES == 32
/* 16 <= n <= 64: as move_to_4 below with half vectors, so that the most frequent sizes are one class here too. */
INLINE void move_16_to_64(uint8_t *dst, const uint8_t *src, size_t n)
{
    const size_t second = offset_if_above(n, 32, 16), third = offset_if_above(n, 48, 32);
    __m128i a = _mm_loadu_si128((const void *)src), b = _mm_loadu_si128((const void *)(src + second));
    __m128i c = _mm_loadu_si128((const void *)(src + third)), d = _mm_loadu_si128((const void *)(src + n - 16));
    LOADS_THEN_STORES();
    _mm_storeu_si128((void *)dst, a);
    _mm_storeu_si128((void *)(dst + second), b);
    _mm_storeu_si128((void *)(dst + third), c);
    _mm_storeu_si128((void *)(dst + n - 16), d);
}
#endif

/* blocks - 1 vectors from the front and one from the back; (blocks - 1) V <= n <= blocks V. Only the last one can cross
 * a line when both sides are aligned, which head_tail of more than two would pay for. */
INLINE void move_exact(uint8_t *dst, const uint8_t *src, size_t n, const int blocks)
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

/* V <= n <= 4V: the first and the last block, and between them those that n reaches, else the first once more. */
INLINE void move_to_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    const size_t second = offset_if_above(n, 2 * VEC_BYTES, VEC_BYTES);
    const size_t third = offset_if_above(n, 3 * VEC_BYTES, 2 * VEC_BYTES);
    vec a = vec_load(src), b = vec_load(src + second), c = vec_load(src + third), d = vec_load(src + n - VEC_BYTES);
    LOADS_THEN_STORES();
    vec_store(dst, a);
    vec_store(dst + second, b);
    vec_store(dst + third, c);
    vec_store(dst + n - VEC_BYTES, d);
}

#if VEC_BYTES == 32
/* 4V <= n <= 8V: four from either end. */
INLINE void move_to_8(uint8_t *dst, const uint8_t *src, size_t n)
{
    const struct step first = step_load(src), last = step_load(src + n - STEP_BYTES);
    LOADS_THEN_STORES();
    step_store(dst, first);
    step_store(dst + n - STEP_BYTES, last);
}
#endif

/* placed V < n <= blocks V: so many in place, then by twos those that n reaches, else the first two once more; the last
 * two end where the buffer ends. */
INLINE void move_by_twos(uint8_t *dst, const uint8_t *src, size_t n, const int placed, const int blocks)
{
    vec block[16];
    size_t at[16];
#pragma GCC unroll 16
    for (int i = 0; i < placed; i++)
        block[i] = vec_load(src + i * VEC_BYTES);
#pragma GCC unroll 16
    for (int i = placed; i < blocks; i += 2) {
        at[i] = i < blocks - 2 ? offset_if_above(n, (i + 2) * VEC_BYTES, (size_t)i * VEC_BYTES) : n - 2 * VEC_BYTES;
        block[i] = vec_load(src + at[i]);
        block[i + 1] = vec_load(src + at[i] + VEC_BYTES);
    }
    LOADS_THEN_STORES();
#pragma GCC unroll 16
    for (int i = 0; i < placed; i++)
        vec_store(dst + i * VEC_BYTES, block[i]);
#pragma GCC unroll 16
    for (int i = placed; i < blocks; i += 2) {
        vec_store(dst + at[i], block[i]);
        vec_store(dst + at[i] + VEC_BYTES, block[i + 1]);
    }
}

#ifdef MOVE_LARGE
/* Apart: the public functions do the smaller sizes themselves, and with AVX-512 what move_when_far does too. */
__attribute__((noinline)) void *MOVE_LARGE(void *dst, const void *src, size_t n)
{
    move_large(dst, src, n, VEC_BYTES == 64);
    return dst;
}
#endif

void *MOVE(void *dst_, const void *src_, size_t n)
{
    uint8_t *dst = dst_;
    const uint8_t *src = src_;
#ifdef LADDER
    if (__builtin_expect(n <= 4 * VEC_BYTES, 1)) {
        if (n < VEC_BYTES)
            move_ladder(dst, src, n);
        else if (n <= 2 * VEC_BYTES)
            move_exact(dst, src, n, 2);
        else if (n <= 3 * VEC_BYTES)
            move_exact(dst, src, n, 3);
        else
            move_exact(dst, src, n, 4);
    } else if (n <= 8 * VEC_BYTES) {
        if (n <= 6 * VEC_BYTES) {
            if (n <= 5 * VEC_BYTES)
                move_exact(dst, src, n, 5);
            else
                move_exact(dst, src, n, 6);
        } else if (n <= 7 * VEC_BYTES) {
            move_exact(dst, src, n, 7);
        } else {
            move_exact(dst, src, n, 8);
        }
    } else {
        move_large(dst, src, n, 0);
    }
#else
#if VEC_BYTES == 64
    if (n > BLOCKS_MOST * VEC_BYTES) {
        if (move_when_far(dst, src, n))
            return dst_;
        AS_A_JUMP return MOVE_LARGE(dst_, src_, n);
    }
    if (n < VEC_BYTES)
        move_masked(dst, src, n);
    else if (n <= 4 * VEC_BYTES)
        move_to_4(dst, src, n);
#elif VEC_BYTES == 32
    if (n < 16)
        move_to_15(dst, src, n);
    else if (n <= 64)
        move_16_to_64(dst, src, n);
    else if (n <= 4 * VEC_BYTES)
        move_to_4(dst, src, n);
#else
    if (n < VEC_BYTES)
        move_to_15(dst, src, n);
    else if (n <= 4 * VEC_BYTES)
        move_to_4(dst, src, n);
#endif
    else if (n <= 8 * VEC_BYTES)
#if VEC_BYTES == 32
        move_to_8(dst, src, n);
#else
        move_by_twos(dst, src, n, 4, 8);
#endif
    else if (n <= BLOCKS_MOST * VEC_BYTES)
        move_by_twos(dst, src, n, 8, 16);
    else
#ifdef MOVE_LARGE
        AS_A_JUMP return MOVE_LARGE(dst_, src_, n);
#else
        move_large(dst, src, n, 0);
#endif
#endif
    return dst_;
}
