/* Events that the processor or the kernel counts, around the timed calls only: perf_event_open, one group, user mode.
 */
#ifndef MEASURE_COUNTERS_H
#define MEASURE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { COUNTERS = 4 };

/* Events that are counted together. `hardware` is what one wants to know; `software` is there wherever perf events are,
 * in a virtual machine too; `none` counts nothing. */
struct counter_set {
    const char *name;
    struct {
        const char *name; /* NULL: there are fewer */
        uint32_t type;
        uint64_t config;
    } events[COUNTERS];
};

/* NULL when there is no such set. */
const struct counter_set *counters_find(const char *name);

struct counters {
    const struct counter_set *set;
    pid_t thread;        /* whose calls are counted; 0: nobody's, closed */
    int files[COUNTERS]; /* -1: this one cannot be had; the first of the others leads the group */
    int leader;
    uint64_t ids[COUNTERS];
    uint64_t begun[COUNTERS + 2];
    char reason[240]; /* why there are none, or not all; empty when there are */
};

/* Opens the set for the calling thread. False when there are none; `reason` says why. */
bool counters_open(struct counters *counters, const struct counter_set *set);
void counters_close(struct counters *counters);

/* Opens them anew when another thread does the calls than before. */
void counters_follow(struct counters *counters);

/* Between the two is what counts. The second adds to counts[], or makes them NAN: an event that cannot be had, or a
 * group that shared the counters with somebody else meanwhile. */
void counters_begin(struct counters *counters);
void counters_end(struct counters *counters, double *counts);

/* Why perf_event_open has failed with this errno, and what to do; `paranoid` as in kernel.perf_event_paranoid, -2 when
 * it cannot be read. */
void counters_explain(char *text, unsigned long room, const char *what, int error, int paranoid);

#endif
