/* Scratch of the experiment stripes: files without a name, and a RAID-0 over some, that last as long as the process
 * that holds them, however it ends. */
#ifndef RUNNER_STRIPES_HOLD_H
#define RUNNER_STRIPES_HOLD_H

#include <stddef.h>
#include <stdint.h>

enum { RAID_MEMBERS = 9 };

/* What went wrong, in one line. Static. */
extern char hold_problem[1024];

/* A file in `directory` that no directory names any more. -1: see hold_problem. */
int hold_file(const char *directory);
/* Writes what content.h says into the first `bytes` of it, whose room is taken first. 0, or -1: see hold_problem. */
int hold_fill(int fd, uint64_t seed, unsigned file, uint64_t bytes);

struct raid {
    int loops[RAID_MEMBERS], backing[RAID_MEMBERS];
    int mount, file;
};

/* A btrfs RAID-0 over nine loop devices over files in `directory`, mounted nowhere, with one file in it. NULL, or why
 * there is none. */
const char *raid_begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes);
void raid_end(struct raid *raid);

#endif
