/* The plain vector copy, as one writes it first: four unaligned vectors a turn, then one vector a turn, then one last
 * vector that ends where the buffer ends and overlaps the one before it.
 *
 *   n < V     8-byte words, then bytes
 *   n >= V    |--V--|--V--|--V--|--V--| ... |--V--| ... |--V--|
 *                                                    |--V--|      the overlap
 *
 * Disjoint. Any n. No alignment, no size classes, no streaming: the yardstick that move_* must not lose to.
 * The includer defines VEC_BYTES and LOOP (the symbol).
 */
#include "../plain.h"
#include "../vec.h"

void *LOOP(void *dst_, const void *src_, size_t n)
{
    uint8_t *dst = dst_;
    const uint8_t *src = src_;
    size_t left = n;
    AS_WRITTEN
    for (; left >= STEP_BYTES; left -= STEP_BYTES) {
        vec a = vec_load(src), b = vec_load(src + VEC_BYTES);
        vec c = vec_load(src + 2 * VEC_BYTES), d = vec_load(src + 3 * VEC_BYTES);
        vec_store(dst, a);
        vec_store(dst + VEC_BYTES, b);
        vec_store(dst + 2 * VEC_BYTES, c);
        vec_store(dst + 3 * VEC_BYTES, d);
        src += STEP_BYTES;
        dst += STEP_BYTES;
    }
    AS_WRITTEN
    for (; left >= VEC_BYTES; left -= VEC_BYTES) {
        vec_store(dst, vec_load(src));
        src += VEC_BYTES;
        dst += VEC_BYTES;
    }
    if (n >= VEC_BYTES) {
        if (left > 0)
            vec_store(dst + left - VEC_BYTES, vec_load(src + left - VEC_BYTES));
        return dst_;
    }
    AS_WRITTEN
    for (; left >= 8; left -= 8) {
        store8(dst, load8(src));
        src += 8;
        dst += 8;
    }
    AS_WRITTEN
    for (; left > 0; left--)
        *dst++ = *src++;
    return dst_;
}
