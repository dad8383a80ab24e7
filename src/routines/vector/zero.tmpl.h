/* The plain vector zeroing, as one writes it first: four unaligned vectors a turn, then one vector a turn, then one
 * last vector that ends where the buffer ends and overlaps the one before it. Below one vector 8-byte words, then
 * bytes.
 *
 * Any n; c is ignored. No alignment, no size classes, no streaming.
 * The includer defines VEC_BYTES and ZERO (the symbol).
 */
#include "../plain.h"
#include "../vec.h"

void *ZERO(void *dst_, int c, size_t n)
{
    (void)c;
    uint8_t *dst = dst_;
    size_t left = n;
    const vec zero = vec_set1(0);
    AS_WRITTEN
    for (; left >= STEP_BYTES; left -= STEP_BYTES) {
        vec_store(dst, zero);
        vec_store(dst + VEC_BYTES, zero);
        vec_store(dst + 2 * VEC_BYTES, zero);
        vec_store(dst + 3 * VEC_BYTES, zero);
        dst += STEP_BYTES;
    }
    AS_WRITTEN
    for (; left >= VEC_BYTES; left -= VEC_BYTES) {
        vec_store(dst, zero);
        dst += VEC_BYTES;
    }
    if (n >= VEC_BYTES) {
        if (left > 0)
            vec_store(dst + left - VEC_BYTES, zero);
        return dst_;
    }
    AS_WRITTEN
    for (; left >= 8; left -= 8) {
        store8(dst, 0);
        dst += 8;
    }
    AS_WRITTEN
    for (; left > 0; left--)
        *dst++ = 0;
    return dst_;
}
