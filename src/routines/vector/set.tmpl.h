/* memset, one algorithm for every vector width V = VEC_BYTES: the size classes and blocks of move.tmpl.h up to 16V,
 * then a loop of four aligned vectors a step between a head and a tail, rep stosb in its window, and non-temporal
 * stores from set_stream_from on; to new memory (written.h) always the loop. The includer defines VEC_BYTES, SET (the
 * symbol) and, if wanted, LADDER.
 */
#if VEC_BYTES == 64
#include <immintrin.h>
#endif

#include "../recent.h"
#include "../thresholds.h"
#include "../vec.h"
#include "../written.h"

#ifdef LADDER
/* As move_ladder. */
INLINE void set_ladder(uint8_t *dst, vec v, size_t n)
{
    const __m128i low = vec_lowest(v);
    const uint64_t word = (uint64_t)_mm_cvtsi128_si64(low);
    if (n >= 32) {
        _mm256_storeu_si256((void *)dst, _mm512_castsi512_si256(v));
        _mm256_storeu_si256((void *)(dst + n - 32), _mm512_castsi512_si256(v));
    } else if (n >= 16) {
        _mm_storeu_si128((void *)dst, low);
        _mm_storeu_si128((void *)(dst + n - 16), low);
    } else if (n >= 8) {
        store8(dst, word);
        store8(dst + n - 8, word);
    } else if (n >= 4) {
        store4(dst, (uint32_t)word);
        store4(dst + n - 4, (uint32_t)word);
    } else if (n >= 1) {
        dst[0] = (uint8_t)word;
        dst[n / 2] = (uint8_t)word;
        dst[n - 1] = (uint8_t)word;
    }
}
#elif VEC_BYTES < 64
/* As move_to_15. */
INLINE void set_to_15(uint8_t *dst, int c, size_t n)
{
    if (n >= 4) {
        const size_t step = n / 2 & 4; /* 4 when n >= 8 */
        const uint32_t word = (uint8_t)c * 0x01010101u;
        store4(dst, word);
        store4(dst + step, word);
        store4(dst + n - 4 - step, word);
        store4(dst + n - 4, word);
    } else if (n >= 1) {
        dst[0] = (uint8_t)c;
        dst[n / 2] = (uint8_t)c;
        dst[n - 1] = (uint8_t)c;
    }
}
#endif

#if VEC_BYTES == 64 && !defined(LADDER)
INLINE void set_masked(uint8_t *dst, vec v, size_t n)
{
    if (__builtin_expect((uintptr_t)dst < PAGE_0_BYTES, 0) && n == 0)
        return;
    const struct masked block = masked_block(n, line_in_page(dst));
    _mm512_mask_storeu_epi8(dst + block.at, block.mask, v);
}
#elif VEC_BYTES == 32
/* As move_16_to_64. */
INLINE void set_16_to_64(uint8_t *dst, vec v, size_t n)
{
    const __m128i half = vec_lowest(v);
    _mm_storeu_si128((void *)dst, half);
    _mm_storeu_si128((void *)(dst + offset_if_above(n, 32, 16)), half);
    _mm_storeu_si128((void *)(dst + offset_if_above(n, 48, 32)), half);
    _mm_storeu_si128((void *)(dst + n - 16), half);
}
#endif

/* As move_to_4. */
INLINE void set_to_4(uint8_t *dst, vec v, size_t n)
{
    vec_store(dst, v);
    vec_store(dst + offset_if_above(n, 2 * VEC_BYTES, VEC_BYTES), v);
    vec_store(dst + offset_if_above(n, 3 * VEC_BYTES, 2 * VEC_BYTES), v);
    vec_store(dst + n - VEC_BYTES, v);
}

#if VEC_BYTES == 32
/* As move_to_8. */
INLINE void set_to_8(uint8_t *dst, vec v, size_t n)
{
    const struct step four = {{v, v, v, v}};
    step_store(dst, four);
    step_store(dst + n - STEP_BYTES, four);
}
#endif

/* As move_by_twos. */
INLINE void set_by_twos(uint8_t *dst, vec v, size_t n, const int placed, const int blocks)
{
#pragma GCC unroll 16
    for (int i = 0; i < placed; i++)
        vec_store(dst + i * VEC_BYTES, v);
#pragma GCC unroll 16
    for (int i = placed; i < blocks; i += 2) {
        uint8_t *at =
            dst + (i < blocks - 2 ? offset_if_above(n, (i + 2) * VEC_BYTES, (size_t)i * VEC_BYTES) : n - 2 * VEC_BYTES);
        vec_store(at, v);
        vec_store(at + VEC_BYTES, v);
    }
}

/* n > 4V */
INLINE void set_large(uint8_t *dst, vec v, int c, size_t n)
{
    uint8_t *const end = dst + n;
#ifdef LADDER
    const size_t as_it_was = n - 4 * VEC_BYTES; /* the rest is set already */
#else
    const size_t as_it_was = n;
#endif
    int may_stream = n >= wherry_thresholds.set_stream_from;
    if (__builtin_expect(may_stream, 0) && n < wherry_thresholds.set_stream_recent_from)
        may_stream = !touched_before(dst, NULL, n, (uint32_t)wherry_thresholds.touched_blocks);
    const int by_rep = n >= wherry_thresholds.set_rep_from;
    const int written = __builtin_expect((by_rep && n >= WRITTEN_FROM) || may_stream, 0) ? set_before(dst, c, as_it_was)
                                                                                         : WRITTEN_SURELY;
    const int stream = may_stream && written == WRITTEN_SURELY;
    if (__builtin_expect(by_rep, 0) && written && (n < wherry_thresholds.set_rep_to || written == WRITTEN_UNKNOWN) &&
        (n >= wherry_thresholds.set_rep_recent_from || !set_lately(dst, n))) {
        /* All of it, aligned or not: Zen 5 bypasses the caches from a count of exactly 32 MiB on. */
        uint8_t *to = dst;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
        return;
    }
    line_store(dst, line_of(v));
    uint8_t *to = (uint8_t *)(((uintptr_t)dst + LINE_BYTES) & ~(uintptr_t)(LINE_BYTES - 1)); /* covered to here */
    uint8_t *const last = end - STEP_BYTES; /* from here on the tail covers what is left */
    if (stream) {
        do {
            vec_store_nt(to, v);
            vec_store_nt(to + VEC_BYTES, v);
            vec_store_nt(to + 2 * VEC_BYTES, v);
            vec_store_nt(to + 3 * VEC_BYTES, v);
            to += STEP_BYTES;
        } while (to < last);
        _mm_sfence(); /* the caller's next ordinary store must not become visible before these */
    } else {
        do {
            vec_store_aligned(to, v);
            vec_store_aligned(to + VEC_BYTES, v);
            vec_store_aligned(to + 2 * VEC_BYTES, v);
            vec_store_aligned(to + 3 * VEC_BYTES, v);
            to += STEP_BYTES;
        } while (to < last);
    }
    uint8_t *const boundary = last_boundary(end);
    vec_store_aligned(boundary - 3 * VEC_BYTES, v);
    vec_store_aligned(boundary - 2 * VEC_BYTES, v);
    vec_store_aligned(boundary - VEC_BYTES, v);
    vec_store(end - VEC_BYTES, v);
}

void *SET(void *dst_, int c, size_t n)
{
    uint8_t *dst = dst_;
    vec v = vec_set1(c);
#ifdef LADDER
    uint8_t *const end = dst + n;
    if (n < VEC_BYTES) {
        set_ladder(dst, v, n);
        return dst_;
    }
    vec_store(dst, v);
    vec_store(end - VEC_BYTES, v);
    if (n <= 2 * VEC_BYTES)
        return dst_;
    vec_store(dst + VEC_BYTES, v);
    vec_store(end - 2 * VEC_BYTES, v);
    if (n <= 4 * VEC_BYTES)
        return dst_;
    vec_store(dst + 2 * VEC_BYTES, v);
    vec_store(dst + 3 * VEC_BYTES, v);
    vec_store(end - 3 * VEC_BYTES, v);
    vec_store(end - 4 * VEC_BYTES, v);
    if (n <= 8 * VEC_BYTES)
        return dst_;
    set_large(dst, v, c, n);
#else
#if VEC_BYTES == 64
    if (n > BLOCKS_MOST * VEC_BYTES)
        set_large(dst, v, c, n);
    else if (n < VEC_BYTES)
        set_masked(dst, v, n);
    else if (n <= 4 * VEC_BYTES)
        set_to_4(dst, v, n);
#elif VEC_BYTES == 32
    if (n < 16)
        set_to_15(dst, c, n);
    else if (n <= 64)
        set_16_to_64(dst, v, n);
    else if (n <= 4 * VEC_BYTES)
        set_to_4(dst, v, n);
#else
    if (n < VEC_BYTES)
        set_to_15(dst, c, n);
    else if (n <= 4 * VEC_BYTES)
        set_to_4(dst, v, n);
#endif
    else if (n <= 8 * VEC_BYTES)
#if VEC_BYTES == 32
        set_to_8(dst, v, n);
#else
        set_by_twos(dst, v, n, 4, 8);
#endif
    else if (n <= BLOCKS_MOST * VEC_BYTES)
        set_by_twos(dst, v, n, 8, 16);
    else
        set_large(dst, v, c, n);
#endif
    return dst_;
}
