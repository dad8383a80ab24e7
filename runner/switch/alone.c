/* What copies and wide registers take without any switch, to tell the switch's part from theirs. */
#include <math.h>
#include <string.h>

#include "switch.h"

enum { CHAIN = 2048, PAUSE_NS = 1000000 };

/* Additions that wait for each other: as many cycles of the core's clock, whatever else runs beside them. */
static void chain(void)
{
    uint64_t turns = CHAIN / 8, sum = 0;
    __asm__ volatile(".Lchain%=:\n\t"
                     "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
                     "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
                     "dec %1\n\tjnz .Lchain%="
                     : "+r"(sum), "+r"(turns));
}

static double first_ns(enum live live, uint64_t calls)
{
    double sum = 0;
    for (uint64_t i = 0; i < calls && !host_interrupted; i++) {
        const uint64_t until = clock_ns() + PAUSE_NS;
        while (clock_ns() < until)
            chain();
        const uint64_t begin = clock_ns();
        live_begin(live, 1.5f);
        live_turn(live);
        const uint64_t end = clock_ns();
        sum += (double)(end - begin);
        live_clear();
    }
    return sum / (double)calls;
}

const char *alone_sample(const char *via, const struct turns *turns)
{
    struct system_figures *figures = turns->figures;
    const bool first = strcmp(via, "first") == 0, beside_chain = strcmp(via, "clock") == 0;
    live_clear(); /* not before strcmp, whose registers would be in use */
    if (first) {
        figures->ns = first_ns(turns->live, turns->calls);
        return NULL;
    }
    live_begin(turns->live, 1.5f);
    const uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < turns->calls; i++) {
        if (turns->size)
            switch_copy(turns, 0);
        if (beside_chain) {
            live_turn(turns->live);
            chain();
        }
    }
    figures->ns = (double)(clock_ns() - begin) / (double)turns->calls;
    figures->parts[PART_IN_USE] = live_told() ? (double)live_in_use() : NAN;
    live_clear();
    return NULL;
}
