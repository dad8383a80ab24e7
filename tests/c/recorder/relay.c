/* Stands where libc would: a library whose memcpy goes on in its own memmove by that name, as a call and by a pointer.
 */
#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void *memmove(void *dst, const void *src, size_t n)
{
    void *to = dst;
    if ((size_t)((char *)dst - (const char *)src) >= n) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(n) : : "memory");
        return dst;
    }
    while (n-- > 0)
        ((volatile char *)dst)[n] = ((const char *)src)[n];
    return dst;
}

static void *(*volatile by_pointer)(void *, const void *, size_t) = memmove;

PUBLIC void *memcpy(void *dst, const void *src, size_t n)
{
    return n % 2 ? by_pointer(dst, src, n) : memmove(dst, src, n);
}
