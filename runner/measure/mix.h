/* Mixes: distributions of sizes, alignments and overlaps, drawn into a table before anything is timed. */
#ifndef MEASURE_MIX_H
#define MEASURE_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loops.h"

/* What a mix is drawn for, and what it is drawn into. */
struct mix {
    bool sources;          /* is there a source? */
    bool may_meet;         /* may both sides overlap? */
    size_t count;          /* entries of the table */
    uint64_t *sizes;       /* the caller's, `count` of them */
    struct placed *placed; /* to be freed; NULL when the mix says nothing but sizes */
    uint32_t *runs; /* to be freed; NULL, or where calls begin whose order is part of the mix, and `count` last */
    size_t run_count;
};

/* Draws from "uniform:LO-HI", "log:LO-HI" or "@FILE". Returns NULL, or what is wrong (static). */
const char *mix_draw(const char *spec, struct mix *mix, uint64_t seed);

#endif
