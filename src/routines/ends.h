/* The registers and moves of the first and the last 64 bytes of a copy by 64-byte blocks, which seldom lie at lines.
 *
 * Halves: one of them at most then lies across lines, and copies of what was just copied take 0.63 to 0.89 of the time
 * (Zen 5); by VEX, which takes less room than EVEX: each line of code costs a cycle.
 *
 * On Intel, where the page's end is a branch too (meson.options, page_edge), a load finds what it wants in a 64-byte
 * store that is still under way only in its lower half (Granite Rapids; else it waits, 16 ticks and not 7). There the
 * last 64 bytes are halves and the first are whole: a store fewer, and a byte of what was just copied is had at once
 * but for 32 to n - 64, which are none to n = 96. */
#ifndef WHERRY_ENDS_H
#define WHERRY_ENDS_H

#include "routines/arrangement.h"

/* clang-format off */
#if WHERRY_EDGE_BRANCH
#define END_MOVE vmovdqu64
#define FIRST_WHOLE %zmm29
#define LAST_0 %ymm30
#define LAST_32 %ymm31
#define END_CLEAN
#else
#define END_MOVE vmovdqu
#define FIRST_0 %ymm0
#define FIRST_32 %ymm1
#define LAST_0 %ymm2
#define LAST_32 %ymm3
#define END_CLEAN vzeroupper
#endif
/* clang-format on */

#endif
