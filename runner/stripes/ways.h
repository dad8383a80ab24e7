/* Ways to get the bytes of a stripe, block by block in the order of a RAID-0: read() into a buffer, the same past the
 * page cache, and by a mapping, whose pages are copied by some routine or only touched. */
#ifndef RUNNER_STRIPES_WAYS_H
#define RUNNER_STRIPES_WAYS_H

#include "members.h"
#include "target.h"

#define WAY_NAMES "read, direct, touch and the copies that wherry-run list names (nofault is wherry_copy_nofault)"

enum way_kind { WAY_READ, WAY_DIRECT, WAY_TOUCH, WAY_COPY, WAY_UNKNOWN };

struct way {
    enum way_kind kind;
    const struct target *target; /* WAY_COPY */
};

struct way way_find(const struct target_list *targets, const char *name);

/* Reads blocks [first, first + count). `kept`: the members are mapped already and stay so; else each is mapped when its
 * turn comes and unmapped at the end, as a program does that reads a file once. NULL, or which member failed. */
const char *way_go(const struct way *way, struct members *members, uint64_t first, uint64_t count, bool kept);

/* Reads all blocks of a stripe and compares each with what it should hold: what content.h says, or with a seed of 0
 * what pread gives. Whoever only touches is held to the bytes it has touched. NULL, or which member failed; *wrong set:
 * it is the way that was. */
const char *way_check(const struct way *way, struct members *members, uint64_t seed, unsigned file, bool *wrong);

/* Maps all members and touches each page. NULL, or what failed. */
const char *way_keep_mapped(struct members *members);

/* From now on SIGBUS in a mapping ends the way that is under way with an error, and not the process. */
void ways_catch_faults(void);

#endif
