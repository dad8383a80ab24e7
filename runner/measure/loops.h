/* The timed loops. Every routine is called by the same instruction of the same loop, at one address, so that nothing
 * but the routine differs between two figures. */
#ifndef MEASURE_LOOPS_H
#define MEASURE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* Copy, move, set and zero alike: a set takes its byte where a copy takes its source. */
typedef void *loop_fn(void *dst, const void *src, size_t n);

/* Where one call works: 64-byte lines past the bases. */
struct slot {
    uint32_t dst, src;
};

/* What a loop walks. Slots and sizes are two circles with a cursor each: every routine of a round gets the same sizes,
 * but no routine gets the slots that the one before it has just brought into the cache. */
struct walk {
    char *dst, *src;
    const struct slot *slots, *slots_end, *slot;
    const uint64_t *sizes, *sizes_end, *size;
    size_t step, span; /* stream: bytes a call, bytes a pass (a multiple of step) */
    size_t src_mask;   /* stream: all ones, or 0 where src is the byte of a set and stays */
};

typedef void loop(loop_fn *fn, struct walk *walk, uint64_t calls);

/* Independent calls: the CPU may begin the next before this one has ended. */
loop loop_pool_throughput, loop_stream_throughput;
/* The next call's addresses depend on the last byte this call has written. */
loop loop_pool_latency, loop_stream_latency;

/* Returns at once: what the loop and the call cost by themselves. */
loop_fn call_floor;

#endif
