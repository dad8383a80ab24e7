/* What the timed loops are made of, wherever they stand. */
#ifndef MEASURE_TIMED_H
#define MEASURE_TIMED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __clang__
#define TIMED __attribute__((noinline, aligned(64)))
#else
#define TIMED __attribute__((noinline, noclone, aligned(64)))
#endif

/* A zero that the compiler has to believe may be anything. */
static inline uintptr_t opaque_zero(void)
{
    uintptr_t zero = 0;
    __asm__ volatile("" : "+r"(zero));
    return zero;
}

static inline uintptr_t byte_written(const char *dst, size_t n, uintptr_t zero)
{
    return *(const volatile unsigned char *)(dst + n - (n != 0)) & zero;
}

#endif
