/* All routines of a row, round by round. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "stats.h"
#include "work.h"

enum { SLOWEST_FACTOR = 50, COLD_FACTOR = 100, VOID_FACTOR = 1, LEAST_VALID = 3 };

/* One more cell: a routine against itself. libc stands at another address there, in a link space of its own. */
void add_second(const struct row *row, struct result *result)
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
    if (one->target && one->target->kind == TARGET_LIBC && !one->second) {
        void (*other)(void) = libc_second_copy(one->op);
        if (other)
            second->fn = (loop_fn *)other;
    }
}

/* One count for all, from the fastest; fewer when the slowest would take too long. A yardstick has one of its own: it
 * is compared with nobody, and the nanosecond of call_floor would make everyone else's samples endless. */
void choose_calls(const struct work *work, struct result *result)
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
    uint64_t portion = row_is_by_passes(row) ? pool_pass(&work->bench->pools[0], row) : UINT64_MAX;
    for (size_t i = 0; i < result->cell_count; i++) {
        struct cell *cell = &result->cells[i];
        double least = cell->target ? fastest : cell->call_ns, most = cell->target ? slowest : cell->call_ns;
        double calls = fmax(1, fmin(ceil(batch / least), floor(SLOWEST_FACTOR * batch / most)));
        if (row->cold) /* the code between calls takes most of the time, and is why there are too few otherwise */
            calls = ceil(COLD_FACTOR * batch / (work->bench->cold.stretch_ns + most));
        if (row->percentile > 0)
            calls = fmin(fmax(calls, (double)single_least(row->percentile)), SINGLE_MOST);
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

static void job_begin_round(unsigned lane, void *context)
{
    struct work *work = context;
    pool_begin_round(&work->bench->pools[lane], work->row);
    work->bench->pools[lane].restless = false;
    watch_read(&work->watches[lane], work->bench->host.cpus[lane]);
}

/* Leaves what has disturbed the lane's round in place of its elapsed time. */
static void job_end_round(unsigned lane, void *context)
{
    struct work *work = context;
    struct watch after;
    watch_read(&after, work->bench->host.cpus[lane]);
    const enum disturbance what = watch_compare(&work->watches[lane], &after);
    /* Calls that are timed one by one were made again where another program had the CPU. */
    const bool mended = what == DESCHEDULED && work->row->percentile > 0 && !work->bench->pools[lane].restless;
    work->elapsed[lane] = mended ? UNDISTURBED : what;
}

/* The rounds that count: the valid ones, or where those are too few the ones that were thrown away. */
static void keep(struct result *result, const struct row *row)
{
    bool valid = result->valid >= LEAST_VALID || result->valid == row->rounds || !result->voided;
    double cores[row->rounds], memories[row->rounds];
    for (unsigned round = 0; round < result->tried_count && result->rounds < row->rounds; round++) {
        if ((result->tried[round].disturbance == UNDISTURBED) != valid)
            continue;
        for (size_t i = 0; i < result->cell_count; i++)
            if (!result->cells[i].left_out)
                result->cells[i].ns[result->rounds] = result->cells[i].tried[round].ns;
        cores[result->rounds] = result->tried[round].pace.core;
        memories[result->rounds] = result->tried[round].pace.memory;
        result->kept[result->rounds++] = round;
    }
    if (result->rounds)
        result->pace =
            (struct reading){stats_median(cores, result->rounds, 0, 1), stats_median(memories, result->rounds, 0, 1)};
}

/* Whatever came between the two ends of a round, the gravest of all lanes. */
static enum disturbance worst_of(const struct work *work)
{
    enum disturbance worst = UNDISTURBED;
    for (unsigned lane = 0; lane < work->row->threads; lane++)
        if (work->elapsed[lane] && (!worst || work->elapsed[lane] < worst))
            worst = (enum disturbance)work->elapsed[lane];
    return worst;
}

bool result_make_room(struct result *result, const struct row *row)
{
    size_t most = row->rounds * (1 + VOID_FACTOR);
    result->tried = calloc(most, sizeof *result->tried);
    result->kept = calloc(row->rounds, sizeof *result->kept);
    bool made = result->tried && result->kept;
    for (size_t i = 0; i < result->cell_count; i++) {
        struct cell *cell = &result->cells[i];
        cell->ns = calloc(row->rounds, sizeof *cell->ns);
        cell->tried = calloc(most, sizeof *cell->tried);
        made = made && cell->ns && cell->tried;
    }
    return made;
}

void result_free(struct result *result)
{
    for (size_t i = 0; i < result->cell_count; i++) {
        free(result->cells[i].ns);
        free(result->cells[i].tried);
    }
    free(result->tried);
    free(result->kept);
    *result = (struct result){0};
}

struct cell *measure_rounds(struct work *work, struct result *result, struct guarded_result *how)
{
    const struct row *row = work->row;
    unsigned order[ROW_ROUTINES + 1], taking_part = 0;
    for (size_t i = 0; i < result->cell_count; i++)
        if (!result->cells[i].left_out)
            order[taking_part++] = (unsigned)i;
    unsigned bound = taking_part ? row->rounds * (1 + VOID_FACTOR) : 0;
    for (unsigned round = 0; round < bound && result->valid < row->rounds && !host_interrupted; round++) {
        if (round % 2 == 0)
            shuffle_order(order, taking_part, &work->bench->random);
        const struct reading before = pace_wait(&work->bench->pace);
        *how = on_lanes(work, job_begin_round, work->limit_ms);
        for (unsigned i = 0; i < taking_part; i++) {
            struct cell *cell = &result->cells[order[round % 2 ? taking_part - 1 - i : i]];
            work->first_size = (size_t)((uint64_t)round * cell->calls % row->table);
            *how = sample(work, cell, cell->calls);
            if (how->crashed || how->hung)
                return cell;
            if (host_interrupted)
                return NULL;
            cell->tried[round] = work->figures;
        }
        *how = on_lanes(work, job_end_round, work->limit_ms);
        enum disturbance worst = worst_of(work);
        const struct reading after = pace_read(&work->bench->pace);
        const struct reading slower = {fmax(before.core, after.core), fmax(before.memory, after.memory)};
        if (!worst && pace_is_slow(&work->bench->pace, slower))
            worst = CONTENDED;
        result->tried[round] = (struct round){slower, worst};
        result->tried_count = round + 1;
        result->reasons[worst]++;
        *(worst ? &result->voided : &result->valid) += 1;
    }
    keep(result, row);
    return NULL;
}
