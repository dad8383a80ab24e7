/* What is kept of turns when there are more of them than there is room for. The source itself is included, since
 * nothing of it is seen outside. */
#include "recorder/turns.c"

#include <stdio.h>
#include <stdlib.h>

struct recorder_file *recorder_file;
void *recorder_next[RECORDER_FUNCTIONS];
void *recorder_tried[RECORDER_FUNCTIONS];
void *recorder_called[RECORDER_FUNCTIONS];
bool recorder_trying;
struct recorder_block *recorder_block(uint32_t number)
{
    (void)number;
    return NULL;
}
uint64_t recorder_random(struct recorder_block *block) { return (uint64_t)(block == NULL); }

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            printf("line %d: not so: %s\n", __LINE__, #holds);                                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

int main(void)
{
    struct recorder_file *file = calloc(1, sizeof *file);
    CHECK(file);
    file->turn_ticks = TURN_TICKS;
    struct recorder_turn here = {0, 0, 0, 0};
    uint64_t calls[2] = {0, 0};
    for (unsigned i = 0; i < 3 * 2 * TURNS; i++) {
        recorder_trying = i & 1;
        here = (struct recorder_turn){here.ticks + file->turn_ticks, here.calls + i % 97, here.larger + 2,
                                      here.larger_bytes + 3};
        calls[i & 1] += i % 97;
        const uint64_t before = file->turns;
        keep(file, &here, file->turn_ticks);
        file->before = here;
        CHECK(file->turns == before + 1 || (before == 2 * TURNS - 1 && file->turns == TURNS));
        CHECK(file->turns < 2 * TURNS);
    }
    /* Full at 2, 3, 4, 5 and 6 times TURNS turns. */
    CHECK(file->turn_ticks == (uint64_t)TURN_TICKS << 5);
    struct recorder_turn sums[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    for (unsigned i = 0; i < file->turns / 2; i++)
        for (unsigned side = 0; side < 2; side++) {
            sums[side].ticks += file->turn[i].sides[side].ticks;
            sums[side].calls += file->turn[i].sides[side].calls;
            sums[side].larger += file->turn[i].sides[side].larger;
            sums[side].larger_bytes += file->turn[i].sides[side].larger_bytes;
        }
    CHECK(sums[0].ticks + sums[1].ticks == here.ticks);
    CHECK(sums[0].calls == calls[0] && sums[1].calls == calls[1]);
    CHECK(sums[0].larger + sums[1].larger == here.larger);
    CHECK(sums[0].larger_bytes == sums[1].larger_bytes);
    CHECK(sums[0].larger_bytes + sums[1].larger_bytes == here.larger_bytes);
    puts("turns: kept");
    free(file);
    return 0;
}
