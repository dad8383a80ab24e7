/* The fault-tolerant copy that sums: what its assembly leaves to C. */
#ifndef WHERRY_COPIED_H
#define WHERRY_COPIED_H

/* Bytes in one pass, of which no sum overflows. Even, so that sums go on from part to part. */
#define GUARDED_CSUM_MOST 0x40000000

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct wherry_fault;

/* Goes on behind the first done bytes, which are copied and in *sum. */
size_t wherry_guarded_csum_rest(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum, struct wherry_fault *fault,
                                size_t done);
/* The whole, as long as nobody mends faults. */
size_t wherry_guarded_csum_by_calls(uint8_t *dst, const uint8_t *src, size_t n, uint32_t *sum,
                                    struct wherry_fault *fault);
#endif

#endif
