/* lwIP's inet_chksum as csum_partial; its lengths have 16 bits. */
#include <stddef.h>
#include <stdint.h>

uint16_t inet_chksum(const void *data, uint16_t length);

__attribute__((visibility("default"), aligned(64))) uint32_t csum_partial(const void *src, size_t n, uint32_t sum)
{
    enum { PART = 65534 };
    const uint8_t *p = src;
    for (;;) {
        const size_t part = n < PART ? n : PART;
        const uint32_t own = (uint16_t)~inet_chksum(p, (uint16_t)part);
        sum += own;
        sum += sum < own;
        p += part;
        n -= part;
        if (n == 0)
            return sum;
    }
}
