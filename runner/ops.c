#include "ops.h"

#include <stdio.h>

uint32_t model_csum(const uint8_t *src, size_t n, uint32_t sum)
{
    uint64_t total = sum; /* holds 2^48 words; no length reaches that */
    size_t i = 0;
    for (; i + 2 <= n; i += 2)
        total += (uint32_t)src[i] | (uint32_t)src[i + 1] << 8;
    if (i < n)
        total += src[i];
    while (total >> 32)
        total = (total & 0xffffffff) + (total >> 32);
    return (uint32_t)total;
}

uint16_t model_fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

enum { AT_A_TIME = 8 };

/* Of [k][byte]: the remainder of that byte with k zero bytes behind it. */
static uint32_t remainders[AT_A_TIME][256];

__attribute__((constructor)) static void make_remainders(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int k = 0; k < AT_A_TIME; k++) {
            for (int bit = 0; bit < 8; bit++)
                remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78 : 0); /* Castagnoli's polynomial, mirrored */
            remainders[k][byte] = remainder;
        }
    }
}

/* By eight bytes, each with what follows it among them: byte by byte it was a third of what a verification takes. */
uint32_t model_crc32c(uint32_t crc, const uint8_t *src, size_t n)
{
    crc = ~crc;
    for (; n >= AT_A_TIME; n -= AT_A_TIME, src += AT_A_TIME) {
        uint32_t next = 0;
        for (int i = 0; i < AT_A_TIME; i++) {
            const uint8_t byte = (uint8_t)(src[i] ^ (i < 4 ? crc >> 8 * i : 0));
            next ^= remainders[AT_A_TIME - 1 - i][byte];
        }
        crc = next;
    }
    for (; n; n--)
        crc = crc >> 8 ^ remainders[0][(uint8_t)(crc ^ *src++)];
    return ~crc;
}

static bool model_iszero(const uint8_t *src, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= src[i];
    return any == 0;
}

static uint64_t model(enum wherry_op op, uint32_t value, const uint8_t *src, size_t n)
{
    switch (op) {
    case WHERRY_OP_csum:
    case WHERRY_OP_copy_csum:
        return model_csum(src, n, value);
    case WHERRY_OP_crc32c:
    case WHERRY_OP_copy_crc32c:
        return model_crc32c(value, src, n);
    case WHERRY_OP_iszero:
        return model_iszero(src, n);
    default:
        return 0;
    }
}

bool op_result_right(enum wherry_op op, uint64_t returned, uint32_t value, const uint8_t *src, size_t n)
{
    if (!op_sums(op) && !op_reads(op))
        return true;
    const uint64_t expected = model(op, value, src, n);
    if (op == WHERRY_OP_iszero)
        return (uint8_t)returned == expected;
    if (op == WHERRY_OP_csum || op == WHERRY_OP_copy_csum)
        return model_fold((uint32_t)returned) == model_fold((uint32_t)expected);
    return (uint32_t)returned == (uint32_t)expected;
}

void op_result_text(char *text, size_t room, enum wherry_op op, uint64_t returned, uint32_t value, const uint8_t *src,
                    size_t n)
{
    const uint64_t expected = model(op, value, src, n);
    if (op == WHERRY_OP_iszero)
        snprintf(text, room, "returned %d, expected %d", (int)(uint8_t)returned, (int)expected);
    else if (op == WHERRY_OP_csum || op == WHERRY_OP_copy_csum)
        snprintf(text, room, "returned the sum 0x%08x, which folds to 0x%04x; expected 0x%04x (sum 0x%08x before)",
                 (unsigned)returned, model_fold((uint32_t)returned), model_fold((uint32_t)expected), value);
    else
        snprintf(text, room, "returned the CRC 0x%08x, expected 0x%08x (0x%08x before)", (unsigned)returned,
                 (unsigned)expected, value);
}
