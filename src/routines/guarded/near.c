/* touched.h's question for the fault-tolerant functions. Called from inside a copy: it may use no vector register, and
 * call nothing. */
#include "routines/thresholds.h"

long wherry_guarded_near(const uint8_t *dst, const uint8_t *src, size_t n) __attribute__((visibility("hidden")));

/* 1: it is near; 2: it is not. src: NULL for a set. */
long wherry_guarded_near(const uint8_t *dst, const uint8_t *src, size_t n)
{
    return touched_before(dst, src, n, (uint32_t)wherry_thresholds.touched_blocks) ? 1 : 2;
}
