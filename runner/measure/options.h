/* The options of measure and sizes. */
#ifndef MEASURE_OPTIONS_H
#define MEASURE_OPTIONS_H

#include "counters.h"
#include "host.h"
#include "pace.h"
#include "row.h"
#include "target.h"

enum { OPTIONS_MEASURE, OPTIONS_SIZES };

struct options {
    uint64_t seed;
    struct reading pace;                /* zeros: not known */
    unsigned rounds;                    /* 0: not given */
    const struct counter_set *counters; /* what to count */
    bool raw;                           /* all rounds are told, not only those that count */
    const char *routines[ROW_ROUTINES]; /* --routine, then the names of --peer */
    size_t routine_count;
    const char *peers[ROW_ROUTINES];
    size_t peer_count;
    const char *plans[ROW_ROUTINES];
    size_t plan_count;
    size_t sizes[ROW_ROUTINES];
    size_t size_count;
};

/* Parses, loads peers into *targets (after all that is built in) and pins. Returns -1 to go on, else the status to end
 * with. */
int options_parse(struct options *options, int argc, char **argv, struct target_list *targets, struct host *host,
                  const char *help, int command);

/* NULL, or a line about the first name that nobody has ever heard of, or that comes twice. */
const char *options_unknown_name(const struct target_list *targets, const char *const *names, size_t count);

#endif
