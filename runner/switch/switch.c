/* The scene op=switch: what its words mean, and who measures it. */
#include "switch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CALLS = 20, COPY_MOST = 4096, BUFFER = COPY_MOST + 64 };

static const struct scene_word words[] = {
    {"via", "pipe eventfd futex stacks alone clock first", "pipe", 0, 0, false},
    {"partners", "processes threads", "processes", 0, 0, false},
    {"place", "same apart", "same", 0, 0, false},
    {"live", LIVE_NAMES, "none", 0, 0, false},
    {"who", "no child parent both", "both", 0, 0, false},
    {"size", NULL, "0", 0, COPY_MOST, false},
    {NULL, NULL, NULL, 0, 0, false},
};
static const char *const parts[] = {"user_ns", "system_ns", "partner_ns", "in_use", NULL};
static const char whose[] = "no child parent both";

static char problem[256];
static _Alignas(64) unsigned char buffers[2][2][BUFFER]; /* of each side: source, destination */

void switch_copy(const struct turns *turns, int side) { turns->copy(buffers[side][1], buffers[side][0], turns->size); }

static double seconds_of(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec * 1e-6; }

void figures_of_usage(const struct turns *turns, const struct rusage *before, const struct rusage *after)
{
    const double calls = (double)turns->calls;
    double *parts = turns->figures->parts;
    parts[PART_USER] = (seconds_of(after->ru_utime) - seconds_of(before->ru_utime)) * 1e9 / calls;
    parts[PART_SYSTEM] = (seconds_of(after->ru_stime) - seconds_of(before->ru_stime)) * 1e9 / calls;
}

static bool is_handed(const struct system_row *row)
{
    return system_is(row, "via", "pipe") || system_is(row, "via", "eventfd") || system_is(row, "via", "futex");
}

static const struct target *copy_of(const struct system_row *row, const char *name)
{
    const struct target *target = target_for(row->targets, name, WHERRY_OP_copy);
    return target && target->abi == ABI_MEMCPY ? target : NULL;
}

static bool is_name(const struct system_row *row, const char *name)
{
    if (system_number(row, "size"))
        return strcmp(name, "no_copy") == 0 || copy_of(row, name);
    if (is_handed(row))
        return strstr(whose, name) && !strchr(name, ' ');
    if (system_is(row, "via", "stacks"))
        return !stacks_unavailable(name, LIVE_NONE) || strncmp(stacks_unavailable(name, LIVE_NONE), "no such", 7) != 0;
    return live_find(name) != LIVE_COUNT;
}

static const char *accept(struct system_row *row)
{
    const bool copies = system_number(row, "size") > 0, stacks = system_is(row, "via", "stacks");
    if (copies && (stacks || system_is(row, "via", "clock") || system_is(row, "via", "first")))
        return "size= goes with via=pipe, eventfd, futex or alone";
    if (!copies && system_is(row, "via", "alone"))
        return "via=alone is for copies: give size=";
    if (system_is(row, "via", "first") && !row->calls)
        row->calls = FIRST_CALLS; /* each waits a millisecond before */
    for (size_t i = 0; i < row->name_count; i++)
        if (!is_name(row, row->names[i])) {
            snprintf(problem, sizeof problem, "'%.80s' is none of %s", row->names[i],
                     copies           ? "no_copy and the copies that wherry-run list names"
                     : is_handed(row) ? "no, child, parent, both"
                     : stacks         ? "never, fxsave, xsave, xsavec, xsaveopt, in_use"
                                      : LIVE_NAMES);
            return problem;
        }
    return NULL;
}

static const char *open_row(struct system_row *row)
{
    if (system_is(row, "place", "apart") && row->host->cpu_count < 2)
        return "needs two CPUs that this process may use";
    memset(buffers, 0x5a, sizeof buffers);
    return live_unavailable(live_find(system_word(row, "live")));
}

static const char *ready(struct system_row *row, const char *name, bool *wrong)
{
    const enum live live = live_find(system_word(row, "live"));
    if (system_number(row, "size"))
        return strcmp(name, "no_copy") == 0 ? NULL : target_unavailable(copy_of(row, name));
    if (is_handed(row))
        return NULL;
    if (!system_is(row, "via", "stacks"))
        return live_unavailable(live_find(name));
    const char *missing = stacks_unavailable(name, live);
    if (missing)
        return missing;
    const char *lost = stacks_check(name, live);
    *wrong = lost;
    return lost;
}

static const char *sample(struct system_row *row, const char *name, uint64_t calls, struct system_figures *figures)
{
    static struct turns turns; /* a partner that is a process of its own reads it through its copy */
    turns = (struct turns){.live = live_find(system_word(row, "live")), .calls = calls, .figures = figures};
    const char *who = system_word(row, "who"), *via = system_word(row, "via");
    if (system_number(row, "size")) {
        if (strcmp(name, "no_copy") != 0) {
            const struct target *target = copy_of(row, name);
            turns.size = system_number(row, "size");
            turns.copy = (wherry_copy_fn *)target->fn;
        }
        who = "no";
    } else if (is_handed(row)) {
        who = name;
    } else if (!system_is(row, "via", "stacks")) {
        turns.live = live_find(name);
    }
    turns.parent_live = turns.live != LIVE_NONE && (strcmp(who, "parent") == 0 || strcmp(who, "both") == 0);
    turns.child_live = turns.live != LIVE_NONE && (strcmp(who, "child") == 0 || strcmp(who, "both") == 0);
    if (is_handed(row))
        return handover_sample(row, &turns);
    return system_is(row, "via", "stacks") ? stacks_sample(name, &turns) : alone_sample(via, &turns);
}

static void close_row(struct system_row *row) { (void)row; }

extern const struct scene switch_scene;
const struct scene switch_scene = {"switch", words, parts, accept, open_row, ready, sample, close_row};
