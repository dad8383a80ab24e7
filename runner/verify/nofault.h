/* What the two files about fault-tolerant calls share: memory with a page missing in its middle. */
#ifndef RUNNER_VERIFY_NOFAULT_H
#define RUNNER_VERIFY_NOFAULT_H

#include "verify.h"

/* How the page is missing. */
enum missing { MISSING_NONE, MISSING_READ_ONLY, MISSING_UNMAPPED, MISSING_TRUNCATED, MISSING_COUNT };

enum { ZONE_PAGES = 24, ZONE_SIDE = ZONE_PAGES * PAGE }; /* accessible before and behind the missing page */

/* ZONE_SIDE bytes, the page at bad, ZONE_SIDE bytes. */
struct zone {
    uint8_t *bad;
    uint8_t *back; /* what the accessible bytes hold, at the same distance from bad */
    enum missing how;
};

struct zone zone_make(enum missing how, uint64_t seed, int parity);
int zone_signal(const struct zone *zone);

/* Our handlers in this child, and the target's tier whatever they say. */
void nofault_begin(struct unit *unit);

bool is_nofault(const struct target *target);
bool zeroes(const struct target *target);

/* A further method or a further way of small sizes, or the copy that clears, which share most of their code with a
 * target that gets all of a full run; and not a family of the matrix, which takes a sample of them by itself. */
bool sampled_in_full(const struct target *target, const struct family *family);

/* Calls, and holds it to what a fault behind `whole` bytes must give: the count, the report, the bytes and what lies
 * around them, with dst inside [low, high) whose bytes are those of back before the call. Puts back what it found.
 * address is that of the report. */
struct expectation {
    uint64_t whole;
    uint8_t *low, *high, *back;
    const uint8_t *model; /* of the bytes that are copied; NULL: the value of a set */
    uintptr_t address;
    int signo; /* 0: not looked at */
    bool writing;
};
void nofault_call(struct unit *unit, const struct vcase *one, uint8_t *dst, const uint8_t *src, size_t n,
                  const struct expectation *expected);

#endif
