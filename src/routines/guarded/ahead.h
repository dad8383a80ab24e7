/* Fetches the source of a copy past the caches ahead of a loop that takes four vectors V a step, upwards: four pages
 * side by side, one to two blocks of four pages before their turn. One stream waits for memory at the beginning of each
 * page, until what fetches ahead by itself has understood it; several pages wait at once, and the copy stays in order,
 * which it has to where a page may be missing (docs/performance-intel-large.md). Nothing faults here, also not beyond
 * the source's end. */
#ifndef WHERRY_GUARDED_AHEAD_H
#define WHERRY_GUARDED_AHEAD_H

#define AHEAD_BYTES 16384

/* clang-format off */
/* `at`, a register: the next block but none of the source, which begins at `from`. */
#define AHEAD_BEGIN(from, at)        \
    leaq    AHEAD_BYTES from, at;    \
    andq    $-AHEAD_BYTES, at

/* As many lines as a step copies. They are counted in `at` itself: its offset in the block is that of the page whose turn it
 * is and V for each step; where that offset leaves the page, at 4096, a block is done. Registers: 64 bits and their lower 32. */
#define AHEAD_STEP(at, at32, lost, lost32)   \
    prefetcht1 (at);                         \
    AHEAD_MORE(at)                           \
    leal    257 * V(at), lost32;             \
    xorl    at32, lost32;                    \
    andl    $(AHEAD_BYTES - 1), lost32;      \
    xorq    lost, at;                        \
    movl    at32, lost32;                    \
    andl    $(AHEAD_BYTES - 1), lost32;      \
    cmpl    $4096, lost32;                   \
    jne     782f;                            \
    addq    $(AHEAD_BYTES - 4096), at;       \
782:
#if V == 16
#define AHEAD_MORE(at)
#elif V == 32
#define AHEAD_MORE(at) prefetcht1 4096(at);
#else
#define AHEAD_MORE(at)        \
    prefetcht1 4096(at);      \
    prefetcht1 8192(at);      \
    prefetcht1 12288(at);
#endif
/* clang-format on */

#endif
