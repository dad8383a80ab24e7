/* What the destination holds when a call begins. */
#include <emmintrin.h>

#include "pool.h"

enum { LINE = 64 };

/* Fills the whole lines that hold [at, at + n). */
static void fill_lines(char *at, size_t n, char byte, bool past_caches)
{
    __m128i *to = (__m128i *)(at - (uintptr_t)at % LINE);
    const __m128i *end = (const __m128i *)(at + n), all = _mm_set1_epi8(byte);
    if (past_caches) {
        for (; to < end; to += 4) {
            _mm_stream_si128(to, all);
            _mm_stream_si128(to + 1, all);
            _mm_stream_si128(to + 2, all);
            _mm_stream_si128(to + 3, all);
        }
        _mm_sfence();
        return;
    }
    for (; to < end; to += 4) {
        _mm_store_si128(to, all);
        _mm_store_si128(to + 1, all);
        _mm_store_si128(to + 2, all);
        _mm_store_si128(to + 3, all);
        __asm__ volatile("" : : : "memory"); /* a loop, not a call of whatever memset is */
    }
}

uint64_t pool_pass(const struct pool *pool, const struct row *row)
{
    return row->stream ? pool->walk.span / pool->walk.step : pool->slot_count;
}

void pool_refill(struct pool *pool, const struct row *row, uint64_t calls)
{
    /* 0xa5 is not 0, nor the byte of a set, 0x5a, in any of its bits. */
    const char byte = row->content == CONTENT_DIRTY ? (char)0xa5 : 0;
    const struct walk *walk = &pool->walk;
    if (pool->keep_warm) {
        fill_lines(pool->dst_base, pool->dst_side.bytes, byte, false);
    } else if (row->stream) {
        fill_lines(walk->dst, calls * walk->step, byte, true);
    } else {
        const struct slot *slot = walk->slot;
        for (; calls; calls--) {
            fill_lines(walk->dst + ((size_t)slot->dst << 6), row->size, byte, true);
            if (++slot == walk->slots_end)
                slot = walk->slots;
        }
    }
}
