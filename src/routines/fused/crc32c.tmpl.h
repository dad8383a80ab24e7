/* CRC-32C by carry-less multiplication, for 16-, 32- and 64-byte vectors; with COPY each vector is stored on its way.
 *
 * What lies D bits before the end counts as much as its product with x^D, modulo the polynomial. So a 128-bit lane is
 * carried forward over what follows by two products, one for each half, and added (exclusive or) to what is there. Four
 * vectors at a time are carried over the next four, then onto each other until one lane is left, and the instruction
 * crc32 makes the remainder of that and of the bytes after it.
 *
 * Bits are mirrored: a product of mirrored words comes out one place off, so that the factors are x^(D + 63) for the
 * half that comes first in memory and x^(D - 1) for the other; each is kept in the upper half of its word. */
#if VEC_BYTES > 16
#include <immintrin.h>
#else
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#include "../vec.h"

#ifndef CRC32C
#error "CRC32C: the routine's symbol"
#endif

/* Not a question of whether there is a destination: a null one is stored to, and faults as in every other copy. */
#ifdef COPY
enum { COPIES = 1 };
#else
enum { COPIES = 0 };
#endif

#define FACTORS_128 0x3743f7bd00000000, 0x3171d43000000000
#define FACTORS_256 0x33ccbbbc00000000, 0xa2158b3400000000
#define FACTORS_384 0xa46ef4aa00000000, 0x6051243f00000000
#define FACTORS_512 0x1c19243b00000000, 0x75bba45b00000000
#define FACTORS_1024 0x6577b24500000000, 0x7417153f00000000
#define FACTORS_2048 0xe9a5d8be00000000, 0x1426a81500000000
#define LOW_HIGH(low, high) (long long)(low), (long long)(high)
#define PAIR(factors) LOW_HIGH(factors)

#if VEC_BYTES > 16
#define PRODUCTS(lane, factors)                                                                                        \
    _mm_xor_si128(_mm_clmulepi64_si128(lane, factors, 0x00), _mm_clmulepi64_si128(lane, factors, 0x11))
#define SWAPPED(low, high) _mm_set_epi64x((long long)(high), (long long)(low))
#define FACTORS(pair) SWAPPED(pair)
#endif

#if VEC_BYTES == 64
#define OVER_STEP FACTORS_2048
#define OVER_VECTOR FACTORS_512
INLINE vec vec_factors(long long low, long long high) { return _mm512_broadcast_i32x4(_mm_set_epi64x(high, low)); }
INLINE vec carry(vec v, vec factors, vec next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, factors, 0x00),
                                     _mm512_clmulepi64_epi128(v, factors, 0x11), next, 0x96);
}
INLINE vec vec_from_crc(uint32_t crc) { return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)); }
INLINE vec vec_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
INLINE __m128i last_lane(vec v)
{
    const __m128i a = _mm512_castsi512_si128(v), b = _mm512_extracti32x4_epi32(v, 1);
    const __m128i c = _mm512_extracti32x4_epi32(v, 2), d = _mm512_extracti32x4_epi32(v, 3);
    return _mm_xor_si128(_mm_xor_si128(PRODUCTS(a, FACTORS(FACTORS_384)), PRODUCTS(b, FACTORS(FACTORS_256))),
                         _mm_xor_si128(PRODUCTS(c, FACTORS(FACTORS_128)), d));
}
#elif VEC_BYTES == 32
#define OVER_STEP FACTORS_1024
#define OVER_VECTOR FACTORS_256
INLINE vec vec_factors(long long low, long long high) { return _mm256_set_epi64x(high, low, high, low); }
INLINE vec vec_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }
INLINE vec carry(vec v, vec factors, vec next)
{
    return vec_xor(vec_xor(_mm256_clmulepi64_epi128(v, factors, 0x00), _mm256_clmulepi64_epi128(v, factors, 0x11)),
                   next);
}
INLINE vec vec_from_crc(uint32_t crc) { return _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc)); }
INLINE __m128i last_lane(vec v)
{
    return _mm_xor_si128(PRODUCTS(_mm256_castsi256_si128(v), FACTORS(FACTORS_128)), _mm256_extracti128_si256(v, 1));
}
#else
#define OVER_STEP FACTORS_512
#define OVER_VECTOR FACTORS_128
INLINE vec vec_factors(long long low, long long high) { return _mm_set_epi64x(high, low); }
INLINE vec vec_xor(vec a, vec b) { return _mm_xor_si128(a, b); }
INLINE vec carry(vec v, vec factors, vec next)
{
    return vec_xor(vec_xor(_mm_clmulepi64_si128(v, factors, 0x00), _mm_clmulepi64_si128(v, factors, 0x11)), next);
}
INLINE vec vec_from_crc(uint32_t crc) { return _mm_cvtsi32_si128((int)crc); }
INLINE __m128i last_lane(vec v) { return v; }
#endif

INLINE uint64_t through8(uint64_t crc, uint8_t *to, const uint8_t *p)
{
    const uint64_t word = load8(p);
    if (COPIES)
        store8(to, word);
    return _mm_crc32_u64(crc, word);
}

INLINE struct step through_step(uint8_t *to, const uint8_t *p)
{
    struct step step = step_load(p);
    if (COPIES) {
        for (int i = 0; i < 4; i++)
            step.part[i] = vec_once(step.part[i]);
        step_store(to, step);
    }
    return step;
}

INLINE uint32_t crc32c(uint32_t begin, uint8_t *to, const uint8_t *p, size_t n)
{
    uint64_t crc = (uint32_t)~begin;
#define ADVANCE(bytes) (p += (bytes), to = COPIES ? to + (bytes) : to, n -= (bytes))
    if (n >= STEP_BYTES) {
        struct step sum = through_step(to, p);
        sum.part[0] = vec_xor(sum.part[0], vec_from_crc((uint32_t)crc));
        ADVANCE(STEP_BYTES);
        const vec over_step = vec_factors(PAIR(OVER_STEP)), over_vector = vec_factors(PAIR(OVER_VECTOR));
        for (; n >= STEP_BYTES; ADVANCE(STEP_BYTES)) {
            const struct step next = through_step(to, p);
            for (int i = 0; i < 4; i++)
                sum.part[i] = carry(sum.part[i], over_step, next.part[i]);
        }
        vec v = sum.part[0];
        for (int i = 1; i < 4; i++)
            v = carry(v, over_vector, sum.part[i]);
        for (; n >= VEC_BYTES; ADVANCE(VEC_BYTES)) {
            vec next = vec_load(p);
            if (COPIES) {
                next = vec_once(next);
                vec_store(to, next);
            }
            v = carry(v, over_vector, next);
        }
        const __m128i lane = last_lane(v);
        crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(lane));
        crc = _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(lane, 1));
    }
    for (; n >= 8; ADVANCE(8))
        crc = through8(crc, to, p);
    uint32_t crc4 = (uint32_t)crc;
    if (n & 4) {
        const uint32_t four = load4(p);
        if (COPIES)
            store4(to, four);
        crc4 = _mm_crc32_u32(crc4, four);
        ADVANCE(4);
    }
    if (n & 2) {
        const uint16_t two = load2(p);
        if (COPIES)
            store2(to, two);
        crc4 = _mm_crc32_u16(crc4, two);
        ADVANCE(2);
    }
    if (n) {
        const uint8_t byte = *p;
        if (COPIES)
            *to = byte;
        crc4 = _mm_crc32_u8(crc4, byte);
    }
#undef ADVANCE
    return ~crc4;
}

#ifdef COPY
uint32_t CRC32C(uint32_t crc, void *dst, const void *src, size_t n)
{
    uint8_t *to = dst;
    return n ? crc32c(crc, to, src, n) : crc;
}
#else
uint32_t CRC32C(uint32_t crc, const void *src, size_t n) { return crc32c(crc, NULL, src, n); }
#endif
