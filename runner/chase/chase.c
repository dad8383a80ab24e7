/* The scene op=chase: loads that each wait for the one before, along a cycle through a working set. One call is one
 * load; the routines differ in how many chains of them go at once. */
#include <stdio.h>
#include <string.h>

#include "cycle.h"
#include "measure/caches.h"
#include "measure/host.h"
#include "system/system.h"
#include "walks.h"

/* WARM_LOADS: before each sample, untimed, and no more than half of it. They bring in a set that fits a second-level
 * cache, and of a larger one what the processor keeps of the tables of its pages. */
enum { LEAST_SET = 1024, WARM_LOADS = 16384, CHECKED_LOADS = 65536 };
/* Of huge pages a few may be missing at the ends of what the kernel had. */
static const double HUGE_ENOUGH = 0.9;

static const struct scene_word words[] = {
    {"size", NULL, "65536", LEAST_SET, (uint64_t)8 << 30, false},
    {"huge", "0 1", "0", 0, 0, false},
    {NULL, NULL, NULL, 0, 0, false},
};
enum { PART_HUGE };
static const char *const parts[] = {"huge_share", NULL};

static const struct way {
    const char *name;
    unsigned chains;
    walk_fn *walk;
} ways[] = {{"1_chain", 1, walk_1},
            {"2_chains", 2, walk_2},
            {"4_chains", 4, walk_4},
            {"8_chains", 8, walk_8},
            {"12_chains", 12, walk_12}};
#define WAY_NAMES "1_chain, 2_chains, 4_chains, 8_chains, 12_chains"

static struct cycle cycle;
static double huge_share;
static uint64_t cursor; /* of the first chain; where a sample ends the next goes on */

static const struct way *way_find(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static const char *accept(struct system_row *row)
{
    static char problem[256];
    if (system_number(row, "size") % CYCLE_LINE)
        return "size= is the working set: give a multiple of 64 bytes";
    for (size_t i = 0; i < row->name_count; i++)
        if (!way_find(row->names[i])) {
            snprintf(problem, sizeof problem, "'%.80s' is none of " WAY_NAMES, row->names[i]);
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
    const bool huge = system_is(row, "huge", "1");
    const size_t needed = cycle_bytes_needed(bytes, huge), most = memory_available() / 2;
    if (needed > most) {
        snprintf(problem, sizeof problem, "needs %zu MiB of memory, and may take half of what is available: %zu MiB",
                 needed >> 20, most >> 20);
        return problem;
    }
    const char *why = cycle_make(&cycle, bytes, huge, row->random);
    if (why)
        return why;
    cursor = 0;
    huge_share = cycle_huge(&cycle);
    row->pool_bytes = cycle.mapped;
    row->huge = huge && huge_share >= HUGE_ENOUGH;
    if (huge && !row->huge) {
        snprintf(problem, sizeof problem,
                 "the kernel gives huge pages for %.0f %% of it; /sys/kernel/mm/transparent_hugepage/enabled has to be "
                 "madvise or always, and memory in one piece left",
                 huge_share * 100);
        return problem;
    }
    return NULL;
}

/* The chains take stretches of the cycle that follow each other, and a walk goes on where the last has ended: no line
 * comes again before all the others have, whoever walks. Walks longer than that begin as far from each other as the
 * cycle lets them. Afterwards each chain has to be where the order says: a load that went elsewhere would not have come
 * there. */
static const char *walk(const struct way *way, uint64_t turns, uint64_t *took)
{
    void *places[WALK_CHAINS];
    const uint64_t steps = turns * WALK_STEPS, all = steps * way->chains;
    const uint64_t apart = all <= cycle.lines ? steps : cycle.lines / way->chains;
    for (unsigned i = 0; i < way->chains; i++)
        places[i] = cycle_at(&cycle, cursor + i * apart);
    const uint64_t begin = clock_ns();
    way->walk(places, turns);
    *took = clock_ns() - begin;
    for (unsigned i = 0; i < way->chains; i++)
        if (places[i] != cycle_at(&cycle, cursor + i * apart + steps))
            return "a chain is not where the cycle leads";
    cursor = (cursor + (all <= cycle.lines ? all : steps)) % cycle.lines;
    return NULL;
}

static uint64_t turns_for(const struct way *way, uint64_t loads)
{
    const uint64_t of_a_turn = (uint64_t)way->chains * WALK_STEPS;
    return loads > of_a_turn ? (loads + of_a_turn - 1) / of_a_turn : 1;
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    (void)row;
    uint64_t took;
    const struct way *way = way_find(name);
    const uint64_t loads = cycle.lines < CHECKED_LOADS ? cycle.lines : CHECKED_LOADS;
    const char *why = walk(way, turns_for(way, loads), &took);
    *wrong = why != NULL;
    return why;
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    (void)row;
    uint64_t took;
    const struct way *way = way_find(name);
    const uint64_t turns = turns_for(way, calls), warm = cycle.lines < WARM_LOADS ? cycle.lines : WARM_LOADS;
    const char *why = walk(way, turns_for(way, warm < calls / 2 ? warm : calls / 2), &took);
    if (!why)
        why = walk(way, turns, &took);
    figures->ns = (double)took / (double)(turns * WALK_STEPS * way->chains);
    figures->parts[PART_HUGE] = huge_share;
    return why;
}

static void close_row(struct system_row *row)
{
    (void)row;
    cycle_free(&cycle);
}

extern const struct scene chase_scene;
const struct scene chase_scene = {"chase", words, parts, accept, open_row, ready, sample, close_row};
