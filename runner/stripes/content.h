/* What scratch members hold: words that follow from a seed, the number of the file and the place in it, so that every
 * byte that is read can be checked without a second copy of it. */
#ifndef RUNNER_STRIPES_CONTENT_H
#define RUNNER_STRIPES_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* The number of the one file that lies on a RAID; members are 0 and up. */
enum { CONTENT_OF_RAID = 100 };

/* n bytes from `offset` on; both are multiples of 8. */
static inline void content_fill(uint64_t seed, unsigned file, uint64_t offset, void *into, size_t n)
{
    uint64_t *words = into;
    const uint64_t first = offset / 8, base = seed + ((uint64_t)file << 56);
    for (size_t i = 0; i < n / 8; i++) {
        uint64_t z = base + (first + i) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
        words[i] = z ^ z >> 29;
    }
}

#endif
