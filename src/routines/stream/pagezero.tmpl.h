/* Zeroes, and writes only lines of the cache that are not zero already: what is zero stays clean, may be shared with
 * other caches, and may be a page that cannot be written. Any n and alignment; at both ends the bytes of a line that
 * belong to the buffer count as a line.
 *
 * Sixteen lines are read and asked together: over zeros that is one branch for a kibibyte, never taken. Where something
 * is not zero each line is asked by itself, without a branch, since whether a line is dirty may be anybody's guess and
 * a wrong one costs more than reading all sixteen once more. With AVX-512 the answer is a mask: an empty one writes
 * nothing, and asks for no leave to write. Else it is an address: what need not be written goes to a spare line on the
 * stack.
 *
 * The includer defines VEC_BYTES and PAGEZERO (the symbol).
 */
#include "../plain.h"
#include "short.h"
#include "vec_zero.h"

enum { FOUR_LINES = 4 * LINE_BYTES, GROUP_BYTES = 4 * FOUR_LINES };

INLINE vec four_lines_or(const uint8_t *p)
{
    const vec a = line_or(line_load(p)), b = line_or(line_load(p + LINE_BYTES));
    const vec c = line_or(line_load(p + 2 * LINE_BYTES)), d = line_or(line_load(p + 3 * LINE_BYTES));
    return vec_or(vec_or(a, b), vec_or(c, d));
}

INLINE int group_is_zero(const uint8_t *p)
{
    vec all = four_lines_or(p);
#pragma GCC unroll 4
    for (int at = FOUR_LINES; at < GROUP_BYTES; at += FOUR_LINES)
        all = vec_or(all, four_lines_or(p + at));
    return vec_is_zero(all);
}

INLINE void group_clean(uint8_t *p)
{
    const vec zero = vec_set1(0);
#if VEC_BYTES == 64
#pragma GCC unroll 16
    for (int at = 0; at < GROUP_BYTES; at += LINE_BYTES) {
        const vec all = line_load(p + at).part[0];
        _mm512_mask_store_epi64(p + at, _mm512_test_epi64_mask(all, all), zero);
    }
#else
    _Alignas(LINE_BYTES) uint8_t spare[LINE_BYTES];
    AS_WRITTEN
    for (uint8_t *line = p; line < p + GROUP_BYTES; line += LINE_BYTES) {
        uintptr_t to = (uintptr_t)line;
        const int is_zero = vec_is_zero(line_or(line_load(line)));
        __asm__("test %[is_zero], %[is_zero]\n\tcmovnz %[spare], %[to]"
                : [to] "+r"(to)
                : [is_zero] "r"(is_zero), [spare] "r"((uintptr_t)spare)
                : "cc");
        line_store((uint8_t *)to, line_of(zero));
    }
    __asm__("" : : "m"(spare));
#endif
}

/* 1 <= n < 64 */
INLINE void short_clean(uint8_t *p, size_t n)
{
    if (!short_is_zero(p, n))
        set_to_63(p, 0, n);
}

void PAGEZERO(void *page, size_t n)
{
    uint8_t *p = page;
    uint8_t *const end = p + n;
    const size_t to_line = -(uintptr_t)p & (LINE_BYTES - 1);
    if (n <= to_line) {
        if (n > 0)
            short_clean(p, n);
        return;
    }
    if (to_line > 0)
        short_clean(p, to_line);
    p += to_line;
    AS_WRITTEN
    for (; end - p >= GROUP_BYTES; p += GROUP_BYTES)
        if (!group_is_zero(p))
            group_clean(p);
    AS_WRITTEN
    for (; end - p >= LINE_BYTES; p += LINE_BYTES)
        if (!vec_is_zero(line_or(line_load(p))))
            line_store(p, line_of(vec_set1(0)));
    if (p < end)
        short_clean(p, (size_t)(end - p));
}
