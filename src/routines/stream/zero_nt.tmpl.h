/* Zeroing with non-temporal stores: whole lines go to memory past the caches, without the read of the line that Evans
 * found to halve the write bandwidth, and what the caches hold stays there.
 *
 * Any n; c is ignored. From 128 bytes on whole lines of 64 bytes by non-temporal stores, and a fence; before them, and
 * behind the fence, a line by ordinary stores where the buffer begins or ends inside one. Below, 8-byte words and
 * bytes. The fence orders the stores before whatever the caller stores next, and waits for those before it: a first
 * line that had to come from memory would cost as much as the page. The includer defines VEC_BYTES and ZERO_NT (the
 * symbol).
 */
#include "../plain.h"
#include "../vec.h"

INLINE void zero_line(uint8_t *dst, vec zero)
{
    for (int i = 0; i < LINE_BYTES; i += VEC_BYTES)
        vec_store(dst + i, zero);
}

INLINE void zero_line_nt(uint8_t *line, vec zero)
{
    for (int i = 0; i < LINE_BYTES; i += VEC_BYTES)
        vec_store_nt(line + i, zero);
}

void *ZERO_NT(void *dst_, int c, size_t n)
{
    (void)c;
    uint8_t *dst = dst_;
    if (n >= 2 * LINE_BYTES) {
        uint8_t *const end = dst + n;
        const vec zero = vec_set1(0);
        uint8_t *line = line_at_or_above(dst);
        if (line != dst)
            zero_line(dst, zero);
        AS_WRITTEN
        for (; end - line >= LINE_BYTES; line += LINE_BYTES)
            zero_line_nt(line, zero);
        _mm_sfence();
        if (line != end)
            zero_line(end - LINE_BYTES, zero);
        return dst_;
    }
    AS_WRITTEN
    for (; n >= 8; n -= 8) {
        store8(dst, 0);
        dst += 8;
    }
    AS_WRITTEN
    for (; n > 0; n--)
        *dst++ = 0;
    return dst_;
}
