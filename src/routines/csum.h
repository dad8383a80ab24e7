/* The Internet checksum's arithmetic (RFC 1071): 16-bit words added in ones' complement, so modulo 65535 with one
 * exception: only zeros sum to zero. Every sum here is a number that is congruent and is zero in that case alone.
 *
 * 2^16 is congruent to 1, so words of any width may be added and folded at the end; bytes at odd places are worth 256
 * times as much, and turning a sum by eight bits exchanges the two kinds. */
#ifndef WHERRY_CSUM_H
#define WHERRY_CSUM_H

#include <stddef.h>
#include <stdint.h>

#include "csum_short.h"

#define CSUM_INLINE static inline __attribute__((always_inline))

/* a + b with the carry brought back in. */
CSUM_INLINE uint64_t csum_add64(uint64_t a, uint64_t b)
{
    __asm__("add %[b], %[a]\n\tadc $0, %[a]" : [a] "+r"(a) : [b] "rm"(b) : "cc");
    return a;
}

CSUM_INLINE uint32_t csum_add32(uint32_t a, uint32_t b)
{
    __asm__("add %[b], %[a]\n\tadc $0, %[a]" : [a] "+r"(a) : [b] "rm"(b) : "cc");
    return a;
}

CSUM_INLINE uint32_t csum_fold64(uint64_t sum) { return csum_add32((uint32_t)sum, (uint32_t)(sum >> 32)); }

/* The sum of the same bytes, each one place further on. */
CSUM_INLINE uint32_t csum_turn(uint32_t sum) { return sum << 8 | sum >> 24; }

/* The last n (0 to 7) of a buffer's bytes, as a word that begins with them. */
CSUM_INLINE uint64_t csum_last(const uint8_t *p, size_t n)
{
    uint64_t word = 0;
    if (n & 4) {
        uint32_t four;
        __builtin_memcpy(&four, p, 4);
        word = four;
        p += 4;
    }
    if (n & 2) {
        uint16_t two;
        __builtin_memcpy(&two, p, 2);
        word |= (uint64_t)two << (n & 4) * 8;
        p += 2;
    }
    if (n & 1)
        word |= (uint64_t)*p << (n & 6) * 8;
    return word;
}

CSUM_INLINE uint64_t csum_word(const uint8_t *p)
{
    uint64_t word;
    __builtin_memcpy(&word, p, 8);
    return word;
}

/* clang-format off */
#define CSUM_TWO(first, at) first " " #at "(%[p]), %[total]\n\tadc " #at "+8(%[p]), %[total]\n\t"
#define CSUM_FOUR(first, at) CSUM_TWO(first, at) CSUM_TWO("adc", at + 16)
#define CSUM_EIGHT(first, at) CSUM_FOUR(first, at) CSUM_FOUR("adc", at + 32)
/* clang-format on */
#define CSUM_ADD_WORDS(words, bytes)                                                                                   \
    __asm__(words("add", 0) "adc $0, %[total]"                                                                         \
            : [total] "+r"(total)                                                                                      \
            : [p] "r"(p), "m"(*(const uint8_t (*)[bytes])p)                                                            \
            : "cc")

/* To CSUM_SHORT bytes: the last one to eight, which are the upper part of the word that ends where the buffer ends; and
 * before them eight words, four, two and one, by the bits of the size. What there was before comes last. */
CSUM_INLINE uint64_t csum_short(const uint8_t *p, size_t n, uint64_t before)
{
    if (n < 8)
        return csum_add64(before, csum_last(p, n));
    uint64_t total = csum_word(p + n - 8) >> (-(8 * n) & 63);
    n--;
    if (n & 64) {
        CSUM_ADD_WORDS(CSUM_EIGHT, 64);
        p += 64;
    }
    if (n & 32) {
        CSUM_ADD_WORDS(CSUM_FOUR, 32);
        p += 32;
    }
    if (n & 16) {
        CSUM_ADD_WORDS(CSUM_TWO, 16);
        p += 16;
    }
    if (n & 8)
        total = csum_add64(total, csum_word(p));
    return csum_add64(before, total);
}

CSUM_INLINE uint64_t copy_csum_short(uint8_t *dst, const uint8_t *p, size_t n, uint64_t total)
{
    uint64_t word;
    if (n < 8) {
        word = csum_last(p, n);
        total = csum_add64(total, word);
        if (n & 4) {
            const uint32_t four = (uint32_t)word;
            __builtin_memcpy(dst, &four, 4);
            dst += 4;
            word >>= 32;
        }
        if (n & 2) {
            const uint16_t two = (uint16_t)word;
            __builtin_memcpy(dst, &two, 2);
            dst += 2;
            word >>= 16;
        }
        if (n & 1)
            *dst = (uint8_t)word;
        return total;
    }
    uint8_t *const end = dst + n - 8;
    uint64_t last;
    __builtin_memcpy(&last, p + n - 8, 8);
    total = csum_add64(total, last >> (63 - n % 8 * 8) >> 1);
    /* First, so that what the word before shares with it stays as that one was counted. */
    __builtin_memcpy(end, &last, 8);
    __asm__("" ::: "memory");
    for (; n >= 8; n -= 8, p += 8, dst += 8) {
        __builtin_memcpy(&word, p, 8);
        total = csum_add64(total, word);
        __builtin_memcpy(dst, &word, 8);
    }
    return total;
}

#endif
