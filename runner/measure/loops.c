/* Set apart as a whole: nothing here refers to anything outside but through what it is given. */
#define TIMED_WHERE __attribute__((section("timed_loops")))

#include "loops.h"

#include "apart.h"
#include "timed.h"

TIMED void *call_floor(void *dst, const void *src, size_t n)
{
    (void)src;
    (void)n;
    __asm__ volatile("" : "+r"(dst));
    return dst;
}

TIMED static uint64_t time_call(loop_fn *fn, void *dst, const void *src, size_t n)
{
    __builtin_ia32_mfence();
    const uint64_t begin = counter();
    fn(dst, src, n);
    return counter() - begin;
}

static inline __attribute__((always_inline)) uintptr_t no_result(wherry_pagezero_fn *fn, void *dst, size_t n)
{
    fn(dst, n);
    return 0;
}

/* Read when the next call's addresses are made. */
#define BYTE_WRITTEN(result, dst, n) ((void)(result), byte_written(dst, n, zero))
#define RESULT(result, dst, n) ((void)(dst), (void)(n), (result) & zero)

extern const char __start_timed_loops[], __stop_timed_loops[];

/* set, zero: which byte is set, where copies have their source, waits for nothing */
#define SOURCE(src, after) (src)
#define OF(name) set_##name
#define CALL(dst, src, n) fn(dst, src, n)
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

/* copy, move */
#define OF(name) plain_##name
#define CALL(dst, src, n) fn(dst, src, n)
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define OF(name) csum_##name
#define CALL(dst, src, n) ((void)(dst), ((wherry_csum_fn *)(void (*)(void))fn)(src, n, 0))
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) copy_csum_##name
#define CALL(dst, src, n) ((wherry_copy_csum_fn *)(void (*)(void))fn)(dst, src, n, 0)
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) crc32c_##name
#define CALL(dst, src, n) ((void)(dst), ((wherry_crc32c_fn *)(void (*)(void))fn)(0, src, n))
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) copy_crc32c_##name
#define CALL(dst, src, n) ((wherry_copy_crc32c_fn *)(void (*)(void))fn)(0, dst, src, n)
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) pair_csum_##name
#define CALL(dst, src, n)                                                                                              \
    ((void)fn, (void)walk->copy(dst, src, n), ((wherry_csum_fn *)(void (*)(void))walk->sum)(src, n, 0))
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) pair_crc32c_##name
#define CALL(dst, src, n)                                                                                              \
    ((void)fn, (void)walk->copy(dst, src, n), ((wherry_crc32c_fn *)(void (*)(void))walk->sum)(0, src, n))
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) iszero_##name
#define CALL(dst, src, n) ((void)(src), ((wherry_iszero_fn *)(void (*)(void))fn)(dst, n))
#define AFTER RESULT
#include "loops.tmpl.h"

#define OF(name) pagezero_##name
#define CALL(dst, src, n) ((void)(src), no_result(((wherry_pagezero_fn *)(void (*)(void))fn), dst, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define LOOPS(name)                                                                                                    \
    {                                                                                                                  \
        [WALK_POOL] = {name##_pool_throughput, name##_pool_latency, name##_pool_fresh},                                \
        [WALK_PLACED] = {name##_placed_throughput, name##_placed_latency, name##_placed_fresh},                        \
        [WALK_STREAM] = {name##_stream_throughput, name##_stream_latency, name##_stream_fresh},                        \
    }

static ptrdiff_t apart(void)
{
    static ptrdiff_t moved;
    static bool tried;
    if (!tried)
        moved = code_set_apart(__start_timed_loops, __stop_timed_loops);
    tried = true;
    return moved;
}

bool loops_apart(void) { return apart() != 0; }

loop *loop_for(enum wherry_op op, enum walk_kind kind, enum mode mode)
{
    static loop *const loops[WHERRY_OP_COUNT][WALK_COUNT][MODE_COUNT] = {
        [WHERRY_OP_copy] = LOOPS(plain),    [WHERRY_OP_move] = LOOPS(plain),
        [WHERRY_OP_set] = LOOPS(set),       [WHERRY_OP_zero] = LOOPS(set),
        [WHERRY_OP_csum] = LOOPS(csum),     [WHERRY_OP_copy_csum] = LOOPS(copy_csum),
        [WHERRY_OP_crc32c] = LOOPS(crc32c), [WHERRY_OP_copy_crc32c] = LOOPS(copy_crc32c),
        [WHERRY_OP_iszero] = LOOPS(iszero), [WHERRY_OP_pagezero] = LOOPS(pagezero),
    };
    return (loop *)((uintptr_t)loops[op][kind][mode] + (uintptr_t)apart());
}

loop *loop_for_pair(enum wherry_op op, enum walk_kind kind, enum mode mode)
{
    static loop *const csum[WALK_COUNT][MODE_COUNT] = LOOPS(pair_csum);
    static loop *const crc32c[WALK_COUNT][MODE_COUNT] = LOOPS(pair_crc32c);
    return (loop *)((uintptr_t)(op == WHERRY_OP_copy_csum ? csum : crc32c)[kind][mode] + (uintptr_t)apart());
}

single_call *loop_of_one(void) { return (single_call *)((uintptr_t)time_call + (uintptr_t)apart()); }
