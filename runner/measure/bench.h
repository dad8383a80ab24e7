/* Measures a row: all its routines interleaved, round by round. */
#ifndef MEASURE_BENCH_H
#define MEASURE_BENCH_H

#include "cold.h"
#include "counters.h"
#include "guarded.h"
#include "host.h"
#include "pace.h"
#include "pool.h"
#include "row.h"
#include "single.h"
#include "target.h"
#include "usercopy/paths.h"

/* What a sample tells of one call. */
struct figures {
    double ns;               /* of the slowest thread */
    double share;            /* the fastest thread's time over the slowest's */
    double counts[COUNTERS]; /* of the first thread; NAN: not counted */
};

/* A round, whoever took part. */
struct round {
    struct reading pace; /* the slower of before and after */
    enum disturbance disturbance;
};

/* One routine of a row; the A/A entry is one more. */
struct cell {
    const char *name;
    const struct target *target; /* NULL: a yardstick */
    const struct target *second; /* of a pair: who makes the sum; else NULL */
    const struct path *path;     /* a copy of the kernel's, and no target; else NULL */
    enum wherry_op op;           /* the row's, unless the name says another */
    loop_fn *fn;
    loop *loop;
    bool aa, left_out;     /* left out: skipped or wrong, already told */
    bool settled;          /* code=cold, or a mix: has had the calls that change its way */
    bool upper_in_use;     /* after a sample: upper halves of vector registers, since vzeroupper is missing */
    uint64_t calls;        /* in one sample */
    double call_ns;        /* estimate from calibration */
    double *ns;            /* one figure for each round that is kept */
    struct figures *tried; /* of all rounds, in their order */
};

struct result {
    struct cell cells[ROW_ROUTINES + 1];
    size_t cell_count;
    double bytes;    /* a call's mean */
    unsigned rounds; /* figures in each cell's ns */
    unsigned valid;  /* rounds that nothing disturbed */
    unsigned voided;
    unsigned reasons[DISTURBANCE_COUNT];
    struct reading pace; /* median of the rounds in ns */
    struct round *tried; /* all rounds, in their order */
    unsigned tried_count;
    unsigned *kept; /* numbers of the rounds in ns */
};

/* Told as things happen. A routine of NULL means the whole row, a pool of NULL that none was made. handed_by: the CPU
 * that hands lines over; -1: none does. */
struct listener {
    void *context;
    void (*row)(void *context, const struct row *row, const struct pool *pool, int handed_by);
    void (*trying)(void *context, const struct row *row, const char *routine);
    void (*skip)(void *context, const struct row *row, const char *routine, const char *reason);
    void (*wrong)(void *context, const struct row *row, const char *routine, const char *message);
    void (*fault)(void *context, const struct row *row, const char *routine, struct guarded_result how,
                  const char *message);
};

struct bench {
    const struct target_list *targets;
    struct host host;
    struct caches caches;
    struct pool *pools; /* one a thread; the first is the main thread's */
    unsigned pool_count;
    double clock_ns;      /* cost of one reading */
    struct cold cold;     /* made by the first row that asks for it */
    struct single single; /* likewise */
    struct pace pace;
    struct counters counters; /* of lane 0; a thread of 0: nothing is counted */
    uint64_t random;
    bool has_avx, has_xinuse; /* the latter: XGETBV tells which registers are in use */
};

void bench_init(struct bench *bench, const struct target_list *targets, const struct host *host, uint64_t seed,
                struct reading pace);

/* Returns EXIT_OK (also when nothing could be measured), or EXIT_FAILED after a crash or a hang: then the process
 * should end soon. Ends early when host_interrupted is set. Free the result in any case. */
int bench_row(struct bench *bench, const struct row *row, const struct listener *listener, struct result *result);
void result_free(struct result *result);

#endif
