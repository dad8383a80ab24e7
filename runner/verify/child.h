/* What the system tells of a child that runs, stands or has ended. */
#ifndef RUNNER_VERIFY_CHILD_H
#define RUNNER_VERIFY_CHILD_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Seconds of all its threads; 0 where nobody tells. */
double child_processor_time(pid_t pid);
/* Whether every thread of it sleeps. One that waits for a CPU or a disk, or was stopped, would go on by itself, however
 * long that takes. */
bool child_asleep(pid_t pid);
/* The signal that has stopped it, or 0. */
int child_stopped_by(pid_t pid);
/* Whether a stopped process has sent itself that signal; not so where it was somebody else's, as Ctrl-Z is, after which
 * it goes on. */
bool child_stopped_itself(pid_t pid, int signo);
/* Whether the limit on processor time has ended a child: SIGXCPU at the soft limit, SIGKILL at the hard one. */
bool child_out_of_time(int status, const struct rusage *used);

#endif
