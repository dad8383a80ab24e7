/* Which other CPUs take execution units from this one. The kernel's topology is what firmware or a hypervisor says;
 * this asks by trial: fixed work that fills every unit, alone and beside the same work on another CPU. */
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "measure/host.h"

enum {
    TURNS = 8000,          /* some 50 us, far below what a scheduler gives at once */
    PART = 100,            /* turns after which the other side looks whether it should stop */
    WANTED = 6,            /* slices of either kind, of which the fastest counts: disturbances only add */
    TRIES = 60,            /* slices until then */
    MOST_CPUS = 64,        /* others that are tried */
    LIMIT_NS = 1000000000, /* where all are busy each slice waits for its turn; who is left then is not told */
};

/* Eight sums that do not wait for one another: as many additions at once as any core can make. */
static __attribute__((noinline)) void fill_units(uint64_t turns)
{
    uint64_t a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1;
    const uint64_t step = 3;
    __asm__ volatile(".p2align 5\n"
                     "1:\n\t"
                     ".rept 8\n\t"
                     "addq %9, %0\n\taddq %9, %1\n\taddq %9, %2\n\taddq %9, %3\n\t"
                     "addq %9, %4\n\taddq %9, %5\n\taddq %9, %6\n\taddq %9, %7\n\t"
                     ".endr\n\t"
                     "decq %8\n\t"
                     "jnz 1b"
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h), "+r"(turns)
                     : "r"(step)
                     : "cc");
}

struct other {
    unsigned cpu;
    bool pinned;
    sem_t begin, rests;
    atomic_bool stop, ends;
    atomic_uint parts; /* of work done, ever */
};

static void wait_for(sem_t *what)
{
    while (sem_wait(what) != 0)
        ;
}

static void *work_beside(void *argument)
{
    struct other *other = argument;
    other->pinned = thread_pin(other->cpu);
    sem_post(&other->rests);
    for (;;) {
        wait_for(&other->begin);
        if (atomic_load(&other->ends))
            return NULL;
        while (!atomic_load(&other->stop)) {
            fill_units(PART);
            atomic_fetch_add(&other->parts, 1);
        }
        sem_post(&other->rests);
    }
}

static double slice(void)
{
    const uint64_t began = clock_ns();
    fill_units(TURNS);
    return (double)(clock_ns() - began);
}

/* One slice beside the other's work; NAN where the other CPU was busy with something else. */
static double slice_beside(struct other *other)
{
    enum { PATIENCE_NS = 2000000 };
    atomic_store(&other->stop, false);
    unsigned before = atomic_load(&other->parts);
    sem_post(&other->begin);
    const uint64_t asked = clock_ns();
    while (atomic_load(&other->parts) == before && clock_ns() - asked < PATIENCE_NS)
        __builtin_ia32_pause();
    before = atomic_load(&other->parts);
    const double took = slice();
    const unsigned done = atomic_load(&other->parts) - before;
    atomic_store(&other->stop, true);
    wait_for(&other->rests);
    /* Both do the same: who shares is as slow as we are, who does not is as fast. */
    return done >= TURNS / PART / 2 ? took : NAN;
}

/* How many times as long work takes here beside work on `cpu`; NAN when that cannot be told in time. */
static double slowed_by(unsigned cpu, uint64_t until_ns)
{
    if (clock_ns() >= until_ns)
        return NAN;
    struct other other = {.cpu = cpu};
    sem_init(&other.begin, 0, 0);
    sem_init(&other.rests, 0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_beside, &other) != 0)
        return NAN;
    wait_for(&other.rests);
    double alone = INFINITY, beside = INFINITY;
    for (unsigned try = 0, found = 0; other.pinned && try < TRIES && found < WANTED && clock_ns() < until_ns; try++) {
        const double took = slice_beside(&other);
        found += !isnan(took);
        beside = fmin(beside, took);
        alone = fmin(alone, slice());
    }
    atomic_store(&other.ends, true);
    sem_post(&other.begin);
    pthread_join(thread, NULL);
    sem_destroy(&other.begin);
    sem_destroy(&other.rests);
    return isinf(beside) ? NAN : beside / alone;
}

int command_sharing(int argc, char **argv)
{
    const bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: wherry-run sharing [--json]\n\n"
             "How many times as long fixed work takes on the first CPU while each of the others works, too: about\n"
             "1 on a core of its own, nearly 2 for two threads of one core (a Zen 4). It is of this moment, since\n"
             "a hypervisor may move its guest's CPUs, and of a quiet machine: beside other programs both kinds\n"
             "of work are slow.");
        return EXIT_OK;
    }
    if (argc > 1 && !json)
        return misuse("sharing: unknown argument '%s'; it takes --json only",
                      argv[argc > 2 && !strcmp(argv[1], "--json") ? 2 : 1]);
    static struct host host;
    const char *wrong = host_pin(&host, NULL);
    if (wrong)
        return misuse("sharing: %s", wrong);
    /* Always the same one, or no two runs could be compared. */
    unsigned first = host.cpu;
    for (unsigned i = 1; i < host.cpu_count; i++)
        first = host.cpus[i] < first ? host.cpus[i] : first;
    if (!thread_pin(first))
        return misuse("sharing: this process may not run on CPU %u any more; try again", first);
    const uint64_t until_ns = clock_ns() + LIMIT_NS;
    if (json) {
        json_begin("sharing");
        json_uint("cpu", first);
        json_open_array("others");
    }
    for (unsigned i = 0, tried = 0; i < host.cpu_count && tried < MOST_CPUS; i++) {
        if (host.cpus[i] == first)
            continue;
        tried++;
        const double ratio = slowed_by(host.cpus[i], until_ns);
        if (json) {
            json_open(NULL);
            json_uint("cpu", host.cpus[i]);
            json_double("ratio", ratio);
            json_close();
        } else if (isnan(ratio)) {
            printf("CPU %u beside CPU %u: not told, since that one was busy\n", first, host.cpus[i]);
        } else {
            printf("CPU %u beside CPU %u: %.2f times as long\n", first, host.cpus[i], ratio);
        }
    }
    if (json) {
        json_close_array();
        json_end();
    } else if (host.cpu_count == 1) {
        puts("There is no other CPU that this process may use.");
    }
    return EXIT_OK;
}
