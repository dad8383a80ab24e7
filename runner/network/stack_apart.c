/* via=stack ends=apart: the stack's ends are in two processes, this one and a child, each on a CPU of its own where
 * there are two. Packets go through memory that both share, so that sender and receiver use their time at once. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/host.h"
#include "parent.h"
#include "sides.h"
#include "stack_use.h"

enum { PATIENCE_MS = 3000, ROUTINE = 80, TURNS_A_LOOK = 1024, TURNS_OF_OUR_OWN = 4096 };

struct errand_apart {
    char name[ROUTINE];
    uint64_t messages;
    bool check;
};

struct result_apart {
    uint64_t end_ns;
    struct stack_work work;
    struct stack_counts counts;
    char failed[SAID];
};

static void *shared;
static size_t shared_bytes;
static pid_t receiver = -1;
static int control = -1;
static bool alone; /* one CPU for both: whoever waits makes room */
static uint64_t waiting_since;

/* A CPU that looks for packets all the time is what network cards' drivers in user space have; but whoever waits long
 * waits for a process that may want this CPU. */
static bool rest(unsigned idle)
{
    if (alone || idle > TURNS_OF_OUR_OWN)
        sched_yield();
    else
        __builtin_ia32_pause();
    if (idle == 1)
        waiting_since = clock_ns();
    return idle % TURNS_A_LOOK || (!host_interrupted && clock_ns() - waiting_since < PATIENCE_MS * 1000000ull);
}

static uint64_t carry(const struct system_row *row, const struct errand_apart *errand, struct result_apart *result)
{
    const char *failed = stack_choose(row, errand->name);
    result->work = stack_work_of(row, errand->messages);
    result->work.rest = rest;
    if (errand->check) {
        result->work.check = true;
        result->work.packet = stack_check_packet;
        stack_count();
    }
    const uint64_t begin = clock_ns();
    failed = failed ? failed : stack->carry_end(&result->work);
    result->end_ns = clock_ns();
    result->counts = stack_counted();
    snprintf(result->failed, sizeof result->failed, "%s", failed ? failed : "");
    return begin;
}

static bool put(const void *data, size_t length)
{
    return send(control, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool get(void *data, size_t length)
{
    struct pollfd wait = {.fd = control, .events = POLLIN};
    int ready;
    while ((ready = poll(&wait, 1, 2 * PATIENCE_MS)) < 0 && errno == EINTR && !host_interrupted)
        ;
    return ready > 0 && recv(control, data, length, MSG_WAITALL) == (ssize_t)length;
}

/* The receiver's life: it ends with its parent. */
static void be_receiver(const struct system_row *row, unsigned cpu)
{
    struct errand_apart errand;
    char said[SAID] = "";
    signal(SIGINT, SIG_IGN); /* the parent sees it */
    signal(SIGTERM, SIG_DFL);
    thread_pin(cpu);
    const char *failed = stack->open_end(STACK_MTU, true, shared, rest);
    snprintf(said, sizeof said, "%s", failed ? failed : "");
    if (!put(said, sizeof said) || failed)
        return;
    while (recv(control, &errand, sizeof errand, MSG_WAITALL) == sizeof errand) {
        static struct result_apart result;
        const char go = 1;
        if (!put(&go, 1)) /* awake: the sender may begin */
            return;
        carry(row, &errand, &result);
        if (!put(&result, sizeof result))
            return;
    }
}

static const char *open_apart(struct system_row *row)
{
    static char said[SAID];
    const struct host *host = row->host;
    int pair[2];
    const char *missing = stack_prepare(row);
    if (missing)
        return missing;
    shared_bytes = stack->shared;
    void *made = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (made == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        snprintf(said, sizeof said, "what two processes share: %s", strerror(errno));
        return said;
    }
    shared = made;
    alone = host->cpu_count == 1;
    fflush(NULL);
    const pid_t own = getpid();
    receiver = fork();
    if (receiver == 0) {
        close(pair[0]);
        control = pair[1];
        if (die_with(own))
            be_receiver(row, host->cpus[!alone]);
        _exit(0);
    }
    close(pair[1]);
    control = pair[0];
    if (receiver < 0)
        return "the receiver cannot be started";
    const char *failed = stack->open_end(STACK_MTU, false, shared, rest);
    if (!get(said, sizeof said))
        return "the receiver does not start";
    return *said ? said : failed;
}

static void close_apart(struct system_row *row)
{
    (void)row;
    if (stack)
        stack->close();
    if (control >= 0)
        close(control);
    if (receiver > 0) {
        kill(receiver, SIGKILL); /* nothing of it is to be kept */
        while (waitpid(receiver, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (shared)
        munmap(shared, shared_bytes);
    shared = NULL;
    control = receiver = -1;
}

/* Both sides; what the receiver found comes into `other`. */
static const char *run(const struct system_row *row, const char *name, uint64_t messages, bool check,
                       struct result_apart *own, struct result_apart *other, uint64_t *begin)
{
    struct errand_apart errand = {.messages = messages, .check = check};
    char go;
    snprintf(errand.name, sizeof errand.name, "%s", name);
    if (!put(&errand, sizeof errand) || !get(&go, 1))
        return "the receiver has ended";
    *begin = carry(row, &errand, own);
    if (!get(other, sizeof *other))
        return "the receiver has ended";
    return *own->failed ? own->failed : *other->failed ? other->failed : NULL;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    static struct result_apart own, other;
    const char *missing = stack_choose(row, name);
    uint64_t begin;
    if (missing)
        return missing;
    const char *failed = run(row, name, 5 * SOCKET_BUFFER / system_number(row, "size") + 2, true, &own, &other, &begin);
    const struct stack_counts both = {.copied = own.counts.copied + other.counts.copied,
                                      .summed = own.counts.summed + other.counts.summed,
                                      .bad_sum = own.counts.bad_sum || other.counts.bad_sum};
    own.work.wrong = other.work.wrong;
    return stack_verdict(failed, &own.work, &both, wrong);
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    static struct result_apart own, other;
    uint64_t begin;
    const char *failed = run(row, name, calls, false, &own, &other, &begin);
    if (failed)
        return failed;
    double *parts = figures->parts;
    figures->ns = (double)(other.end_ns - begin) / (double)calls;
    parts[PART_SENDER] = (double)own.work.sender_ns / (double)calls;
    parts[PART_RECEIVER] = (double)other.work.receiver_ns / (double)calls;
    parts[PART_SEGMENT] = SEGMENT;
    parts[PART_RESENT] = (double)own.work.resent;
    return NULL;
}

const struct way way_apart = {stack_names, open_apart, ready, sample, close_apart};
