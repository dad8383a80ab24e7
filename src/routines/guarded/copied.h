/* What a fault-tolerant routine that computes beside the copy returns, and those that there are. */
#ifndef WHERRY_COPIED_H
#define WHERRY_COPIED_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes from the first on are surely copied, and the sum that goes on with theirs (32 bits). */
struct copied {
    size_t done;
    uint64_t sum;
};

/* Of buffers apart. They end at the first fault; the rest is their caller's. At most this many bytes at a time. */
enum { GUARDED_CSUM_MOST = 1 << 30 };
typedef struct copied wherry_guarded_copy_csum(void *dst, const void *src, size_t n, uint32_t sum);
wherry_guarded_copy_csum wherry_guarded_copy_csum_sse2, wherry_guarded_copy_csum_avx2, wherry_guarded_copy_csum_avx512;

#endif
