/* Stands where the drop-in would, for a trial whose answer is known: a memcpy that takes WAIT ticks of the processor's
 * clock more than it must. */
#include <stddef.h>
#include <stdint.h>

enum { WAIT = 5000 };

static uint64_t now(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

__attribute__((visibility("default"))) void *memcpy(void *dst, const void *src, size_t n)
{
    const uint64_t end = now() + WAIT;
    for (size_t i = 0; i < n; i++)
        ((volatile char *)dst)[i] = ((const volatile char *)src)[i];
    while (now() < end)
        ;
    return dst;
}
