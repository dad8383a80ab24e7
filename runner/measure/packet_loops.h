/* Loops with a copy inlined: what an object exports as wherry_packet_loops, beside the same copy as memcpy. `make
 * peers` builds some (docs/peers.md). */
#ifndef MEASURE_PACKET_LOOPS_H
#define MEASURE_PACKET_LOOPS_H

#include "loops.h"

/* The size is a constant in the code. */
struct constant_loops {
    size_t size; /* 0: no more of them */
    loop *loops[MODE_COUNT];
};

struct packet_loops {
    uint64_t layout;        /* PACKET_LOOPS_LAYOUT of the text that it was built from */
    loop_fn *libc, *wherry; /* filled in when it is loaded: memcpy and wherry_memcpy, for those that call them */
    /* Either these, or those below. */
    loop *loops[WALK_COUNT][MODE_COUNT];
    struct constant_loops constants[16];
};

#define PACKET_LOOPS_LAYOUT                                                                                            \
    ((uint64_t)sizeof(struct packet_loops) << 32 | sizeof(struct walk) << 16 | sizeof(struct placed))

#endif
