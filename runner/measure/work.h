/* What bench.c, sample.c and rounds.c share: how a row is measured. */
#ifndef MEASURE_WORK_H
#define MEASURE_WORK_H

#include "bench.h"
#include "crew.h"
#include "handover.h"

/* What one row needs while it is measured. */
struct work {
    struct bench *bench;
    const struct row *row;
    struct crew *crew;         /* NULL: one thread, this one */
    struct handover *handover; /* NULL: nobody else uses the row's lines */
    unsigned limit_ms;         /* for anything that is not a sample of known length */
    /* of the step under way */
    struct cell *cell;
    uint64_t calls;
    double percentile; /* of calls that are timed one by one; else 0 */
    size_t first_size;
    uint64_t *elapsed;      /* ns, by lane */
    struct figures figures; /* of the sample under way */
    struct watch *watches;
    const char **problems;
    const char *message;
};

/* Runs a job on every lane: guarded in this thread when there is one, or by the crew. */
struct guarded_result on_lanes(struct work *work, crew_job *job, unsigned limit_ms);

/* Times `calls` calls; work->figures tells. */
struct guarded_result sample(struct work *work, struct cell *cell, uint64_t calls);

/* Finds out about how long a call takes: cell->call_ns. */
struct guarded_result calibrate(struct work *work, struct cell *cell);

/* Verifies the cell's routine in the row's memory; work->message is NULL, or what is wrong. */
struct guarded_result check(struct work *work, struct cell *cell);

/* Adds the cell for the noise floor and gives each its count of calls. */
void add_second(const struct row *row, struct result *result);
void choose_calls(const struct work *work, struct result *result);

/* Room for every round in the result and its cells; result_free gives it back. False: there is none. */
bool result_make_room(struct result *result, const struct row *row);

/* All rounds. Returns the cell that crashed or hung, or NULL; *how tells. */
struct cell *measure_rounds(struct work *work, struct result *result, struct guarded_result *how);

#endif
