/* The block above a table: what machine made it. */
#ifndef MEASURE_HEADING_H
#define MEASURE_HEADING_H

#include "caches.h"
#include "host.h"

/* Prints it to standard output, a line a fact, fit to be pasted into a mail. */
void heading_print(const char *title, const struct host *host, const struct caches *caches);

#endif
