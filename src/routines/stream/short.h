/* Copies and sets of less than a line, for routines whose subject is whole lines: overlapping blocks, four at most. */
#ifndef WHERRY_SHORT_H
#define WHERRY_SHORT_H

#include "../vec.h"

INLINE void copy_to_63(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n >= 16) {
        const size_t second = offset_if_above(n, 32, 16), last = n - 16;
        const __m128i a = _mm_loadu_si128((const void *)src), b = _mm_loadu_si128((const void *)(src + second));
        const __m128i c = _mm_loadu_si128((const void *)(src + last - second));
        const __m128i d = _mm_loadu_si128((const void *)(src + last));
        _mm_storeu_si128((void *)dst, a);
        _mm_storeu_si128((void *)(dst + second), b);
        _mm_storeu_si128((void *)(dst + last - second), c);
        _mm_storeu_si128((void *)(dst + last), d);
    } else if (n >= 8) {
        const uint64_t a = load8(src), b = load8(src + n - 8);
        store8(dst, a);
        store8(dst + n - 8, b);
    } else if (n >= 4) {
        const uint32_t a = load4(src), b = load4(src + n - 4);
        store4(dst, a);
        store4(dst + n - 4, b);
    } else if (n >= 1) {
        const uint8_t a = src[0], b = src[n / 2], c = src[n - 1];
        dst[0] = a;
        dst[n / 2] = b;
        dst[n - 1] = c;
    }
}

INLINE void set_to_63(uint8_t *dst, int c, size_t n)
{
    const uint64_t word = (uint8_t)c * 0x0101010101010101u;
    if (n >= 16) {
        const size_t second = offset_if_above(n, 32, 16), last = n - 16;
        const __m128i v = _mm_set1_epi8((char)c);
        _mm_storeu_si128((void *)dst, v);
        _mm_storeu_si128((void *)(dst + second), v);
        _mm_storeu_si128((void *)(dst + last - second), v);
        _mm_storeu_si128((void *)(dst + last), v);
    } else if (n >= 8) {
        store8(dst, word);
        store8(dst + n - 8, word);
    } else if (n >= 4) {
        store4(dst, (uint32_t)word);
        store4(dst + n - 4, (uint32_t)word);
    } else if (n >= 1) {
        dst[0] = (uint8_t)c;
        dst[n / 2] = (uint8_t)c;
        dst[n - 1] = (uint8_t)c;
    }
}

#endif
