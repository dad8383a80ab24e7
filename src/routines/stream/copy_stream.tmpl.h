/* The copy that always goes past the caches: the non-temporal way of large.tmpl.h, from a line on and for every
 * alignment.
 *
 *   n < 64     overlapping blocks by ordinary stores
 *   n >= 64    |--line--|====== whole lines, non-temporal ======|--line--|     the first and the last may be shared
 *                                                                             with neighbours: ordinary stores
 *
 * Disjoint. Ends with a fence for every n, so that what the caller stores next is not seen before these bytes.
 * The includer defines VEC_BYTES and COPY_STREAM (the symbol).
 */
#include "../vector/large.tmpl.h"
#include "short.h"

void *COPY_STREAM(void *dst, const void *src, size_t n)
{
    if (n >= LINE_BYTES) {
        move_stream(dst, src, n);
    } else {
        copy_to_63(dst, src, n);
        _mm_sfence();
    }
    return dst;
}
