/* The public checksums. Each call reads a hidden byte and jumps: as in public.S, what is read before any constructor
 * has run is the baseline. */
#include <stdatomic.h>

#include "dispatch/choice.h"
#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/csum.h"
#include "routines/guarded/copied.h"
#include "wherry.h"

#define PUBLIC __attribute__((visibility("default")))

wherry_csum_fn wherry_routine_csum_sse2, wherry_routine_csum_avx2, wherry_routine_csum_avx512, wherry_routine_csum_vnni;
wherry_crc32c_fn wherry_routine_crc32c_table, wherry_routine_crc32c_pclmul, wherry_routine_crc32c_vpclmul_avx2,
    wherry_routine_crc32c_vpclmul;
wherry_copy_crc32c_fn wherry_routine_copy_crc32c_table, wherry_routine_copy_crc32c_pclmul,
    wherry_routine_copy_crc32c_vpclmul_avx2, wherry_routine_copy_crc32c_vpclmul;

/* Short sums are the same in every tier, so they need not wait for the choice. */
PUBLIC uint32_t wherry_csum_partial(const void *src, size_t n, uint32_t sum)
{
    if (n <= CSUM_SHORT)
        return csum_fold64(csum_short(src, n, sum));
    const signed char chosen = atomic_load_explicit(&wherry_csum_choice, memory_order_relaxed);
    if (__builtin_expect(chosen > WHERRY_NEEDS_AVX512, 1))
        return wherry_routine_csum_vnni(src, n, sum);
    if (chosen == WHERRY_NEEDS_AVX512)
        return wherry_routine_csum_avx512(src, n, sum);
    if (chosen == WHERRY_NEEDS_AVX2)
        return wherry_routine_csum_avx2(src, n, sum);
    return wherry_routine_csum_sse2(src, n, sum);
}

_Static_assert(WHERRY_NEEDS_BASE == 0 && WHERRY_NEEDS_AVX2 == 1 && WHERRY_NEEDS_AVX512 == 2 &&
                   WHERRY_NEEDS_VNNI > WHERRY_NEEDS_AVX512,
               "read by csum_copy.S");

PUBLIC uint16_t wherry_csum_fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

PUBLIC uint32_t wherry_csum_block_add(uint32_t sum, uint32_t block, size_t offset)
{
    if (offset & 1)
        block = block << 8 | block >> 24;
    sum += block;
    return sum + (sum < block);
}

enum { PIECE = 2048 }; /* even, so that sums go on from piece to piece; a packet is one */

/* By way of a buffer, of which the sum is taken: dst may be gone by then. A piece is read before it is written, so the
 * two may overlap where dst begins first. */
static size_t copy_by_pieces(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum, struct wherry_fault *fault)
{
    uint8_t piece[PIECE];
    for (;; dst += PIECE, src += PIECE, n -= PIECE) {
        const size_t some = n < PIECE ? n : PIECE;
        const size_t read = some - wherry_nofault_copy(piece, src, some, fault);
        const size_t written = read - wherry_nofault_copy(dst, piece, read, fault);
        *sum = wherry_csum_partial(piece, written, *sum);
        if (written < some || some == n)
            return n - written;
    }
}

/* Where dst begins inside src the copy goes from its end, so all of it comes before the sum. What is gone by then
 * leaves nothing sure. */
static size_t copy_then_sum(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum, struct wherry_fault *fault)
{
    uint8_t piece[PIECE];
    uint32_t all = *sum;
    const size_t left = wherry_nofault_copy(dst, src, n, fault), copied = n - left;
    for (size_t done = 0; done < copied; done += PIECE) {
        const size_t some = copied - done < PIECE ? copied - done : PIECE;
        if (wherry_nofault_copy(piece, dst + done, some, fault) > 0) {
            if (fault)
                fault->writing = true;
            return n;
        }
        all = wherry_csum_partial(piece, some, all);
    }
    *sum = all;
    return left;
}

/* What the one pass of nofault.S has left: everything where it must not be used, or the rest behind a fault. */
size_t wherry_guarded_csum_rest(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum, struct wherry_fault *fault,
                                size_t done)
{
    const uintptr_t ahead = (uintptr_t)dst - (uintptr_t)src;
    if (ahead < n)
        return copy_then_sum(dst, src, n, sum, fault);
    if (-ahead < n)
        return copy_by_pieces(dst, src, n, sum, fault);
    const uint64_t word = atomic_load_explicit(&wherry_nofault_choice, memory_order_relaxed);
    if (n > GUARDED_CSUM_MOST && wherry_nofault_choice_in(word) != WHERRY_NOFAULT_CHOICE_CALLS) {
        for (;; dst += GUARDED_CSUM_MOST, src += GUARDED_CSUM_MOST, n -= GUARDED_CSUM_MOST) {
            const size_t part = n < GUARDED_CSUM_MOST ? n : GUARDED_CSUM_MOST;
            const size_t left = wherry_nofault_copy_csum(dst, src, part, sum, fault);
            if (left || part == n)
                return n - part + left;
        }
    }
    uint32_t behind = 0;
    const size_t left = copy_by_pieces(dst + done, src + done, n - done, &behind, fault);
    *sum = wherry_csum_block_add(*sum, behind, done);
    return left;
}

size_t wherry_guarded_csum_by_calls(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum,
                                    struct wherry_fault *fault)
{
    return wherry_guarded_csum_rest(dst, src, n, sum, fault, 0);
}

#define BY_CRC(routine, ...)                                                                                           \
    const signed char chosen = atomic_load_explicit(&wherry_crc_choice, memory_order_relaxed);                         \
    if (chosen == WHERRY_NEEDS_CRC32)                                                                                  \
        return wherry_routine_##routine##_pclmul(__VA_ARGS__);                                                         \
    if (chosen == WHERRY_NEEDS_VPCLMUL_AVX2)                                                                           \
        return wherry_routine_##routine##_vpclmul_avx2(__VA_ARGS__);                                                   \
    if (chosen == WHERRY_NEEDS_BASE)                                                                                   \
        return wherry_routine_##routine##_table(__VA_ARGS__);                                                          \
    return wherry_routine_##routine##_vpclmul(__VA_ARGS__)

PUBLIC uint32_t wherry_crc32c(uint32_t crc, const void *src, size_t n) { BY_CRC(crc32c, crc, src, n); }

PUBLIC uint32_t wherry_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    BY_CRC(copy_crc32c, crc, dst, src, n);
}
