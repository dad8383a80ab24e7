/* One algorithm for the tiers without byte masks: vectors from the start on, wherever that lies, four a turn; and for
 * what is less than a vector the one that ends where the buffer ends, without the bytes that are counted already. */
#include "csum_vec.h"

#ifndef CSUM
#error "CSUM: the routine's symbol"
#endif

INLINE uint32_t csum_part(const uint8_t *p, size_t n, uint32_t sum)
{
    if (n <= CSUM_SHORT)
        return csum_fold64(csum_short(p, n, sum));
    struct csum total = csum_zero();
    const size_t rest = n % VEC_BYTES;
    const uint8_t *const end = p + n;
    if (rest) /* begins at an even place, and so do its lanes when it is even itself */
        csum_add(&total, vec_turn(vec_last_bytes(vec_load(end - VEC_BYTES), rest), rest));
    for (; n >= STEP_BYTES; n -= STEP_BYTES, p += STEP_BYTES)
        csum_add_step(&total, step_load(p));
    for (; n >= VEC_BYTES; n -= VEC_BYTES, p += VEC_BYTES)
        csum_add(&total, vec_load(p));
    return csum_fold64(csum_add64(csum_total(csum_lanes(total)), sum));
}

uint32_t CSUM(const void *src, size_t n, uint32_t sum)
{
    for (const uint8_t *p = src;; p += CSUM_PART) {
        const size_t part = n < CSUM_PART ? n : CSUM_PART;
        sum = csum_part(p, part, sum);
        n -= part;
        if (n == 0)
            return sum;
    }
}
