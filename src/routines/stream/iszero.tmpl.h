/* Is every byte zero? A step of the loop is four lines: their bytes or-ed together and one question asked, so that the
 * loads are what takes the time. Ends at the first step that is not zero; only bytes of the buffer are read.
 *
 *   n < 64     overlapping blocks
 *   n < 320    line by line, the last one ending where the buffer ends
 *   else       |--line--|==== steps of four aligned lines ====|--four lines that end where the buffer ends--|
 *
 * The first line is asked by itself: what is not zero shows it there as a rule.
 * The includer defines VEC_BYTES and ISZERO (the symbol).
 */
#include "../plain.h"
#include "vec_zero.h"

#include <stdbool.h>

enum { FOUR_LINES = 4 * LINE_BYTES };

INLINE vec four_lines_or(const uint8_t *p)
{
    const vec a = line_or(line_load(p)), b = line_or(line_load(p + LINE_BYTES));
    const vec c = line_or(line_load(p + 2 * LINE_BYTES)), d = line_or(line_load(p + 3 * LINE_BYTES));
    return vec_or(vec_or(a, b), vec_or(c, d));
}

bool ISZERO(const void *p_, size_t n)
{
    const uint8_t *p = p_;
    if (n < LINE_BYTES)
        return n == 0 || short_is_zero(p, n);
    const uint8_t *const end = p + n;
    if (!vec_is_zero(line_or(line_load(p))))
        return false;
    if (n < LINE_BYTES + FOUR_LINES) {
        vec all = line_or(line_load(end - LINE_BYTES));
        AS_WRITTEN
        for (p += LINE_BYTES; end - p > LINE_BYTES; p += LINE_BYTES)
            all = vec_or(all, line_or(line_load(p)));
        return vec_is_zero(all);
    }
    p = (const uint8_t *)(((uintptr_t)p + LINE_BYTES) & ~(uintptr_t)(LINE_BYTES - 1));
    AS_WRITTEN
    for (; end - p > FOUR_LINES; p += FOUR_LINES)
        if (!vec_is_zero(four_lines_or(p)))
            return false;
    return vec_is_zero(four_lines_or(end - FOUR_LINES));
}
