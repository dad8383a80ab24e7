/* csum_avx512: whole lines of memory, aligned, with the bytes of the first and the last that are not the buffer's
 * masked off, so that no load lies across lines and none needs a page that the buffer does not have. What comes out is
 * the sum of the bytes at their addresses: turned by a byte when the buffer begins at an odd one.
 *
 * Long buffers go through full adders (vpternlog: one for the sum, one for the carry) before they are added in lanes:
 * of four lines comes one of weight four, which costs three instructions. Nine for four lines, where adding each would
 * cost twelve and so more than loading them. */
#define VEC_BYTES 64

#include "csum_vec.h"

enum { LINES_IN_ADDERS = 8 };

INLINE vec masked_line(const uint8_t *line, uint64_t mask) { return _mm512_maskz_loadu_epi8(mask, line); }

INLINE vec sum_of(vec a, vec b, vec c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
INLINE vec carry_of(vec a, vec b, vec c) { return _mm512_ternarylogic_epi64(a, b, c, 0xe8); }

INLINE vec line_in_register(const uint8_t *line) { return vec_once(_mm512_load_si512(line)); }

/* Words of one or two vectors: no lane wraps. */
INLINE vec lanes_of(vec v) { return vec_add64(_mm512_and_si512(v, _mm512_set1_epi64(0xffffffff)), vec_upper(v)); }

INLINE uint32_t csum_part(const uint8_t *p, size_t n, uint32_t sum)
{
    const uintptr_t start = (uintptr_t)p, end = start + n - 1;
    const uint8_t *line = p - start % 64;
    const uint8_t *const last = p + n - 1 - end % 64;
    const uint64_t first_mask = ~0ull << (start & 63), last_mask = ~0ull >> (~end & 63);
    vec lanes;
    const vec head = masked_line(line, first_mask), tail = masked_line(last, last_mask);
    struct csum total = {vec_add64(head, tail), vec_add64(vec_upper(head), vec_upper(tail))};
    line += 64;
    if (last - line >= LINES_IN_ADDERS * 64) {
        vec ones = vec_zero(), twos = vec_zero();
        struct csum fours = csum_zero();
        do {
            const vec a = line_in_register(line), b = line_in_register(line + 64);
            const vec c = line_in_register(line + 128), d = line_in_register(line + 192);
            const vec abc = sum_of(a, b, c), two_abc = carry_of(a, b, c);
            const vec two_d = carry_of(ones, abc, d);
            ones = sum_of(ones, abc, d);
            csum_add(&fours, carry_of(twos, two_abc, two_d));
            twos = sum_of(twos, two_abc, two_d);
            line += 256;
        } while (last - line >= 256);
        csum_add(&total, ones);
        csum_add(&total, twos);
        csum_add(&total, twos);
        const vec four = csum_lanes(fours);
        lanes = vec_add64(csum_lanes(total), _mm512_slli_epi64(four, 2));
        for (; line < last; line += 64)
            lanes = vec_add64(lanes, lanes_of(_mm512_load_si512(line)));
    } else {
        for (; line < last; line += 64)
            csum_add(&total, _mm512_load_si512(line));
        lanes = csum_lanes(total);
    }
    uint32_t own = csum_fold64(csum_total(lanes));
    own = own << (start % 2 * 8) | own >> (-(start % 2 * 8) % 32);
    return csum_add32(own, sum);
}

/* Beside the entry, as in csum.tmpl.h. */
__attribute__((noinline)) static uint32_t csum_parts(const uint8_t *p, size_t n, uint32_t sum)
{
    for (;; p += CSUM_PART) {
        const size_t part = n < CSUM_PART ? n : CSUM_PART;
        sum = part <= CSUM_SHORT ? csum_fold64(csum_short(p, part, sum)) : csum_part(p, part, sum);
        n -= part;
        if (n == 0)
            return sum;
    }
}

uint32_t wherry_routine_csum_avx512(const void *src, size_t n, uint32_t sum)
{
    return n <= CSUM_SHORT ? csum_fold64(csum_short(src, n, sum)) : csum_parts(src, n, sum);
}
