/* The memory that control groups leave: in a container less than the machine has, and whoever takes more is killed. */
#ifndef MEASURE_GROUP_H
#define MEASURE_GROUP_H

#include <stddef.h>

/* What the groups of a process leave of their limits, in bytes; SIZE_MAX without any. root: where groups are mounted
 * (/sys/fs/cgroup); groups: what /proc/self/cgroup says. A group that is not to be seen there counts by those above it.
 */
size_t group_memory_left(const char *root, const char *groups);

#endif
