/* crc32c_table, copy_crc32c_table: eight bytes a turn by eight look-ups, for CPUs whose instructions are of no help. */
#include "crc32c_table.h"

uint32_t wherry_routine_crc32c_table(uint32_t crc, const void *src, size_t n)
{
    const uint8_t *p = src;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        __builtin_memcpy(&word, p, 8);
        crc = crc32c_word(crc, word);
    }
    for (; n > 0; n--)
        crc = crc32c_byte(crc, *p++);
    return ~crc;
}

uint32_t wherry_routine_copy_crc32c_table(uint32_t crc, void *dst, const void *src, size_t n)
{
    const uint8_t *p = src;
    uint8_t *to = dst;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8, to += 8) {
        uint64_t word;
        __builtin_memcpy(&word, p, 8);
        __builtin_memcpy(to, &word, 8);
        crc = crc32c_word(crc, word);
    }
    for (; n > 0; n--) {
        const uint8_t byte = *p++;
        *to++ = byte;
        crc = crc32c_byte(crc, byte);
    }
    return ~crc;
}
