/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, bits mirrored: 0x82F63B78) by tables: part k holds the remainder of each
 * byte that is followed by k bytes of zeros. Remainders of a XOR are the XOR of the remainders, so a part is made of
 * those of its eight single bits. */
#ifndef WHERRY_CRC32C_TABLE_H
#define WHERRY_CRC32C_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define BITS_1(x, a) (x), (x) ^ (a)
#define BITS_2(x, a, b) BITS_1(x, a), BITS_1((x) ^ (b), a)
#define BITS_3(x, a, b, c) BITS_2(x, a, b), BITS_2((x) ^ (c), a, b)
#define BITS_4(x, a, b, c, d) BITS_3(x, a, b, c), BITS_3((x) ^ (d), a, b, c)
#define BITS_5(x, a, b, c, d, e) BITS_4(x, a, b, c, d), BITS_4((x) ^ (e), a, b, c, d)
#define BITS_6(x, a, b, c, d, e, f) BITS_5(x, a, b, c, d, e), BITS_5((x) ^ (f), a, b, c, d, e)
#define BITS_7(x, a, b, c, d, e, f, g) BITS_6(x, a, b, c, d, e, f), BITS_6((x) ^ (g), a, b, c, d, e, f)
#define TABLE(a, b, c, d, e, f, g, h) {BITS_7(0, a, b, c, d, e, f, g), BITS_7((h), a, b, c, d, e, f, g)}

static const uint32_t crc32c_table[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

static inline __attribute__((always_inline)) uint32_t crc32c_byte(uint32_t crc, uint8_t byte)
{
    return crc >> 8 ^ crc32c_table[0][(uint8_t)(crc ^ byte)];
}

/* The remainder after eight bytes more. */
static inline __attribute__((always_inline)) uint32_t crc32c_word(uint32_t crc, uint64_t word)
{
    word ^= crc;
    uint32_t after = 0;
    for (int i = 0; i < 8; i++)
        after ^= crc32c_table[7 - i][(uint8_t)(word >> 8 * i)];
    return after;
}

#endif
