/* Copies by system calls as they go where there are protection keys, on any CPU: there the source is looked up by the
 * call that writes (src/guard/calls.c), by the piece or a byte of each page. No key denies anything here; what does is
 * a page that is not there. */
#include <cpuid.h>

#undef bit_OSPKE
#define bit_OSPKE (~0u) /* whatever bits the leaf has */
#include "guard/calls.c"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 70 /* more than are tried at once */, ROOM = PAGES * PAGE };

static unsigned char *pages_and_nothing(int protection)
{
    unsigned char *at = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + ROOM, PAGE, PROT_NONE) != 0)
        exit(2);
    for (int i = 0; i < ROOM; i++)
        at[i] = (unsigned char)(i * 7 + i / 251 + 1);
    if (mprotect(at, ROOM, protection) != 0)
        exit(2);
    return at;
}

/* `src_there`, `dst_there`: so many bytes before nothing. */
static bool is_right(unsigned char *dst, const unsigned char *src, size_t dst_there, size_t src_there, size_t n)
{
    struct wherry_fault fault = {.signo = -1};
    unsigned char *to = dst + ROOM - dst_there;
    const unsigned char *from = src + ROOM - src_there;
    const size_t copied = least(n, least(dst_there, src_there));
    memset(dst, 0, ROOM);
    const size_t left = wherry_guard_copy_by_calls(to, from, n, &fault);
    bool right = left == n - copied && memcmp(to, from, copied) == 0;
    for (size_t i = copied; i < dst_there; i++)
        right &= to[i] == 0;
    for (unsigned char *before = dst; before < to; before++)
        right &= *before == 0;
    if (left == 0)
        return right && fault.signo == -1;
    const bool writing = src_there > dst_there;
    return right && fault.signo == 0 && fault.code == EFAULT && fault.writing == writing &&
           (uintptr_t)fault.addr == (writing ? (uintptr_t)to : (uintptr_t)from) + copied;
}

int main(void)
{
    static const size_t sizes[] = {1,        100,           BOUNCE - 1, BOUNCE,        BOUNCE + 1, PAGE - 1,
                                   PAGE + 1, 3 * PAGE + 77, 64 * PAGE,  65 * PAGE + 9, ROOM - PAGE};
    static const size_t short_by[] = {0, 1, 50, BOUNCE, PAGE, 2 * PAGE + 5};
    if (!has_keys())
        return puts("this CPU tells nothing in leaf 7"), 77;
    unsigned char *dst = pages_and_nothing(PROT_READ | PROT_WRITE);
    const int protections[] = {PROT_READ, PROT_WRITE /* a load reads it all the same */};
    for (size_t p = 0; p < 2; p++) {
        unsigned char *src = pages_and_nothing(protections[p]);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t b = 0; b < sizeof short_by / sizeof *short_by && short_by[b] < sizes[s]; b++)
                for (size_t shift = 0; shift < 200; shift += 99) {
                    const size_t n = sizes[s], fewer = n - short_by[b];
                    if (is_right(dst, src, n + shift, fewer, n) &&
                        (short_by[b] == 0 || is_right(dst, src, fewer, n + shift, n)) &&
                        is_right(dst, src, n + shift, n, n))
                        continue;
                    printf("wrong: %zu bytes, %zu fewer there, %zu further, protection %d\n", n, short_by[b], shift,
                           protections[p]);
                    return 1;
                }
        munmap(src, ROOM + PAGE);
    }
    puts("right");
    return 0;
}
