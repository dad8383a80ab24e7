/* A token goes from a parent to its partner and back: through pipes as in the mail, by eventfd or by futex; the partner
 * is a child process or a thread, on the parent's CPU or on another. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "switch.h"

enum { WARM_TURNS = 200, LINE = 64 };

enum via { VIA_PIPE, VIA_EVENTFD, VIA_FUTEX };

struct post {
    _Alignas(LINE) _Atomic uint32_t flag; /* futex */
    int in, out;                          /* pipe and eventfd: the same number for the latter */
};

/* In memory that both sides share. posts[0] leads to the parent, posts[1] to the partner. */
struct table {
    struct post posts[2];
    _Atomic bool stop;
    enum via via;
    unsigned cpu;
    const struct turns *turns;
};

static char problem[160];

static const char *failed(const char *what)
{
    snprintf(problem, sizeof problem, "%s: %s", what, strerror(errno));
    return problem;
}

static bool give(struct table *table, int to)
{
    struct post *post = &table->posts[to];
    const uint64_t token = 1;
    if (table->via == VIA_PIPE)
        return write(post->in, &token, 1) == 1;
    if (table->via == VIA_EVENTFD)
        return write(post->in, &token, sizeof token) == sizeof token;
    atomic_store(&post->flag, 1);
    return syscall(SYS_futex, &post->flag, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0;
}

static bool take(struct table *table, int own)
{
    struct post *post = &table->posts[own];
    uint64_t token;
    if (table->via == VIA_PIPE)
        return read(post->out, &token, 1) == 1;
    if (table->via == VIA_EVENTFD)
        return read(post->out, &token, sizeof token) == sizeof token;
    while (!atomic_exchange(&post->flag, 0))
        if (syscall(SYS_futex, &post->flag, FUTEX_WAIT, 0, NULL, NULL, 0) < 0 && errno != EAGAIN)
            return false;
    return true;
}

static void serve(struct table *table)
{
    const struct turns *turns = table->turns;
    thread_pin(table->cpu);
    live_clear();
    if (turns->child_live)
        live_begin(turns->live, 1.5f);
    for (;;) {
        if (turns->child_live)
            live_turn(turns->live);
        if (turns->size)
            switch_copy(turns, 1);
        if (!take(table, 1) || atomic_load_explicit(&table->stop, memory_order_relaxed) || !give(table, 0))
            break;
    }
    live_clear();
}

static void *serve_as_thread(void *table)
{
    serve(table);
    return NULL;
}

/* The mail's loop. The first token is given before it, so that nobody waits for ever. */
static bool go(struct table *table, uint64_t count)
{
    const struct turns *turns = table->turns;
    while (count-- > 0) {
        if (turns->parent_live)
            live_turn(turns->live);
        if (turns->size)
            switch_copy(turns, 0);
        if (!take(table, 0) || !give(table, 1))
            return false;
    }
    return true;
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) ? NAN : (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool timed(struct table *table, clockid_t partner)
{
    const struct turns *turns = table->turns;
    struct system_figures *figures = turns->figures;
    live_clear();
    if (turns->parent_live)
        live_begin(turns->live, 1.25f);
    if (!give(table, 1) || !go(table, WARM_TURNS))
        return false;
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    const double partner_before = cpu_seconds(partner);
    const uint64_t begin = clock_ns();
    if (!go(table, turns->calls))
        return false;
    const uint64_t end = clock_ns();
    const uint64_t in_use = live_in_use();
    getrusage(RUSAGE_THREAD, &after);
    const double calls = (double)turns->calls;
    figures->ns = (double)(end - begin) / calls;
    figures_of_usage(turns, &before, &after);
    figures->parts[PART_PARTNER] = (cpu_seconds(partner) - partner_before) * 1e9 / calls;
    figures->parts[PART_IN_USE] = live_told() ? (double)in_use : NAN;
    live_clear();
    return true;
}

static const char *with_process(struct table *table)
{
    const pid_t parent = getpid(), child = fork();
    if (child < 0)
        return failed("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            serve(table);
        _exit(0);
    }
    clockid_t clock;
    bool done = clock_getcpuclockid(child, &clock) == 0 && timed(table, clock);
    const char *why = done ? NULL : failed("handing over to a process");
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return why;
}

static const char *with_thread(struct table *table)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, serve_as_thread, table);
    if (errno)
        return failed("starting a thread");
    clockid_t clock;
    bool done = pthread_getcpuclockid(thread, &clock) == 0 && timed(table, clock);
    const char *why = done ? NULL : failed("handing over to a thread");
    /* After the last turn the partner has a token more than it has given back; it looks when it has taken it. */
    atomic_store(&table->stop, true);
    give(table, 1);
    pthread_join(thread, NULL);
    return why;
}

static const char *open_posts(struct table *table, const char *via)
{
    for (int i = 0; i < 2; i++)
        table->posts[i] = (struct post){.in = -1, .out = -1};
    if (strcmp(via, "futex") == 0) {
        table->via = VIA_FUTEX;
        return NULL;
    }
    table->via = strcmp(via, "pipe") == 0 ? VIA_PIPE : VIA_EVENTFD;
    for (int i = 0; i < 2; i++) {
        struct post *post = &table->posts[i];
        if (table->via == VIA_PIPE) {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC))
                return failed("pipe");
            post->out = ends[0];
            post->in = ends[1];
        } else if ((post->in = post->out = eventfd(0, EFD_CLOEXEC)) < 0) {
            return failed("eventfd");
        }
    }
    return NULL;
}

static void close_posts(struct table *table)
{
    for (int i = 0; i < 2; i++) {
        if (table->posts[i].in >= 0)
            close(table->posts[i].in);
        if (table->posts[i].out >= 0 && table->posts[i].out != table->posts[i].in)
            close(table->posts[i].out);
    }
}

const char *handover_sample(const struct system_row *row, const struct turns *turns)
{
    struct table *table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return failed("memory for the handing over");
    const char *why = open_posts(table, system_word(row, "via"));
    table->turns = turns;
    table->cpu = row->host->cpus[system_is(row, "place", "apart")];
    if (!why)
        why = system_is(row, "partners", "threads") ? with_thread(table) : with_process(table);
    close_posts(table);
    munmap(table, sizeof *table);
    return why;
}
