/* Mixes: distributions of sizes, drawn into a table before anything is timed. */
#ifndef MEASURE_MIX_H
#define MEASURE_MIX_H

#include <stddef.h>
#include <stdint.h>

/* Fills sizes[0..count) from "uniform:LO-HI", "log:LO-HI" or "@FILE". Returns NULL, or what is wrong (static). */
const char *mix_draw(const char *spec, uint64_t *sizes, size_t count, uint64_t seed);

#endif
