/* The relatives of the six: every size to 600 at each place of a buffer that ends at an unmapped page, byte by byte;
 * the moves also within one buffer.
 *
 *   dropin-relatives            says how many calls were right, or what was not
 *   dropin-relatives NAME       a checked form is given one too many: it must not return
 */
#include "relatives.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ROOM = 16 << 10, MOST = 600 };

static unsigned char *src, *dst, *was; /* ROOM bytes each; behind dst and src nothing is mapped */
static long calls;

static void fail(const char *name, size_t n, size_t at, const char *what)
{
    printf("%s of %zu at %zu: %s\n", name, n, at, what);
    exit(1);
}

static void fill(void)
{
    for (size_t i = 0; i < ROOM; i++) {
        src[i] = (unsigned char)(i * 151 + i / 256 + calls);
        dst[i] = was[i] = (unsigned char)~src[i];
    }
}

/* [at, at + n) of dst must hold what `expected` says for each byte, everything else what was there. */
static void judge(const char *name, size_t at, size_t n, const unsigned char *expected, size_t period)
{
    for (size_t i = 0; i < ROOM; i++) {
        const unsigned char right = i - at < n ? expected[(i - at) % period] : was[i];
        if (((volatile unsigned char *)dst)[i] != right)
            fail(name, n, at, "wrong bytes");
    }
    calls++;
}

static unsigned char *with_an_end(void)
{
    unsigned char *p = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + ROOM, 4096, PROT_NONE))
        exit(3);
    return p;
}

#define TRY(name, call, result, bytes, expected, period)                                                               \
    do {                                                                                                               \
        fill();                                                                                                        \
        if ((const void *)(call) != (const void *)(result))                                                            \
            fail(name, bytes, at, "wrong result");                                                                     \
        judge(name, at, bytes, expected, period);                                                                      \
    } while (0)

static void bytes_of(size_t n, size_t at)
{
    static const unsigned char zero[1];
    unsigned char *d = dst + at, *s = src + ROOM - n;
    unsigned char c = (unsigned char)(n + 1);
    TRY("__mempcpy", __mempcpy(d, s, n), d + n, n, s, SIZE_MAX);
    TRY("__memcpy_chk", __memcpy_chk(d, s, n, n), d, n, s, SIZE_MAX);
    TRY("__memmove_chk", __memmove_chk(d, s, n, n + 1), d, n, s, SIZE_MAX);
    TRY("__mempcpy_chk", __mempcpy_chk(d, s, n, SIZE_MAX), d + n, n, s, SIZE_MAX);
    TRY("__memset_chk", __memset_chk(d, c | 0x500, n, n), d, n, &c, 1);
    TRY("__bzero", (__bzero(d, n), d), d, n, zero, 1);
    TRY("explicit_bzero", (explicit_bzero(d, n), d), d, n, zero, 1);
    TRY("__explicit_bzero_chk", (__explicit_bzero_chk(d, n, n), d), d, n, zero, 1);
}

static void words_of(size_t n, size_t at)
{
    wchar_t *d = (wchar_t *)(dst + at), *s = (wchar_t *)(src + ROOM) - n;
    const unsigned char *from = (const unsigned char *)s;
    const size_t bytes = n * sizeof *d;
    TRY("wmemcpy", wmemcpy(d, s, n), d, bytes, from, SIZE_MAX);
    TRY("wmemmove", wmemmove(d, s, n), d, bytes, from, SIZE_MAX);
    TRY("wmempcpy", wmempcpy(d, s, n), d + n, bytes, from, SIZE_MAX);
    TRY("__wmemcpy_chk", __wmemcpy_chk(d, s, n, n), d, bytes, from, SIZE_MAX);
    TRY("__wmemmove_chk", __wmemmove_chk(d, s, n, n), d, bytes, from, SIZE_MAX);
    TRY("__wmempcpy_chk", __wmempcpy_chk(d, s, n, n), d + n, bytes, from, SIZE_MAX);
    const wchar_t values[] = {0, -1, 0x41414141, 0x41, 0x01020304, (wchar_t)0x80000000, 0x00ffff00};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const unsigned char *pattern = (const unsigned char *)&values[i];
        TRY("wmemset", wmemset(d, values[i], n), d, bytes, pattern, 4);
        TRY("__wmemset_chk", __wmemset_chk(d, values[i], n, n), d, bytes, pattern, 4);
        /* In bytes it does not fit 64 bits. */
        volatile size_t beyond = n + ((size_t)1 << 62);
        TRY("wmemset beyond", wmemset(d, values[i], beyond), d, bytes, pattern, 4);
    }
}

/* The moves, within one buffer: from from to at. */
static void moves_of(size_t n, size_t from, size_t at)
{
    wchar_t *d = (wchar_t *)(dst + at), *s = (wchar_t *)(dst + from);
    const size_t bytes = n * sizeof *d;
    TRY("wmemmove, overlapping", wmemmove(d, s, n), d, bytes, was + from, SIZE_MAX);
    TRY("__wmemmove_chk, overlapping", __wmemmove_chk(d, s, n, n), d, bytes, was + from, SIZE_MAX);
    TRY("__memmove_chk, overlapping", __memmove_chk(d, s, bytes, bytes), d, bytes, was + from, SIZE_MAX);
}

static int one_too_many(const char *name)
{
    wchar_t *d = (wchar_t *)dst, *s = (wchar_t *)src;
    if (strcmp(name, "__memcpy_chk") == 0)
        __memcpy_chk(dst, src, 9, 8);
    else if (strcmp(name, "__memmove_chk") == 0)
        __memmove_chk(dst, src, 9, 8);
    else if (strcmp(name, "__mempcpy_chk") == 0)
        __mempcpy_chk(dst, src, SIZE_MAX, 8);
    else if (strcmp(name, "__memset_chk") == 0)
        __memset_chk(dst, 1, 1, 0);
    else if (strcmp(name, "__explicit_bzero_chk") == 0)
        __explicit_bzero_chk(dst, 9, 8);
    else if (strcmp(name, "__wmemcpy_chk") == 0)
        __wmemcpy_chk(d, s, 9, 8);
    else if (strcmp(name, "__wmemmove_chk") == 0)
        __wmemmove_chk(d, s, 9, 8);
    else if (strcmp(name, "__wmempcpy_chk") == 0)
        __wmempcpy_chk(d, s, 9, 8);
    else if (strcmp(name, "__wmemset_chk") == 0)
        __wmemset_chk(d, 1, 9, 8);
    printf("%s came back\n", name);
    return 1;
}

int main(int count, char **words)
{
    src = with_an_end();
    dst = with_an_end();
    was = with_an_end();
    if (count == 2)
        return one_too_many(words[1]);
    for (size_t n = 0; n <= MOST; n = n < 70 ? n + 1 : n + n / 8) {
        bytes_of(n, 64 + n % 61);
        bytes_of(n, ROOM - n);
    }
    for (size_t n = 0; n <= MOST / 2; n = n < 40 ? n + 1 : n + n / 6) {
        for (size_t off = 0; off < 64; off += 12)
            words_of(n, 64 + off);
        words_of(n, ROOM - n * sizeof(wchar_t));
        for (size_t distance = 4; distance <= n * sizeof(wchar_t) && distance <= 512; distance *= 2) {
            moves_of(n, 64, 64 + distance);
            moves_of(n, 64 + distance, 64);
        }
    }
    printf("right %ld\n", calls);
    return 0;
}
