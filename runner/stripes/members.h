/* The files that a stripe is made of: opened, checked, dropped from the page cache, and named when one fails. */
#ifndef RUNNER_STRIPES_MEMBERS_H
#define RUNNER_STRIPES_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMBERS = 9, BENEATH = 16, MEMBER_PATH = 1024 };

struct member {
    char path[MEMBER_PATH];
    int fd;
    int direct; /* opened with O_DIRECT; -1: not yet, or not to be had */
    uint64_t bytes;
    bool named; /* some directory has it; scratch is in none */
    unsigned char *map;
};

struct members {
    struct member own[MEMBERS];
    size_t count;
    uint64_t block;       /* bytes that one member gives before the next one's turn */
    uint64_t stripes;     /* blocks of each member that are read */
    int beneath[BENEATH]; /* files that lie under a RAID, whose cached pages have to go, too */
    size_t beneath_count;
};

/* What became of the last failure: one line that names the member. Static. */
extern char members_problem[MEMBER_PATH + 256];

/* The first of a list as it was before it was written for a row, cut off where the room ends. */
void members_word(const char *word, char *text, size_t room);

/* Opens `count` of the files in `list` (comma-separated, %XX for what has a meaning there). NULL, or what is wrong. */
const char *members_open(struct members *members, const char *list, size_t count, uint64_t block);
/* Those under a RAID. */
const char *members_open_beneath(struct members *members, const char *list);
void members_close(struct members *members);
/* Opens all with O_DIRECT, once. NULL, or why that is not to be had here. */
const char *members_open_direct(struct members *members);

static inline uint64_t members_blocks(const struct members *members) { return members->stripes * members->count; }
static inline struct member *members_of(struct members *members, uint64_t block)
{
    return &members->own[block % members->count];
}
static inline uint64_t members_offset(const struct members *members, uint64_t block)
{
    return block / members->count * members->block;
}

/* NULL, or which member is no longer as long as it was, or has been removed. A page that a truncation cuts reads as
 * zeros without a fault, so that lengths have to be looked at. */
const char *members_changed(struct members *members);
/* NULL, or which member is sparse: what was never written comes from no device, however cold it is. */
const char *members_with_holes(struct members *members);
/* A failure in words: a read that gave `got` (negative: errno is set) where `wanted` were asked for. */
const char *members_read_failed(struct members *members, const struct member *member, uint64_t offset, size_t wanted,
                                long got);
/* An access to the mapping that raised SIGBUS. */
const char *members_fault(struct members *members, const void *address);

/* Drops from the page cache what the blocks [first, first + count) lie in. */
void members_drop(struct members *members, uint64_t first, uint64_t count);
/* How much of them is in the page cache, 0 to 1; NAN where the kernel does not tell who may only read. */
double members_cached(struct members *members, uint64_t first, uint64_t count);
/* Drops them until none is cached, for at most 50 ms: the kernel passes over pages that are locked, as those are that
 * an earlier read has asked for ahead and that are still under way. What members_cached says at the end. */
double members_cool(struct members *members, uint64_t first, uint64_t count);

#endif
