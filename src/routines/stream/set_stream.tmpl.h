/* The set that always goes past the caches: whole lines by non-temporal stores between a first and a last line by
 * ordinary ones, which may be shared with neighbours. Below a line overlapping blocks. Ends with a fence for every n.
 * The includer defines VEC_BYTES and SET_STREAM (the symbol).
 */
#include "../plain.h"
#include "short.h"

void *SET_STREAM(void *dst_, int c, size_t n)
{
    uint8_t *dst = dst_;
    if (n >= LINE_BYTES) {
        uint8_t *const end = dst + n;
        const struct line all = line_of(vec_set1(c));
        line_store(dst, all);
        line_store(end - LINE_BYTES, all);
        uint8_t *line = (uint8_t *)(((uintptr_t)dst + LINE_BYTES) & ~(uintptr_t)(LINE_BYTES - 1));
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
    } else {
        set_to_63(dst, c, n);
    }
    _mm_sfence();
    return dst_;
}
