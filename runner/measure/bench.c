#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "commands.h"
#include "crew.h"
#include "dispatch/dispatch.h"
#include "random.h"
#include "stats.h"
#include "yardsticks.h"

enum { SLOWEST_FACTOR = 50, VOID_FACTOR = 1, LEAST_VALID = 3, WARM_CALLS = 256, LIMIT_MS = 10000, CLOCKS = 50 };

static const size_t MOST_BYTES = (size_t)128 << 30;

/* What one row needs while it is measured. */
struct work {
    struct bench *bench;
    const struct row *row;
    struct crew *crew; /* NULL: one thread, this one */
    loop *loop;
    unsigned limit_ms; /* for anything that is not a sample of known length */
    /* of the step under way */
    struct cell *cell;
    uint64_t calls;
    size_t first_size;
    uint64_t *elapsed; /* ns, by lane */
    struct watch *watches;
    const char **problems;
    const char *message;
};

void bench_init(struct bench *bench, const struct target_list *targets, const struct host *host, uint64_t seed,
                struct reading pace)
{
    *bench = (struct bench){
        .targets = targets, .host = *host, .caches = caches_believable(), .clock_ns = clock_cost_ns(), .random = seed};
    pace_init(&bench->pace, bench->caches.l2, pace);
}

void result_free(struct result *result)
{
    for (size_t i = 0; i < result->cell_count; i++)
        free(result->cells[i].ns);
    result->cell_count = 0;
}

/* Runs a job on every lane: guarded in this thread when there is one, or by the crew. */
struct call {
    crew_job *job;
    struct work *work;
};

static void call_job(void *context)
{
    struct call *call = context;
    call->job(0, call->work);
}

static struct guarded_result on_lanes(struct work *work, crew_job *job, unsigned limit_ms)
{
    if (work->crew)
        return crew_run(work->crew, job, work, limit_ms);
    struct call call = {job, work};
    return guarded_call(call_job, &call, limit_ms);
}

static void job_make(unsigned lane, void *context)
{
    struct work *work = context;
    struct pool *pool = &work->bench->pools[lane];
    pool->random = work->bench->random + lane * 0x9e3779b9u;
    work->problems[lane] = pool_make(pool, work->row, &work->bench->caches);
}

static void job_begin_round(unsigned lane, void *context)
{
    struct work *work = context;
    pool_begin_round(&work->bench->pools[lane], work->row);
    watch_read(&work->watches[lane], work->bench->host.cpus[lane]);
}

/* Leaves what has disturbed the lane's round in place of its elapsed time. */
static void job_end_round(unsigned lane, void *context)
{
    struct work *work = context;
    struct watch after;
    watch_read(&after, work->bench->host.cpus[lane]);
    work->elapsed[lane] = watch_compare(&work->watches[lane], &after);
}

static void job_sample(unsigned lane, void *context)
{
    struct work *work = context;
    struct pool *pool = &work->bench->pools[lane];
    struct walk *walk = &pool->walk;
    /* Where the content matters: portions of at most a pass, so that every call finds what the refill has left and no
     * other call's work. The clock's own time is taken off then, since portions may be short. */
    bool refilled = work->row->content != CONTENT_ANY;
    uint64_t most = refilled ? pool_pass(pool, work->row) : work->calls;
    uint64_t warm = work->calls / 16 < WARM_CALLS ? work->calls / 16 : WARM_CALLS;
    warm = warm < most ? warm : most;
    if (refilled)
        pool_refill(pool, work->row, warm);
    else
        pool_warm(pool);
    if (warm)
        work->loop(work->cell->fn, walk, warm);
    walk->size = walk->sizes + work->first_size;
    double spent = 0;
    for (uint64_t left = work->calls, portion; left; left -= portion) {
        portion = left < most ? left : most;
        if (refilled)
            pool_refill(pool, work->row, portion);
        if (work->crew)
            crew_meet(work->crew);
        uint64_t begin = clock_ns();
        work->loop(work->cell->fn, walk, portion);
        spent += fmax((double)(clock_ns() - begin) - (refilled ? work->bench->clock_ns : 0), 0);
    }
    work->elapsed[lane] = (uint64_t)fmax(spent, 1);
}

/* The tier of the public functions is the process's, so it is set before the lanes begin. */
static enum wherry_isa enter(const struct cell *cell)
{
    enum wherry_isa usual = wherry_dispatch_isa();
    if (cell->target && cell->target->kind == TARGET_PUBLIC && cell->target->forced)
        wherry_dispatch_force(cell->target->isa);
    return usual;
}

/* Times `calls` calls; *ns is the slowest lane's time for one. */
static struct guarded_result sample(struct work *work, struct cell *cell, uint64_t calls, double *ns)
{
    work->cell = cell;
    work->calls = calls;
    double expected_ms = (double)calls * cell->call_ns / 1e6;
    enum wherry_isa usual = enter(cell);
    struct guarded_result how = on_lanes(work, job_sample, work->limit_ms + (unsigned)fmin(20 * expected_ms, 1e8));
    wherry_dispatch_force(usual);
    uint64_t slowest = 0;
    for (unsigned lane = 0; lane < work->row->threads; lane++)
        slowest = work->elapsed[lane] > slowest ? work->elapsed[lane] : slowest;
    *ns = (double)slowest / (double)calls;
    return how;
}

static struct guarded_result calibrate(struct work *work, struct cell *cell)
{
    double enough = (double)work->row->batch_us * 1000 / 4;
    uint64_t calls = 1;
    struct guarded_result how;
    cell->call_ns = 0;
    for (;;) {
        double ns;
        how = sample(work, cell, calls, &ns);
        ns = fmax(ns, 0.1);
        if (how.crashed || how.hung)
            return how;
        double took = ns * (double)calls;
        if (took >= enough || host_interrupted || (work->row->calls && calls * 2 > work->row->calls)) {
            cell->call_ns = ns;
            return how;
        }
        /* The first calls are slow; too large a step would make the next sample overshoot, too small wastes time. */
        double factor = fmin(fmax(enough * 1.2 / took, 2), 64);
        calls = (uint64_t)((double)calls * factor);
    }
}

static void job_check(unsigned lane, void *context)
{
    struct work *work = context;
    if (lane == 0)
        work->message = check_routine(work->cell->fn, &work->bench->pools[0], work->row);
}

static struct guarded_result check(struct work *work, struct cell *cell)
{
    work->cell = cell;
    work->message = NULL;
    enum wherry_isa usual = enter(cell);
    struct guarded_result how = on_lanes(work, job_check, work->limit_ms);
    wherry_dispatch_force(usual);
    return how;
}

/* Who takes part, in the row's order; the others are told as skipped. */
static void gather(struct work *work, const struct listener *tell, struct result *result)
{
    const struct row *row = work->row;
    for (size_t i = 0; i < row->routine_count; i++) {
        const char *name = row->routines[i], *reason = NULL;
        char text[160];
        struct cell *cell = &result->cells[result->cell_count];
        *cell = (struct cell){.name = name};
        if ((cell->fn = yardstick(name, row->op))) {
            cell->target = NULL;
        } else if (!(cell->target = target_for(work->bench->targets, name, row->op))) {
            snprintf(text, sizeof text, "has nothing for op=%s", wherry_op_names[row->op]);
            reason = text;
        } else {
            cell->fn = (loop_fn *)cell->target->fn;
            reason = target_unavailable(cell->target);
            size_t quantum = cell->target->routine ? cell->target->routine->quantum : 1;
            for (size_t k = 0; !reason && quantum > 1 && k < row->table; k++)
                if (row->sizes[k] % quantum) {
                    snprintf(text, sizeof text, "takes sizes that are multiples of %zu bytes only, not %llu", quantum,
                             (unsigned long long)row->sizes[k]);
                    reason = text;
                }
        }
        if (reason)
            tell->skip(tell->context, row, name, reason);
        else
            result->cell_count++;
    }
}

/* One more cell: a routine against itself. libc stands at another address there, in a link space of its own. */
static void add_second(const struct row *row, struct result *result)
{
    struct cell *one = NULL;
    for (size_t i = 0; i < result->cell_count; i++) {
        struct cell *cell = &result->cells[i];
        if (cell->left_out)
            continue;
        if (!one || (!one->target && cell->target) || strcmp(cell->name, row->aa) == 0)
            one = cell;
        if (strcmp(cell->name, row->aa) == 0)
            break;
    }
    if (!one)
        return;
    struct cell *second = &result->cells[result->cell_count++];
    *second = *one;
    second->aa = true;
    if (one->target && one->target->kind == TARGET_LIBC) {
        void (*other)(void) = libc_second_copy(row->op);
        if (other)
            second->fn = (loop_fn *)other;
    }
}

/* One count for all, from the fastest; fewer when the slowest would take too long. A yardstick has one of its own: it
 * is compared with nobody, and the nanosecond of call_floor would make everyone else's samples endless. */
static void choose_calls(const struct work *work, struct result *result)
{
    const struct row *row = work->row;
    double fastest = 0, slowest = 0, batch = (double)row->batch_us * 1000;
    for (size_t i = 0; i < result->cell_count; i++) {
        const struct cell *cell = &result->cells[i];
        if (cell->left_out || !cell->target)
            continue;
        fastest = fastest == 0 || cell->call_ns < fastest ? cell->call_ns : fastest;
        slowest = cell->call_ns > slowest ? cell->call_ns : slowest;
    }
    const struct walk *walk = &work->bench->pools[0].walk;
    uint64_t pass = row->stream && row->size ? walk->span / walk->step : 1;
    uint64_t portion = row->content == CONTENT_ANY ? UINT64_MAX : pool_pass(&work->bench->pools[0], row);
    for (size_t i = 0; i < result->cell_count; i++) {
        struct cell *cell = &result->cells[i];
        double least = cell->target ? fastest : cell->call_ns, most = cell->target ? slowest : cell->call_ns;
        double calls = fmax(1, fmin(ceil(batch / least), floor(SLOWEST_FACTOR * batch / most)));
        uint64_t whole = calls > (double)portion ? portion : pass; /* no last portion of a call or two */
        cell->calls = row->calls ? row->calls : ((uint64_t)calls + whole - 1) / whole * whole;
    }
}

static void shuffle_order(unsigned *order, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(random, i);
        unsigned held = order[i - 1];
        order[i - 1] = order[other];
        order[other] = held;
    }
}

/* All rounds. Returns the cell that crashed or hung, or NULL; *how tells. */
static struct cell *measure(struct work *work, struct result *result, struct guarded_result *how)
{
    const struct row *row = work->row;
    unsigned order[ROW_ROUTINES + 1], taking_part = 0;
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out)
            order[taking_part++] = (unsigned)i;
    unsigned bound = row->rounds * (1 + VOID_FACTOR), thrown = 0;
    double cores[2 * row->rounds], memories[2 * row->rounds]; /* as ns is kept */
    if (taking_part == 0)
        bound = 0;
    /* Valid rounds are kept from the front of ns, voided ones from the back of as many again. */
    for (unsigned round = 0; round < bound && result->valid < row->rounds && !host_interrupted; round++) {
        if (round % 2 == 0)
            shuffle_order(order, taking_part, &work->bench->random);
        const struct reading before = pace_wait(&work->bench->pace);
        *how = on_lanes(work, job_begin_round, work->limit_ms);
        double figures[ROW_ROUTINES + 1];
        for (unsigned i = 0; i < taking_part; i++) {
            unsigned at = order[round % 2 ? taking_part - 1 - i : i];
            struct cell *cell = &result->cells[at];
            work->first_size = (size_t)((uint64_t)round * cell->calls % row->table);
            *how = sample(work, cell, cell->calls, &figures[at]);
            if (how->crashed || how->hung)
                return cell;
            if (host_interrupted)
                return NULL;
        }
        *how = on_lanes(work, job_end_round, work->limit_ms);
        enum disturbance worst = UNDISTURBED;
        for (unsigned lane = 0; lane < row->threads; lane++)
            if (work->elapsed[lane] && (!worst || work->elapsed[lane] < worst))
                worst = (enum disturbance)work->elapsed[lane];
        const struct reading after = pace_read(&work->bench->pace);
        const struct reading slower = {fmax(before.core, after.core), fmax(before.memory, after.memory)};
        if (!worst && pace_is_slow(&work->bench->pace, slower))
            worst = CONTENDED;
        unsigned slot = worst ? row->rounds + thrown++ % row->rounds : result->valid++;
        result->reasons[worst]++;
        cores[slot] = slower.core;
        memories[slot] = slower.memory;
        for (unsigned i = 0; i < taking_part; i++)
            result->cells[order[i]].ns[slot] = figures[order[i]];
    }
    result->voided = thrown;
    result->rounds = result->valid;
    if (result->valid < LEAST_VALID && result->valid < row->rounds && thrown) {
        result->rounds = thrown < row->rounds ? thrown : row->rounds;
        for (unsigned i = 0; i < taking_part; i++) {
            double *ns = result->cells[order[i]].ns;
            memmove(ns, ns + row->rounds, result->rounds * sizeof *ns);
        }
        memmove(cores, cores + row->rounds, result->rounds * sizeof *cores);
        memmove(memories, memories + row->rounds, result->rounds * sizeof *memories);
    }
    if (result->rounds)
        result->pace =
            (struct reading){stats_median(cores, result->rounds, 0, 1), stats_median(memories, result->rounds, 0, 1)};
    return NULL;
}

static const char *prepare(struct work *work)
{
    struct bench *bench = work->bench;
    const struct row *row = work->row;
    static char reason[256];
    if (bench->pool_count < row->threads) {
        struct pool *pools = realloc(bench->pools, row->threads * sizeof *pools);
        if (!pools)
            return "out of memory";
        memset(pools + bench->pool_count, 0, (row->threads - bench->pool_count) * sizeof *pools);
        bench->pools = pools;
        bench->pool_count = row->threads;
    }
    size_t held = 0, largest = row_largest(row);
    for (unsigned lane = 0; lane < row->threads; lane++)
        held += bench->pools[lane].src.bytes + bench->pools[lane].dst.bytes;
    size_t needed = pool_bytes_needed(row, &bench->caches) * row->threads + 2 * largest;
    size_t usable = (memory_available() + held) / 2;
    if (usable > MOST_BYTES) /* a slot's place has 32 bits and counts lines */
        usable = MOST_BYTES;
    if (needed > usable) {
        snprintf(reason, sizeof reason,
                 "needs %zu MiB for its buffers, and may take %zu MiB (half of the memory available); choose a smaller "
                 "size or "
                 "fewer threads",
                 needed >> 20, usable >> 20);
        return reason;
    }
    if (row->threads > 1 && !(work->crew = crew_start(row->threads, bench->host.cpus)))
        return "cannot start its threads";
    on_lanes(work, job_make, 600000);
    for (unsigned lane = 0; lane < row->threads; lane++)
        if (work->problems[lane])
            return work->problems[lane];
    return NULL;
}

/* Verifies and calibrates whoever is there. Returns the cell that crashed or hung, or NULL. */
static struct cell *try_out(struct work *work, const struct listener *tell, struct result *result,
                            struct guarded_result *how, const char **doing)
{
    for (size_t i = 0; i < result->cell_count && !host_interrupted; i++) {
        struct cell *cell = &result->cells[i];
        tell->trying(tell->context, work->row, cell->name);
        *doing = "while it was verified before timing";
        if (cell->target) {
            *how = check(work, cell);
            if (how->crashed || how->hung)
                return cell;
        } else {
            work->message = NULL;
        }
        if (work->message) {
            cell->left_out = true;
            tell->wrong(tell->context, work->row, cell->name, work->message);
            continue;
        }
        *doing = "while it was calibrated";
        *how = calibrate(work, cell);
        if (how->crashed || how->hung)
            return cell;
    }
    return NULL;
}

/* Whoever is wrong after timing loses its cell. */
static struct cell *try_again(struct work *work, const struct listener *tell, struct result *result,
                              struct guarded_result *how)
{
    for (size_t i = 0; i < result->cell_count && !host_interrupted; i++) {
        struct cell *cell = &result->cells[i];
        if (cell->left_out || !cell->target)
            continue;
        *how = check(work, cell);
        if (how->crashed || how->hung)
            return cell;
        if (!work->message)
            continue;
        for (size_t k = 0; k < result->cell_count; k++)
            result->cells[k].left_out = result->cells[k].left_out || strcmp(result->cells[k].name, cell->name) == 0;
        char message[320];
        snprintf(message, sizeof message, "after timing: %s", work->message);
        tell->wrong(tell->context, work->row, cell->name, message);
    }
    return NULL;
}

/* A pass that is over within a few readings of the clock says more about the clock. Returns NULL, or why the row is not
 * measured (a static buffer). */
static const char *too_short(const struct work *work, const struct result *result)
{
    static char reason[256];
    double fastest = INFINITY, needed = CLOCKS * work->bench->clock_ns;
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out && result->cells[i].target)
            fastest = fmin(fastest, result->cells[i].call_ns);
    uint64_t pass = work->row->content == CONTENT_ANY ? UINT64_MAX : pool_pass(&work->bench->pools[0], work->row);
    if ((double)pass * fastest >= needed)
        return NULL;
    snprintf(reason, sizeof reason,
             "its content lasts for one pass of %llu calls, %.0f ns, and %.0f ns are needed to time it; choose a state "
             "further out or a larger buffer",
             (unsigned long long)pass, (double)pass * fastest, needed);
    return reason;
}

static int measure_row(struct work *work, const struct listener *tell, struct result *result)
{
    const struct row *row = work->row;
    struct guarded_result how = {0};
    const char *doing = "while it was timed";
    gather(work, tell, result);
    struct cell *culprit = try_out(work, tell, result, &how, &doing);
    const char *short_of = culprit || host_interrupted ? NULL : too_short(work, result);
    if (short_of) {
        tell->skip(tell->context, row, NULL, short_of);
        result->cell_count = 0;
        return EXIT_OK;
    }
    if (!culprit) {
        doing = "while it was timed";
        add_second(row, result);
        choose_calls(work, result);
        for (size_t i = 0; i < result->cell_count; i++)
            if (!(result->cells[i].ns = calloc(2 * row->rounds, sizeof(double))))
                result->cells[i].left_out = true;
        culprit = measure(work, result, &how);
    }
    if (!culprit) {
        doing = "while it was verified after timing";
        culprit = try_again(work, tell, result, &how);
    }
    if (culprit)
        tell->fault(tell->context, row, culprit->name, how, doing);
    return culprit ? EXIT_FAILED : EXIT_OK;
}

int bench_row(struct bench *bench, const struct row *row, const struct listener *tell, struct result *result)
{
    loop *const loops[2][2] = {{loop_pool_throughput, loop_pool_latency},
                               {loop_stream_throughput, loop_stream_latency}};
    struct work work = {.bench = bench, .row = row, .loop = loops[row->stream][row->latency]};
    uint64_t elapsed[row->threads];
    struct watch watches[row->threads];
    const char *problems[row->threads];
    memset(problems, 0, sizeof problems);
    memset(elapsed, 0, sizeof elapsed);
    work.elapsed = elapsed;
    work.watches = watches;
    work.problems = problems;
    size_t longest = row->stream ? row->buffer : row_largest(row);
    work.limit_ms = LIMIT_MS + (unsigned)(longest >> 14); /* a millisecond for 16 KiB is slower than any routine */
    memset(result, 0, sizeof *result);
    result->bytes = row_mean(row);
    random_next(&bench->random);
    const char *reason = prepare(&work);
    tell->row(tell->context, row, reason ? NULL : &bench->pools[0]);
    int status = EXIT_OK;
    if (reason)
        tell->skip(tell->context, row, NULL, reason);
    else
        status = measure_row(&work, tell, result);
    if (work.crew && status == EXIT_OK)
        crew_stop(work.crew);
    return status;
}
