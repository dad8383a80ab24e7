#include "child.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

double child_processor_time(pid_t pid)
{
    clockid_t its;
    struct timespec t;
    if (clock_getcpuclockid(pid, &its) != 0 || clock_gettime(its, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct threads {
    unsigned all, hold;
};

/* Of the child's threads: how many there are, and of how many this file of /proc tells what is asked for. */
static struct threads threads_that(bool (*holds)(const char *text, int about), pid_t pid, const char *file, int about)
{
    char path[300], text[256];
    struct threads found = {0};
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (const struct dirent *one; threads && (one = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/%s", (int)pid, one->d_name, file);
        FILE *its = one->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (!its)
            continue;
        text[fread(text, 1, sizeof text - 1, its)] = '\0';
        fclose(its);
        found.all++;
        found.hold += holds(text, about);
    }
    if (threads)
        closedir(threads);
    return found;
}

static bool sleeps(const char *stat, int unused)
{
    (void)unused;
    const char *state = strrchr(stat, ')'); /* a name may have anything in it */
    return state && strncmp(state, ") S", 3) == 0;
}

bool child_asleep(pid_t pid)
{
    const struct threads of = threads_that(sleeps, pid, "stat", 0);
    return of.all > 0 && of.hold == of.all;
}

bool child_out_of_time(int status, const struct rusage *used)
{
    struct rlimit limit;
    if (!WIFSIGNALED(status) || getrlimit(RLIMIT_CPU, &limit) != 0)
        return false;
    if (WTERMSIG(status) == SIGXCPU)
        return limit.rlim_cur != RLIM_INFINITY;
    uint64_t us = (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000 +
                  (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
    return WTERMSIG(status) == SIGKILL && limit.rlim_max != RLIM_INFINITY && us / 1000000 >= limit.rlim_max;
}

int child_stopped_by(pid_t pid)
{
    siginfo_t info = {0};
    const int looked = waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT);
    return looked == 0 && info.si_pid == pid ? info.si_status : 0;
}

/* Whether this thread stands in the system call by which it sent the process that signal. */
static bool sends(const char *syscall, int signo)
{
    long number;
    unsigned long long to, second, third;
    if (sscanf(syscall, "%ld %llx %llx %llx", &number, &to, &second, &third) != 4)
        return false;
    if (number == SYS_tgkill)
        return third == (unsigned)signo;
    return (number == SYS_kill || number == SYS_tkill || number == SYS_rt_sigqueueinfo) && second == (unsigned)signo;
}

bool child_stopped_itself(pid_t pid, int signo) { return threads_that(sends, pid, "syscall", signo).hold > 0; }
