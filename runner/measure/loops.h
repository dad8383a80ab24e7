/* The timed loops. Every routine of an op is called by the same instruction of the same loop, at one address, so that
 * nothing but the routine differs between two figures. */
#ifndef MEASURE_LOOPS_H
#define MEASURE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "routines/registry.h"

/* Copy, move, set and zero alike: a set takes its byte where a copy takes its source. Routines of other ops are kept as
 * this and called as what they are, by the loops of their op. */
typedef void *loop_fn(void *dst, const void *src, size_t n);

/* Where one call works: 64-byte lines past the bases. */
struct slot {
    uint32_t dst, src;
};

/* One call of a mix that says where its bytes lie in their lines. Twelve bytes, so that a table of 65,536 fits an L2 of
 * 1 MiB. */
struct placed {
    uint32_t size;
    int32_t dst; /* bytes past the destination's slot; where the sides meet: past the source */
    uint16_t src;
    int16_t meets; /* the bits of (src - slot) to add: none; all, so that the destination lies where the source does and
                      its slot has no part in it; or those of the page, which then are the source's and `dst` more */
};

/* What a loop walks. Slots and calls are two circles with a cursor each: every routine of a round gets the same sizes,
 * but no routine gets the slots that the one before it has just brought into the cache. A call is a size alone, or
 * placed. */
struct walk {
    char *dst, *src;
    const struct slot *slots, *slots_end, *slot;
    const uint64_t *sizes, *sizes_end, *size;
    const struct placed *placed, *placed_end, *place; /* NULL where sizes are walked */
    size_t step, span;                                /* stream: bytes a call, bytes a pass (a multiple of step) */
    size_t src_mask;     /* stream: all ones, or 0 where src is the byte of a set and stays */
    loop_fn *copy, *sum; /* of a pair */
};

typedef void loop(loop_fn *fn, struct walk *walk, uint64_t calls);

enum walk_kind { WALK_POOL, WALK_PLACED, WALK_STREAM, WALK_COUNT };

/* Throughput: independent calls, of which the CPU may begin the next before this one has ended. Latency: the next
 * call's addresses depend on the last byte this call has written, or on its result where the op has one. Fresh: as
 * throughput, but right before each call the first 8 bytes of its source are stored (op with a source only; the same 8
 * bytes, whatever n). */
enum mode { MODE_THROUGHPUT, MODE_LATENCY, MODE_FRESH, MODE_COUNT };

loop *loop_for(enum wherry_op op, enum walk_kind kind, enum mode mode);

/* The same for a copy and then a sum of what was copied, of the fused op: by what the walk says, not `fn`. */
loop *loop_for_pair(enum wherry_op op, enum walk_kind kind, enum mode mode);

/* One call, timed by itself: ticks of the time-stamp counter, from when the stores before it are done to its last
 * instruction. */
typedef uint64_t single_call(loop_fn *fn, void *dst, const void *src, size_t n);
single_call *loop_of_one(void);

/* Whether they lie as far from the routines of this executable as from others' (apart.h). */
bool loops_apart(void);

/* The addresses of a placed call, without a branch: whether the sides meet must not be something to predict. */
static inline char *placed_src(const struct walk *walk, const struct slot *slot, const struct placed *call)
{
    return walk->src + ((size_t)slot->src << 6) + call->src;
}

static inline char *placed_dst(const struct walk *walk, const struct slot *slot, const struct placed *call,
                               const char *src)
{
    uintptr_t apart = (uintptr_t)walk->dst + ((size_t)slot->dst << 6);
    return (char *)(apart + (((uintptr_t)src - apart) & (uintptr_t)(intptr_t)call->meets) +
                    (uintptr_t)(intptr_t)call->dst);
}

struct one_call {
    char *dst;
    const char *src;
    size_t n;
};

/* For those who time each call by itself, so that finding the next one is in no figure. */
static inline struct one_call walk_next(struct walk *walk)
{
    struct one_call next = {.dst = walk->dst + ((size_t)walk->slot->dst << 6),
                            .src = walk->src + ((size_t)walk->slot->src << 6)};
    if (walk->placed) {
        next.src = placed_src(walk, walk->slot, walk->place);
        next.dst = placed_dst(walk, walk->slot, walk->place, next.src);
        next.n = walk->place->size;
        walk->place = walk->place + 1 == walk->placed_end ? walk->placed : walk->place + 1;
    } else {
        next.n = *walk->size;
        walk->size = walk->size + 1 == walk->sizes_end ? walk->sizes : walk->size + 1;
    }
    walk->slot = walk->slot + 1 == walk->slots_end ? walk->slots : walk->slot + 1;
    return next;
}

/* Returns at once: what the loop and the call cost by themselves. */
loop_fn call_floor;

#endif
