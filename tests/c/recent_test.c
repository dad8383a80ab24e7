/* Which way large copies and sets go, by what was written lately: in every tier, by every public function that has both
 * ways. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/recent.h"
#include "routines/thresholds.h"
#include "ways.h"

enum { PAGE = 4096, BLOCK = 1 << RECENT_BLOCK_LOG, FROM = BLOCK + 4, RECENT_FROM = 24576 };

static uint8_t *to, *from;

/* Calls, and tells whether by a string instruction: it is met before so many steps, or never. */
enum { MOST_STEPS = 400 };

static unsigned latest; /* of this way's calls of FROM bytes: the steps before a string instruction */
static bool planting;

static bool by_string(uint8_t *dst, const uint8_t *src, size_t n)
{
    ways_go(way, dst, src, 0x33, n);
    if (ways_met.string && ways_met.steps >= MOST_STEPS / 2)
        expect("a string instruction so late that a later one could be missed", false);
    if (ways_met.string && n == FROM && ways_met.steps > latest)
        latest = ways_met.steps;
    return ways_met.string;
}

/* Calls, whichever way it goes. */
static void go(uint8_t *dst, const uint8_t *src, size_t n)
{
    ways_most_steps = 1;
    ways_go(way, dst, src, 0x33, n);
    ways_most_steps = MOST_STEPS;
}

/* Does a call of FROM bytes go by the string instruction by which others of this way went above? By a breakpoint there,
 * where each step takes long; else with steps, a quarter more of them than it took there, which is a few more or less.
 */
static bool by_string_again(uint8_t *dst, const uint8_t *src)
{
    if (!planting) {
        ways_most_steps = latest + latest / 4 + 2;
        const bool met = by_string(dst, src, FROM);
        ways_most_steps = MOST_STEPS;
        return met;
    }
    uint8_t *const at = ways_met.at; /* which stays from then on */
    void *const page = (void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    if (!at || *at != WAYS_REP || mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        expect("no breakpoint can be set", false);
        return true;
    }
    *at = WAYS_INT3;
    ways_planted = at;
    go(dst, src, FROM);
    ways_planted = NULL;
    *at = WAYS_REP;
    mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
    return ways_met.string;
}

static void forget(void)
{
    memset(wherry_recent_copies, 0, sizeof wherry_recent_copies);
    memset(wherry_recent_sets, 0, sizeof wherry_recent_sets);
}

static size_t entered(bool sets)
{
    const uint32_t *table = sets ? wherry_recent_sets : wherry_recent_copies;
    const size_t count = (sets ? sizeof wherry_recent_sets : sizeof wherry_recent_copies) / sizeof *table;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += table[i] != 0;
    return found;
}

static void look(void)
{
    const size_t places = way->sets ? RECENT_SET_PLACES : RECENT_COPY_PLACES;
    latest = 0;
    ways_met.at = NULL;
    forget();
    expect("below the window, not by a loop", !by_string(to + 100, from, FROM - 1));
    expect("something was entered below the window", !entered(way->sets));
    expect("far, not by a string instruction", by_string(to + 100, from, 3 * PAGE));
    expect("not all of its blocks were entered, or others",
           entered(way->sets) == (100 + 3 * PAGE) / BLOCK + 1 && !entered(!way->sets));
    expect("a second time, not by a loop", !by_string(to + 100, from, 3 * PAGE));
    expect("a part of it, not by a loop", !by_string(to + PAGE + 100, from, FROM));
    expect("what follows it, not by a string instruction", by_string(to + 100 + 3 * PAGE, from, FROM));
    expect("what lies before it, not by a string instruction", by_string(to + BLOCK - FROM, from, FROM + 200));
    expect("near but large, not by a string instruction", by_string(to + 100, from, RECENT_FROM));
    for (size_t block = 0; block < places; block += 2)
        go(to + (16 + block) * BLOCK + 100, from, FROM);
    expect("long ago, not by a string instruction", by_string(to + 100, from, FROM));
    for (size_t block = 0; block < RECENT_COPY_PLACES; block++) {
        uint8_t *const at = to + block * BLOCK + 100; /* at each place of the row, and around its end */
        forget();
        go(at, from, 3 * PAGE);
        expect("at some place not all blocks were entered", entered(way->sets) == (100 + 3 * PAGE) / BLOCK + 1);
        expect("at some place what was entered is not found", !by_string_again(at + BLOCK, from));
    }
    if (!way->sets) {
        forget();
        memset(to, 7, 4 * PAGE);
        memcpy(to, from, 3 * PAGE);
        go(to + 64, to, 2 * PAGE);
        expect("overlap was entered", !entered(false));
        expect("overlap was copied wrongly", !memcmp(to + 64, from, 2 * PAGE));
        expect("far at an unsuitable distance, not by a string instruction", by_string(to + 2016, from, 2 * PAGE));
        expect("large at an unsuitable distance, not by a loop", !by_string(to + 2016, from, RECENT_FROM));
        wherry_thresholds.copy_rep_all_from = RECENT_FROM;
        wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
        expect("large at any distance, not by a string instruction", by_string(to + 2016, from, RECENT_FROM));
        wherry_thresholds.copy_rep_all_from = SIZE_MAX;
    }
    wherry_thresholds.copy_rep_recent_from = wherry_thresholds.set_rep_recent_from = FROM;
    wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
    forget();
    for (int i = 0; i < 2; i++)
        expect("without a window of its own, not by a string instruction", by_string(to + 100, from, 2 * PAGE));
    expect("without a window of its own something was entered", !entered(way->sets));
    wherry_thresholds.copy_rep_recent_from = wherry_thresholds.set_rep_recent_from = RECENT_FROM;
    wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
}

/* In the tiers that are named, or in all: where each instruction takes long, those that it is about are enough. */
int main(int argc, char **argv)
{
    const size_t length = (size_t)(RECENT_SET_PLACES + 64) * BLOCK;
    to = mmap(NULL, 2 * length + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || wherry_nofault_init() < 0)
        return 2;
    ways_watch();
    ways_most_steps = MOST_STEPS;
    planting = argc > 1;
    to += PAGE;                       /* room before it, and behind the source */
    from = to + length + 2000 - PAGE; /* mod 4096 so far apart that a loop forward is right for both */
    for (size_t i = 0; i < length - 2000; i++)
        from[i] = (uint8_t)(i * 31 >> 3);
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = FROM,
        .copy_rep_to = SIZE_MAX,
        .copy_stream_from = SIZE_MAX,
        .set_rep_from = FROM,
        .set_rep_to = SIZE_MAX,
        .set_stream_from = SIZE_MAX,
        .copy_rep_slow_ahead = 63,
        .copy_rep_all_from = SIZE_MAX,
        .copy_rep_recent_from = RECENT_FROM,
        .set_rep_recent_from = RECENT_FROM,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
    });
    const int looked = ways_in_every_tier(look, argv + 1);
    if (looked < argc - 1) {
        printf("of the tiers that were asked for %d are here\n", looked);
        return 2;
    }
    return failures != 0;
}
