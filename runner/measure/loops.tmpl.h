/* The loops for one way to be called. OF(name) makes the functions' names; CALL(dst, src, n) is the call, whose value
 * is kept in `result`; AFTER(result, dst, n) is what the next call's addresses wait for. SOURCE(src, after), where a
 * call has something else in the place of a source. */
#ifndef SOURCE
#define SOURCE(src, after) ((src) + (after))
#endif

static inline __attribute__((always_inline)) void OF(pool_independent)(loop_fn *fn, struct walk *walk, uint64_t calls,
                                                                       bool fresh)
{
    const struct slot *slot = walk->slot;
    const uint64_t *size = walk->size;
    for (; calls; calls--) {
        char *src = walk->src + ((size_t)slot->src << 6);
        if (fresh)
            store_again(src);
        CALL(walk->dst + ((size_t)slot->dst << 6), src, *size);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++size == walk->sizes_end)
            size = walk->sizes;
    }
    walk->slot = slot;
    walk->size = size;
}

TIMED static void OF(pool_latency)(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const struct slot *slot = walk->slot;
    const uint64_t *size = walk->size;
    uintptr_t after = 0;
    for (; calls; calls--) {
        size_t n = *size;
        char *dst = walk->dst + ((size_t)slot->dst << 6) + after;
        const uintptr_t result = (uintptr_t)CALL(dst, SOURCE(walk->src + ((size_t)slot->src << 6), after), n);
        after = AFTER(result, dst, n);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++size == walk->sizes_end)
            size = walk->sizes;
    }
    walk->slot = slot;
    walk->size = size;
}

static inline __attribute__((always_inline)) void OF(placed_independent)(loop_fn *fn, struct walk *walk, uint64_t calls,
                                                                         bool fresh)
{
    const struct slot *slot = walk->slot;
    const struct placed *call = walk->place;
    for (; calls; calls--) {
        char *src = placed_src(walk, slot, call);
        if (fresh)
            store_again(src);
        CALL(placed_dst(walk, slot, call, src), src, call->size);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++call == walk->placed_end)
            call = walk->placed;
    }
    walk->slot = slot;
    walk->place = call;
}

TIMED static void OF(placed_latency)(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const struct slot *slot = walk->slot;
    const struct placed *call = walk->place;
    uintptr_t after = 0;
    for (; calls; calls--) {
        size_t n = call->size;
        const char *src = placed_src(walk, slot, call);
        char *dst = placed_dst(walk, slot, call, src) + after;
        const uintptr_t result = (uintptr_t)CALL(dst, SOURCE(src, after), n);
        after = AFTER(result, dst, n);
        if (++slot == walk->slots_end)
            slot = walk->slots;
        if (++call == walk->placed_end)
            call = walk->placed;
    }
    walk->slot = slot;
    walk->place = call;
}

static inline __attribute__((always_inline)) void OF(stream_independent)(loop_fn *fn, struct walk *walk, uint64_t calls,
                                                                         bool fresh)
{
    const size_t step = walk->step, src_mask = walk->src_mask;
    size_t at = 0;
    for (; calls; calls--) {
        char *src = walk->src + (at & src_mask);
        if (fresh)
            store_again(src);
        CALL(walk->dst + at, src, step);
        at += step;
        if (at >= walk->span)
            at = 0;
    }
}

TIMED static void OF(stream_latency)(loop_fn *fn, struct walk *walk, uint64_t calls)
{
    const uintptr_t zero = opaque_zero();
    const size_t step = walk->step, src_mask = walk->src_mask;
    size_t at = 0;
    uintptr_t after = 0;
    for (; calls; calls--) {
        char *dst = walk->dst + at + after;
        const uintptr_t result = (uintptr_t)CALL(dst, SOURCE(walk->src + (at & src_mask), after), step);
        after = AFTER(result, dst, step);
        at += step;
        if (at >= walk->span)
            at = 0;
    }
}

#define INDEPENDENT(kind)                                                                                              \
    TIMED static void OF(kind##_throughput)(loop_fn * fn, struct walk * walk, uint64_t calls)                          \
    {                                                                                                                  \
        OF(kind##_independent)(fn, walk, calls, false);                                                                \
    }                                                                                                                  \
    TIMED static void OF(kind##_fresh)(loop_fn * fn, struct walk * walk, uint64_t calls)                               \
    {                                                                                                                  \
        OF(kind##_independent)(fn, walk, calls, true);                                                                 \
    }
INDEPENDENT(pool)
INDEPENDENT(placed)
INDEPENDENT(stream)

#undef INDEPENDENT
#undef OF
#undef CALL
#undef AFTER
#undef SOURCE
