/* What an instruction means for the order of stores, told by its bytes. */
#ifndef RUNNER_STORES_H
#define RUNNER_STORES_H

#include <stdint.h>

enum store_kind {
    STORE_PLAIN,   /* everything else too */
    STORE_WEAK,    /* others may see it after a later ordinary store: non-temporal, direct, clzero */
    STORE_FENCE,   /* orders those: sfence, mfence and what locks */
    STORE_REPEATED /* a string instruction that stores, which traps once an element */
};

enum store_kind store_kind(const uint8_t *at);

#endif
