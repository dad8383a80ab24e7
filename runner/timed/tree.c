#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long processes may outlive the program that started them, and how long one may take to obey SIGTERM. */
enum { LINGER_MS = 1000, OBEY_MS = 2000 };

static pid_t program;
static volatile sig_atomic_t told_to_end, out_of_time;
static volatile unsigned stops;
static volatile uint64_t stood_ns; /* of all stops */
static const int heard[] = {SIGALRM, SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCHLD};
enum { HEARD = sizeof heard / sizeof heard[0] };
static struct sigaction inherited[HEARD]; /* what the program is to begin with: nohup has one of them ignored */
static sigset_t inherited_mask;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Time that passes while we run. */
static uint64_t running_ns(void) { return now_ns() - stood_ns; }

static void tell_program(int signo)
{
    if (program > 0) {
        kill(-program, signo);
        kill(program, signo); /* it may have gone to another group */
    }
}

/* Whoever is told twice, or has told the program and waited, has it killed: it may ignore all else. */
static void on_signal(int signo)
{
    const bool again = signo == SIGALRM ? out_of_time || told_to_end : told_to_end;
    if (signo != SIGALRM)
        told_to_end = 1;
    else if (!told_to_end)
        out_of_time = 1;
    tell_program(again ? SIGKILL : SIGTERM);
    alarm(OBEY_MS / 1000);
}

/* Ctrl-Z reaches our group, and the program has one of its own: it stands still as long as we do, and so does the
 * limit. */
static void on_stop(int signo)
{
    (void)signo;
    const int error = errno;
    const uint64_t begin = now_ns();
    const struct itimerval none = {0};
    struct itimerval left;
    setitimer(ITIMER_REAL, &none, &left);
    tell_program(SIGSTOP);
    raise(SIGSTOP);
    tell_program(SIGCONT);
    setitimer(ITIMER_REAL, &left, NULL);
    stood_ns += now_ns() - begin;
    stops++;
    errno = error;
}

/* None of them comes before the program is there to be told and the limit is set, nor while another is at it: each sets
 * the one clock that there is. */
static void listen(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: a wait must notice */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < HEARD; i++)
        sigaddset(&action.sa_mask, heard[i]);
    sigprocmask(SIG_BLOCK, &action.sa_mask, &inherited_mask);
    for (size_t i = 0; i < HEARD; i++) {
        /* Ignored, SIGCHLD would keep from us how the program ended. */
        action.sa_handler = heard[i] == SIGTSTP ? on_stop : heard[i] == SIGCHLD ? SIG_DFL : on_signal;
        sigaction(heard[i], &action, &inherited[i]);
        if (heard[i] == SIGTSTP && inherited[i].sa_handler == SIG_IGN) /* no shell is there to go on with us */
            sigaction(heard[i], &inherited[i], NULL);
    }
}

static void become(const struct tree_order *order, int report)
{
    setpgid(0, 0); /* so that one kill reaches all that stay in the group */
    for (size_t i = 0; i < HEARD; i++)
        sigaction(heard[i], &inherited[i], NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
    execvp(order->argv[0], order->argv);
    const int error = errno;
    if (write(report, &error, sizeof error) < 0) { /* the reader then sees the exit status alone */
    }
    _exit(127);
}

/* The children that this process has now; those whose parents ended are among them. Ends them when asked to. */
static unsigned children(int signo)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    unsigned count = 0;
    int pid;
    while (file && fscanf(file, "%d", &pid) == 1) {
        count++;
        if (signo)
            kill(pid, signo);
    }
    if (file)
        fclose(file);
    return count;
}

static uint64_t microseconds(struct timeval t) { return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec; }

static void count(struct tree_figures *figures, const struct rusage *used)
{
    const uint64_t peak = (uint64_t)used->ru_maxrss * 1024;
    figures->user_us += microseconds(used->ru_utime);
    figures->system_us += microseconds(used->ru_stime);
    figures->peak_bytes = peak > figures->peak_bytes ? peak : figures->peak_bytes;
    figures->processes++;
}

/* Returns 0, or why nothing is known of it. */
static int wait_for_program(struct tree_figures *figures, uint64_t begin)
{
    for (;;) {
        int status;
        struct rusage used;
        const pid_t pid = wait4(-1, &status, 0, &used);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return errno;
        count(figures, &used);
        if (pid == program) {
            figures->elapsed_ns = running_ns() - begin;
            figures->status = status;
            return 0;
        }
    }
}

/* What the program has left running: given a moment, counted when it ends by itself, else ended. */
static void wait_for_rest(struct tree_figures *figures)
{
    const uint64_t begin = running_ns();
    bool told = false;
    for (;;) {
        struct rusage used;
        const pid_t pid = wait4(-1, NULL, WNOHANG, &used);
        if (pid > 0) {
            count(figures, &used);
            continue;
        }
        if (pid < 0 && errno == ECHILD)
            return;
        const uint64_t waited_ms = (running_ns() - begin) / 1000000;
        if (!told && (waited_ms >= LINGER_MS || told_to_end || out_of_time)) {
            told = true;
            figures->left = children(SIGTERM);
            kill(-program, SIGTERM);
        }
        if (waited_ms >= LINGER_MS + OBEY_MS) {
            children(SIGKILL);
            kill(-program, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int tree_run(const struct tree_order *order, struct tree_figures *figures)
{
    int report[2];
    *figures = (struct tree_figures){0};
    /* Whoever loses its parent becomes our child; when ours ends, so do we. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    listen();
    /* Here, and not in the child: what that touches before it executes the program counts as the program's memory. */
    for (char **set = order->set; *set; set++)
        if (strchr(*set, '='))
            putenv(*set);
        else
            unsetenv(*set);
    const uint64_t begin = running_ns();
    program = fork();
    if (program < 0)
        return errno;
    if (program == 0)
        become(order, report[1]);
    setpgid(program, program); /* whichever of the two comes first */
    close(report[1]);
    if (order->limit_s > 0) {
        const time_t whole = (time_t)order->limit_s;
        const struct itimerval at = {.it_value = {whole, (suseconds_t)((order->limit_s - (double)whole) * 1e6) + 1}};
        setitimer(ITIMER_REAL, &at, NULL);
    }
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
    ssize_t got;
    do
        got = read(report[0], &figures->start_error, sizeof figures->start_error);
    while (got < 0 && errno == EINTR);
    close(report[0]);
    const int error = wait_for_program(figures, begin);
    wait_for_rest(figures);
    figures->timed_out = out_of_time;
    figures->interrupted = told_to_end;
    figures->stops = stops;
    return error;
}
