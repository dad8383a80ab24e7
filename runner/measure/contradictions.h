/* Values of a row that are good alone but not together. */
#ifndef MEASURE_CONTRADICTIONS_H
#define MEASURE_CONTRADICTIONS_H

#include "row.h"

/* mixed: the sizes are a mix's. Returns NULL, or what is wrong and what to give (static). */
const char *row_contradiction(const struct row *row, bool mixed);

#endif
