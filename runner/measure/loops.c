#include "loops.h"

#ifdef __clang__
#define TIMED __attribute__((noinline, aligned(64)))
#else
#define TIMED __attribute__((noinline, noclone, aligned(64)))
#endif

/* A zero that the compiler has to believe may be anything. */
static inline uintptr_t opaque_zero(void)
{
    uintptr_t zero = 0;
    __asm__ volatile("" : "+r"(zero));
    return zero;
}

static inline uintptr_t byte_written(const char *dst, size_t n, uintptr_t zero)
{
    return *(const volatile unsigned char *)(dst + n - (n != 0)) & zero;
}

TIMED void *call_floor(void *dst, const void *src, size_t n)
{
    (void)src;
    (void)n;
    __asm__ volatile("" : "+r"(dst));
    return dst;
}

TIMED void loop_pool_throughput(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const struct slot *slot = walk->slot;
    const uint64_t *size = walk->size;
    for (; calls; calls--) {
        fn(walk->dst + ((size_t)slot->dst << 6), walk->src + ((size_t)slot->src << 6), *size);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++size == walk->sizes_end)
            size = walk->sizes;
    }
    walk->slot = slot;
    walk->size = size;
}

TIMED void loop_pool_latency(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const struct slot *slot = walk->slot;
    const uint64_t *size = walk->size;
    uintptr_t after = 0;
    for (; calls; calls--) {
        size_t n = *size;
        char *dst = walk->dst + ((size_t)slot->dst << 6) + after;
        fn(dst, walk->src + ((size_t)slot->src << 6) + after, n);
        after = byte_written(dst, n, zero);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++size == walk->sizes_end)
            size = walk->sizes;
    }
    walk->slot = slot;
    walk->size = size;
}

TIMED void loop_placed_throughput(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const struct slot *slot = walk->slot;
    const struct placed *call = walk->place;
    for (; calls; calls--) {
        const char *src = placed_src(walk, slot, call);
        fn(placed_dst(walk, slot, call, src), src, call->size);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++call == walk->placed_end)
            call = walk->placed;
    }
    walk->slot = slot;
    walk->place = call;
}

TIMED void loop_placed_latency(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const struct slot *slot = walk->slot;
    const struct placed *call = walk->place;
    uintptr_t after = 0;
    for (; calls; calls--) {
        size_t n = call->size;
        const char *src = placed_src(walk, slot, call);
        char *dst = placed_dst(walk, slot, call, src) + after;
        fn(dst, src + after, n);
        after = byte_written(dst, n, zero);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++call == walk->placed_end)
            call = walk->placed;
    }
    walk->slot = slot;
    walk->place = call;
}

TIMED void loop_stream_throughput(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const size_t step = walk->step, src_mask = walk->src_mask;
    size_t at = 0;
    for (; calls; calls--) {
        fn(walk->dst + at, walk->src + (at & src_mask), step);
        at += step;
        if (at >= walk->span)
            at = 0;
    }
}

TIMED void loop_stream_latency(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const size_t step = walk->step, src_mask = walk->src_mask;
    size_t at = 0;
    uintptr_t after = 0;
    for (; calls; calls--) {
        char *dst = walk->dst + at + after;
        fn(dst, walk->src + (at & src_mask) + after, step);
        after = byte_written(dst, step, zero);
        at += step;
        if (at >= walk->span)
            at = 0;
    }
}
