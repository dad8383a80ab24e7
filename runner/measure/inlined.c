#include "inlined.h"

#include <stdio.h>
#include <string.h>

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

__attribute__((noinline)) static void *padded_function(void *dst, const void *src, size_t n)
{
    return wherry_copy_padded(dst, capacity_now, src, capacity_now, n);
}

#define OF(name) padded_##name
#define CALL(dst, src, n) ((void)fn, padded_here(dst, src, n, capacity_now))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define OF(name) memcpy_##name
#define CALL(dst, src, n) ((void)fn, (memcpy)(dst, src, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define OF(name) wherry_##name
#define CALL(dst, src, n) ((void)fn, wherry_memcpy(dst, src, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

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

#define CONSTANT(bytes)                                                                                                \
    POOL_LOOPS(constant_padded, bytes, padded_here(dst, src, bytes, capacity_now))                                     \
    POOL_LOOPS(constant_memcpy, bytes, memcpy_here(dst, src, bytes))
SIZES(CONSTANT)

static const struct {
    size_t size;
    loop *padded[MODE_COUNT], *memcpy[MODE_COUNT];
} constants[] = {
#define ENTRY(bytes)                                                                                                   \
    {bytes,                                                                                                            \
     {constant_padded_##bytes##_throughput, constant_padded_##bytes##_latency, constant_padded_##bytes##_fresh},       \
     {constant_memcpy_##bytes##_throughput, constant_memcpy_##bytes##_latency, constant_memcpy_##bytes##_fresh}},
    SIZES(ENTRY)
#undef ENTRY
};

enum form { IN_FUNCTION, PADDED, MEMCPY, WHERRY, PADDED_N, MEMCPY_N, FORM_COUNT };

static const struct {
    const char *name;
    loop_fn *fn; /* what is called where no loop is meant: to verify */
    loop *loops[WALK_COUNT][MODE_COUNT];
} forms[FORM_COUNT] = {
#define LOOPS(name)                                                                                                    \
    {                                                                                                                  \
        [WALK_POOL] = {name##_pool_throughput, name##_pool_latency, name##_pool_fresh},                                \
        [WALK_PLACED] = {name##_placed_throughput, name##_placed_latency, name##_placed_fresh},                        \
        [WALK_STREAM] = {name##_stream_throughput, name##_stream_latency, name##_stream_fresh},                        \
    }
    [IN_FUNCTION] = {"padded", padded_function, {{NULL}}},
    [PADDED] = {"inlined_padded", padded_function, LOOPS(padded)},
    [MEMCPY] = {"inlined_memcpy", memcpy, LOOPS(memcpy)},
    [WHERRY] = {"inlined_wherry", wherry_memcpy, LOOPS(wherry)},
    [PADDED_N] = {"inlined_padded_n", padded_function, {{NULL}}},
    [MEMCPY_N] = {"inlined_memcpy_n", memcpy, {{NULL}}},
#undef LOOPS
};

void targets_add_inlined(struct target_list *list)
{
    for (unsigned form = 0; form < FORM_COUNT; form++) {
        targets_add_known(list, forms[form].name, (void (*)(void))forms[form].fn, form);
        list->items[list->count - 1].kind = TARGET_INLINED;
    }
}

loop *inlined_loop(const struct target *target, enum walk_kind kind, enum mode mode, size_t size, bool mix,
                   const char **reason)
{
    const enum form form = (enum form)target->links;
    if (form < PADDED_N)
        return forms[form].loops[kind][mode];
    for (size_t i = 0; !mix && kind == WALK_POOL && i < sizeof constants / sizeof constants[0]; i++)
        if (constants[i].size == size)
            return form == PADDED_N ? constants[i].padded[mode] : constants[i].memcpy[mode];
    *reason = "its size is a constant in the code: walk=pool, and 1, 20, 40, 60, 64, 65, 100, 128, 200 or 256 bytes";
    return NULL;
}

const char *inlined_check(const struct target *target, size_t n)
{
    static char problem[160];
    static unsigned char from[4 * CAPACITY], to[4 * CAPACITY];
    const bool padded = target->fn == (void (*)(void))padded_function;
    loop_fn *fn = (loop_fn *)target->fn;
    n = n < CAPACITY ? n : CAPACITY;
    const size_t rooms[] = {n, n + 1, (n + 63) / 64 * 64, n < 256 ? 256 : n, CAPACITY};
    for (size_t k = 0; k < sizeof rooms / sizeof rooms[0]; k++) {
        const size_t room = padded ? rooms[k] : n, at = CAPACITY + k * 13;
        for (size_t i = 0; i < sizeof from; i++) {
            from[i] = (unsigned char)(i * 167 + (i >> 8) + k);
            to[i] = (unsigned char)~from[i];
        }
        capacity_now = room;
        const bool returned = fn(to + at, from + at, n) == to + at;
        capacity_now = CAPACITY;
        for (size_t i = 0; i < sizeof from; i++) {
            const bool copied = i >= at && i < at + n, spare = i >= at + n && i < at + room;
            if (!spare && to[i] != (copied ? from[i] : (unsigned char)~from[i])) {
                snprintf(problem, sizeof problem, "%s of %zu bytes with room for %zu: byte %td is wrong", target->name,
                         n, room, (ptrdiff_t)i - (ptrdiff_t)at);
                return problem;
            }
        }
        if (!returned)
            return "did not return its destination";
    }
    return NULL;
}
