#include "bench.h"

#include <cpuid.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "commands.h"
#include "cpu/cpu.h"
#include "crew.h"
#include "entry.h"
#include "random.h"
#include "work.h"

enum { LIMIT_MS = 10000, CLOCKS = 50, TOO_SLOW_FACTOR = 250, TOO_SLOW_TRIES = 3, MOST_SAMPLE_S = 5 };

static const size_t MOST_BYTES = (size_t)128 << 30;

void bench_init(struct bench *bench, const struct target_list *targets, const struct host *host, uint64_t seed,
                struct reading pace)
{
    *bench = (struct bench){
        .targets = targets, .host = *host, .caches = caches_believable(), .clock_ns = clock_cost_ns(), .random = seed};
    struct wherry_cpu cpu;
    wherry_cpu_detect(&cpu);
    bench->has_avx = wherry_cpu_has(&cpu, WHERRY_CPU_AVX);
    unsigned a, b, c, d;
    bench->has_xinuse = bench->has_avx && __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a >> 2 & 1;
    pace_init(&bench->pace, bench->caches.l2, pace);
}

static void job_make(unsigned lane, void *context)
{
    struct work *work = context;
    struct pool *pool = &work->bench->pools[lane];
    pool->random = work->bench->random + lane * 0x9e3779b9u;
    work->problems[lane] = pool_make(pool, work->row, &work->bench->caches);
}

/* Who takes part, in the row's order; the others are told as skipped. */
static void gather(struct work *work, const struct listener *tell, struct result *result)
{
    const struct row *row = work->row;
    for (size_t i = 0; i < row->routine_count; i++) {
        const char *name = row->routines[i];
        struct cell *cell = &result->cells[result->cell_count];
        *cell = (struct cell){.name = name};
        const char *reason = entry_find(cell, work->bench->targets, row);
        if (reason)
            tell->skip(tell->context, row, name, reason);
        else
            result->cell_count++;
    }
}

static const char *prepare(struct work *work)
{
    struct bench *bench = work->bench;
    const struct row *row = work->row;
    static char reason[256];
    const char *unfit = clock_unfit();
    if (unfit)
        return unfit;
    if (bench->pool_count < row->threads) {
        struct pool *pools = realloc(bench->pools, row->threads * sizeof *pools);
        if (!pools)
            return "out of memory";
        memset(pools + bench->pool_count, 0, (row->threads - bench->pool_count) * sizeof *pools);
        bench->pools = pools;
        bench->pool_count = row->threads;
    }
    size_t held = 0, largest = row->largest;
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
    const char *warm_only = row->cold ? cold_make(&bench->cold, bench->random) : NULL;
    if (warm_only)
        return warm_only;
    if (row->percentile > 0)
        single_make(&bench->single);
    const char *nobody = NULL;
    if (row->handed && !(work->handover = handover_to(&bench->host, row, &nobody)))
        return nobody;
    if (row->threads > 1 && !(work->crew = crew_start(row->threads, bench->host.cpus)))
        return "cannot start its threads";
    for (unsigned lane = 0; lane < row->threads && row->percentile > 0; lane++)
        if (!bench->pools[lane].ticks && !(bench->pools[lane].ticks = single_room()))
            return "out of memory";
    on_lanes(work, job_make, 600000);
    for (unsigned lane = 0; lane < row->threads; lane++)
        if (work->problems[lane])
            return work->problems[lane];
    return NULL;
}

/* What the check found against a routine; one that could not be checked is skipped. */
static void tell_wrong(const struct work *work, const struct listener *tell, const char *name, const char *when)
{
    char message[320];
    snprintf(message, sizeof message, "%s%s", when, work->message);
    if (work->message == check_no_room)
        tell->skip(tell->context, work->row, name, check_no_room);
    else
        tell->wrong(tell->context, work->row, name, message);
}

/* Verifies and calibrates whoever is there. Returns the cell that crashed or hung, or NULL. */
static struct cell *try_out(struct work *work, const struct listener *tell, struct result *result,
                            struct guarded_result *how, const char **doing)
{
    for (size_t i = 0; i < result->cell_count && !host_interrupted; i++) {
        struct cell *cell = &result->cells[i];
        tell->trying(tell->context, work->row, cell->name);
        *doing = "while it was verified before timing";
        if (cell->target || cell->path) {
            *how = check(work, cell);
            if (how->crashed || how->hung)
                return cell;
        } else {
            work->message = NULL;
        }
        if (work->message) {
            cell->left_out = true;
            tell_wrong(work, tell, cell->name, "");
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
        if (cell->left_out || !(cell->target || cell->path))
            continue;
        *how = check(work, cell);
        if (how->crashed || how->hung)
            return cell;
        if (!work->message)
            continue;
        for (size_t k = 0; k < result->cell_count; k++)
            result->cells[k].left_out = result->cells[k].left_out || strcmp(result->cells[k].name, cell->name) == 0;
        tell_wrong(work, tell, cell->name, "after timing: ");
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
    const struct row *row = work->row;
    const uint64_t pass = row_is_by_passes(row) ? pool_pass(&work->bench->pools[0], row) : UINT64_MAX;
    if ((double)pass * fastest >= needed)
        return NULL;
    snprintf(reason, sizeof reason,
             "%s for one pass of %llu calls, %.0f ns, and %.0f ns are needed to time it; choose a state further out%s",
             row->handed ? "what another CPU hands over lasts" : "its content lasts", (unsigned long long)pass,
             (double)pass * fastest, needed, row->handed ? "" : " or a larger buffer");
    return reason;
}

/* Calls that were asked for by number, or that a percentile needs, when a sample of them would seem to hang. Returns
 * NULL, or why the row is not measured (a static buffer). */
static const char *too_long(const struct work *work, const struct result *result)
{
    static char reason[256];
    const struct cell *slowest = NULL;
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out && (!slowest || result->cells[i].call_ns > slowest->call_ns))
            slowest = &result->cells[i];
    if (!slowest)
        return NULL;
    const double ns = slowest->call_ns + (work->row->cold ? work->bench->cold.stretch_ns : 0);
    const uint64_t calls = work->row->calls ? work->row->calls : single_least(work->row->percentile);
    if ((double)calls * ns <= MOST_SAMPLE_S * 1e9)
        return NULL;
    if (!work->row->calls) {
        snprintf(reason, sizeof reason,
                 "%llu calls of %.60s, as many as this percentile needs, would take about %.0f s, and %d s are the "
                 "most; choose a smaller size%s",
                 (unsigned long long)calls, slowest->name, (double)calls * ns / 1e9, MOST_SAMPLE_S,
                 calls > single_least(50) ? " or a lower percentile" : "");
        return reason;
    }
    snprintf(
        reason, sizeof reason,
        "calls=%llu: a sample of %.60s would take about %.0f s, and %d s are the most; choose fewer calls, about %.0f "
        "at most, or 0",
        (unsigned long long)work->row->calls, slowest->name, (double)work->row->calls * ns / 1e9, MOST_SAMPLE_S,
        fmax(1, floor(MOST_SAMPLE_S * 0.9e9 / ns)));
    return reason;
}

/* Peers that would take the time of all the others, or leave them samples too short to say anything: choose_calls()
 * gives the slowest no more than a bounded part of a round. They are calibrated some times more, since to be left out
 * by a busy moment is worse than to be slow. The reason is the same for all rows, so that it is told once. Returns the
 * cell that crashed or hung, or NULL. */
static struct cell *leave_out_slow_peers(struct work *work, const struct listener *tell, struct result *result,
                                         struct guarded_result *how)
{
    double fastest = INFINITY;
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out && result->cells[i].target)
            fastest = fmin(fastest, result->cells[i].call_ns);
    char reason[160];
    snprintf(reason, sizeof reason,
             "more than %d times slower than the fastest of the row; beside it the other figures would be noise",
             TOO_SLOW_FACTOR);
    for (size_t i = 0; i < result->cell_count; i++) {
        struct cell *cell = &result->cells[i];
        if (cell->left_out || !cell->target || cell->target->kind != TARGET_PEER)
            continue;
        for (int tries = 0; tries < TOO_SLOW_TRIES && cell->call_ns > TOO_SLOW_FACTOR * fastest; tries++) {
            const double before = cell->call_ns;
            *how = calibrate(work, cell);
            if (how->crashed || how->hung)
                return cell;
            cell->call_ns = fmin(before, cell->call_ns);
        }
        cell->left_out = cell->call_ns > TOO_SLOW_FACTOR * fastest;
        if (cell->left_out)
            tell->skip(tell->context, work->row, cell->name, reason);
    }
    return NULL;
}

static int measure_row(struct work *work, const struct listener *tell, struct result *result)
{
    const struct row *row = work->row;
    struct guarded_result how = {0};
    const char *doing = "while it was timed";
    gather(work, tell, result);
    struct cell *culprit = try_out(work, tell, result, &how, &doing);
    const char *unfit = culprit || host_interrupted ? NULL : too_short(work, result);
    if (!culprit && !unfit) {
        doing = "while it was timed";
        culprit = leave_out_slow_peers(work, tell, result, &how);
    }
    if (!culprit && !unfit && !host_interrupted && (row->calls > 1 || row->percentile > 0))
        unfit = too_long(work, result);
    if (unfit) {
        tell->skip(tell->context, row, NULL, unfit);
        result->cell_count = 0;
        return EXIT_OK;
    }
    if (!culprit) {
        add_second(row, result);
        choose_calls(work, result);
        if (!result_make_room(result, row)) {
            tell->skip(tell->context, row, NULL, "out of memory");
            for (size_t i = 0; i < result->cell_count; i++)
                result->cells[i].left_out = true;
            return EXIT_OK;
        }
        culprit = measure_rounds(work, result, &how);
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
    struct work work = {.bench = bench, .row = row};
    uint64_t elapsed[row->threads];
    struct watch watches[row->threads];
    const char *problems[row->threads];
    memset(problems, 0, sizeof problems);
    memset(elapsed, 0, sizeof elapsed);
    work.elapsed = elapsed;
    work.watches = watches;
    work.problems = problems;
    size_t longest = row->stream ? row->buffer : row->largest;
    work.limit_ms = LIMIT_MS + (unsigned)(longest >> 14); /* a millisecond for 16 KiB is slower than any routine */
    memset(result, 0, sizeof *result);
    result->bytes = row->mean;
    random_next(&bench->random);
    const char *reason = prepare(&work);
    tell->row(tell->context, row, reason ? NULL : &bench->pools[0],
              work.handover ? (int)handover_cpu(work.handover) : -1);
    int status = EXIT_OK;
    if (reason)
        tell->skip(tell->context, row, NULL, reason);
    else
        status = measure_row(&work, tell, result);
    if (work.crew && status == EXIT_OK)
        crew_stop(work.crew);
    return status;
}
