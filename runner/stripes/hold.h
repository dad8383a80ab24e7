/* Scratch of the experiment stripes: files without a name, and a RAID-0 over some, that last as long as the process
 * that holds them, however it ends. */
#ifndef RUNNER_STRIPES_HOLD_H
#define RUNNER_STRIPES_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RAID_MEMBERS = 9 };

/* What went wrong, in one line. Static. */
extern char hold_problem[1024];

/* A file in `directory` that no directory names any more. -1: see hold_problem. */
int hold_file(const char *directory);
/* Takes room for so many bytes where the file system can. 0, or -1: see hold_problem. */
int hold_reserve(int fd, uint64_t bytes);
/* Writes what content.h says into the first `bytes` of it. 0, or -1: see hold_problem. */
int hold_fill(int fd, uint64_t seed, unsigned file, uint64_t bytes);

struct raid {
    int loops[RAID_MEMBERS], backing[RAID_MEMBERS];
    long numbers[RAID_MEMBERS]; /* of the loop devices */
    int mount, file;
    uint64_t bytes; /* in the file */
    pid_t guard;    /* md: who takes the array down, also when this process is killed */
    int leash;      /* md: closed, it tells the guard */
};

void raid_clear(struct raid *raid);
/* Nine loop devices over files of so many bytes in `directory`, which take themselves down. NULL, or why there are
 * none; raid_end follows in any case. */
const char *raid_open_loops(struct raid *raid, const char *directory, uint64_t bytes, bool reserved);

/* A btrfs RAID-0 over nine loop devices over files in `directory`, mounted nowhere, with one file in it. NULL, or why
 * there is none. */
const char *raid_begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes);
void raid_end(struct raid *raid);

/* The same by md, which needs no file system: `file` is the device. */
const char *md_begin(struct raid *raid, const char *directory, uint64_t seed, uint64_t bytes);
void md_end(struct raid *raid);

#endif
