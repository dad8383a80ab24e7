/* A small generator (splitmix64): good enough for contents and shuffles, and the same for the same seed. */
#ifndef MEASURE_RANDOM_H
#define MEASURE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, bound); bound is far below 2^64, so the bias is nothing that matters here. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
    return (uint64_t)((__uint128_t)random_next(state) * bound >> 64);
}

static inline double random_unit(uint64_t *state) { return (double)(random_next(state) >> 11) * 0x1p-53; }

#endif
