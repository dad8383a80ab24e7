/* Children that are to end with who started them. */
#ifndef RUNNER_PARENT_H
#define RUNNER_PARENT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

/* In the child. False: the parent had ended before the kernel was asked to tell. */
static inline bool die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent;
}

#endif
