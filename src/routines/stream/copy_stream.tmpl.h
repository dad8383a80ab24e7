/* The copy that always goes past the caches: the non-temporal way of large.tmpl.h, from a line on and for every
 * alignment.
 *
 *   n < 64     overlapping blocks by ordinary stores
 *   n < 128    the first line and the last, by ordinary stores
 *   n >= 128   |--line--|====== whole lines, non-temporal ======|--line--|     the first and the last may be shared
 *                                                                             with neighbours: ordinary stores
 *
 * Disjoint. Ends with a fence for every n, so that what the caller stores next is not seen before these bytes.
 * The includer defines VEC_BYTES and COPY_STREAM (the symbol).
 */
#include "../vector/large.tmpl.h"
#include "short.h"

void *COPY_STREAM(void *dst, const void *src, size_t n)
{
    if (n >= 2 * LINE_BYTES) {
        move_stream(dst, src, n);
        return dst;
    }
    if (n >= LINE_BYTES) {
        const struct line first = line_load(src), last = line_load((const uint8_t *)src + n - LINE_BYTES);
        line_store(dst, first);
        line_store((uint8_t *)dst + n - LINE_BYTES, last);
    } else {
        copy_to_63(dst, src, n);
    }
    _mm_sfence();
    return dst;
}
