#include "copiers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "measure/caches.h"

struct copier {
    pthread_t thread;
    unsigned cpu;
    bool started;
    unsigned char *from, *to;
    double rate; /* of the last time, bytes a nanosecond */
};

static struct copier copiers[HOST_CPUS];
static unsigned count, same_core;
static size_t room; /* of one buffer */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static unsigned turn; /* jobs given so far */
static unsigned resting;
static bool ending;
static const struct target *job;
static size_t job_block;
static atomic_uint under_way;
static atomic_bool enough;

/* A byte that is never zero, so that what was not copied to a zeroed buffer shows, and differs from line to line. */
static unsigned char content_at(size_t at) { return (unsigned char)(1 + (at * 2654435761u >> 7) % 255); }

/* Each fills its own buffers: memory is taken where the thread that touches it first runs. */
static void fill(struct copier *own)
{
    for (size_t i = 0; i < room; i++)
        own->from[i] = content_at(i);
    memset(own->to, 0, room);
}

static void copy_until_enough(struct copier *own, const struct target *target, size_t block)
{
    uint64_t bytes = 0;
    size_t at = 0;
    const uint64_t begin = clock_ns();
    atomic_fetch_add(&under_way, 1);
    do {
        ((wherry_copy_fn *)target->fn)(own->to + at, own->from + at, block);
        bytes += block;
        at = at + 2 * block <= room ? at + block : 0;
    } while (!atomic_load_explicit(&enough, memory_order_relaxed));
    own->rate = (double)bytes / (double)(clock_ns() - begin);
}

static void *work(void *argument)
{
    struct copier *own = argument;
    thread_pin(own->cpu);
    fill(own);
    pthread_mutex_lock(&lock);
    for (unsigned done = turn;;) {
        resting++;
        pthread_cond_signal(&answered);
        while (turn == done && !ending)
            pthread_cond_wait(&told, &lock);
        if (ending)
            break;
        done = turn;
        const struct target *target = job;
        const size_t block = job_block;
        pthread_mutex_unlock(&lock);
        copy_until_enough(own, target, block);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void wait_for_rest(void)
{
    pthread_mutex_lock(&lock);
    while (resting < count)
        pthread_cond_wait(&answered, &lock);
    pthread_mutex_unlock(&lock);
}

static void choose_cpus(const struct host *host, unsigned wanted)
{
    for (unsigned i = 1; i < host->cpu_count && count < wanted; i++)
        if (!cpus_share_core(host->cpu, host->cpus[i]))
            copiers[count++] = (struct copier){.cpu = host->cpus[i]};
    const unsigned apart = count;
    for (unsigned i = 1; i < host->cpu_count && count < wanted; i++)
        if (cpus_share_core(host->cpu, host->cpus[i]))
            copiers[count++] = (struct copier){.cpu = host->cpus[i]};
    same_core = count - apart;
}

const char *copiers_open(const struct host *host, unsigned wanted, size_t buffer)
{
    static char problem[160];
    count = same_core = resting = 0;
    ending = false;
    if (host->cpu_count < 2)
        return "there is no other CPU that this process may use";
    if (wanted > host->cpu_count - 1) {
        snprintf(problem, sizeof problem, "this process may use %u other CPUs, not %u", host->cpu_count - 1, wanted);
        return problem;
    }
    wanted = wanted ? wanted : host->cpu_count - 1;
    const size_t needed = 2 * (size_t)wanted * buffer, most = memory_available() / 2;
    if (needed > most) {
        snprintf(problem, sizeof problem, "needs %zu MiB of memory, and may take half of what is available: %zu MiB",
                 needed >> 20, most >> 20);
        return problem;
    }
    room = buffer;
    choose_cpus(host, wanted);
    for (unsigned i = 0; i < count; i++) {
        unsigned char *both = mmap(NULL, 2 * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (both == MAP_FAILED)
            return "no memory for what is copied";
        copiers[i].from = both;
        copiers[i].to = both + room;
    }
    for (unsigned i = 0; i < count; i++) {
        copiers[i].started = pthread_create(&copiers[i].thread, NULL, work, &copiers[i]) == 0;
        if (!copiers[i].started)
            return "no thread for what is copied";
    }
    wait_for_rest();
    return NULL;
}

void copiers_close(void)
{
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_cond_broadcast(&told);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < count; i++) {
        if (copiers[i].started)
            pthread_join(copiers[i].thread, NULL);
        if (copiers[i].from)
            munmap(copiers[i].from, 2 * room);
    }
    count = 0;
}

unsigned copiers_count(void) { return count; }
unsigned copiers_same_core(void) { return same_core; }
size_t copiers_bytes(void) { return 2 * count * room; }

const char *copiers_check(const struct target *target, size_t block)
{
    static char problem[96];
    const struct copier *own = &copiers[0];
    memset(own->to, 0, block);
    ((wherry_copy_fn *)target->fn)(own->to, own->from, block);
    for (size_t i = 0; i < block; i++)
        if (own->to[i] != content_at(i)) {
            snprintf(problem, sizeof problem, "byte %zu of a copy of %zu is wrong", i, block);
            return problem;
        }
    return NULL;
}

void copiers_begin(const struct target *target, size_t block)
{
    target_prepare(target);
    atomic_store(&enough, false);
    atomic_store(&under_way, 0);
    pthread_mutex_lock(&lock);
    job = target;
    job_block = block;
    resting = 0;
    turn++;
    pthread_cond_broadcast(&told);
    pthread_mutex_unlock(&lock);
    while (atomic_load(&under_way) < count)
        __builtin_ia32_pause();
}

double copiers_end(void)
{
    double rate = 0;
    atomic_store(&enough, true);
    wait_for_rest();
    for (unsigned i = 0; i < count; i++)
        rate += copiers[i].rate;
    return rate;
}
