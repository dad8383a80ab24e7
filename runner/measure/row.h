/* A row: cells that differ only in the routine. docs/runner-protocol.md tells the keys. */
#ifndef MEASURE_ROW_H
#define MEASURE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loops.h"
#include "ops.h"
#include "routines/registry.h"

enum { ROW_ROUTINES = 64, ROW_ROUNDS = 1000 };
enum state { STATE_L1, STATE_L2, STATE_L3, STATE_DRAM, STATE_COUNT };
extern const char *const state_names[STATE_COUNT];
/* What the destination holds when a call begins. Dirty: no byte is what it will be. Mixed:
 * a quarter of the lines dirty, at random, the others zero. New: it has no pages yet, as what malloc has just mapped.
 */
enum content { CONTENT_ANY, CONTENT_DIRTY, CONTENT_ZERO, CONTENT_MIXED, CONTENT_NEW, CONTENT_COUNT };

extern const char *const side_names[]; /* none, source, destination, both */
enum sides { SIDES_NONE, SIDES_SOURCE, SIDES_DESTINATION, SIDES_BOTH, SIDES_COUNT }; /* bits: one a side */

/* What of tables to this length is learnt is learnt within a sample, and a routine may go by it in the next: their
 * order stays. */
enum { LEARNT_MOST = 1 << 15 };

struct row {
    int64_t id;
    enum wherry_op op;
    char *routines[ROW_ROUTINES]; /* point into text */
    size_t routine_count;
    const char *aa;        /* one of routines */
    size_t size;           /* when there is no mix */
    uint64_t *sizes;       /* the size table: one entry, or a mix's */
    struct placed *placed; /* the same calls with their places; NULL when the mix does not give them */
    uint32_t *runs;        /* where calls begin that keep their order, and `table` at last; NULL: none do */
    size_t run_count;
    size_t table;          /* length of the table */
    size_t largest, usual; /* of the sizes; 99 of 100 are no larger than the usual one */
    double mean;
    size_t reach;          /* how far from its slot a destination may lie for the sake of its place in the page */
    size_t before, behind; /* how far a destination may lie before or behind its source, where both meet */
    size_t src_off, dst_off;
    int delta; /* -1: any */
    bool stream;
    size_t buffer;
    enum state src_state, dst_state;
    enum content content;
    bool scattered; /* each call begins elsewhere in its line, and slots come in an order that does not come again */
    enum sides ascending; /* whose slots are visited in the order of their addresses; the others are shuffled */
    enum sides handed;    /* that another CPU has used last */
    int handed_by;        /* the CPU; -1: any of another core */
    bool overlaps;
    int64_t overlap;
    enum mode mode;
    double percentile; /* above 0: calls are timed one by one, and this is told of them; mode is throughput */
    bool huge, cold;   /* cold: the code of the routine */
    unsigned threads, rounds, batch_us;
    uint64_t calls;
    char *text;
};

/* The defaults of every key that has one. */
void row_init(struct row *row);

/* Parses one line; cpus bounds `threads`. Returns NULL, or what is wrong and what is allowed (a static buffer). */
const char *row_parse(struct row *row, const char *line, unsigned cpus, uint64_t seed);

void row_free(struct row *row);

/* What iszero looks at has a content that is made before each call, which is what destinations have. */
static inline bool row_has_source(const struct row *row)
{
    return op_copies(row->op) || (op_reads(row->op) && row->op != WHERRY_OP_iszero);
}

/* Do calls depend on what a pass over the pool finds there, so that each pass has to be prepared? */
static inline bool row_is_by_passes(const struct row *row) { return row->content != CONTENT_ANY || row->handed; }

/* A source and nothing else. */
static inline bool row_only_reads(const struct row *row) { return row_has_source(row) && op_reads(row->op); }

#endif
