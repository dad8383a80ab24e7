/* What the destination holds when a call begins. */
#include <emmintrin.h>
#include <sys/mman.h>

#include "pool.h"
#include "random.h"

enum { LINE = 64 };

enum { DIRTY_ONE_OF = 4 };

/* What a line is to hold; of mixed content another draw for each line and refill. 0xa5 is not 0, nor the byte of a set,
 * 0x5a, in any of its bits. */
static inline __m128i line_of(enum content content, uint64_t *random)
{
    const bool zero = content == CONTENT_ZERO || (content == CONTENT_MIXED && random_next(random) % DIRTY_ONE_OF);
    return _mm_set1_epi8(zero ? 0 : (char)0xa5);
}

/* Fills the whole lines that hold [at, at + n). */
static void fill_lines(char *at, size_t n, enum content content, uint64_t *random, bool past_caches)
{
    __m128i *to = (__m128i *)(at - (uintptr_t)at % LINE);
    const __m128i *end = (const __m128i *)(at + n);
    if (past_caches) {
        for (; to < end; to += 4) {
            const __m128i all = line_of(content, random);
            _mm_stream_si128(to, all);
            _mm_stream_si128(to + 1, all);
            _mm_stream_si128(to + 2, all);
            _mm_stream_si128(to + 3, all);
        }
        _mm_sfence();
        return;
    }
    for (; to < end; to += 4) {
        const __m128i all = line_of(content, random);
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
    const struct walk *walk = &pool->walk;
    if (row->content == CONTENT_NEW) { /* all of it, so that no huge page is split */
        pool->dst.emptied = true;
        madvise(pool->dst.base, pool->dst.bytes, MADV_DONTNEED);
    } else if (pool->keep_warm) {
        fill_lines(pool->dst_base, pool->dst_side.bytes, row->content, &pool->random, false);
    } else if (row->stream) {
        fill_lines(walk->dst, calls * walk->step, row->content, &pool->random, true);
    } else {
        const struct slot *slot = walk->slot;
        for (; calls; calls--) {
            fill_lines(walk->dst + ((size_t)slot->dst << 6), row->size, row->content, &pool->random, true);
            if (++slot == walk->slots_end)
                slot = walk->slots;
        }
    }
}
