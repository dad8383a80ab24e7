#include "handover.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64 };

struct handover {
    unsigned cpu;
    bool started;
    pthread_t thread;
    sem_t wake, rests;
    atomic_bool awake;
    atomic_uint asked, done; /* how often lines were asked for, and handed over */
    /* what is asked for */
    const struct walk *walk;
    enum sides sides;
    uint64_t calls;
};

static struct handover handovers[HOST_CPUS];
static volatile unsigned char sink;

static void use_lines(const char *at, size_t n, bool store)
{
    char *line = (char *)((uintptr_t)at & -(uintptr_t)LINE);
    unsigned char sum = 0;
    for (const char *end = at + n; line < end; line += LINE) {
        volatile unsigned char *byte = (volatile unsigned char *)line;
        if (store)
            *byte = (unsigned char)(*byte + 1);
        else
            sum ^= *byte;
    }
    sink = sum;
}

static void use_calls(const struct handover *own)
{
    struct walk walk = *own->walk;
    for (uint64_t left = own->calls; left; left--) {
        const struct one_call call = walk_next(&walk);
        if (own->sides & SIDES_SOURCE)
            use_lines(call.src, call.n, true);
        if (own->sides & SIDES_DESTINATION)
            use_lines(call.dst, call.n, false);
    }
}

static void wait_for(sem_t *what)
{
    while (sem_wait(what) != 0)
        ;
}

static void *work(void *argument)
{
    struct handover *own = argument;
    thread_pin(own->cpu);
    for (;;) {
        wait_for(&own->wake);
        for (unsigned done = atomic_load(&own->done); atomic_load(&own->awake);) {
            if (atomic_load(&own->asked) == done) {
                __builtin_ia32_pause();
                continue;
            }
            use_calls(own);
            atomic_store(&own->done, ++done);
        }
        sem_post(&own->rests);
    }
    return NULL;
}

/* Signals are the measuring thread's: it leaves a routine that hangs or crashes out of the handler. */
static bool start(struct handover *own, unsigned cpu)
{
    sigset_t all, before;
    own->cpu = cpu;
    sem_init(&own->wake, 0, 0);
    sem_init(&own->rests, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    own->started = pthread_create(&own->thread, NULL, work, own) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return own->started;
}

/* The nearest by number, which mostly shares a last-level cache. */
static int other_core(const struct host *host)
{
    int nearest = -1;
    for (unsigned i = 1; i < host->cpu_count; i++) {
        const int cpu = (int)host->cpus[i], own = (int)host->cpu;
        if (!cpus_share_core(host->cpu, host->cpus[i]) && (nearest < 0 || abs(cpu - own) < abs(nearest - own)))
            nearest = cpu;
    }
    return nearest;
}

static bool may_use(const struct host *host, int cpu)
{
    for (unsigned i = 1; i < host->cpu_count; i++)
        if (host->cpus[i] == (unsigned)cpu)
            return true;
    return false;
}

struct handover *handover_to(const struct host *host, const struct row *row, const char **problem)
{
    static char text[160];
    const int cpu = row->handed_by < 0 ? other_core(host) : row->handed_by;
    *problem = NULL;
    if (cpu < 0)
        *problem = "handed needs a CPU of another core, and this process may use none";
    else if (!may_use(host, cpu)) {
        const bool own = (unsigned)cpu == host->cpu;
        snprintf(text, sizeof text, "handed_by=%d: this process %s; leave it out, or give another one", cpu,
                 own ? "measures on that CPU" : "may not use such a CPU");
        *problem = text;
    } else if (!handovers[cpu].started && !start(&handovers[cpu], (unsigned)cpu))
        *problem = "cannot start the thread that hands lines over";
    return *problem ? NULL : &handovers[cpu];
}

unsigned handover_cpu(const struct handover *handover) { return handover->cpu; }

void handover_begin(struct handover *handover)
{
    atomic_store(&handover->awake, true);
    sem_post(&handover->wake);
}

void handover_end(struct handover *handover)
{
    atomic_store(&handover->awake, false);
    wait_for(&handover->rests);
}

void handover_lines(struct handover *handover, const struct walk *walk, enum sides sides, uint64_t calls)
{
    handover->walk = walk;
    handover->sides = sides;
    handover->calls = calls;
    const unsigned turn = atomic_fetch_add(&handover->asked, 1) + 1;
    while (atomic_load(&handover->done) != turn)
        __builtin_ia32_pause();
}
