/* Whether a large destination may still lie in the last-level cache: a guess of what large calls touched lately.
 *
 * A destination that is in memory has its lines read before they are overwritten, unless the stores go past the caches,
 * which takes 0.3 to 0.7 of the time (docs/performance-zen3.md). One that is in the cache is overwritten there in as
 * little or less, and whoever reads it next finds it there. No instruction tells one from the other.
 *
 * So each thread has a clock that counts the blocks that its large calls bring to the cache, on either side, and a
 * table that all have in common tells of each block who touched it last, and at what time of that thread's clock. A
 * destination is near where of one of three blocks inside it that is no longer ago than the cache is large
 * (touched_blocks of the thresholds): threads that hand buffers to each other find them, and those that do not, and may
 * have caches of their own, do not count for each other. What the program touches by its own instructions nobody
 * counts.
 *
 * What was near already moves the clock by the share of the cache that it is old: nearly nothing for a few buffers in
 * turn, which so stay near as long as there is room for all. Of what is walked through again and again, each block is
 * as old as all the others move the clock: that shrinks from lap to lap where all have room, and else grows until all
 * are far. If what is near moved nothing, more and more could come to be walked through and stay near for ever.
 *
 * A wrong answer costs time and nothing else, so nothing is locked. Threads that meet in a row (recent.h) have a clock
 * in common. Zero-initialised, so right before any constructor.
 */
#ifndef WHERRY_TOUCHED_H
#define WHERRY_TOUCHED_H

#include "recent.h"

#define TOUCHED_BLOCK_LOG 17
#define TOUCHED_PLACES_LOG 13 /* a GiB of blocks */
#define TOUCHED_PLACES (1 << TOUCHED_PLACES_LOG)
#define TOUCHED_TIME_LOG 27
#define TOUCHED_TIME ((1 << TOUCHED_TIME_LOG) - 1)
#define TOUCHED_UNIT_LOG 10 /* of a clock, for each block that was far */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct wherry_touched {
    struct {
        uint32_t now;
        uint32_t apart[15]; /* a cache line each */
    } clocks[RECENT_ROWS];
    uint64_t seen[TOUCHED_PLACES]; /* the block in the lower half, then the time, then whose it is */
};

extern struct wherry_touched wherry_touched __attribute__((visibility("hidden")));

/* Scattered: two buffers that are used together would else take each other's places where they lie a multiple of all
 * places apart. */
static inline __attribute__((always_inline)) uint32_t touched_place(uint32_t block)
{
    return block * 0x9e3779b1u >> (32 - TOUCHED_PLACES_LOG);
}

static inline __attribute__((always_inline)) uint64_t touched_entry(uint32_t block, uint32_t row, uint32_t now)
{
    return ((uint64_t)row << TOUCHED_TIME_LOG | (now & TOUCHED_TIME)) << 32 | block;
}

/* How long ago it was touched, in units of the clock of who did; TOUCHED_TIME: nobody knows. */
static inline __attribute__((always_inline)) uint32_t touched_ago(uint32_t block)
{
    const uint64_t seen = __atomic_load_n(&wherry_touched.seen[touched_place(block)], __ATOMIC_RELAXED);
    const uint32_t when = (uint32_t)(seen >> 32), whose = when >> TOUCHED_TIME_LOG;
    const uint32_t now = __atomic_load_n(&wherry_touched.clocks[whose].now, __ATOMIC_RELAXED);
    return (uint32_t)seen == block ? (now - when) & TOUCHED_TIME : TOUCHED_TIME;
}

/* Is the destination near? From now on both sides are. src: NULL for a set. n: several blocks, or the guess is worse.
 */
static inline __attribute__((always_inline)) int touched_before(const uint8_t *dst, const uint8_t *src, size_t n,
                                                                uint32_t blocks)
{
    uintptr_t stack;
    __asm__("mov %%rsp, %0" : "=r"(stack));
    const uint32_t row = (uint32_t)recent_row(stack), long_ago = blocks << TOUCHED_UNIT_LOG;
    uint32_t now = __atomic_load_n(&wherry_touched.clocks[row].now, __ATOMIC_RELAXED);
    /* What comes to the cache before a block is overwritten is as much of both sides, of which the clock is not told
     * yet; nor is it how the sides took turns the last time. */
    const uint8_t *at = dst;
    size_t sooner = src ? n : 0;
    int near = 0, left = 3;
    do {
        at += n / 4;
        sooner += n / 4;
        near |= touched_ago((uint32_t)((uintptr_t)at >> TOUCHED_BLOCK_LOG)) +
                    (sooner >> (TOUCHED_BLOCK_LOG - TOUCHED_UNIT_LOG)) <
                long_ago;
        __asm__("" : "+r"(at), "+r"(sooner), "+r"(left)); /* a loop, as written */
    } while (--left);
    at = src ? src : dst;
    do {
        uint32_t block = (uint32_t)((uintptr_t)at >> TOUCHED_BLOCK_LOG);
        const uint32_t last = (uint32_t)(((uintptr_t)at + (n - 1)) >> TOUCHED_BLOCK_LOG);
        uint32_t more = last - block < TOUCHED_PLACES ? last - block : TOUCHED_PLACES;
        do {
            const uint32_t ago = touched_ago(block);
            now += ago < long_ago ? (ago + blocks - 1) / blocks : 1 << TOUCHED_UNIT_LOG;
            __atomic_store_n(&wherry_touched.seen[touched_place(block)], touched_entry(block, row, now),
                             __ATOMIC_RELAXED);
            __atomic_store_n(&wherry_touched.clocks[row].now, now, __ATOMIC_RELAXED); /* the next is older by that */
            block++;
            __asm__("" : "+r"(block), "+r"(more));
        } while (more-- > 0);
        at = at == dst ? NULL : dst;
    } while (at);
    return near;
}
#endif
#endif
