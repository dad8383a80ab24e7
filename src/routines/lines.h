/* The lines of a destination, at rdi and of rdx bytes, that are asked for before the first store. */
#ifndef WHERRY_LINES_H
#define WHERRY_LINES_H

#include "routines/arrangement.h"

/* clang-format off */
/* Of 65 to 256 bytes by blocks of a line. A store across two lines asks for the first when its address is known, for the
 * second not before it is carried out; where nothing else stores into the last line, and what follows leaves the rest of
 * it alone, each call would wait for it. In the caches it costs nothing. */
#define PREFETCH_LAST_LINE prefetchw -1(%rdi,%rdx)

/* All lines of a destination of 65 to 128 bytes, and of 129 to 256, before the first store; of 257 to 512 the first four and
 * the last two or three. Stores leave in order, and where their lines are not in the first-level cache a processor of
 * Intel's asks for few of them ahead: so it is asked for all at once. Nothing beside the destination is: that may be another
 * CPU's. */
#if WHERRY_EDGE_BRANCH
#define PREFETCH_TO_128                        \
    prefetchw (%rdi);                          \
    prefetchw 64(%rdi);                        \
    PREFETCH_LAST_LINE
#define PREFETCH_TO_256                        \
    prefetchw (%rdi);                          \
    prefetchw 64(%rdi);                        \
    prefetchw -128(%rdi,%rdx);                 \
    prefetchw -64(%rdi,%rdx);                  \
    PREFETCH_LAST_LINE
#define PREFETCH_TO_512                        \
    PREFETCH_TO_256;                           \
    prefetchw 128(%rdi);                       \
    prefetchw 192(%rdi)
/* The same where rdx is n - 128; to 128 bytes without the second line, and so still one line of code. */
#define PREFETCH_TO_128_AT_128                 \
    prefetchw (%rdi);                          \
    prefetchw 127(%rdi,%rdx)
#define PREFETCH_TO_256_AT_128                 \
    prefetchw (%rdi);                          \
    prefetchw 64(%rdi);                        \
    prefetchw (%rdi,%rdx);                     \
    prefetchw 64(%rdi,%rdx);                   \
    prefetchw 127(%rdi,%rdx)
/* Of 513 to 1024 bytes the first eight, of which the second begins at r9. Loses r11. */
#define PREFETCH_LINES                         \
    prefetchw (%rdi);                          \
    leaq    256(%r9), %r11;                    \
    prefetchw (%r9);                           \
    prefetchw 64(%r9);                         \
    prefetchw -128(%r11);                      \
    prefetchw -64(%r11);                       \
    prefetchw (%r11);                          \
    prefetchw 64(%r11)
/* For loops. */
#define PREFETCH_257_ON                        \
    prefetchw (%rdi);                          \
    prefetchw 64(%rdi);                        \
    prefetchw 128(%rdi);                       \
    prefetchw 192(%rdi)
#define PREFETCH_513_ON                        \
    PREFETCH_257_ON;                           \
    prefetchw 256(%rdi);                       \
    prefetchw 320(%rdi);                       \
    prefetchw 384(%rdi);                       \
    prefetchw 448(%rdi)
#else
#define PREFETCH_TO_128_AT_128
#define PREFETCH_TO_256_AT_128
#define PREFETCH_257_ON
#define PREFETCH_513_ON
#define PREFETCH_TO_128 PREFETCH_LAST_LINE
#define PREFETCH_TO_256 PREFETCH_LAST_LINE
#define PREFETCH_TO_512
#endif
/* clang-format on */

#endif
