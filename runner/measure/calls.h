/* Files of single calls, one a line, as wherry makes them of a recorded mix: size, place, overlap, and which calls
 * follow each other. docs/runner-protocol.md tells the form. */
#ifndef MEASURE_CALLS_H
#define MEASURE_CALLS_H

#include "mix.h"

/* The bits of an address that say where in its page it lies, as struct placed has them in `meets`. */
enum { IN_PAGE = 4095 };

/* Does its first line say that it is one? */
bool calls_is_file(const char *path);

/* Fills the mix: its calls over and over until there are `count`. Returns NULL, or what is wrong (static). */
const char *calls_read(const char *path, struct mix *mix);

#endif
