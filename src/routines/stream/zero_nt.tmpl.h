/* Zeroing with non-temporal stores: whole lines go to memory past the caches, without the read of the line that Evans
 * found to halve the write bandwidth, and what the caches hold stays there.
 *
 * Any n; c is ignored. From 128 bytes on: a head of one line by ordinary stores, whole lines of 64 bytes from the first
 * line boundary on by non-temporal ones, a fence, and a tail of one line by ordinary stores that overlaps them. Below,
 * 8-byte words and bytes. The fence orders the stores before whatever the caller stores next.
 * The includer defines VEC_BYTES and ZERO_NT (the symbol).
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
        zero_line(dst, zero);
        uint8_t *line = (uint8_t *)(((uintptr_t)dst + LINE_BYTES) & ~(uintptr_t)(LINE_BYTES - 1));
        AS_WRITTEN
        for (; end - line >= LINE_BYTES; line += LINE_BYTES)
            zero_line_nt(line, zero);
        _mm_sfence();
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
