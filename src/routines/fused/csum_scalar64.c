/* csum_scalar64: eight 8-byte words a turn, added with the carry of the one before; then single words. The loop that
 * kernels and user-space stacks have where no vectors are to be had, and what a vector routine must not be slower than.
 */
#include "../csum.h"

uint32_t wherry_routine_csum_scalar64(const void *src, size_t n, uint32_t sum)
{
    const uint8_t *p = src;
    uint64_t total = sum;
    for (; n >= 64; n -= 64, p += 64)
        __asm__("add 0(%[p]), %[total]\n\t"
                "adc 8(%[p]), %[total]\n\t"
                "adc 16(%[p]), %[total]\n\t"
                "adc 24(%[p]), %[total]\n\t"
                "adc 32(%[p]), %[total]\n\t"
                "adc 40(%[p]), %[total]\n\t"
                "adc 48(%[p]), %[total]\n\t"
                "adc 56(%[p]), %[total]\n\t"
                "adc $0, %[total]"
                : [total] "+r"(total)
                : [p] "r"(p), "m"(*(const uint8_t (*)[64])p)
                : "cc");
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        __builtin_memcpy(&word, p, 8);
        total = csum_add64(total, word);
    }
    return csum_fold64(csum_add64(total, csum_last(p, n)));
}
