/* copy_csum_scalar64: csum_scalar64 with each word stored on the way: four loads, four additions with carry and four
 * stores a turn. What Linux did in place of a copy and a checksum when Kuznetsov and Takahashi wrote. */
#include "../csum.h"

uint32_t wherry_routine_copy_csum_scalar64(void *dst, const void *src, size_t n, uint32_t sum)
{
    const uint8_t *p = src;
    uint8_t *to = dst;
    uint64_t total = sum;
    for (; n >= 32; n -= 32, p += 32, to += 32) {
        uint64_t a, b, c, d;
        __builtin_memcpy(&a, p, 8);
        __builtin_memcpy(&b, p + 8, 8);
        __builtin_memcpy(&c, p + 16, 8);
        __builtin_memcpy(&d, p + 24, 8);
        __asm__(
            "add %[a], %[total]\n\tadc %[b], %[total]\n\tadc %[c], %[total]\n\tadc %[d], %[total]\n\tadc $0, %[total]"
            : [total] "+r"(total)
            : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d)
            : "cc");
        __builtin_memcpy(to, &a, 8);
        __builtin_memcpy(to + 8, &b, 8);
        __builtin_memcpy(to + 16, &c, 8);
        __builtin_memcpy(to + 24, &d, 8);
    }
    for (; n >= 8; n -= 8, p += 8, to += 8) {
        uint64_t word;
        __builtin_memcpy(&word, p, 8);
        __builtin_memcpy(to, &word, 8);
        total = csum_add64(total, word);
    }
    const uint64_t last = csum_last(p, n);
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(last >> 8 * i);
    return csum_fold64(csum_add64(total, last));
}
