/* The copy that always goes past the caches: the non-temporal way of large.tmpl.h, from a line on and for every
 * alignment.
 *
 *   n < 64     overlapping blocks by ordinary stores
 *   n <= 128   the first line and the last, by ordinary stores: a fence behind others waits for memory
 *   n > 128    |--|====== whole lines, non-temporal ======|--|     what shares a line with neighbours by ordinary
 *                                                                  stores, if there is any
 *
 * Stores leave in the order of the program, so one to a line that has yet to come from memory holds up all behind it:
 * those to shared lines come last, their lines are asked for first, and none goes to a line that is stored past the
 * caches.
 *
 * Disjoint. Ends with a fence for every n, so that what the caller stores next is not seen before these bytes.
 * The includer defines VEC_BYTES and COPY_STREAM (the symbol).
 */
#include "../vector/large.tmpl.h"
#include "short.h"

void *COPY_STREAM(void *dst, const void *src, size_t n)
{
    if (n > 2 * LINE_BYTES) {
        uint8_t *const to = dst, *const end = to + n;
        const uint8_t *const from = src;
        uint8_t *const first_line = line_at_or_above(to), *const lines_end = line_at_or_below(end);
        const size_t before = (size_t)(first_line - to), behind = (size_t)(end - lines_end);
        if (before)
            __builtin_prefetch(to);
        if (behind)
            __builtin_prefetch(lines_end);
        stream_lines(first_line, lines_end, from + before, n);
        if (before)
            copy_to_63(to, from, before);
        if (behind)
            copy_to_63(lines_end, from + n - behind, behind);
    } else if (n >= LINE_BYTES) {
        const struct line first = line_load(src), last = line_load((const uint8_t *)src + n - LINE_BYTES);
        line_store(dst, first);
        line_store((uint8_t *)dst + n - LINE_BYTES, last);
    } else {
        copy_to_63(dst, src, n);
    }
    _mm_sfence();
    return dst;
}
