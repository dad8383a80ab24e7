/* Sums in vectors. A vector counts as 32-bit words; those in the lower halves of its 64-bit lanes and those in the
 * upper ones are summed without a carry that could be lost: `all` adds whole lanes and wraps, `high` adds the upper
 * halves, and what wrapped is known in the end. Three instructions a vector. */
#ifndef WHERRY_CSUM_VEC_H
#define WHERRY_CSUM_VEC_H

#if VEC_BYTES > 16
#include <immintrin.h>
#endif

#include "../csum.h"
#include "../csum_steps.h"
#include "../vec.h"

/* Of at most this many bytes no lane overflows, nor do all lanes together. Even, so that sums go on from part to part.
 */
enum { CSUM_PART = 1 << 30 };

#if VEC_BYTES == 64
INLINE vec vec_zero(void) { return _mm512_setzero_si512(); }
INLINE vec vec_add64(vec a, vec b) { return _mm512_add_epi64(a, b); }
INLINE vec vec_upper(vec v) { return _mm512_srli_epi64(v, 32); }
INLINE vec vec_sub64(vec a, vec b) { return _mm512_sub_epi64(a, b); }
INLINE vec vec_up(vec v) { return _mm512_slli_epi64(v, 32); }
INLINE vec vec_first_bytes(vec v, size_t n) { return _mm512_maskz_mov_epi8(~0ull >> (64 - n), v); } /* n: 1 to 64 */
INLINE vec vec_last_bytes(vec v, size_t n) { return _mm512_maskz_mov_epi8(~0ull << (64 - n), v); }
INLINE vec vec_turn(vec v, size_t odd) { return _mm512_rolv_epi32(v, _mm512_set1_epi32((int)(odd & 1) * 8)); }
#else
/* Bytes that are kept, between bytes that are not. */
static const uint8_t kept_bytes[3 * VEC_BYTES] __attribute__((aligned(VEC_BYTES))) = {
#define EIGHT 255, 255, 255, 255, 255, 255, 255, 255
#if VEC_BYTES == 32
    [VEC_BYTES] = EIGHT,
    EIGHT,
    EIGHT,
    EIGHT,
#else
    [VEC_BYTES] = EIGHT,
    EIGHT,
#endif
#undef EIGHT
};
#if VEC_BYTES == 32
INLINE vec vec_zero(void) { return _mm256_setzero_si256(); }
INLINE vec vec_add64(vec a, vec b) { return _mm256_add_epi64(a, b); }
INLINE vec vec_upper(vec v) { return _mm256_srli_epi64(v, 32); }
INLINE vec vec_sub64(vec a, vec b) { return _mm256_sub_epi64(a, b); }
INLINE vec vec_up(vec v) { return _mm256_slli_epi64(v, 32); }
INLINE vec vec_and(vec a, vec b) { return _mm256_and_si256(a, b); }
/* By the order of its bytes; without a branch, since sizes are as often odd as even. */
static const uint8_t byte_orders[2][32] __attribute__((aligned(64))) = {
#define LANE(odd)                                                                                                      \
    odd, 1 ^ odd, 2 ^ odd, 3 ^ odd, 4 ^ odd, 5 ^ odd, 6 ^ odd, 7 ^ odd, 8 ^ odd, 9 ^ odd, 10 ^ odd, 11 ^ odd,          \
        12 ^ odd, 13 ^ odd, 14 ^ odd, 15 ^ odd
    {LANE(0), LANE(0)},
    {LANE(1), LANE(1)},
#undef LANE
};
INLINE vec vec_turn(vec v, size_t odd) { return _mm256_shuffle_epi8(v, vec_load(byte_orders[odd & 1])); }
#else
INLINE vec vec_zero(void) { return _mm_setzero_si128(); }
INLINE vec vec_add64(vec a, vec b) { return _mm_add_epi64(a, b); }
INLINE vec vec_upper(vec v) { return _mm_srli_epi64(v, 32); }
INLINE vec vec_sub64(vec a, vec b) { return _mm_sub_epi64(a, b); }
INLINE vec vec_up(vec v) { return _mm_slli_epi64(v, 32); }
INLINE vec vec_and(vec a, vec b) { return _mm_and_si128(a, b); }
INLINE vec vec_turn(vec v, size_t odd)
{
    const int left = (int)(odd & 1) * 8;
    return _mm_or_si128(_mm_sll_epi32(v, _mm_cvtsi32_si128(left)), _mm_srl_epi32(v, _mm_cvtsi32_si128(32 - left)));
}
#endif
INLINE vec vec_first_bytes(vec v, size_t n) { return vec_and(v, vec_load(kept_bytes + 2 * VEC_BYTES - n)); }
INLINE vec vec_last_bytes(vec v, size_t n) { return vec_and(v, vec_load(kept_bytes + n)); }
#if VEC_BYTES == 32
INLINE vec vec_mean16(vec a, vec b) { return _mm256_avg_epu16(a, b); } /* rounded up */
INLINE vec vec_top16(vec v) { return _mm256_srli_epi64(v, 48); }
INLINE vec vec_over16(vec v) { return _mm256_srli_epi64(v, 16); }
INLINE vec vec_set64(long long n) { return _mm256_set1_epi64x(n); }
#else
INLINE vec vec_mean16(vec a, vec b) { return _mm_avg_epu16(a, b); }
INLINE vec vec_top16(vec v) { return _mm_srli_epi64(v, 48); }
INLINE vec vec_over16(vec v) { return _mm_srli_epi64(v, 16); }
INLINE vec vec_set64(long long n) { return _mm_set1_epi64x(n); }
#endif
#endif

struct csum {
    vec all, high;
};

INLINE struct csum csum_zero(void) { return (struct csum){vec_zero(), vec_zero()}; }

INLINE void csum_add(struct csum *sum, vec v)
{
    sum->all = vec_add64(sum->all, v);
    sum->high = vec_add64(sum->high, vec_upper(v));
}

/* Four vectors; one addition of each chain waits for the step before. */
INLINE void csum_add_step(struct csum *sum, struct step s)
{
    const vec all = vec_add64(vec_add64(s.part[0], s.part[1]), vec_add64(s.part[2], s.part[3]));
    const vec high = vec_add64(vec_add64(vec_upper(s.part[0]), vec_upper(s.part[1])),
                               vec_add64(vec_upper(s.part[2]), vec_upper(s.part[3])));
    sum->all = vec_add64(sum->all, all);
    sum->high = vec_add64(sum->high, high);
}

/* What each lane's words come to: lower halves and upper ones. */
INLINE vec csum_lanes(struct csum sum) { return vec_add64(vec_sub64(sum.all, vec_up(sum.high)), sum.high); }

/* All lanes together; with no more than CSUM_PART bytes in them it fits. */
INLINE uint64_t csum_total(vec lanes)
{
#if VEC_BYTES == 64
    const __m256i four = _mm256_add_epi64(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
#elif VEC_BYTES == 32
    const __m256i four = lanes;
#endif
#if VEC_BYTES >= 32
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
#else
    const __m128i two = lanes;
#endif
    return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

#if VEC_BYTES < 64
/* As csum_steps.h tells. */
struct csum_steps {
    vec all, quarters;
};
_Static_assert(8 * CSUM_STEPS <= 1 << 16, "what the true sum can be is told by 16 bits");

INLINE struct csum_steps csum_no_steps(void) { return (struct csum_steps){vec_zero(), vec_zero()}; }

INLINE void csum_take_step(struct csum_steps *sum, const uint8_t *p)
{
    const vec a = vec_once(vec_load(p)), b = vec_once(vec_load(p + VEC_BYTES));
    const vec c = vec_once(vec_load(p + 2 * VEC_BYTES)), d = vec_once(vec_load(p + 3 * VEC_BYTES));
    const vec quarter = vec_mean16(vec_mean16(a, b), vec_mean16(c, d));
    sum->quarters = vec_add64(sum->quarters, vec_top16(quarter));
    sum->all = vec_add64(sum->all, vec_add64(vec_add64(a, b), vec_add64(c, d)));
}

/* How often each lane of `all` wrapped. */
INLINE vec csum_wraps(struct csum_steps sum)
{
    const vec halves = vec_add64(sum.quarters, sum.quarters);
    const vec most = vec_add64(vec_add64(halves, halves), vec_set64(CSUM_STEPS_ROUND));
    return vec_over16(vec_sub64(most, vec_top16(sum.all)));
}
#endif

#endif
