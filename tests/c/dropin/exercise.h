/* Calls each function that the drop-in has, by its libc name, over sizes and overlaps, and judges every byte. Needs
 * nothing set up: it is called from resolvers and signal handlers, too. -fno-builtin keeps the calls calls. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { EXERCISE_ROOM = 24 << 10 };

/* room: EXERCISE_ROOM bytes. Returns 1 when all was right. Loops judge by volatile, so that they stay loops. */
static int exercise(unsigned char *room, size_t largest)
{
    volatile unsigned char *const byte = room;
    int right = 1;
    for (size_t n = 0; n <= largest; n = n < 300 ? n + 1 + n / 40 * 7 : n + n / 3) {
        unsigned char *const src = room + 64 + n % 61, *const dst = room + EXERCISE_ROOM / 2 + n % 53;
        for (size_t i = 0; i < n; i++)
            byte[64 + n % 61 + i] = (unsigned char)(i * 37 + n + 11);
        dst[-1] = dst[n] = 0x5a;
        right &= n % 2 ? memcpy(dst, src, n) == dst : mempcpy(dst, src, n) == dst + n;
        for (size_t i = 0; i < n; i++)
            right &= ((volatile unsigned char *)dst)[i] == (unsigned char)(i * 37 + n + 11);
        /* One down and up again over itself: what is in the middle comes back. */
        right &= memmove(dst + 7, dst, n) == dst + 7;
        bcopy(dst + 7, dst, n);
        for (size_t i = 0; i < n; i++)
            right &= ((volatile unsigned char *)dst)[i] == (unsigned char)(i * 37 + n + 11);
        dst[n] = 0x5a;
        right &= memset(dst, (int)(n | 0x700), n) == dst;
        for (size_t i = 0; i < n; i++)
            right &= ((volatile unsigned char *)dst)[i] == (unsigned char)n;
        bzero(dst, n);
        for (size_t i = 0; i < n; i++)
            right &= ((volatile unsigned char *)dst)[i] == 0;
        right &= dst[-1] == 0x5a && dst[n] == 0x5a;
    }
    return right;
}

#endif
