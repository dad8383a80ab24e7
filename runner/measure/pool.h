/* The memory a row works in: per side a pool of slots whose footprint keeps a cache state, visited in shuffled order;
 * or two buffers that are walked from end to end. */
#ifndef MEASURE_POOL_H
#define MEASURE_POOL_H

#include "caches.h"
#include "loops.h"
#include "row.h"

/* One mapping, kept from row to row and made anew only when it is too small or its pages are of the wrong kind. */
struct arena {
    char *base;
    size_t bytes;
    bool huge, emptied; /* emptied: its pages have been given back */
};

/* One side of a row as its layout needs it. */
struct side {
    size_t span;   /* bytes from a slot's first line to the end of its last */
    size_t stride; /* from slot to slot */
    size_t slots;
    size_t bytes; /* of memory that slots may lie in */
    /* Of those, the part that keeps the state: what all but the rare largest sizes of a mix lie in. */
    size_t kept_from, kept;
    bool paged;     /* slots begin at page boundaries */
    bool ascending; /* and are visited in the order of their addresses */
};

/* One thread's memory. */
struct pool {
    struct arena src, dst;
    struct side src_side, dst_side; /* .bytes is 0 for a side that the row does not have */
    char *src_base, *dst_base;      /* where those bytes begin */
    struct slot *slots;
    size_t slot_count;
    void *calls; /* the calls of a sample, in the order in which they are made */
    size_t calls_room;
    uint32_t *begins; /* begin and length of the runs of a sample, while it is drawn */
    size_t begins_room;
    bool shifts;    /* few slots: their places are drawn anew for every round */
    bool keep_warm; /* the state is one that a pass over the pool restores */
    bool zeros;     /* the destination is, and stays so: iszero ends at the first byte that is not */
    struct walk walk;
    uint64_t random; /* the generator's state */
    uint32_t *ticks; /* single_room, once a row has asked for it */
    bool restless;   /* in this round calls count amid which another program had the CPU */
};

/* Makes the pool for a row: maps, fills with random bytes, lays out. `threads` such pools will exist at once.
 * Returns NULL, or why this row cannot be measured on this machine (a static buffer a thread). */
const char *pool_make(struct pool *pool, const struct row *row, const struct caches *caches);

/* Lays a round out: new places when there are few slots, so that (dst - src) mod 4096 moves about. */
void pool_begin_round(struct pool *pool, const struct row *row);

/* One untimed pass over the pool, so that no routine finds what the one before it left behind. */
void pool_warm(struct pool *pool);

/* Takes `calls` calls of the row's table from `first` on, which is the same for all routines of a round, and puts them
 * into an order of their own: whoever comes second must not find branches learnt. */
void pool_draw(struct pool *pool, const struct row *row, size_t first, uint64_t calls);

/* How many calls can be made before one would come where another has been. */
uint64_t pool_pass(const struct pool *pool, const struct row *row);

/* Gives the next `calls` calls, at most a pass, the content that the row asks for, and the cache state with it: a
 * cached destination is written whole, in address order; one in DRAM only where the calls will work, past the caches.
 */
void pool_refill(struct pool *pool, const struct row *row, uint64_t calls);

/* How many bytes a row's thread needs in all; for the check against memory before anything is mapped. */
size_t pool_bytes_needed(const struct row *row, const struct caches *caches);

/* Are the pool's pages huge ones? */
bool pool_is_huge(const struct pool *pool);

#endif
