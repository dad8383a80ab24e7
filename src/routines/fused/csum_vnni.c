/* csum_vnni: csum_avx512's aligned lines, by the dot product of words. Two instructions a line, which is as many as
 * this kind of CPU executes while it loads one: vpdpwssd adds both words of a 32-bit lane to it, but takes them as
 * signed, so each is made less by 32768 first, which exchanges its top bit. The lanes begin with what that comes to.
 *
 * vpdpwssd takes four cycles and two begin in each: eight accumulators keep it busy. */
#define VEC_BYTES 64

#include "csum_vec.h"

/* Of at most this many bytes no 32-bit lane overflows: two words of 16 bits a line. Even, as CSUM_PART is. */
enum { VNNI_PART = 1 << 20 };

/* By hand: GCC copies each accumulator to another register and back. */
INLINE vec dot_words(vec sum, const uint8_t *line, vec top_bits, vec ones)
{
    vec words;
    __asm__("vpxord %[line], %[top], %[words]"
            : [words] "=v"(words)
            : [line] "m"(*(const vec *)line), [top] "v"(top_bits));
    __asm__("vpdpwssd %[ones], %[words], %[sum]" : [sum] "+v"(sum) : [words] "v"(words), [ones] "v"(ones));
    return sum;
}

INLINE vec add32(vec a, vec b) { return _mm512_add_epi32(a, b); }

INLINE uint32_t csum_lines(const uint8_t *p, size_t n, uint32_t sum)
{
    const uintptr_t start = (uintptr_t)p, end = start + n - 1;
    const uint8_t *line = p - start % 64;
    const uint8_t *const last = p + n - 1 - end % 64;
    const vec head = _mm512_maskz_loadu_epi8(~0ull << (start & 63), line);
    const vec tail = _mm512_maskz_loadu_epi8(~0ull >> (~end & 63), last);
    struct csum total = {vec_add64(head, tail), vec_add64(vec_upper(head), vec_upper(tail))};
    line += 64;
    if (last - line >= 4 * 64) {
        const vec top = _mm512_set1_epi16(INT16_MIN), one = _mm512_set1_epi16(1);
        const size_t lines = (size_t)(last - line) / 256 * 4;
        vec a = _mm512_set1_epi32((int)lines * 65536), b = vec_zero(), c = b, d = b;
        if (lines >= 8) {
            vec e = b, f = b, g = b, h = b;
            const uint8_t *const stop = line + lines / 8 * 512;
            do {
                a = dot_words(a, line, top, one);
                b = dot_words(b, line + 64, top, one);
                c = dot_words(c, line + 128, top, one);
                d = dot_words(d, line + 192, top, one);
                e = dot_words(e, line + 256, top, one);
                f = dot_words(f, line + 320, top, one);
                g = dot_words(g, line + 384, top, one);
                h = dot_words(h, line + 448, top, one);
                line += 512;
            } while (line != stop);
            a = add32(a, e);
            b = add32(b, f);
            c = add32(c, g);
            d = add32(d, h);
        }
        if (lines & 4) {
            a = dot_words(a, line, top, one);
            b = dot_words(b, line + 64, top, one);
            c = dot_words(c, line + 128, top, one);
            d = dot_words(d, line + 192, top, one);
            line += 256;
        }
        csum_add(&total, add32(add32(a, b), add32(c, d)));
    }
    for (; line < last; line += 64)
        csum_add(&total, _mm512_load_si512(line));
    uint32_t own = csum_fold64(csum_total(csum_lanes(total)));
    own = own << (start % 2 * 8) | own >> (-(start % 2 * 8) % 32);
    return csum_add32(own, sum);
}

/* Beside the entry, so that short sums save no registers; reached by a jump. The last part may be short. */
__attribute__((noinline)) static uint32_t csum_parts(const uint8_t *p, size_t n, uint32_t sum)
{
    for (;; p += VNNI_PART) {
        const size_t part = n < VNNI_PART ? n : VNNI_PART;
        sum = part <= CSUM_SHORT ? csum_fold64(csum_short(p, part, sum)) : csum_lines(p, part, sum);
        n -= part;
        if (n == 0)
            return sum;
    }
}

uint32_t wherry_routine_csum_vnni(const void *src, size_t n, uint32_t sum)
{
    return n <= CSUM_SHORT ? csum_fold64(csum_short(src, n, sum)) : csum_parts(src, n, sum);
}
