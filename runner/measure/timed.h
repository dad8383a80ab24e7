/* What the timed loops are made of, wherever they stand. */
#ifndef MEASURE_TIMED_H
#define MEASURE_TIMED_H

#include <stddef.h>
#include <stdint.h>

#ifndef TIMED_WHERE
#define TIMED_WHERE
#endif
#ifdef __clang__
#define TIMED TIMED_WHERE __attribute__((noinline, aligned(64)))
#else
#define TIMED TIMED_WHERE __attribute__((noinline, noclone, aligned(64)))
#endif

/* A zero that the compiler has to believe may be anything. */
static inline uintptr_t opaque_zero(void)
{
    uintptr_t zero = 0;
    __asm__ volatile("" : "+r"(zero));
    return zero;
}

/* Stores the 8 bytes that are there already: what was measured stays what it was, but is on its way to the cache. */
static inline void store_again(char *at)
{
    uint64_t word;
    __asm__ volatile("movq %1, %0\n\tmovq %0, %1" : "=&r"(word), "+m"(*(char (*)[8])at));
}

/* The time-stamp counter. Nothing after it begins before everything ahead of it has ended. */
static inline uint64_t counter(void)
{
    __builtin_ia32_lfence();
    const uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
}

static inline uintptr_t byte_written(const char *dst, size_t n, uintptr_t zero)
{
    return *(const volatile unsigned char *)(dst + n - (n != 0)) & zero;
}

#endif
