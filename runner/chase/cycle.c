#include "cycle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "measure/host.h"
#include "measure/pages.h"
#include "measure/random.h"

enum { LOOK_EVERY = 1 << 20 };

size_t cycle_bytes_needed(size_t bytes, bool huge)
{
    const size_t lines = bytes / CYCLE_LINE;
    return pages_bytes(bytes, huge) + lines * sizeof(uint32_t) + lines / 8;
}

static void *line_at(const struct cycle *cycle, size_t line) { return cycle->base + line * CYCLE_LINE; }

static bool map(struct cycle *cycle, size_t bytes, bool huge)
{
    cycle->base = pages_map(bytes, huge);
    if (!cycle->base)
        return false;
    cycle->bytes = bytes;
    cycle->mapped = pages_bytes(bytes, huge);
    cycle->lines = bytes / CYCLE_LINE;
    return true;
}

static bool is_time_to_go(size_t i) { return i % LOOK_EVERY == 0 && host_interrupted; }

/* Fisher and Yates: every order is as likely, and so is every cycle. */
static bool shuffle(struct cycle *cycle, uint64_t *random)
{
    uint32_t *order = cycle->order;
    for (size_t i = 0; i < cycle->lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = cycle->lines; i > 1; i--) {
        const size_t other = random_below(random, i);
        const uint32_t held = order[i - 1];
        order[i - 1] = order[other];
        order[other] = held;
        if (is_time_to_go(i))
            return false;
    }
    return true;
}

/* Is each line in the order once? As many as there are, and none of them twice. */
static const char *check(const struct cycle *cycle)
{
    unsigned char *seen = calloc(cycle->lines / 8 + 1, 1);
    if (!seen)
        return "no memory to check the cycle";
    bool once = true;
    for (size_t i = 0; i < cycle->lines; i++) {
        const uint32_t line = cycle->order[i];
        const unsigned char bit = (unsigned char)(1u << line % 8);
        once = once && line < cycle->lines && !(seen[line / 8] & bit);
        if (!once)
            break;
        seen[line / 8] |= bit;
    }
    free(seen);
    return once ? NULL : "the cycle has a line twice";
}

static bool link_lines(struct cycle *cycle)
{
    for (size_t i = 0; i < cycle->lines; i++) {
        *(void **)cycle_at(cycle, i) = cycle_at(cycle, i + 1);
        if (is_time_to_go(i))
            return false;
    }
    return true;
}

const char *cycle_make(struct cycle *cycle, size_t bytes, bool huge, uint64_t *random)
{
    static char problem[128];
    *cycle = (struct cycle){0};
    cycle->order = malloc(bytes / CYCLE_LINE * sizeof(uint32_t));
    if (!cycle->order || !map(cycle, bytes, huge)) {
        snprintf(problem, sizeof problem, "no memory for a working set of %zu bytes", bytes);
        return problem;
    }
    /* In the order of the addresses, as a program's memory mostly comes to it. */
    memset(cycle->base, 0, cycle->mapped);
    if (!shuffle(cycle, random))
        return "interrupted";
    const char *wrong = check(cycle);
    return wrong ? wrong : link_lines(cycle) ? NULL : "interrupted";
}

void *cycle_at(const struct cycle *cycle, uint64_t steps) { return line_at(cycle, cycle->order[steps % cycle->lines]); }

/* A mapping may have been joined with a neighbour: of what smaps tells no more than ours counts. */
double cycle_huge(const struct cycle *cycle)
{
    const size_t found = pages_huge(cycle->base, cycle->mapped);
    return found < cycle->mapped ? (double)found / (double)cycle->mapped : 1;
}

void cycle_free(struct cycle *cycle)
{
    if (cycle->base)
        munmap(cycle->base, cycle->mapped);
    free(cycle->order);
    *cycle = (struct cycle){0};
}
