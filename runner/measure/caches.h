/* The cache sizes that pools are made for, and how much memory may be used. */
#ifndef MEASURE_CACHES_H
#define MEASURE_CACHES_H

#include <stddef.h>

struct caches {
    size_t l1d, l2, l3; /* bytes that a thread alone may believe it has; never 0 */
};

/* Of the machine this runs on (cpu/caches.h believes; sysfs is one source), each kept within bounds that real CPUs
 * have: hypervisors report zeroes, and the L3 of a whole socket where a guest has a slice. */
struct caches caches_believable(void);

/* MemAvailable of /proc/meminfo in bytes, 1 GiB when it cannot be read; no more than the control groups leave. */
size_t memory_available(void);

#endif
