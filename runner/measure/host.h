/* The machine around a measurement: clock, pinning, and what disturbs a round. */
#ifndef MEASURE_HOST_H
#define MEASURE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC, which the kernel answers without a system call wherever the TSC can be trusted. */
uint64_t clock_ns(void);
/* What one reading costs. */
double clock_cost_ns(void);
/* The shortest of some steps that it takes, 1 where they are finer than a reading; 0: it stands still. Looked at once.
 */
uint64_t clock_step_ns(void);
/* NULL, or why nothing can be timed by it: it stands still or its steps are too coarse. Static buffer. */
const char *clock_unfit(void);

enum { HOST_CPUS = 4096 };

struct host {
    unsigned cpu;             /* where the main thread is pinned */
    unsigned cpus[HOST_CPUS]; /* every CPU this process may use; cpu is the first */
    unsigned cpu_count;
};

/* Pins the calling thread to `pin` (NULL: the CPU it runs on) and fills *host. Returns NULL, or what is wrong. */
const char *host_pin(struct host *host, const char *pin);

/* The line with which every command that measures rows begins: event `start`, who runs where and by which clock, and
 * `seed`, of all random choices. The caller adds what is its own and ends it. */
void host_put_start(const struct host *host, uint64_t seed);

/* Pins the calling thread. */
bool thread_pin(unsigned cpu);

/* Do two CPUs belong to one core, as the kernel tells? False where it does not. */
bool cpus_share_core(unsigned cpu, unsigned other);

enum disturbance { UNDISTURBED, MIGRATED, DESCHEDULED, STOLEN, CONTENDED, DISTURBANCE_COUNT };
extern const char *const disturbance_names[DISTURBANCE_COUNT];

/* What the kernel has counted against the calling thread and its CPU so far. */
struct watch {
    unsigned cpu;
    long switches;
    uint64_t steal;
};

void watch_read(struct watch *watch, unsigned cpu);
/* What has come between two readings, the gravest first; contention is not seen by it, but by pace.h. */
enum disturbance watch_compare(const struct watch *before, const struct watch *after);

/* Set by SIGINT and SIGTERM once host_catch_signals has been called; the signal's number. */
extern volatile int host_interrupted;
void host_catch_signals(void);
/* Ends the process by the signal that interrupted it. */
void host_die_of_signal(void);

/* The next line of standard input; NULL when there is none, or, with *endless set, when it is longer than any row is:
 * a device or a file of another kind, which would fill the memory. */
const char *host_row(bool *endless);

#endif
