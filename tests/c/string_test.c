/* Which copies and sets, of those too large for anybody to ask where they were written, go by a string instruction:
 * every public function that copies or sets, in every tier, on both sides of each threshold that decides. */
#include <string.h>
#include <sys/mman.h>

#include "ways.h"

#include "routines/thresholds.h"

enum { RECENT_FROM = 8192, ALL_FROM = 16384, TO = 20000, SLOW_AHEAD = 63, ROOM = 1 << 20 };

static uint8_t *room;

static void expect_string(bool wanted, size_t n, ptrdiff_t ahead)
{
    const uint8_t *const src = room + ROOM / 2;
    ways_go(way, (uint8_t *)(uintptr_t)(src + ahead), src, 0, n);
    if (ways_met.string == wanted)
        return;
    failures++;
    printf("%s of %s: %zu bytes, the destination %td ahead, %sby a string instruction\n", way->name, tier, n, ahead,
           wanted ? "not " : "");
}

static void look(void)
{
    static const size_t sizes[] = {RECENT_FROM, 12345, ALL_FROM - 1, ALL_FROM, TO - 1, TO};
    static const ptrdiff_t apart[] = {1 << 15,
                                      -(1 << 15),
                                      -(1 << 15) - 1,
                                      (1 << 15) + 1,
                                      (1 << 15) + SLOW_AHEAD,
                                      (1 << 15) + SLOW_AHEAD + 1,
                                      (1 << 15) + 4095,
                                      1 - (1 << 15)};
    if (way->sets) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (ptrdiff_t at = 0; at < 70; at += 23)
                expect_string(sizes[i] < TO, sizes[i], at);
        return;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        for (size_t j = 0; j < sizeof apart / sizeof *apart; j++) {
            const size_t ahead = (size_t)apart[j] % ALIAS_BYTES;
            const bool slow = ahead > 0 && ahead <= SLOW_AHEAD;
            expect_string(n < TO && (!slow || n >= ALL_FROM), n, apart[j]);
        }
        /* Not where they overlap by a byte, nor onto itself; as soon as they do not. Where faults are survived the
         * order of the stores counts, and a string instruction has the same as a loop. */
        const ptrdiff_t touching[] = {0, 100, -100, (ptrdiff_t)n - 1, 1 - (ptrdiff_t)n};
        for (size_t j = 0; j < sizeof touching / sizeof *touching; j++)
            if (way->fn != (void (*)(void))wherry_copy_nofault)
                expect_string(false, n, touching[j]);
        for (int below = 0; below < 2; below++) {
            const ptrdiff_t next = below ? -(ptrdiff_t)n : (ptrdiff_t)n;
            const size_t ahead = (size_t)next % ALIAS_BYTES;
            expect_string(n < TO && (ahead == 0 || ahead > SLOW_AHEAD || n >= ALL_FROM), n, next);
        }
    }
}

int main(void)
{
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || wherry_nofault_init() != 0)
        return 2;
    memset(room, 7, ROOM);
    ways_watch();
    ways_most_steps = 150; /* a string instruction comes among the first hundred */
    wherry_thresholds = wherry_thresholds_complete((struct wherry_thresholds){
        .copy_rep_from = 4096,
        .copy_rep_to = TO,
        .copy_rep_recent_from = RECENT_FROM,
        .copy_rep_slow_ahead = SLOW_AHEAD,
        .copy_rep_all_from = ALL_FROM,
        .copy_stream_from = SIZE_MAX,
        .copy_ymm_from = SIZE_MAX,
        .set_rep_from = 4096,
        .set_rep_to = TO,
        .set_rep_recent_from = RECENT_FROM,
        .set_stream_from = SIZE_MAX,
    });
    ways_in_every_tier(look, (char *const[]){NULL});
    return failures != 0;
}
