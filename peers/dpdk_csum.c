/* DPDK's rte_raw_cksum, of its headers, as csum_partial. It adds 16-bit words in 32 bits, which more than 128 KiB may
 * overflow: longer buffers are given to it in parts. */
#include <rte_ip.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"), aligned(64))) uint32_t csum_partial(const void *src, size_t n, uint32_t sum)
{
    enum { PART = 1 << 16 };
    const uint8_t *p = src;
    for (;;) {
        const size_t part = n < PART ? n : PART;
        const uint32_t own = rte_raw_cksum(p, part);
        sum += own;
        sum += sum < own;
        p += part;
        n -= part;
        if (n == 0)
            return sum;
    }
}
