/* memset, one algorithm for every vector width V = VEC_BYTES: overlapping blocks from both ends up to 8V (see
 * move.tmpl.h for the picture), then a loop of four aligned vectors a step between a head and a tail, with
 * non-temporal stores from stream_from on.
 * The includer defines VEC_BYTES and SET (the symbol).
 */
#include "../thresholds.h"
#include "../vec.h"

INLINE void set_small(uint8_t *dst, vec v, size_t n)
{
#if VEC_BYTES == 64
    __m128i low = _mm512_castsi512_si128(v);
    if (n >= 32) {
        _mm256_storeu_si256((void *)dst, _mm512_castsi512_si256(v));
        _mm256_storeu_si256((void *)(dst + n - 32), _mm512_castsi512_si256(v));
        return;
    }
#elif VEC_BYTES == 32
    __m128i low = _mm256_castsi256_si128(v);
#else
    __m128i low = v;
#endif
#if VEC_BYTES >= 32
    if (n >= 16) {
        _mm_storeu_si128((void *)dst, low);
        _mm_storeu_si128((void *)(dst + n - 16), low);
        return;
    }
#endif
    uint64_t word = (uint64_t)_mm_cvtsi128_si64(low);
    if (n >= 8) {
        store8(dst, word);
        store8(dst + n - 8, word);
    } else if (n >= 4) {
        store4(dst, (uint32_t)word);
        store4(dst + n - 4, (uint32_t)word);
    } else if (n >= 2) {
        store2(dst, (uint16_t)word);
        store2(dst + n - 2, (uint16_t)word);
    } else if (n == 1) {
        *dst = (uint8_t)word;
    }
}

void *SET(void *dst_, int c, size_t n)
{
    uint8_t *dst = dst_;
    uint8_t *const end = dst + n;
    vec v = vec_set1(c);
    if (n < VEC_BYTES) {
        set_small(dst, v, n);
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
    /* The head of four vectors is written; go on from the first aligned address inside it. */
    dst = (uint8_t *)(((uintptr_t)dst + 4 * VEC_BYTES) & ~(uintptr_t)(VEC_BYTES - 1));
    uint8_t *const last = end - STEP_BYTES; /* from here on the tail covers what is left */
    if (__builtin_expect(n >= wherry_thresholds.stream_from, 0)) {
        for (; (uintptr_t)dst & 63; dst += VEC_BYTES) /* non-temporal stores fill whole lines */
            vec_store_aligned(dst, v);
        for (; dst < last; dst += STEP_BYTES) {
            vec_store_nt(dst, v);
            vec_store_nt(dst + VEC_BYTES, v);
            vec_store_nt(dst + 2 * VEC_BYTES, v);
            vec_store_nt(dst + 3 * VEC_BYTES, v);
        }
        _mm_sfence(); /* the caller's next ordinary store must not become visible before these */
        return dst_;
    }
    do {
        vec_store_aligned(dst, v);
        vec_store_aligned(dst + VEC_BYTES, v);
        vec_store_aligned(dst + 2 * VEC_BYTES, v);
        vec_store_aligned(dst + 3 * VEC_BYTES, v);
        dst += STEP_BYTES;
    } while (dst < last);
    return dst_;
}
