/* Threads that do the same job at the same time, each pinned to a CPU of its own. */
#ifndef MEASURE_CREW_H
#define MEASURE_CREW_H

#include <stdbool.h>

#include "guarded.h"

struct crew;

/* job(lane, context) for lane 0 ... count - 1. */
typedef void crew_job(unsigned lane, void *context);

/* Returns NULL when the threads cannot be had. */
struct crew *crew_start(unsigned count, const unsigned *cpus);

/* Runs the job on every thread and waits for all, at most limit_ms. The first crash is told, or that one hung; then the
 * process should end, for that thread is lost. The calling thread sleeps meanwhile. */
struct guarded_result crew_run(struct crew *crew, crew_job *job, void *context, unsigned limit_ms);

/* Inside a job: goes on when every thread has come here. Spins, so that all begin within nanoseconds. */
void crew_meet(struct crew *crew);

/* Ends the threads; only when the last job ended well. */
void crew_stop(struct crew *crew);

#endif
