/* Copies about HALVES_FROM, where loops go forward whatever the distance: exact in every tier, and the fault-tolerant
 * one's count, bytes and what it leaves alone with a page missing on either side. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/thresholds.h"
#include "wherry.h"

enum { PAGE = 4096, ROOM = HALVES_FROM + 4 * PAGE, UNTOUCHED = 0xa5, CASES = 400 };

static unsigned failures;
static uint8_t *to, *from;
static uint32_t state = 1;

static size_t below(size_t bound)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
}

static void copies(const char *tier)
{
    for (int i = 0; i < CASES; i++) {
        const size_t n = HALVES_FROM - 130 + below(2 * PAGE), d = below(128) + 1, s = below(128);
        memset(to, UNTOUCHED, ROOM);
        const bool whole = wherry_memcpy(to + d, from + s, n) == to + d && !memcmp(to + d, from + s, n);
        if (whole && to[d - 1] == UNTOUCHED && to[d + n] == UNTOUCHED)
            continue;
        failures++;
        printf("%s: %zu bytes from %zu to %zu\n", tier, n, s, d);
    }
}

static void faults(const char *tier)
{
    for (int i = 0; i < CASES; i++) {
        const size_t n = HALVES_FROM - 130 + below(2 * PAGE), d = below(PAGE), s = below(PAGE);
        const bool writing = i & 1;
        const size_t missing = (1 + below(HALVES_FROM / PAGE - 1)) * PAGE, there = missing - (writing ? d : s);
        uint8_t *const page = (writing ? to : from) + missing;
        struct wherry_fault fault = {0};
        memset(to, UNTOUCHED, ROOM);
        mprotect(page, PAGE, PROT_NONE);
        const size_t left = wherry_copy_nofault(to + d, from + s, n, &fault);
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
        bool right = left == n - there && fault.addr == page && fault.writing == writing;
        right &= !memcmp(to + d, from + s, there);
        for (size_t at = there; right && at < n; at++)
            right = to[d + at] == UNTOUCHED;
        if (right)
            continue;
        failures++;
        printf("%s: %zu bytes from %zu to %zu, %s missing from %zu on: %zu left\n", tier, n, s, d,
               writing ? "destination" : "source", missing, left);
    }
}

int main(void)
{
    to = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    from = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || from == MAP_FAILED || wherry_nofault_init())
        return 2;
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 7 + i / 256 + i / 65536);
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = SIZE_MAX,
        .copy_stream_from = SIZE_MAX,
        .set_rep_from = SIZE_MAX,
        .set_stream_from = SIZE_MAX,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
    });
    if (wherry_thresholds.copy_ymm_below != HALVES_FROM)
        return 2;
    for (int isa = 0; isa < WHERRY_ISA_COUNT; isa++) {
        if (wherry_dispatch_force((enum wherry_isa)isa)) {
            copies(wherry_isa_names[isa]);
            printf("%s looked at\n", wherry_isa_names[isa]);
        }
        if (wherry_nofault_force((enum wherry_isa)isa))
            faults(wherry_isa_names[isa]);
    }
    return failures != 0;
}
