/* What the public functions of public.S go by, a word for copies and one for sets. Any thread may change it at any
 * instruction of a call, so no call depends on what it read before being so still: whoever asks again takes every
 * answer. Zero, as before a constructor has run, is the baseline.
 */
#ifndef WHERRY_CHOICE_H
#define WHERRY_CHOICE_H

#include "routines/arrangement.h"

/* The lower half: below which size a call goes on in place, the smallest sizes of the tier whose text stands first, and
 * 0 for every other tier. So one comparison tells size and tier. Where AVX2's text stands first the size is n - 16, and
 * what is below 16 asks for the tier on its own way. Where AVX-512's does, AVX2 has -1: as a number without a sign
 * above every size, so that its calls go on in place too, and no address is above it, which is how they are told there.
 * SSE2 has a number one less, by which it is told from AVX2: behind the copies to 64 bytes where AVX2's text stands
 * first, since those have nothing that SSE2 has not; else on the way to AVX2, from where the one address that is above
 * it, with 0 bytes, goes on in AVX-512's text, which asks for 0 bytes where page_edge is branch alone. Where it is
 * select, and before a constructor has run, it has 0. Sets, whose text has more than that, have AVX2's number or 0, and
 * ask. The upper half: which choice.
 */
#define CHOICE_CODE 4
#define AVX2_INLINE (64 - 16 + 1)
#define COPY_SMALL 65
#define SET_SMALL 65
#if WHERRY_FIRST_AVX2
#define COPY_BELOW AVX2_INLINE
#define SET_BELOW AVX2_INLINE
#else
#define COPY_BELOW COPY_SMALL
#define SET_BELOW SET_SMALL
#endif

#ifndef __ASSEMBLER__
#include <stdint.h>

/* Of a signed byte, such that one comparison with 1 tells the frequent ones apart. */
enum wherry_choice {
    WHERRY_CHOICE_SSE2 = 0,
    WHERRY_CHOICE_AVX2 = 1,
    WHERRY_CHOICE_AVX512 = 2,           /* of copies and sets: sizes to 255 bytes apart (watch.h) */
    WHERRY_CHOICE_AVX512_TOGETHER = -2, /* sizes to 255 bytes together; the only one whose parity is odd, less 1 */
    WHERRY_CHOICE_AVX512_LADDER = -3,
    WHERRY_CHOICE_AVX512_LOOK = -5, /* as together, and each call is recorded */
};

#if WHERRY_FIRST_AVX2
#define COPY_BELOW_SSE2 (AVX2_INLINE - 1)
#define SET_BELOW_SSE2 0
#else
#define COPY_BELOW_SSE2 (WHERRY_EDGE_BRANCH ? UINT32_MAX - 1 : 0)
#define SET_BELOW_SSE2 UINT32_MAX
#endif

static inline uint64_t wherry_choice_word(enum wherry_choice choice, uint32_t first_below, uint32_t sse2_below)
{
    uint32_t below = 0;
    if (choice == (WHERRY_FIRST_AVX2 ? WHERRY_CHOICE_AVX2 : WHERRY_CHOICE_AVX512))
        below = first_below;
    else if (choice == WHERRY_CHOICE_SSE2)
        below = sse2_below;
    else if (choice == WHERRY_CHOICE_AVX2)
        below = UINT32_MAX;
    return (uint64_t)(uint8_t)choice << 8 * CHOICE_CODE | below;
}

static inline uint64_t wherry_copy_word(enum wherry_choice choice)
{
    return wherry_choice_word(choice, COPY_BELOW, COPY_BELOW_SSE2);
}
static inline uint64_t wherry_set_word(enum wherry_choice choice)
{
    return wherry_choice_word(choice, SET_BELOW, SET_BELOW_SSE2);
}

static inline enum wherry_choice wherry_choice_in(uint64_t word)
{
    return (enum wherry_choice)(signed char)(word >> 8 * CHOICE_CODE);
}

extern _Atomic(uint64_t) wherry_copy_choice __attribute__((visibility("hidden")));
extern _Atomic(uint64_t) wherry_set_choice __attribute__((visibility("hidden")));
#endif

#endif
