/* Fuzzing: what the rooms of this directory share. An input is a string of bytes that means a few calls; any string
 * means something, so that libFuzzer, AFL++ and the driver here can all make them.
 *
 *   byte 0       which contents the arena has
 *   byte 1       which tier serves the public functions: 0 the default plan, then each that this CPU can run
 *   then, for each call, 12 bytes (little-endian):
 *     0  2   callee              4  2   size
 *     2  1   class of the size   6  2   place of the destination
 *     3  1   class of the places 8  2   place of the source
 *    10  1   value to set       11  1   thresholds
 */
#ifndef RUNNER_FUZZ_H
#define RUNNER_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"

enum {
    ARENA = 8 * 4096,    /* bytes that may be touched, between inaccessible pages */
    LARGEST = ARENA / 3, /* so that a disjoint source has room on one side of any destination */
    HEADER = 2,          /* bytes of an input before its calls */
    RECORD = 12,         /* bytes a call */
    CALLS = 512,         /* most calls of an input; more bytes are not read */
    INPUT_MOST = HEADER + CALLS * RECORD,
    SURROUNDINGS = 64, /* bytes looked at on either side after each call */
};

struct fuzz_call {
    const struct target *target;
    unsigned callee;    /* index that leads to it */
    size_t n, dst, src; /* bytes; offsets in the arena */
    int c;
    uint8_t value;      /* what c was made from */
    uint8_t thresholds; /* even: those of the plan */
};

enum finding_kind {
    FOUND_NOTHING,
    FOUND_BYTE,
    FOUND_OUTSIDE,
    FOUND_SOURCE,
    FOUND_RETURN,
    FOUND_FAULT,
    FOUND_HANG,
    FOUND_END
};

struct finding {
    enum finding_kind kind;
    unsigned at; /* which call */
    struct fuzz_call call;
    int64_t byte; /* relative to the destination, or to the source for FOUND_SOURCE */
    int expected, got;
    int signo; /* FOUND_END: 0 when the process ended with a status; FOUND_HANG: 0 when it was killed from outside */
    bool writing;
    int64_t address; /* offset in the arena */
};

/* decode.c */
void fuzz_targets(const struct target *const *targets, size_t count); /* whom the inputs call; all can run here */
unsigned fuzz_tiers(void); /* values of byte 1 that mean a tier of their own */
void fuzz_use_tier(uint8_t byte);
void fuzz_use_thresholds(uint8_t byte);
void fuzz_thresholds_text(char *text, size_t room, uint8_t byte); /* "stream_from=0 ..." or empty */
struct fuzz_call fuzz_decode(const uint8_t *record);
void fuzz_encode(uint8_t *record, const struct fuzz_call *call); /* in the plain form: sizes and places as they are */
const char *fuzz_tier_name(void);                                /* "" for the default plan, else "avx2" ... */

/* execute.c */
enum { BLOCKED_AFTER = 10 /* seconds without the end of a call, whatever the process does meanwhile */ };

/* What a process that makes calls shows to the one that waits for it, in memory of both. */
struct fuzz_pulse {
    volatile uint64_t calls; /* made so far */
    volatile unsigned at;    /* which call of the input is being made */
    volatile bool stop;      /* set from outside: the next call is not made any more */
};
extern struct fuzz_pulse *fuzz_pulse; /* of this process */

/* Of one who waits; begins with zeros. */
struct fuzz_watch {
    uint64_t calls;
    double last, stood;
};
/* True once no call has ended for BLOCKED_AFTER seconds; to be asked at least a few times a second. */
bool fuzz_blocked(struct fuzz_watch *watch, const struct fuzz_pulse *pulse);
/* The finding of a process that was killed since its call did not end. */
struct finding fuzz_blocked_finding(const uint8_t *input, unsigned at);

void fuzz_init(void);
/* Makes the calls of the input; false when one was wrong. With thorough everything is looked at after each call. */
bool fuzz_execute(const uint8_t *input, size_t length, bool thorough, struct finding *finding);
/* The same, thoroughly, in a child that has called nothing before: also calls that end the process or block it are
 * findings. */
bool fuzz_execute_apart(const uint8_t *input, size_t length, struct finding *finding);
/* Looks at the input again until it is known which call did it. */
bool fuzz_attribute(const uint8_t *input, size_t length, struct finding *finding);

/* shrink.c: the input becomes a smaller one that shows the same kind of finding with the same function. */
size_t fuzz_shrink(uint8_t *input, size_t length, struct finding *finding);

/* report.c */
void fuzz_message(char *text, size_t room, const struct finding *finding);
void fuzz_case(char *text, size_t room, const struct finding *finding); /* the verify command, or empty */

#endif
