/* What is kept of turns when there are more of them than there is room for, and when they last. The source itself is
 * included, since nothing of it is seen outside, and goes by a clock that stands until it is told otherwise. */
#include "recorder/recorder.h"

static uint64_t now;
static uint64_t clock_of_test(void) { return now; }
#define recorder_ticks clock_of_test
#include "recorder/turns.c"

#include <stdio.h>
#include <stdlib.h>

struct recorder_file *recorder_file;
void *recorder_next[RECORDER_FUNCTIONS];
void *recorder_tried[RECORDER_FUNCTIONS];
void *recorder_called[RECORDER_FUNCTIONS];
bool recorder_trying;
static struct recorder_block *only, *other; /* of the process, and of its second thread */
struct recorder_block *recorder_block(uint32_t number) { return number == 0 ? only : number == 1 ? other : NULL; }
static uint64_t drawn = 1;
uint64_t recorder_random(struct recorder_block *block) { return block == NULL ? drawn : 0; }

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            printf("line %d: not so: %s\n", __LINE__, #holds);                                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void of_more_than_there_is_room_for(bool lasting)
{
    struct recorder_file *file = calloc(1, sizeof *file);
    CHECK(file);
    const unsigned room = lasting ? LASTING_TURNS : TURNS;
    const struct recorder_turns *pairs = lasting ? file->lasting_turn : file->turn;
    file->lasting = lasting;
    file->kinds[lasting].ticks = TURN_TICKS;
    struct recorder_turn here = {0, 0, 0, 0};
    uint64_t calls[2] = {0, 0};
    for (unsigned i = 0; i < 3 * 2 * room; i++) {
        recorder_trying = i & 1;
        const uint64_t ticks = file->kinds[lasting].ticks, before = file->kinds[lasting].turns;
        here = (struct recorder_turn){here.ticks + ticks, here.calls + i % 97, here.larger + 2, here.larger_bytes + 3};
        calls[i & 1] += i % 97;
        keep(file, &here, ticks);
        file->before = here;
        const uint64_t turns = file->kinds[lasting].turns;
        CHECK(turns == before + 1 || (before == 2 * room - 1 && turns == room));
        CHECK(turns < 2 * room);
    }
    /* Full at 2, 3, 4, 5 and 6 times so many turns. */
    CHECK(file->kinds[lasting].ticks == (uint64_t)TURN_TICKS << 5);
    struct recorder_turn sums[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    for (unsigned i = 0; i < file->kinds[lasting].turns / 2; i++)
        for (unsigned side = 0; side < 2; side++) {
            sums[side].ticks += pairs[i].sides[side].ticks;
            sums[side].calls += pairs[i].sides[side].calls;
            sums[side].larger += pairs[i].sides[side].larger;
            sums[side].larger_bytes += pairs[i].sides[side].larger_bytes;
        }
    CHECK(sums[0].ticks + sums[1].ticks == here.ticks);
    CHECK(sums[0].calls == calls[0] && sums[1].calls == calls[1]);
    CHECK(sums[0].larger + sums[1].larger == here.larger);
    CHECK(sums[0].larger_bytes == sums[1].larger_bytes);
    CHECK(sums[0].larger_bytes + sums[1].larger_bytes == here.larger_bytes);
    CHECK(file->kinds[!lasting].turns == 0);
    free(file);
}

enum { LARGEST = 2 * __builtin_ctz(LASTING_FROM) }; /* their first class, of two an octave */

/* A program that makes calls of LASTING_FROM and more, or smaller ones, that take so long each. */
static void works(unsigned calls, uint64_t ticks, bool largest)
{
    for (unsigned i = 0; i < calls; i++) {
        recorder_take_turn(NULL);
        now += ticks;
        recorder_file->largest_calls += largest;
        recorder_file->largest_ticks += largest ? ticks : 0;
    }
}

static void of_calls_that_last(void)
{
    struct recorder_file *file = recorder_file = calloc(1, sizeof *file);
    only = calloc(1, sizeof *only);
    CHECK(file && only);
    only->trials[OP_MOVE][LARGEST - 1].sides[1][5].calls = only->trials[OP_MOVE][LARGEST].sides[1][5].calls = 3;
    only->trials[OP_COPY][LARGEST].sides[0][0].calls = 3;
    now = 1000;
    works(100, TURN_TICKS, false);
    CHECK(file->kinds[false].turns == 99 && !file->lasting && !file->settling);
    /* A pair that has begun is ended as it is; in the next one turns last. */
    works(2, TURN_TICKS, true);
    const uint64_t before = file->kinds[false].turns;
    CHECK(before == 101 && !file->lasting && only->trials[OP_MOVE][LARGEST].sides[1][5].calls == 3);
    works(1, TURN_TICKS, true);
    CHECK(file->kinds[false].turns == before + 1 && file->lasting && file->settling);
    /* What was tried of LASTING_FROM and more until then is forgotten, once. */
    CHECK(only->trials[OP_COPY][LARGEST].sides[0][0].calls == 0);
    CHECK(only->trials[OP_MOVE][LARGEST].sides[1][5].calls == 0 &&
          only->trials[OP_MOVE][LARGEST - 1].sides[1][5].calls == 3);
    only->trials[OP_SET][79].sides[0][0].calls = 2;
    /* So many calls before it is the side's own, and so many that are. */
    for (unsigned turn = 0; turn < 6; turn++) {
        const bool trying = recorder_trying;
        CHECK(file->kinds[true].turns == turn && file->settling);
        works(LASTING_CALLS, TURN_TICKS, true);
        CHECK(!file->settling && recorder_trying == trying && file->before.ticks == now - TURN_TICKS);
        works(LASTING_CALLS, TURN_TICKS, true);
        CHECK(file->kinds[true].turns == turn + 1);
        CHECK(file->lasting_turn[turn / 2].sides[trying].ticks == (uint64_t)LASTING_CALLS * TURN_TICKS);
        CHECK(turn % 2 || recorder_trying != trying);
    }
    CHECK(file->kinds[false].turns == before + 1);
    /* Long ones end by the clock. */
    works(2, LASTING_TICKS, true);
    CHECK(file->kinds[true].turns == 6 && !file->settling);
    works(1, LASTING_TICKS, true);
    CHECK(file->kinds[true].turns == 7 && file->settling);
    /* When the program does something else they are short again, from the next pair on. */
    works(100, TURN_TICKS, false);
    CHECK(file->kinds[true].turns == 8 && !file->lasting && !file->settling && file->kinds[false].turns > before + 30);
    works(100, TURN_TICKS, true);
    CHECK(file->lasting && only->trials[OP_SET][79].sides[0][0].calls == 2);
    free(only);
    free(file);
}

static void one_turn(uint64_t ticks)
{
    recorder_take_turn(NULL);
    only->calls += 100;
    only->at += 5 * sizeof(struct logged_call);
    only->larger += 3;
    only->larger_bytes += 7000;
    only->aside += 500;
    other->calls += 50;
    other->larger += 1;
    other->larger_bytes += 2000;
    other->aside += 3000;
    now += ticks;
}

/* What several threads did counts together, and what counting took of them is that of the busiest, in this turn. */
static void of_two_threads(void)
{
    struct recorder_file *file = recorder_file = calloc(1, sizeof *file);
    only = calloc(1, sizeof *only);
    other = calloc(1, sizeof *other);
    CHECK(file && only && other);
    now = 1000;
    recorder_trying = false;
    recorder_next[FN_memcpy] = only;
    recorder_tried[FN_memcpy] = other;
    for (unsigned turn = 0; turn < 8; turn++) {
        const bool first = turn / 2 % 2; /* of the pair: the side that was drawn */
        drawn = (uint64_t)first << 63;
        one_turn(TURN_TICKS + turn);
        CHECK(recorder_trying == (turn % 2 ? !first : first) && file->kinds[false].turns == turn);
        CHECK(recorder_called[FN_memcpy] == (recorder_trying ? other : only));
        CHECK(file->turn_ends == now - turn);
        if (!turn)
            continue;
        const bool before = turn % 2 ? first : !((turn - 1) / 2 % 2); /* the side of the turn that has just ended */
        const struct recorder_turn *kept = &file->turn[(turn - 1) / 2].sides[before];
        CHECK(kept->ticks == TURN_TICKS + turn - 1 - 3000 && kept->calls == 155);
        CHECK(kept->larger == 4 && kept->larger_bytes == 9000);
    }
    /* A turn of nothing but counting has no length of its own. */
    other->aside += 2 * (uint64_t)TURN_TICKS;
    recorder_take_turn(NULL);
    CHECK(file->kinds[false].turns == 8 && file->turn[3].sides[false].ticks == 0 &&
          file->turn[3].sides[true].ticks > 0);
    free(other);
    free(only);
    free(file);
    only = other = NULL;
    drawn = 1;
}

int main(void)
{
    of_more_than_there_is_room_for(false);
    of_more_than_there_is_room_for(true);
    of_calls_that_last();
    of_two_threads();
    puts("turns: kept");
    return 0;
}
