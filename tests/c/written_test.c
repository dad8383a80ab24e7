/* Past the caches goes only what was written before (routines/written.h): in every tier, by every public function that
 * has both ways. With the argument "uninitialised": copies and sets what was never set, for Valgrind to look at. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/dispatch.h"
#include "dispatch/nofault.h"
#include "routines/thresholds.h"
#include "ways.h"

enum { STREAM_FROM = 2048, PLACE = 100, WIDE = WRITTEN_FROM + 204, OTHER = 1 << 18, ROOM = 2 * OTHER };

static size_t size;
static uint8_t *to, *from;

static bool brought(const uint8_t *dst, const uint8_t *src, uint8_t byte)
{
    if (!way->sets)
        return !memcmp(dst, src, size);
    for (size_t i = 0; i < size; i++)
        if (dst[i] != (way->two ? 0 : byte))
            return false;
    return true;
}

/* Which way the call goes: behind what it brings nothing changes. */
static enum { LOOP, STRING, PAST } goes(uint8_t *dst, const uint8_t *src, uint8_t byte)
{
    const uint8_t before = dst[-1], behind = dst[size];
    ways_go(way, dst, src, byte, size);
    expect("wrong bytes", brought(dst, src, byte) && dst[-1] == before && dst[size] == behind);
    return ways_met.fence ? PAST : ways_met.string ? STRING : LOOP;
}

/* The window of the string instruction. */
static void look_wide(uint8_t *dst)
{
    size = WIDE;
    memset(to, 0, ROOM);
    wherry_thresholds.copy_stream_from = wherry_thresholds.set_stream_from = SIZE_MAX;
    wherry_thresholds.copy_rep_to = wherry_thresholds.set_rep_to = SIZE_MAX;
    wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
    expect("new in the window, but not by a loop", goes(dst, from, 0x33) == LOOP);
    expect("written in the window, but not by a string instruction", goes(dst, from, 0x33) == STRING);
    wherry_thresholds.copy_stream_from = wherry_thresholds.set_stream_from = STREAM_FROM;
    wherry_thresholds.copy_rep_to = wherry_thresholds.set_rep_to = STREAM_FROM;
    wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
}

static void look(void)
{
    size = STREAM_FROM + 204;
    uint8_t *const dst = to + PLACE, *const other = to + OTHER + PLACE;
    const uint8_t *const zeroes = from + OTHER;
    memset(wherry_written_zeroes, 0, sizeof wherry_written_zeroes);
    memset(to, 0, ROOM);
    if (!way->two)
        expect("new, but not by a loop", goes(dst, from, 0x33) == LOOP);
    memset(dst, 7, size);
    expect("written, but not past the caches", goes(dst, from, 0x33) == PAST);
    memset(dst, 0, size);
    memset(dst + size - 300, 1, 300);
    expect("written at its end, but not past the caches", goes(dst, from, 0x33) == PAST);
    memset(dst, 0, size);
    dst[-1] = dst[size] = 1;
    expect("zeroes to what may be new, but not by a loop", goes(dst, zeroes, 0) == LOOP);
    expect("zeroes once more, but not by a string instruction", goes(dst, zeroes, 0) == STRING);
    expect("zeroes to another place, but not by a loop", goes(other, zeroes, 0) == LOOP);
    expect("zeroes to that place once more, but not by a string instruction", goes(other, zeroes, 0) == STRING);
    expect("zeroes to both by turns, but not by a string instruction", goes(dst, zeroes, 0) == STRING);
    expect("zeroes to both by turns still, but not by a string instruction", goes(other, zeroes, 0) == STRING);
    if (!way->two)
        expect("something where zeroes were brought, but not by a loop", goes(dst, from, 0x33) == LOOP);
    if (!way->two)
        look_wide(dst);
    if (way->sets)
        return;
    size = STREAM_FROM + 204;
    memset(to, 0, ROOM);
    memcpy(dst + 64, from, size);
    ways_go(way, dst, dst + 64, 0, size);
    expect("overlapping sides", !memcmp(dst, from, size) && !ways_met.fence);
}

/* What reads of a destination nobody has set, Valgrind tells. */
static int uninitialised(void)
{
    const size_t n = (size_t)80 << 20; /* more than any plan begins at */
    uint8_t *const dst = malloc(n), *const src = calloc(1, n);
    if (!dst || !src)
        return 2;
    printf("%s\n", wherry_thresholds.copy_stream_from == SIZE_MAX ? "never past the caches" : "past the caches");
    wherry_memcpy(dst, src, n);
    free(dst);
    uint8_t *const set = malloc(n);
    if (!set)
        return 2;
    wherry_memset(set, 0, n);
    return set[n / 2] != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "uninitialised"))
        return uninitialised();
    to = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || wherry_nofault_init() < 0)
        return 2;
    from = to + ROOM;
    ways_watch();
    for (size_t i = 0; i < OTHER; i++)
        from[i] = (uint8_t)(i * 31 >> 3 | 1);
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = 1025,
        .copy_rep_to = STREAM_FROM,
        .copy_stream_from = STREAM_FROM,
        .set_rep_from = 1025,
        .set_rep_to = STREAM_FROM,
        .set_stream_from = STREAM_FROM,
        .copy_rep_recent_from = 1025,
        .set_rep_recent_from = 1025,
        .copy_ymm_from = SIZE_MAX,
        .copy_source_lines_to = SIZE_MAX,
    });
    ways_in_every_tier(look, (char *const[]){NULL});
    return failures != 0;
}
