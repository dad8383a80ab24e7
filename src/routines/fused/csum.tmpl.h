/* One algorithm for the tiers without byte masks: words to CSUM_SHORT bytes; beyond, vectors from the start on,
 * wherever that lies, four a turn, and for what is less than a vector the one that ends where the buffer ends, without
 * the bytes that are counted already. */
#include "csum_vec.h"

#ifndef CSUM
#error "CSUM: the routine's symbol"
#endif

/* What is found out in the end about the steps takes as long as they save in so many. */
enum { FEW_STEPS = 8 };

/* The vector that ends where the buffer ends, without what comes before the last n % VEC_BYTES. It begins at an even
 * place, and so do its lanes when that is even itself. */
INLINE struct csum csum_rest(const uint8_t *p, size_t n)
{
    struct csum total = csum_zero();
    const size_t rest = n % VEC_BYTES;
    if (rest)
        csum_add(&total, vec_turn(vec_last_bytes(vec_load(p + n - VEC_BYTES), rest), rest));
    return total;
}

INLINE uint32_t csum_few(const uint8_t *p, size_t n, uint32_t sum)
{
    struct csum total = csum_rest(p, n);
    for (; n >= STEP_BYTES; n -= STEP_BYTES, p += STEP_BYTES)
        csum_add_step(&total, step_load(p));
    for (; n >= VEC_BYTES; n -= VEC_BYTES, p += VEC_BYTES)
        csum_add(&total, vec_load(p));
    return csum_fold64(csum_add64(csum_total(csum_lanes(total)), sum));
}

INLINE uint32_t csum_many(const uint8_t *p, size_t n, uint32_t sum)
{
    struct csum total = csum_rest(p, n);
    struct csum_steps steps = csum_no_steps();
#if VEC_BYTES == 32 /* two a turn: one does not fill the cycles that its instructions take */
    for (; n >= 2 * STEP_BYTES; n -= 2 * STEP_BYTES, p += 2 * STEP_BYTES) {
        csum_take_step(&steps, p);
        csum_take_step(&steps, p + STEP_BYTES);
    }
    if (n >= STEP_BYTES) {
        csum_take_step(&steps, p);
        n -= STEP_BYTES, p += STEP_BYTES;
    }
#else
    for (; n >= STEP_BYTES; n -= STEP_BYTES, p += STEP_BYTES)
        csum_take_step(&steps, p);
#endif
    csum_add(&total, steps.all);
    for (; n >= VEC_BYTES; n -= VEC_BYTES, p += VEC_BYTES)
        csum_add(&total, vec_load(p));
    return csum_fold64(csum_add64(csum_total(vec_add64(csum_lanes(total), csum_wraps(steps))), sum));
}

/* Wherever else AVX2's came to lie, Zen 3 would take to a tenth longer, by the loops' places in lines of code. */
#if VEC_BYTES == 32
#define AT_A_LINE __attribute__((aligned(64)))
#else
#define AT_A_LINE
#endif

/* Beside the entry, so that what is shorter saves no registers; reached by a jump. */
AT_A_LINE __attribute__((noinline)) static uint32_t csum_parts(const uint8_t *p, size_t n, uint32_t sum)
{
    enum { PART = CSUM_STEPS * STEP_BYTES }; /* even, so that sums go on from part to part */
    for (; n > PART; n -= PART, p += PART)
        sum = csum_many(p, PART, sum);
    return n <= CSUM_SHORT ? csum_fold64(csum_short(p, n, sum)) : csum_many(p, n, sum);
}

AT_A_LINE uint32_t CSUM(const void *src, size_t n, uint32_t sum)
{
    if (n <= CSUM_SHORT)
        return csum_fold64(csum_short(src, n, sum));
    return n < FEW_STEPS * STEP_BYTES ? csum_few(src, n, sum) : csum_parts(src, n, sum);
}
