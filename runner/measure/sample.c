/* One routine, one sample. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "dispatch/dispatch.h"
#include "entry.h"
#include "inlined.h"
#include "known.h"
#include "last_words.h"
#include "work.h"

enum { WARM_CALLS = 256 };
/* A routine may change its way with the sizes that come, the public ones after some hundred thousand calls and what
 * they record then. Where sizes vary that is a good part of all samples, and samples of cold code have hundreds of
 * calls. */
enum { SETTLE_CALLS = 1 << 20, SETTLE_DRAWN = 1 << 16, SETTLE_PORTION = 1 << 12, SETTLE_NS = 20000000 };
/* Where another cell of the row is held to a tier, the public functions are chosen anew for the next one, and record no
 * more calls than these: that is not what cold code is to be timed with. */
enum { RECORDED_CALLS = 512, RECORDED_NS = 1000 };

struct call {
    crew_job *job;
    struct work *work;
};

static void call_job(void *context)
{
    struct call *call = context;
    call->job(0, call->work);
}

struct guarded_result on_lanes(struct work *work, crew_job *job, unsigned limit_ms)
{
    if (work->crew)
        return crew_run(work->crew, job, work, limit_ms);
    struct call call = {job, work};
    return guarded_call(call_job, &call, limit_ms);
}

__attribute__((target("avx"))) static void zero_upper(void) { __asm__ volatile("vzeroupper" ::: "memory"); }

/* What one routine leaves in the upper halves of the vector registers slows the SSE instructions of the next. */
static void begin_clean(const struct work *work)
{
    if (work->bench->has_avx)
        zero_upper();
}

/* Of the upper halves of ymm0 to ymm15, and the upper quarters of their zmm: what slows SSE instructions. False also
 * where the processor does not tell. */
static bool upper_in_use(const struct bench *bench)
{
    if (!bench->has_xinuse)
        return false;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & (1u << 2 | 1u << 6);
}

static void warm_data(struct pool *pool, const struct work *work, uint64_t calls)
{
    if (work->row->content != CONTENT_ANY)
        pool_refill(pool, work->row, calls);
    else
        pool_warm(pool);
}

/* Untimed: the state that every routine finds, and the calls that bring its code in. */
static void warm_up(struct pool *pool, const struct work *work, uint64_t calls)
{
    warm_data(pool, work, calls);
    /* The last of the sample's calls, so that the timed ones begin at the first. */
    struct walk *walk = &pool->walk;
    if (walk->placed)
        walk->place = walk->placed_end - 1 - (calls - 1) % (uint64_t)(walk->placed_end - walk->placed);
    else if (walk->sizes)
        walk->size = walk->sizes_end - 1 - (calls - 1) % (uint64_t)(walk->sizes_end - walk->sizes);
    if (calls)
        work->cell->loop(work->cell->fn, walk, calls);
}

/* The first sample of all has a call or two, so calls are drawn; and anew, so that none come again that do not in
 * samples. Nobody knows yet how long one takes: as many at a time as are done before the clock is to be read again. */
static void settle(struct pool *pool, const struct work *work)
{
    const struct row *row = work->row;
    const uint64_t until = clock_ns() + SETTLE_NS;
    unsigned portion = 1, drawn = 0;
    for (unsigned done = 0; done < SETTLE_CALLS;) {
        if (drawn < portion) {
            if (!row->stream)
                pool_draw(pool, row, (work->first_size + done) % row->table, SETTLE_DRAWN);
            drawn = SETTLE_DRAWN;
        }
        warm_data(pool, work, portion);
        const uint64_t begin = clock_ns();
        work->cell->loop(work->cell->fn, &pool->walk, portion);
        const uint64_t end = clock_ns();
        if (end >= until)
            break;
        done += portion;
        drawn -= portion;
        if (portion < SETTLE_PORTION && end - begin < SETTLE_NS / 64)
            portion *= 2;
    }
}

static double single_sample(const struct work *work, unsigned lane)
{
    struct pool *pool = &work->bench->pools[lane];
    bool calm;
    const double ns = single_calls(&work->bench->single, work->cell->fn, &pool->walk, work->calls, work->percentile,
                                   pool->ticks, &calm);
    pool->restless = pool->restless || !calm;
    return ns * (double)work->calls;
}

static void job_sample(unsigned lane, void *context)
{
    struct work *work = context;
    begin_clean(work);
    const bool began_in_use = upper_in_use(work->bench);
    struct pool *pool = &work->bench->pools[lane];
    struct walk *walk = &pool->walk;
    if (work->cell->second) {
        walk->copy = (loop_fn *)work->cell->target->fn;
        walk->sum = (loop_fn *)work->cell->second->fn;
    }
    /* Where it matters what a call finds, content or who used its lines last: portions of at most a pass, so that no
     * call finds another one's work. The clock's own time is taken off then, since portions may be short. */
    bool refilled = work->row->content != CONTENT_ANY;
    const bool by_passes = row_is_by_passes(work->row);
    uint64_t most = by_passes ? pool_pass(pool, work->row) : work->calls;
    uint64_t warm = work->calls / 16 < WARM_CALLS ? work->calls / 16 : WARM_CALLS;
    warm = warm < most ? warm : most;
    if (work->row->cold && work->cell->call_ns < RECORDED_NS)
        warm = RECORDED_CALLS;
    if ((work->row->cold || (work->row->table > 1 && !refilled)) && !work->cell->settled)
        settle(pool, work);
    if (!work->row->stream)
        pool_draw(pool, work->row, work->first_size, work->calls);
    warm_up(pool, work, warm);
    double spent = 0;
    if (work->row->cold) {
        if (work->crew)
            crew_meet(work->crew);
        spent = cold_calls(&work->bench->cold, work->cell->fn, walk, work->calls, &pool->random);
    }
    const bool batches = !work->row->cold && !(work->percentile > 0);
    if (work->percentile > 0) {
        if (work->crew)
            crew_meet(work->crew);
        spent = single_sample(work, lane);
    }
    struct counters *counters = lane == 0 ? &work->bench->counters : NULL;
    if (counters) {
        counters_follow(counters);
        for (int i = 0; i < COUNTERS; i++)
            work->figures.counts[i] = !batches || !counters->thread ? NAN : 0;
    }
    if (work->handover)
        handover_begin(work->handover);
    for (uint64_t left = batches ? work->calls : 0, portion; left; left -= portion) {
        portion = left < most ? left : most;
        if (refilled)
            pool_refill(pool, work->row, portion);
        if (work->handover)
            handover_lines(work->handover, walk, work->row->handed, portion);
        if (work->crew)
            crew_meet(work->crew);
        if (counters && counters->thread)
            counters_begin(counters);
        uint64_t begin = clock_ns();
        work->cell->loop(work->cell->fn, walk, portion);
        spent += fmax((double)(clock_ns() - begin) - (by_passes ? work->bench->clock_ns : 0), 0);
        if (counters && counters->thread)
            counters_end(counters, work->figures.counts);
    }
    if (work->handover)
        handover_end(work->handover);
    if (lane == 0 && !began_in_use && upper_in_use(work->bench))
        work->cell->upper_in_use = true;
    work->elapsed[lane] = (uint64_t)fmax(spent, 1);
}

struct usual {
    enum wherry_isa isa;
    bool left; /* for another tier or other thresholds */
};

/* Who may end the process, or keep it from being told to end. */
static const char *suspect(const struct cell *cell)
{
    const struct target *const parts[] = {cell->target, cell->second};
    for (int i = 0; i < 2; i++)
        if (parts[i] && parts[i]->kind == TARGET_PEER)
            return cell->name;
    return NULL;
}

/* The tier of the public functions is the process's, so it is set before the lanes begin. */
static struct usual enter(const struct work *work, const struct cell *cell)
{
    last_words_of(work->row->id, suspect(cell));
    struct usual usual = {.isa = wherry_dispatch_isa()};
    known_enter(cell->target);
    entry_enter(cell);
    const struct target *const parts[] = {cell->target, cell->second};
    for (int i = 0; i < 2; i++)
        if (parts[i] && parts[i]->kind == TARGET_PUBLIC && parts[i]->forced) {
            wherry_dispatch_force(parts[i]->isa);
            target_thresholds(parts[i]);
            usual.left = true;
        } else if (parts[i] && parts[i]->kind == TARGET_NOFAULT) {
            target_prepare(parts[i]);
            usual.left = true;
        }
    return usual;
}

/* Not where nothing was changed: chosen anew, the public functions record their next calls, and cold code pays for
 * that. */
static void leave(struct usual usual)
{
    last_words_of(0, NULL);
    if (!usual.left)
        return;
    wherry_dispatch_force(usual.isa);
    target_thresholds(NULL);
}

struct guarded_result sample(struct work *work, struct cell *cell, uint64_t calls)
{
    work->cell = cell;
    work->calls = calls;
    /* While it is calibrated: by the median, since of a few calls the slowest says nothing. */
    work->percentile = work->row->percentile > 0 && cell->call_ns == 0 ? 50 : work->row->percentile;
    double expected_ms = (double)calls * (cell->call_ns + (work->row->cold ? work->bench->cold.stretch_ns : 0)) / 1e6;
    const struct usual usual = enter(work, cell);
    struct guarded_result how = on_lanes(work, job_sample, work->limit_ms + (unsigned)fmin(20 * expected_ms, 1e8));
    leave(usual);
    cell->settled = true;
    uint64_t slowest = 0, fastest = UINT64_MAX;
    for (unsigned lane = 0; lane < work->row->threads; lane++) {
        slowest = work->elapsed[lane] > slowest ? work->elapsed[lane] : slowest;
        fastest = work->elapsed[lane] < fastest ? work->elapsed[lane] : fastest;
    }
    work->figures.share = slowest ? (double)fastest / (double)slowest : NAN;
    for (int i = 0; i < COUNTERS; i++)
        work->figures.counts[i] /= (double)calls;
    work->figures.ns = (double)slowest / (double)calls;
    return how;
}

/* Do so many calls of ns each last long enough to tell how long one takes? */
static bool lasts(const struct work *work, double ns, uint64_t calls)
{
    const double stretch = work->row->cold ? work->bench->cold.stretch_ns : 0;
    return (ns + stretch) * (double)calls >= (double)work->row->batch_us * 1000 / 4;
}

struct guarded_result calibrate(struct work *work, struct cell *cell)
{
    const double enough = (double)work->row->batch_us * 1000 / 4;
    uint64_t calls = 1;
    cell->call_ns = 0;
    for (;;) {
        const bool last = host_interrupted || (work->row->calls && calls * 2 > work->row->calls);
        double ns = INFINITY;
        /* Once more when it seems enough: a few calls amid which another program had its turn seem slow. */
        for (int i = 0; i < 2 && (i == 0 || lasts(work, ns, calls)); i++) {
            const struct guarded_result how = sample(work, cell, calls);
            if (how.crashed || how.hung)
                return how;
            ns = fmin(ns, fmax(work->figures.ns, 0.1));
        }
        if (lasts(work, ns, calls) || last || host_interrupted) {
            cell->call_ns = ns;
            return (struct guarded_result){0};
        }
        /* The first calls are slow; too large a step would make the next sample overshoot, too small wastes time. */
        const double took = (ns + (work->row->cold ? work->bench->cold.stretch_ns : 0)) * (double)calls;
        calls = (uint64_t)((double)calls * fmin(fmax(enough * 1.2 / took, 2), 64));
    }
}

static void job_check(unsigned lane, void *context)
{
    struct work *work = context;
    const struct cell *cell = work->cell;
    if (lane != 0)
        return;
    begin_clean(work);
    if (cell->path)
        work->message = check_path(cell->path, &work->bench->pools[0], work->row);
    else if (cell->target->kind == TARGET_INLINED)
        work->message = inlined_check(cell->target, work->row->largest);
    else
        work->message = check_routine(cell->fn, cell->op, &work->bench->pools[0], work->row);
}

struct guarded_result check(struct work *work, struct cell *cell)
{
    work->cell = cell;
    work->message = NULL;
    const struct usual usual = enter(work, cell);
    struct guarded_result how = on_lanes(work, job_check, work->limit_ms);
    leave(usual);
    return how;
}
