#include "surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void surroundings_speak_plainly(void)
{
    /* Of this thread, and so before that of the process, which anybody may set at any time. */
    uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void surroundings_keep(struct surroundings *s)
{
    fflush(stdout);
    for (int fd = 0; fd < 3; fd++) {
        s->standard[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (s->standard[fd] < 0 && errno != EBADF)
            s->standard[fd] = -2;
    }
    s->directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    sigprocmask(SIG_SETMASK, NULL, &s->blocked);
    sched_getaffinity(0, sizeof s->cpus, &s->cpus);
    for (int signo = 1; signo < 32; signo++)
        sigaction(signo, NULL, &s->actions[signo]);
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        getitimer(which, &s->timers[which]);
    for (int of = 0; of < RLIM_NLIMITS; of++)
        getrlimit(of, &s->limits[of]);
    fegetenv(&s->floating_point);
    s->locale = uselocale((locale_t)0);
    if (prctl(PR_GET_TSC, &s->time_stamps) != 0)
        s->time_stamps = PR_TSC_ENABLE;
    s->dumpable = prctl(PR_GET_DUMPABLE);
    s->huge_pages = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
}

/* A hard limit that was lowered stays where we may not raise it; the soft one then goes as high as that. */
static void restore_limit(int of, const struct rlimit *before)
{
    struct rlimit now;
    if (setrlimit(of, before) == 0 || getrlimit(of, &now) != 0)
        return;
    now.rlim_cur = before->rlim_cur < now.rlim_max ? before->rlim_cur : now.rlim_max;
    setrlimit(of, &now);
}

/* The C library keeps its own timers to itself; the kernel counts all of a process from 0 on. */
void surroundings_stop_timers(void)
{
    enum { MOST = 1024 };
    for (int timer = 0; timer < MOST; timer++)
        syscall(SYS_timer_delete, timer);
    const struct itimerval none = {0};
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        setitimer(which, &none, NULL);
}

void surroundings_restore(struct surroundings *s)
{
    prctl(PR_SET_TSC, s->time_stamps); /* first: the clock may be read by it */
    fesetenv(&s->floating_point);
    uselocale(s->locale);
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        setitimer(which, &s->timers[which], NULL);
    for (int of = 0; of < RLIM_NLIMITS; of++)
        restore_limit(of, &s->limits[of]);
    fflush(stdout); /* what a constructor has printed goes where its own descriptor 1 went */
    clearerr(stdout);
    for (int fd = 0; fd < 3; fd++) {
        if (s->standard[fd] == -1)
            close(fd);
        else if (s->standard[fd] >= 0 && dup2(s->standard[fd], fd) < 0)
            exit(1); /* there is nowhere to say why */
        else if (s->standard[fd] >= 0)
            close(s->standard[fd]);
    }
    if (s->directory >= 0) {
        if (fchdir(s->directory) != 0)
            perror("wherry-run: cannot go back to the directory it was started in");
        close(s->directory);
    }
    for (int signo = 1; signo < 32; signo++)
        if (signo != SIGKILL && signo != SIGSTOP)
            sigaction(signo, &s->actions[signo], NULL);
    sched_setaffinity(0, sizeof s->cpus, &s->cpus);
    munlockall(); /* memory that is new to a row shall have no pages */
    prctl(PR_SET_DUMPABLE, s->dumpable);
    prctl(PR_SET_THP_DISABLE, s->huge_pages, 0, 0, 0);
    sigprocmask(SIG_SETMASK, &s->blocked, NULL);
}
