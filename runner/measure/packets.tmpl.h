/* The copies of packets that stand inlined in loops, and the loops where the size is a constant; where it is a variable
 * loops.tmpl.h has them. */
#include "timed.h"
#include "wherry.h"

/* Capacity of each buffer: that of a packet buffer in netmap and in most drivers. The compiler must not know it. */
enum { CAPACITY = 2048 };
static volatile size_t capacity_now = CAPACITY;

#define BYTE_WRITTEN(result, dst, n) ((void)(result), byte_written(dst, n, zero))

/* Each CALL hides what it copied, so that no compiler drops or joins copies. */
static inline void *padded_here(void *dst, const void *src, size_t n, size_t capacity)
{
    void *copied = wherry_copy_padded(dst, capacity, src, capacity, n);
    __asm__ volatile("" : : : "memory");
    return copied;
}

static inline void *memcpy_here(void *dst, const void *src, size_t n)
{
    void *copied = __builtin_memcpy(dst, src, n);
    __asm__ volatile("" : : : "memory");
    return copied;
}

/* The sizes for which there are loops with a constant one. */
#define SIZES(X) X(1) X(20) X(40) X(60) X(64) X(65) X(100) X(128) X(200) X(256)

#define INDEPENDENT_LOOP(name, before, copy)                                                                           \
    TIMED static void name(loop_fn *fn, struct walk *walk, uint64_t calls)                                             \
    {                                                                                                                  \
        (void)fn;                                                                                                      \
        const struct slot *slot = walk->slot;                                                                          \
        const uint64_t *at = walk->size;                                                                               \
        for (; calls; calls--) {                                                                                       \
            char *dst = walk->dst + ((size_t)slot->dst << 6);                                                          \
            char *src = walk->src + ((size_t)slot->src << 6);                                                          \
            before;                                                                                                    \
            copy;                                                                                                      \
            if (++slot == walk->slots_end)                                                                             \
                slot = walk->slots;                                                                                    \
            if (++at == walk->sizes_end)                                                                               \
                at = walk->sizes;                                                                                      \
        }                                                                                                              \
        walk->slot = slot;                                                                                             \
        walk->size = at;                                                                                               \
    }

#define POOL_LOOPS(form, bytes, copy)                                                                                  \
    INDEPENDENT_LOOP(form##_##bytes##_throughput, (void)0, copy)                                                       \
    INDEPENDENT_LOOP(form##_##bytes##_fresh, store_again(src), copy)                                                   \
    TIMED static void form##_##bytes##_latency(loop_fn *fn, struct walk *walk, uint64_t calls)                         \
    {                                                                                                                  \
        (void)fn;                                                                                                      \
        const uintptr_t zero = opaque_zero();                                                                          \
        const struct slot *slot = walk->slot;                                                                          \
        const uint64_t *at = walk->size;                                                                               \
        uintptr_t after = 0;                                                                                           \
        for (; calls; calls--) {                                                                                       \
            char *dst = walk->dst + ((size_t)slot->dst << 6) + after;                                                  \
            const char *src = walk->src + ((size_t)slot->src << 6) + after;                                            \
            copy;                                                                                                      \
            after = byte_written(dst, bytes, zero);                                                                    \
            if (++slot == walk->slots_end)                                                                             \
                slot = walk->slots;                                                                                    \
            if (++at == walk->sizes_end)                                                                               \
                at = walk->sizes;                                                                                      \
        }                                                                                                              \
        walk->slot = slot;                                                                                             \
        walk->size = at;                                                                                               \
    }

/* A line of a table of struct constant_loops. */
#define ENTRY(form, bytes)                                                                                             \
    {                                                                                                                  \
        bytes, { form##_##bytes##_throughput, form##_##bytes##_latency, form##_##bytes##_fresh }                       \
    }

/* Those of a form of loops.tmpl.h, in the order of the walks and modes. */
#define LOOPS(name)                                                                                                    \
    {                                                                                                                  \
        [WALK_POOL] = {name##_pool_throughput, name##_pool_latency, name##_pool_fresh},                                \
        [WALK_PLACED] = {name##_placed_throughput, name##_placed_latency, name##_placed_fresh},                        \
        [WALK_STREAM] = {name##_stream_throughput, name##_stream_latency, name##_stream_fresh},                        \
    }
