/* The cycles of runner/chase: each line once, all of them one cycle, and every walk ends where single steps lead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chase/cycle.h"
#include "chase/walks.h"

volatile int host_interrupted; /* the runner's, which the cycle asks */

static int fail(const char *what, size_t bytes)
{
    printf("%s (%zu bytes)\n", what, bytes);
    return 1;
}

static const struct {
    unsigned chains;
    walk_fn *walk;
} walks[] = {{1, walk_1}, {2, walk_2}, {4, walk_4}, {8, walk_8}, {12, walk_12}};

static int check_walks(const struct cycle *cycle)
{
    static const uint64_t turns[] = {1, 2, 3, 100};
    for (size_t w = 0; w < sizeof walks / sizeof walks[0]; w++)
        for (size_t t = 0; t < sizeof turns / sizeof turns[0]; t++) {
            void *places[WALK_CHAINS + 1], *steps[WALK_CHAINS];
            for (unsigned i = 0; i <= WALK_CHAINS; i++)
                places[i] = cycle_at(cycle, 7 * i);
            memcpy(steps, places, sizeof steps);
            for (unsigned i = 0; i < walks[w].chains; i++)
                for (uint64_t k = 0; k < turns[t] * WALK_STEPS; k++)
                    steps[i] = *(void **)steps[i];
            walks[w].walk(places, turns[t]);
            if (memcmp(places, steps, sizeof steps) != 0 || places[WALK_CHAINS] != cycle_at(cycle, 7 * WALK_CHAINS))
                return fail("a walk ends elsewhere than single steps", cycle->bytes);
        }
    return 0;
}

static int check_cycle(size_t bytes, bool huge, uint64_t seed)
{
    struct cycle cycle;
    const char *why = cycle_make(&cycle, bytes, huge, &seed);
    if (why)
        return fail(why, bytes);
    unsigned char *seen = calloc(cycle.lines, 1);
    if (!seen || cycle.lines != bytes / CYCLE_LINE || cycle.mapped < bytes)
        return fail("a cycle of other lines than were asked for", bytes);
    size_t steps = 0, next = 0;
    char *at = cycle.base;
    do {
        const size_t offset = (size_t)(at - cycle.base);
        if (at < cycle.base || offset >= bytes || offset % CYCLE_LINE)
            return fail("a step that leads to no line of the set", bytes);
        if (seen[offset / CYCLE_LINE]++)
            return fail("a line twice before the cycle has closed", bytes);
        char *to = *(char **)at;
        next += to == at + CYCLE_LINE;
        at = to;
        steps++;
    } while (at != cycle.base);
    if (steps != cycle.lines)
        return fail("a cycle that leaves lines out", bytes);
    if (cycle.lines >= 4096 && next > cycle.lines / 100)
        return fail("a cycle that goes on in the next line too often to be random", bytes);
    for (size_t i = 0; i < cycle.lines; i++)
        if (*(void **)cycle_at(&cycle, i) != cycle_at(&cycle, i + 1))
            return fail("an order that is not the cycle's", bytes);
    const double share = cycle_huge(&cycle);
    if (share < 0 || share > 1 || (!huge && share != 0))
        return fail("huge pages that nobody asked for", bytes);
    int wrong = check_walks(&cycle);
    free(seen);
    cycle_free(&cycle);
    return wrong || cycle.base ? fail("not freed", bytes) : 0;
}

/* Seeds make cycles of their own, and the same one twice. */
static int check_seeds(void)
{
    struct cycle cycles[3];
    const uint64_t seeds[] = {1, 1, 2};
    const size_t bytes = 65536;
    for (int i = 0; i < 3; i++) {
        uint64_t seed = seeds[i];
        if (cycle_make(&cycles[i], bytes, false, &seed))
            return fail("no cycle", bytes);
    }
    const size_t of_order = bytes / CYCLE_LINE * sizeof(uint32_t);
    const bool good = memcmp(cycles[0].order, cycles[1].order, of_order) == 0 &&
                      memcmp(cycles[0].order, cycles[2].order, of_order) != 0;
    for (int i = 0; i < 3; i++)
        cycle_free(&cycles[i]);
    return good ? 0 : fail("cycles that do not follow their seeds", bytes);
}

static int check_interrupt(void)
{
    struct cycle cycle;
    uint64_t seed = 1;
    host_interrupted = 2;
    const char *why = cycle_make(&cycle, 65536, false, &seed);
    host_interrupted = 0;
    cycle_free(&cycle);
    return why ? 0 : fail("an interruption that is not heard", 65536);
}

int main(void)
{
    static const size_t sizes[] = {1024, 1088, 4096, 4160, 65536, 1 << 20, (6 << 20) + 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int huge = 0; huge < 2; huge++)
            for (uint64_t seed = 1; seed < 4; seed++)
                if (check_cycle(sizes[i], huge, seed))
                    return 1;
    if (check_seeds() || check_interrupt())
        return 1;
    puts("cycles: right");
    return 0;
}
