/* Another CPU that uses lines before the measured one does, as in a program whose threads hand data to each other: of a
 * source it stores into each line, of a destination it reads each. So the source lies in that CPU's caches, where alone
 * it is up to date, and the destination in those of both. */
#ifndef MEASURE_HANDOVER_H
#define MEASURE_HANDOVER_H

#include "host.h"
#include "loops.h"
#include "row.h"

struct handover;

/* The thread on the CPU that the row asks for, started when it is first needed; it sleeps until handover_begin. Returns
 * NULL and says why in *problem (static) where there is no such CPU. */
struct handover *handover_to(const struct host *host, const struct row *row, const char **problem);

unsigned handover_cpu(const struct handover *handover);

/* Between them it waits for lines and keeps its CPU busy. */
void handover_begin(struct handover *handover);
void handover_end(struct handover *handover);

/* Hands over what the next `calls` calls of the walk will use. */
void handover_lines(struct handover *handover, const struct walk *walk, enum sides sides, uint64_t calls);

#endif
