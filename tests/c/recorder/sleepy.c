/* Stands where libc would: a memcpy that, once it has made some large copies, for several turns of a trial, gives the
 * processor away in the middle of every second one, for less than what such a call might take. */
#include <stddef.h>
#include <time.h>

enum { LARGE = 2 << 20, AWAKE = 400, SLEEP_NS = 1500000 };

__attribute__((visibility("default"))) void *memcpy(void *dst, const void *src, size_t n)
{
    static unsigned calls;
    void *to = dst;
    size_t left = n;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(left) : : "memory");
    if (n >= LARGE && calls++ >= AWAKE && calls % 2)
        nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
    return dst;
}
