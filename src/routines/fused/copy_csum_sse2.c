/* One pass that copies and sums; that of AVX2 is guarded/copy_csum.tmpl.S, of AVX-512 copy_csum_lines.tmpl.S. The
 * destination's vectors are aligned; the first and the last, which end or begin in between, are copied whole and
 * counted in part:
 *
 *     |-- first --|                                      a vector at the start: its first `head` bytes count
 *         |  step  |  step  | ... | one | one |          aligned in the destination
 *                                          |-- last --|  a vector that ends at the end: its last `rest` bytes count
 *
 * The sum is that of the bytes as they lie between: parts that begin at an odd place among those are turned by a byte,
 * and so is the whole when it begins at one.
 *
 * Bytes that two blocks share are read twice, and somebody may change the source meanwhile: what is counted is what is
 * stored last, so the last block is stored first. */
#define VEC_BYTES 16

#include "../thresholds.h"
#include "../written.h"
#include "csum_vec.h"

INLINE uint32_t copy_csum_part(uint8_t *dst, const uint8_t *src, size_t n, uint32_t sum)
{
    if (n <= VEC_BYTES)
        return csum_fold64(copy_csum_short(dst, src, n, sum));
    /* Two blocks: the first counts whole. */
    const size_t head = n <= 2 * VEC_BYTES ? VEC_BYTES : VEC_BYTES - (uintptr_t)dst % VEC_BYTES;
    const size_t rest = (n - head - 1) % VEC_BYTES + 1;
    uint8_t *const last = dst + n - VEC_BYTES;
    const uint8_t *const end = src + n - rest;
    const vec first_block = vec_load(src), last_block = vec_load(src + n - VEC_BYTES);
    struct csum total = csum_zero();
    csum_add(&total, vec_turn(vec_first_bytes(first_block, head), head));
    csum_add(&total, vec_turn(vec_last_bytes(last_block, rest), rest));
    vec_store(last, last_block);
    LOADS_THEN_STORES();
    vec_store(dst, first_block);
    dst += head;
    src += head;
    if (__builtin_expect(n >= wherry_thresholds.copy_stream_any_from, 0) &&
        copied_before(dst, src, n - head) == WRITTEN_SURELY) {
        for (; (size_t)(end - src) >= STEP_BYTES; src += STEP_BYTES, dst += STEP_BYTES) {
            const struct step step = step_load(src);
            step_store_nt(dst, step);
            csum_add_step(&total, step);
        }
        _mm_sfence();
    } else {
        for (; (size_t)(end - src) >= STEP_BYTES; src += STEP_BYTES, dst += STEP_BYTES) {
            const struct step step = step_load(src);
            LOADS_THEN_STORES();
            step_store_aligned(dst, step);
            csum_add_step(&total, step);
        }
    }
    for (; src < end; src += VEC_BYTES, dst += VEC_BYTES) {
        const vec v = vec_load(src);
        vec_store_aligned(dst, v);
        csum_add(&total, v);
    }
    uint32_t own = csum_fold64(csum_total(csum_lanes(total)));
    const unsigned turn = head % 2 * 8;
    own = own << turn | own >> (-turn % 32);
    return csum_add32(own, sum);
}

/* Beside the entry, so that short copies save no registers; reached by a jump. */
__attribute__((noinline)) static uint32_t copy_csum_parts(uint8_t *dst, const uint8_t *src, size_t n, uint32_t sum)
{
    for (;; src += CSUM_PART, dst += CSUM_PART) {
        const size_t part = n < CSUM_PART ? n : CSUM_PART;
        sum = copy_csum_part(dst, src, part, sum);
        n -= part;
        if (n == 0)
            return sum;
    }
}

uint32_t wherry_routine_copy_csum_sse2(void *dst, const void *src, size_t n, uint32_t sum)
{
    if (n > VEC_BYTES)
        return copy_csum_parts(dst, src, n, sum);
    return csum_fold64(copy_csum_short(dst, src, n, sum));
}
