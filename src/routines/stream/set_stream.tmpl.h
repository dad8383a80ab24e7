/* The set that always goes past the caches: whole lines by non-temporal stores. What shares a line with neighbours, if
 * there is any, goes by ordinary ones, behind them as in copy_stream.tmpl.h, and so does all of 128 bytes and less.
 * Ends with a fence for every n. The includer defines VEC_BYTES and SET_STREAM (the symbol).
 */
#include "../plain.h"
#include "short.h"

void *SET_STREAM(void *dst_, int c, size_t n)
{
    uint8_t *dst = dst_;
    const struct line all = line_of(vec_set1(c));
    if (n > 2 * LINE_BYTES) {
        uint8_t *const end = dst + n, *line = line_at_or_above(dst);
        const size_t before = (size_t)(line - dst), behind = (size_t)(end - line_at_or_below(end));
        if (before)
            __builtin_prefetch(dst);
        if (behind)
            __builtin_prefetch(end - 1);
        AS_WRITTEN
        for (; end - line >= 4 * LINE_BYTES; line += 4 * LINE_BYTES) {
            line_store_nt(line, all);
            line_store_nt(line + LINE_BYTES, all);
            line_store_nt(line + 2 * LINE_BYTES, all);
            line_store_nt(line + 3 * LINE_BYTES, all);
        }
        AS_WRITTEN
        for (; end - line >= LINE_BYTES; line += LINE_BYTES)
            line_store_nt(line, all);
        if (before)
            set_to_63(dst, c, before);
        if (line != end)
            set_to_63(line, c, (size_t)(end - line));
    } else if (n >= LINE_BYTES) {
        line_store(dst, all);
        line_store(dst + n - LINE_BYTES, all);
    } else {
        set_to_63(dst, c, n);
    }
    _mm_sfence();
    return dst_;
}
