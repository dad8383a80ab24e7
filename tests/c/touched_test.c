/* Past the caches sooner where large calls have not touched the destination lately (routines/touched.h): in every tier,
 * by every public function that has both ways. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/thresholds.h"
#include "ways.h"

enum { BLOCK = 1 << TOUCHED_BLOCK_LOG, FROM = 2048, RECENT_FROM = 4096, NEAR = 6, PLACE = 300, OTHERS = 16 };
enum { SMALL = FROM - 8, MIDDLE = FROM + 204, LARGE = RECENT_FROM + 204 };

static uint8_t *to, *from;

/* Not inlined: clang takes seconds over so many. */
__attribute__((noinline)) static bool past(uint8_t *dst, const uint8_t *src, size_t n)
{
    const uint8_t before = dst[-1], behind = dst[n];
    ways_go(way, dst, src, 0x33, n);
    bool right = dst[-1] == before && dst[n] == behind;
    for (size_t i = 0; i < n; i++)
        right &= dst[i] == (way->two ? 0 : way->sets ? 0x33 : src[i]);
    expect("wrong bytes", right);
    return ways_met.fence;
}

/* None takes another's place, or the source's. */
static uint8_t *blocks[OTHERS];
static uint8_t *block(int i) { return blocks[i]; }

static uint32_t number_of(const uint8_t *at) { return (uint32_t)((uintptr_t)at >> TOUCHED_BLOCK_LOG); }

static bool find_blocks(int room)
{
    bool taken[TOUCHED_PLACES] = {false};
    taken[touched_place(number_of(from))] = true;
    int found = 0;
    for (int i = 0; i < room && found < OTHERS; i++) {
        uint8_t *const at = to + (size_t)i * BLOCK + PLACE;
        bool *const place = &taken[touched_place(number_of(at))];
        if (!*place)
            blocks[found++] = at;
        *place = true;
    }
    return found == OTHERS;
}

static void forget(void)
{
    memset(&wherry_touched, 0, sizeof wherry_touched);
    for (int i = 0; i < OTHERS; i++)
        memset(block(i) - 1, 7, LARGE + 2);
}

/* So many other blocks. */
static void elsewhere(int count)
{
    for (int i = 1; i <= count; i++)
        past(block(i), from, MIDDLE);
}

static void look(void)
{
    if (!way->sets && !strncmp(tier, "avx512", 6)) { /* by 64-byte vectors nothing is asked */
        forget();
        expect("far, but not by a loop", !past(block(0), from, MIDDLE));
        expect("large, but not past the caches", past(block(0), from, LARGE));
        return;
    }
    forget();
    expect("small, but not by a loop", !past(block(0), from, SMALL));
    memset(block(0), 7, LARGE); /* zeroes where the ladder asks whether it was written */
    expect("far, but not past the caches", past(block(0), from, MIDDLE));
    memset(block(0), 7, LARGE);
    expect("near, but not by a loop", !past(block(0), from, MIDDLE));
    expect("elsewhere in its block, but not by a loop", !past(block(0) + BLOCK / 2, from, MIDDLE));
    memset(block(0), 7, LARGE);
    expect("near but large, and not past the caches", past(block(0), from, LARGE));

    forget();
    past(block(0), from, MIDDLE);
    elsewhere(NEAR - 1);
    memset(block(0), 7, LARGE);
    expect("some others since, but not by a loop", !past(block(0), from, MIDDLE));
    for (int laps = 0; laps < 2;
         laps++) /* near themselves, so that little moves; a source that all have counts for some */
        elsewhere(way->sets ? NEAR - 1 : NEAR / 2);
    memset(block(0), 7, LARGE);
    expect("the same others in turn, but not by a loop", !past(block(0), from, MIDDLE));
    forget();
    past(block(0), from, MIDDLE);
    elsewhere(NEAR);
    memset(block(0), 7, LARGE);
    expect("too many others since, but not past the caches", past(block(0), from, MIDDLE));

    if (!way->two) { /* new: by a loop, and then it is near */
        forget();
        memset(block(0), 0, LARGE);
        expect("new, but not by a loop", !past(block(0), from, MIDDLE));
        expect("new a moment ago, but not by a loop", !past(block(0), from, MIDDLE));
    }
    /* By another thread, whatever this one has touched since, until that one has touched enough. */
    forget();
    for (int row = 0; row < RECENT_ROWS; row++)
        wherry_touched.clocks[row].now = 1000000u * (unsigned)row;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const uint32_t number = number_of(block(0));
    uint32_t other = 0; /* no row of this thread's */
    while (other == recent_row(here) || other == recent_row(here - 65536))
        other++;
    wherry_touched.seen[touched_place(number)] = touched_entry(number, other, 1000000 * other);
    wherry_touched.clocks[other].now += (NEAR - 1) << TOUCHED_UNIT_LOG;
    elsewhere(OTHERS - 1);
    expect("touched by another, but not by a loop", !past(block(0), from, MIDDLE));
    wherry_touched.seen[touched_place(number)] = touched_entry(number, other, 1000000 * other);
    wherry_touched.clocks[other].now += 1 << TOUCHED_UNIT_LOG;
    memset(block(0), 7, LARGE);
    expect("touched long ago by another, but not past the caches", past(block(0), from, MIDDLE));

    if (!way->sets) {
        forget();
        past(block(1), block(0), MIDDLE);
        expect("read a moment ago, but not by a loop", !past(block(0), from, MIDDLE));
    }
}

/* Sets of a few blocks again and again, by the question alone: which of a lap were near. */
static int lap(int count)
{
    int near = 0;
    for (int i = 0; i < count; i++)
        near += touched_before(block(i), NULL, BLOCK / 4, NEAR);
    return near;
}

static void walk(void)
{
    forget();
    for (int count = 1; count < OTHERS; count++) /* so that each has one alone that is new */
        lap(count);
    for (int laps = 0; laps < 20; laps++)
        lap(OTHERS - 1);
    expect("more than there is room for, and near", lap(OTHERS - 1) == 0);
    for (int laps = 0; laps < 20; laps++)
        lap(NEAR - 1);
    expect("room for all, and far", lap(NEAR - 1) == NEAR - 1);
    for (int laps = 0; laps < 1000; laps++)
        lap(2);
    expect("two alone, and the others far", lap(NEAR - 1) == NEAR - 1);
    lap(OTHERS - 1);
    expect("all the others since, and near", lap(1) == 0);
}

int main(void)
{
    enum { ROOM = 3 * OTHERS };
    to = mmap(NULL, (size_t)(ROOM + 2) * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || wherry_nofault_init() < 0)
        return 2;
    to += -(uintptr_t)to % BLOCK;
    from = to + (size_t)ROOM * BLOCK + PLACE + 2000; /* mod 4096 so far apart that a loop forward is right */
    if (!find_blocks(ROOM))
        return 2;
    ways_watch();
    for (size_t i = 0; i < LARGE; i++)
        from[i] = (uint8_t)(i * 31 >> 3 | 1);
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = SIZE_MAX,
        .copy_stream_from = FROM,
        .copy_stream_recent_from = RECENT_FROM,
        .set_rep_from = SIZE_MAX,
        .set_stream_from = FROM,
        .set_stream_recent_from = RECENT_FROM,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
    });
    wherry_thresholds.touched_blocks = NEAR;
    way = &ways[0];
    tier = "no tier";
    walk();
    ways_in_every_tier(look, (char *const[]){NULL});
    return failures != 0;
}
