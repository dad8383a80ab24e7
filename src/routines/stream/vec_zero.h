/* Is it zero? One word more of the vector vocabulary, for iszero and pagezero. */
#ifndef WHERRY_VEC_ZERO_H
#define WHERRY_VEC_ZERO_H

#include "../vec.h"

#if VEC_BYTES == 64
#include <immintrin.h>
#endif

#if VEC_BYTES == 16
INLINE vec vec_or(vec a, vec b) { return _mm_or_si128(a, b); }
INLINE int vec_is_zero(vec v) { return _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128())) == 0xffff; }
#elif VEC_BYTES == 32
INLINE vec vec_or(vec a, vec b) { return a | b; }
INLINE int vec_is_zero(vec v) { return __builtin_ia32_ptestz256(v, v); }
#else
INLINE vec vec_or(vec a, vec b) { return _mm512_or_si512(a, b); }
INLINE int vec_is_zero(vec v) { return _mm512_test_epi64_mask(v, v) == 0; }
#endif

INLINE vec line_or(struct line line)
{
    vec all = line.part[0];
    for (int i = 1; i < LINE_BYTES / VEC_BYTES; i++)
        all = vec_or(all, line.part[i]);
    return all;
}

/* 1 <= n < 64: is every byte zero? Two words or blocks that overlap; nothing outside is read. */
INLINE int short_is_zero(const uint8_t *p, size_t n)
{
    if (n >= 16) {
        const size_t second = offset_if_above(n, 32, 16), last = n - 16;
        const __m128i a = _mm_loadu_si128((const void *)p), b = _mm_loadu_si128((const void *)(p + second));
        const __m128i c = _mm_loadu_si128((const void *)(p + last - second));
        const __m128i d = _mm_loadu_si128((const void *)(p + last));
        const __m128i all = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
        return _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())) == 0xffff;
    }
    if (n >= 8)
        return (load8(p) | load8(p + n - 8)) == 0;
    if (n >= 4)
        return (load4(p) | load4(p + n - 4)) == 0;
    return (p[0] | p[n / 2] | p[n - 1]) == 0;
}

#endif
