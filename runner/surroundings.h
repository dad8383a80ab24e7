/* What the constructors of a peer may change for the whole process, kept before they run and put back after them. */
#ifndef RUNNER_SURROUNDINGS_H
#define RUNNER_SURROUNDINGS_H

#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

struct surroundings {
    int standard[3], directory; /* duplicates; -1: it was not open, -2: no room for a duplicate */
    sigset_t blocked;
    cpu_set_t cpus;
    struct sigaction actions[32];
    struct itimerval timers[3];
    struct rlimit limits[RLIM_NLIMITS];
    fenv_t floating_point;
    locale_t locale;
    int time_stamps, dumpable, huge_pages; /* as prctl has them */
};

/* What has been printed so far is written first. */
void surroundings_keep(struct surroundings *s);
void surroundings_restore(struct surroundings *s);

/* All timers of the process, at once: what a peer has set may not wait for the rest. Wherry has none while it loads. */
void surroundings_stop_timers(void);

/* The process' text is that of the C locale, whichever somebody else sets: numbers have points. */
void surroundings_speak_plainly(void);

#endif
