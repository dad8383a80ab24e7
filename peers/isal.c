/* ISA-L's crc32_iscsi as crc32c; it takes and gives the register as it is, and its lengths are ints. From 256 bytes on
 * it leaves the upper halves of vector registers in use, which costs whoever comes next: a cycle here mends that. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

unsigned crc32_iscsi(const unsigned char *buffer, int length, unsigned crc);

__attribute__((visibility("default"), aligned(64))) uint32_t crc32c(uint32_t crc, const void *src, size_t n)
{
    enum { PART = 1 << 30 };
    const uint8_t *p = src;
    crc = ~crc;
    for (;;) {
        const size_t part = n < PART ? n : PART;
        crc = crc32_iscsi(p, (int)part, crc);
        p += part;
        n -= part;
        if (n == 0) {
            _mm256_zeroupper();
            return ~crc;
        }
    }
}
