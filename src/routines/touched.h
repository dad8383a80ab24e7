/* Whether a large destination may still lie in the last-level cache: a guess of what large calls touched lately.
 *
 * A destination that is in memory has its lines read before they are overwritten, unless the stores go past the caches,
 * which takes 0.3 to 0.7 of the time (docs/performance-avx2.md). One that is in the cache is overwritten there in as
 * little or less, and whoever reads it next finds it there. No instruction tells one from the other.
 *
 * So each thread has a clock that counts the blocks that its large calls bring to the cache, on either side, and a
 * table with the time at which each was touched last, until another takes its place. A destination is near where one of
 * three blocks inside it was touched no longer ago than the cache is large (touched_blocks of the thresholds). What was
 * near already moves the clock not at all: a few buffers in turn stay near as long as there is room for all. What
 * others touch, or the program by its own instructions, nobody counts.
 *
 * A wrong answer costs time and nothing else, so nothing is locked. The rows are those of recent.h. Zero-initialised,
 * so right before any constructor.
 */
#ifndef WHERRY_TOUCHED_H
#define WHERRY_TOUCHED_H

#include "recent.h"

#define TOUCHED_BLOCK_LOG 17
#define TOUCHED_PLACES_LOG 9
#define TOUCHED_PLACES (1 << TOUCHED_PLACES_LOG)

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct wherry_touched {
    uint64_t clock;
    uint64_t apart[7];             /* so that rows begin at lines */
    uint64_t seen[TOUCHED_PLACES]; /* a block in the lower half, the time in the upper */
};

extern struct wherry_touched wherry_touched[RECENT_ROWS] __attribute__((visibility("hidden")));

/* Scattered: two buffers that are used together would else take each other's places where they lie a multiple of all
 * places apart. */
static inline __attribute__((always_inline)) uint32_t touched_place(uint32_t block)
{
    return block * 0x9e3779b1u >> (32 - TOUCHED_PLACES_LOG);
}

static inline __attribute__((always_inline)) int touched_lately(uint64_t seen, uint32_t block, uint32_t now,
                                                                uint32_t blocks)
{
    return (uint32_t)seen == block && now - (uint32_t)(seen >> 32) < blocks;
}

/* Is the destination near? From now on both sides are. src: NULL for a set. n: several blocks, or the guess is worse.
 */
static inline __attribute__((always_inline)) int touched_before(const uint8_t *dst, const uint8_t *src, size_t n,
                                                                uint32_t blocks)
{
    uintptr_t stack;
    __asm__("mov %%rsp, %0" : "=r"(stack));
    struct wherry_touched *const row = &wherry_touched[recent_row(stack)];
    uint32_t now = (uint32_t)__atomic_load_n(&row->clock, __ATOMIC_RELAXED);
    const uint8_t *at = dst;
    int near = 0, left = 3;
    do {
        at += n / 4;
        const uint32_t block = (uint32_t)((uintptr_t)at >> TOUCHED_BLOCK_LOG);
        near |= touched_lately(__atomic_load_n(&row->seen[touched_place(block)], __ATOMIC_RELAXED), block, now, blocks);
        __asm__("" : "+r"(at), "+r"(left)); /* a loop, as written */
    } while (--left);
    at = src ? src : dst;
    do {
        uint32_t block = (uint32_t)((uintptr_t)at >> TOUCHED_BLOCK_LOG);
        const uint32_t last = (uint32_t)(((uintptr_t)at + (n - 1)) >> TOUCHED_BLOCK_LOG);
        uint32_t more = last - block < TOUCHED_PLACES ? last - block : TOUCHED_PLACES;
        do {
            uint64_t *const seen = &row->seen[touched_place(block)];
            now += !touched_lately(__atomic_load_n(seen, __ATOMIC_RELAXED), block, now, blocks);
            __atomic_store_n(seen, block | (uint64_t)now << 32, __ATOMIC_RELAXED);
            block++;
            __asm__("" : "+r"(block), "+r"(more));
        } while (more-- > 0);
        at = at == dst ? NULL : dst;
    } while (at);
    __atomic_store_n(&row->clock, now, __ATOMIC_RELAXED);
    return near;
}
#endif
#endif
