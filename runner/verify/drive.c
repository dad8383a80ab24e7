/* Runs the units of work in forked children, a few at a time, and says what became of each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "commands.h"
#include "nofault.h"
#include "parent.h"
#include "verify.h"

/* What a child sends when its unit has ended; small enough for one atomic write to a pipe. */
struct result {
    uint64_t cases, ordinal;
    bool failed;
    struct verify_failure failure;
    char skipped[160];
};

struct job {
    pid_t pid; /* 0: free */
    int fd;
    size_t unit;
    double started, looked;
    double lasted; /* at work, asleep or stopped, as far as we saw it */
    double used;   /* processor time, by the last look */
    /* Since a call ended: asleep, and processor time beyond what the child had used by then. */
    uint64_t beats;
    double slept, used_then;
    struct verify_pulse *pulse;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static _Noreturn void child(struct unit *unit, const struct vcase *only, int fd, pid_t parent)
{
    if (!die_with(parent))
        _exit(3);
    /* What a peer prints must not mix with the report, and what it reads is not its own. */
    own_pulse = unit->pulse;
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    target_prepare(unit->target);
    call_init(unit);
    if (only)
        unit->family->run(unit, only);
    else
        unit->family->generate(unit);
    struct result result = {.cases = unit->cases, .ordinal = unit->ordinal, .failed = unit->failed};
    result.failure = unit->failure;
    plain_copy((uint8_t *)result.skipped, (const uint8_t *)unit->skipped, sizeof result.skipped);
    ssize_t written = write(fd, &result, sizeof result);
    _exit(written == (ssize_t)sizeof result ? 0 : 3);
}

static bool start(struct job *job, struct unit *unit, const struct vcase *only)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    memset(job->pulse, 0, sizeof *job->pulse);
    unit->pulse = job->pulse;
    const pid_t own = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (pid == 0) {
        close(ends[0]);
        child(unit, only, ends[1], own);
    }
    close(ends[1]);
    job->pid = pid;
    job->fd = ends[0];
    job->started = job->looked = now();
    job->lasted = job->slept = job->used_then = job->used = 0;
    job->beats = 0;
    return true;
}

/* A child that ended without a word: the failure is told from the last case it noted. */
static void fail_from_pulse(struct unit *unit, const struct verify_pulse *pulse, const char *state, const char *what)
{
    uint64_t ordinal = pulse->beats;
    fail(unit, &pulse->now, (void *)(uintptr_t)pulse->now_dst_off,
         is_set(unit->target) ? NULL : (void *)(uintptr_t)(pulse->now_src_off | (uintptr_t)1 << 20), state, "%s", what);
    unit->failure.src_off = pulse->now_src_off;
    unit->failure.distance = pulse->now_distance;
    unit->failure.ordinal = ordinal;
    unit->failure.hung = strcmp(state, "hang") == 0;
    if (unit->failure.at.calls == 0)
        unit->failure.at.calls = 1;
}

/* Seconds for one family of one function, many times what any of ours takes: only a routine that sleeps needs more. */
static double patience_with(const struct unit *unit)
{
    return unit->level == LEVEL_FULL ? 900 : unit->level == LEVEL_QUICK ? 60 : 15;
}

enum ending { ENDED, ASLEEP, STOPPED, STUCK, TOO_SLOW };

enum { MOST_SLEEP = 10 }; /* seconds, of one call */

/* Seconds of processor time without the end of a call that call.c could not stop. */
static double limit_of(const struct unit *unit)
{
    return strcmp(unit->family->name, "huge") == 0 ? 120 : unit->level == LEVEL_BRIEF ? 12 : 20;
}

/* Reads what the child has to say and buries it. */
static void finish(struct job *job, struct unit *unit, enum ending ending)
{
    bool killed = ending != ENDED;
    const int stop = child_stopped_by(job->pid);
    struct result result;
    ssize_t got = killed ? -1 : read(job->fd, &result, sizeof result);
    int status = 0;
    close(job->fd);
    if (killed)
        kill(job->pid, SIGKILL);
    struct rusage used = {0};
    while (wait4(job->pid, &status, 0, &used) < 0 && errno == EINTR)
        continue;
    job->pid = 0;
    unit->cases = job->pulse->beats;
    unit->longest = job->pulse->longest;
    char what[160];
    if (got == (ssize_t)sizeof result) {
        unit->cases = result.cases;
        unit->ordinal = result.ordinal;
        unit->failed = result.failed;
        unit->failure = result.failure;
        memcpy(unit->skipped, result.skipped, sizeof unit->skipped);
        return;
    }
    if (job->pulse->no_room)
        snprintf(unit->skipped, sizeof unit->skipped, "the system refuses the memory it needs (limits: ulimit -v, -n)");
    else if (ending == TOO_SLOW) {
        unit->unfinished = true;
        if (stop)
            snprintf(what, sizeof what, "stopped by signal %d (%s), and nobody had it go on", stop, strsignal(stop));
        snprintf(unit->skipped, sizeof unit->skipped, "%s: cut off after %.0f s and %llu calls, right so far",
                 stop ? what : "too slow", patience_with(unit), (unsigned long long)job->pulse->beats);
    } else if (ending == ENDED && child_out_of_time(status, &used)) {
        unit->unfinished = true;
        snprintf(unit->skipped, sizeof unit->skipped,
                 "cut off by the limit on processor time (ulimit -t) after %llu calls, right so far",
                 (unsigned long long)job->pulse->beats);
    } else if (ending == STOPPED) {
        snprintf(what, sizeof what, "stopped its process with signal %d (%s) instead of returning", stop,
                 strsignal(stop));
        fail_from_pulse(unit, job->pulse, "hang", what);
    } else if (ending == ASLEEP || ending == STUCK) {
        snprintf(what, sizeof what, "did not return within %.0f s %s; stopped",
                 ending == ASLEEP ? MOST_SLEEP : limit_of(unit), ending == ASLEEP ? "of sleep" : "of CPU time");
        fail_from_pulse(unit, job->pulse, "hang", what);
    } else if (WIFSIGNALED(status)) {
        snprintf(what, sizeof what, "killed its process with signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        fail_from_pulse(unit, job->pulse, "crash", what);
    } else if (job->pulse->foreign && job->pulse->fault_due) {
        snprintf(
            unit->skipped, sizeof unit->skipped,
            "it works in threads of its own, and a fault in those, which belongs to these calls, cannot be mended");
    } else if (job->pulse->foreign) {
        snprintf(what, sizeof what, "a thread that it started met signal %d (%s) at address 0x%" PRIxPTR,
                 job->pulse->foreign, strsignal(job->pulse->foreign), job->pulse->foreign_address);
        fail_from_pulse(unit, job->pulse, "crash", what);
    } else if (WEXITSTATUS(status) == 4) {
        fail_from_pulse(unit, job->pulse, "crash",
                        "damaged memory far from its buffers (seen during or after this call)");
    } else {
        snprintf(what, sizeof what, "ended its process with exit status %d instead of returning", WEXITSTATUS(status));
        fail_from_pulse(unit, job->pulse, "exit", what);
    }
}

/* Does the case alone show the failure? If not, does it after as many calls as the unit had made? */
static void make_repeatable(struct unit *unit, struct job *job)
{
    uint64_t tries[2] = {unit->failure.at.calls ? unit->failure.at.calls : 1, unit->failure.ordinal};
    if (unit->failure.hung)
        return;
    for (int i = 0; i < 2; i++) {
        struct unit again = *unit;
        struct vcase one = unit->failure.at;
        one.calls = tries[i] < 1 ? 1 : tries[i] > 3000000 ? 3000000 : tries[i];
        again.failed = false;
        if (!start(job, &again, &one))
            return;
        struct pollfd wait = {.fd = job->fd, .events = POLLIN};
        finish(job, &again, poll(&wait, 1, 20000) == 0 ? STUCK : ENDED);
        if (again.failed) {
            unit->failure.at.calls = one.calls;
            return;
        }
    }
    size_t length = strlen(unit->failure.message);
    snprintf(unit->failure.message + length, sizeof unit->failure.message - length,
             " (it did not repeat alone: it depends on timing or on the calls before; repeat the family)");
}

static struct verify_pulse *shared_pulse(void)
{
    void *at = mmap(NULL, sizeof(struct verify_pulse), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        fputs("wherry-run: verify: out of memory\n", stderr);
        exit(EXIT_FAILED);
    }
    return at;
}

struct campaign {
    const struct verify_options *options;
    struct unit *units;
    size_t unit_count, done;
    size_t *target_of;      /* unit -> index */
    size_t *left;           /* units left, by target */
    const char **abandoned; /* by target: why the rest of it is not tried, or NULL */
    bool *too_slow;         /* by target: whether that is why */
    struct verify_counts *of_target, total;
    struct job spare; /* for repeating */
};

static void account(struct campaign *c, size_t index, double seconds)
{
    struct unit *unit = &c->units[index];
    size_t t = c->target_of[index];
    const struct verify_options *o = c->options;
    if (unit->failed && !o->only_case_family)
        make_repeatable(unit, &c->spare);
    c->of_target[t].cases += unit->cases;
    c->of_target[t].seconds += seconds;
    c->total.cases += unit->cases;
    if (unit->longest > c->total.longest)
        c->total.longest = unit->longest;
    if (unit->failed) {
        c->of_target[t].failures++;
        c->total.failures++;
        if (unit->failure.hung)
            c->abandoned[t] = "it hung in another family";
        print_failure(o, unit);
    }
    print_family(o, unit, seconds);
    if (unit->skipped[0]) {
        print_skip(o, unit->target, unit->family, unit->skipped, unit->unfinished);
        c->total.skipped++;
        c->total.unfinished += unit->unfinished;
    }
    c->done++;
    if (--c->left[t] == 0)
        print_target(o, unit->target, &c->of_target[t]);
    print_progress(o, c->done, c->unit_count, unit);
}

/* Time in which we were stopped, or busy with another child, is none that this one had, and while it waits for a CPU
 * others have the time; but what waits for ever, as for a disk that is gone, shall end. */
static enum ending ending_of(struct job *job, const struct unit *unit)
{
    enum { OF_WAITING = 10 };
    const double t = now(), since = t - job->looked < 0.5 ? t - job->looked : 0.5;
    const double used = child_processor_time(job->pid);
    const uint64_t beats = job->pulse->beats;
    const int stop = child_stopped_by(job->pid);
    const bool idle = stop || child_asleep(job->pid);
    const double worked = idle ? since : used - job->used;
    job->looked = t;
    job->used = used;
    job->lasted += worked > since / OF_WAITING ? worked : since / OF_WAITING;
    if (beats != job->beats) {
        job->beats = beats;
        job->slept = 0;
        job->used_then = used;
    } else if (idle && !stop) {
        job->slept += since;
    }
    if (job->slept > MOST_SLEEP)
        return ASLEEP;
    if (stop && child_stopped_itself(job->pid, stop))
        return STOPPED;
    if (used - job->used_then > limit_of(unit))
        return STUCK;
    return job->lasted > patience_with(unit) ? TOO_SLOW : ENDED;
}

static void look_at(struct campaign *c, struct job *job, short events)
{
    struct unit *unit = &c->units[job->unit];
    const enum ending ending = events ? ENDED : ending_of(job, unit);
    if (!events && ending == ENDED)
        return;
    const bool stopped = child_stopped_by(job->pid);
    finish(job, unit, ending);
    if (ending == TOO_SLOW) {
        c->abandoned[c->target_of[job->unit]] =
            stopped ? "it was stopped in another family" : "it was too slow in another family";
        c->too_slow[c->target_of[job->unit]] = true;
    }
    account(c, job->unit, now() - job->started);
}

/* Each child has a descriptor here, and beyond the limit poll() takes none of them. */
static int jobs_for(int wanted)
{
    enum { OTHER_DESCRIPTORS = 12 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)wanted + OTHER_DESCRIPTORS)
        return wanted;
    return limit.rlim_cur > OTHER_DESCRIPTORS ? (int)limit.rlim_cur - OTHER_DESCRIPTORS : 1;
}

static void run_all(struct campaign *c)
{
    int jobs = jobs_for(c->options->jobs);
    struct job *job = calloc((size_t)jobs, sizeof *job);
    struct pollfd *waits = calloc((size_t)jobs, sizeof *waits);
    for (int i = 0; i < jobs; i++)
        job[i].pulse = shared_pulse();
    size_t next = 0;
    while (c->done < c->unit_count) {
        for (int i = 0; i < jobs && next < c->unit_count; i++) {
            if (job[i].pid)
                continue;
            size_t t = c->target_of[next];
            if (c->abandoned[t]) {
                snprintf(c->units[next].skipped, sizeof c->units[next].skipped, "%s", c->abandoned[t]);
                c->units[next].unfinished = c->too_slow[t];
                account(c, next++, 0);
                i--;
                continue;
            }
            job[i].unit = next;
            if (!start(&job[i], &c->units[next], c->options->only_case_family ? &c->options->only_case : NULL)) {
                fprintf(stderr, "wherry-run: verify: cannot start a process: %s\n", strerror(errno));
                exit(EXIT_FAILED);
            }
            next++;
        }
        for (int i = 0; i < jobs; i++)
            waits[i] = (struct pollfd){.fd = job[i].pid ? job[i].fd : -1, .events = POLLIN};
        poll(waits, (nfds_t)jobs, 100);
        for (int i = 0; i < jobs; i++)
            if (job[i].pid)
                look_at(c, &job[i], waits[i].revents);
    }
    free(job);
    free(waits);
}

int verify_drive(const struct target *const *targets, size_t target_count, const struct family *const *families,
                 size_t family_count, const struct verify_options *options)
{
    double begun = now();
    struct campaign c = {.options = options};
    size_t room = target_count * family_count + 1;
    c.units = calloc(room, sizeof *c.units);
    c.target_of = calloc(room, sizeof *c.target_of);
    c.left = calloc(target_count + 1, sizeof *c.left);
    c.abandoned = calloc(target_count + 1, sizeof *c.abandoned);
    c.too_slow = calloc(target_count + 1, sizeof *c.too_slow);
    c.of_target = calloc(target_count + 1, sizeof *c.of_target);
    c.spare.pulse = shared_pulse();
    print_start(options, target_count, 0);
    for (size_t t = 0; t < target_count; t++) {
        const char *reason = target_unavailable(targets[t]);
        char of_size[64];
        if (!reason && options->only_case_family && !size_fits(targets[t], options->only_case.n)) {
            snprintf(of_size, sizeof of_size, "takes multiples of %zu bytes only",
                     (size_t)targets[t]->routine->quantum);
            reason = of_size;
        }
        if (reason) {
            print_skip(options, targets[t], NULL, reason, false);
            c.total.skipped++;
            continue;
        }
        for (size_t f = 0; f < family_count; f++) {
            if (!families[f]->applies(targets[t]))
                continue;
            struct unit *unit = &c.units[c.unit_count];
            unit->target = targets[t];
            unit->family = families[f];
            const bool sampled = options->level == LEVEL_FULL && sampled_in_full(targets[t], families[f]);
            unit->level = sampled ? LEVEL_QUICK : options->level;
            unit->few = sampled || options->few;
            unit->thin = options->thin;
            unit->seed = options->seed;
            unit->random = options->seed ^ (c.unit_count + 1) * 0x9e3779b97f4a7c15u;
            c.target_of[c.unit_count++] = t;
            c.left[t]++;
        }
    }
    run_all(&c);
    c.total.seconds = now() - begun;
    if (options->only_case_family && !c.total.cases && !c.total.failures && !c.total.skipped) {
        fprintf(stderr,
                "wherry-run: verify: nothing was verified: family %s has nothing to look at in this --case; give a "
                "larger n\n",
                options->only_case_family->name);
        return EXIT_MISUSE;
    }
    print_end(options, &c.total);
    return c.total.failures || c.total.unfinished ? EXIT_FAILED : EXIT_OK;
}
