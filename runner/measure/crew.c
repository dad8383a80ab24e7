#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "host.h"

struct member {
    struct crew *crew;
    unsigned lane, cpu;
    pthread_t thread;
};

struct crew {
    unsigned count, started;
    struct member *members;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    unsigned turn, left; /* jobs given so far; threads still at the last one */
    bool ending;
    crew_job *job;
    void *context;
    struct guarded_result result;
    atomic_uint arrived; /* ever, at crew_meet */
};

/* A signal of a fault comes to the thread that made it, so each thread has its own way out; guarded_call has only one
 * for the process. */
static _Thread_local sigjmp_buf way_out;
static _Thread_local volatile sig_atomic_t inside, fault_signal;

static void on_fault(int signo)
{
    __asm__ volatile("cld"); /* a routine may have left the direction flag set */
    if (!inside) {
        signal(signo, SIG_DFL);
        return;
    }
    fault_signal = signo;
    inside = 0; /* the frame that it goes to may be overwritten, and a fault there must not come back here for ever */
    siglongjmp(way_out, 1);
}

static void *work(void *argument)
{
    struct member *member = argument;
    struct crew *crew = member->crew;
    thread_pin(member->cpu);
    for (unsigned turn = 1;; turn++) {
        pthread_mutex_lock(&crew->lock);
        while (crew->turn < turn && !crew->ending)
            pthread_cond_wait(&crew->work, &crew->lock);
        bool ending = crew->ending;
        pthread_mutex_unlock(&crew->lock);
        if (ending)
            return NULL;
        struct guarded_result result = {0};
        inside = 1;
        if (sigsetjmp(way_out, 1) == 0)
            crew->job(member->lane, crew->context);
        else
            result = (struct guarded_result){.crashed = true, .signo = fault_signal};
        inside = 0;
        pthread_mutex_lock(&crew->lock);
        if (result.crashed && !crew->result.crashed)
            crew->result = result;
        if (--crew->left == 0 || result.crashed)
            pthread_cond_signal(&crew->done);
        pthread_mutex_unlock(&crew->lock);
    }
}

struct crew *crew_start(unsigned count, const unsigned *cpus)
{
    struct crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return NULL;
    crew->members = calloc(count, sizeof *crew->members);
    crew->count = count;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    /* Somebody may set the system's clock while threads work. */
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&crew->done, &steady);
    pthread_condattr_destroy(&steady);
    for (unsigned lane = 0; crew->members && lane < count; lane++, crew->started++) {
        crew->members[lane] = (struct member){.crew = crew, .lane = lane, .cpu = cpus[lane]};
        if (pthread_create(&crew->members[lane].thread, NULL, work, &crew->members[lane]) != 0)
            break;
    }
    if (crew->started == count)
        return crew;
    crew_stop(crew);
    return NULL;
}

struct guarded_result crew_run(struct crew *crew, crew_job *job, void *context, unsigned limit_ms)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
    enum { FAULTS = sizeof faults / sizeof faults[0] };
    struct sigaction action = {.sa_handler = on_fault}, old[FAULTS];
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &action, &old[i]);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000 + 1;
    pthread_mutex_lock(&crew->lock);
    crew->job = job;
    crew->context = context;
    crew->result = (struct guarded_result){0};
    crew->left = crew->count;
    crew->turn++;
    pthread_cond_broadcast(&crew->work);
    int waited = 0;
    while (crew->left && !crew->result.crashed && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&crew->done, &crew->lock, &until);
    struct guarded_result result = crew->result;
    if (crew->left && !result.crashed)
        result.hung = true;
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &old[i], NULL);
    return result;
}

void crew_meet(struct crew *crew)
{
    unsigned mine = atomic_fetch_add(&crew->arrived, 1);
    unsigned all = mine - mine % crew->count + crew->count;
    while ((int)(atomic_load(&crew->arrived) - all) < 0)
        __builtin_ia32_pause();
}

void crew_stop(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned lane = 0; lane < crew->started; lane++)
        pthread_join(crew->members[lane].thread, NULL);
    free(crew->members);
    free(crew);
}
