/* The scene op=loaded: how long a load takes that waits for the one before, along a cycle through a working set as in
 * op=chase, while other CPUs copy. One call is one load; the routines differ in what copies meanwhile. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chase/cycle.h"
#include "chase/walks.h"
#include "copiers.h"
#include "measure/caches.h"
#include "system/system.h"

/* Before each sample, untimed, while the others are at it already: a set of up to WARM_WHOLE lines (16 MiB) is walked
 * once, so that it lies where it does in the long run, whatever the sample before has driven out or let in; of a larger
 * one, which no cache holds, WARM_LOADS bring in what the processor keeps of the tables of its pages. */
enum { LEAST_SET = 1024, LEAST_BLOCK = 64, WARM_WHOLE = 1 << 18, WARM_LOADS = 16384, TRIES = 4 };
#define IDLE "idle"

static const struct scene_word words[] = {
    {"size", NULL, "65536", LEAST_SET, (uint64_t)8 << 30, false},
    {"block", NULL, "65536", LEAST_BLOCK, (uint64_t)1 << 30, false},
    {"buffer", NULL, "67108864", LEAST_BLOCK, (uint64_t)1 << 30, false},
    {"others", NULL, "0", 0, HOST_CPUS - 1, false},
    {NULL, NULL, NULL, 0, 0, false},
};
enum { PART_COPIED, PART_COPIERS, PART_SAME_CORE };
static const char *const parts[] = {"copied_gbs", "copiers", "same_core", NULL};

static struct cycle cycle;
static uint64_t cursor; /* where a walk ends the next goes on */

static const struct target *target_of(const struct system_row *row, const char *name)
{
    const struct target *target = target_for(row->targets, name, WHERRY_OP_copy);
    return target && target->abi == ABI_MEMCPY ? target : NULL;
}

static bool is_idle(const char *name) { return strcmp(name, IDLE) == 0; }

static const char *accept(struct system_row *row)
{
    static char problem[256];
    if (system_number(row, "size") % CYCLE_LINE)
        return "size= is the working set: give a multiple of 64 bytes";
    if (system_number(row, "block") > system_number(row, "buffer"))
        return "block= is copied within buffer=: give no more than that";
    for (size_t i = 0; i < row->name_count; i++)
        if (!is_idle(row->names[i]) && !target_of(row, row->names[i]) &&
            !system_peer_without_copy(row, row->names[i])) {
            snprintf(problem, sizeof problem, "'%.80s' is neither " IDLE " nor anything that copies", row->names[i]);
            return problem;
        }
    row->call_bytes = sizeof(void *);
    row->steady = true;
    return NULL;
}

static const char *open_row(struct system_row *row)
{
    static char problem[256];
    const size_t bytes = system_number(row, "size");
    const char *why = copiers_open(row->host, (unsigned)system_number(row, "others"), system_number(row, "buffer"));
    if (why)
        return why;
    const size_t needed = cycle_bytes_needed(bytes, false), most = memory_available() / 2;
    if (needed > most) {
        snprintf(problem, sizeof problem, "needs %zu MiB of memory, and may take half of what is available: %zu MiB",
                 needed >> 20, most >> 20);
        return problem;
    }
    why = cycle_make(&cycle, bytes, false, row->random);
    cursor = 0;
    row->pool_bytes = why ? 0 : cycle.mapped + copiers_bytes();
    return why;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    static char problem[128];
    if (is_idle(name))
        return NULL;
    const struct target *target = target_of(row, name);
    if (!target)
        return system_peer_without_copy(row, name);
    const char *missing = target_unavailable(target);
    if (missing)
        return missing;
    const size_t block = system_number(row, "block"), quantum = target->routine ? target->routine->quantum : 1;
    if (quantum > 1 && block % quantum) {
        snprintf(problem, sizeof problem, "takes sizes that are multiples of %zu bytes only, not %zu", quantum, block);
        return problem;
    }
    target_prepare(target);
    const char *why = copiers_check(target, block);
    *wrong = why != NULL;
    return why;
}

static const char *walk(uint64_t turns, uint64_t *took)
{
    void *place = cycle_at(&cycle, cursor);
    const uint64_t begin = clock_ns();
    walk_1(&place, turns);
    *took = clock_ns() - begin;
    cursor = (cursor + turns * WALK_STEPS) % cycle.lines;
    return place == cycle_at(&cycle, cursor) ? NULL : "the chain is not where the cycle leads";
}

static uint64_t turns_for(uint64_t loads) { return loads > WALK_STEPS ? (loads + WALK_STEPS - 1) / WALK_STEPS : 1; }

/* What is timed is a small part of a sample, so on a busy machine it is left alone sooner than all of it. */
static const char *timed_walk(const struct system_row *row, uint64_t turns, uint64_t *took,
                              struct system_figures *figures)
{
    const char *why = NULL;
    figures->looked = true;
    for (int try = 0; try < TRIES && !why; try++) {
        struct watch before, after;
        watch_read(&before, row->host->cpu);
        why = walk(turns, took);
        watch_read(&after, row->host->cpu);
        figures->disturbed = watch_compare(&before, &after);
        if (figures->disturbed == UNDISTURBED)
            break;
    }
    return why;
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    const uint64_t turns = turns_for(calls), warm = cycle.lines <= WARM_WHOLE ? cycle.lines : WARM_LOADS;
    const bool idle = is_idle(name);
    uint64_t took;
    if (!idle)
        copiers_begin(target_of(row, name), system_number(row, "block"));
    const char *why = walk(turns_for(warm), &took);
    if (!why)
        why = timed_walk(row, turns, &took, figures);
    figures->parts[PART_COPIED] = idle ? 0 : copiers_end();
    figures->parts[PART_COPIERS] = idle ? 0 : copiers_count();
    figures->parts[PART_SAME_CORE] = idle ? 0 : copiers_same_core();
    figures->ns = (double)took / (double)(turns * WALK_STEPS);
    return why;
}

static void close_row(struct system_row *row)
{
    (void)row;
    copiers_close();
    cycle_free(&cycle);
}

extern const struct scene loaded_scene;
const struct scene loaded_scene = {"loaded", words, parts, accept, open_row, ready, sample, close_row};
