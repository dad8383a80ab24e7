/* A trial by turns: for a millisecond or two all calls of the process go to the usual routines, then as long to those
 * that are tried, in pairs whose order is drawn at random. How many calls the process makes in a turn tells how fast it
 * is with these routines, and with all that they do to the code around them. */
#include "recorder.h"

enum { CALLING = 64 }; /* a process with more threads than that is not looked at so closely */

/* Of the time since the turn began what went into counting; of several threads that of the one that counted most, since
 * the others did so meanwhile. */
static uint64_t aside(void)
{
    uint64_t most = 0;
    const struct recorder_block *block;
    for (uint32_t i = 0; i < CALLING && (block = recorder_block(i)); i++) {
        const uint64_t own = block->aside - block->aside_before;
        most = own > most ? own : most;
    }
    return most;
}

static struct recorder_turn so_far(uint64_t ticks)
{
    struct recorder_turn found = {ticks, 0, 0, 0};
    struct recorder_block *block;
    for (uint32_t i = 0; i < CALLING && (block = recorder_block(i)); i++) {
        found.calls += block->calls + block->at / sizeof(struct logged_call);
        found.larger += block->larger;
        found.larger_bytes += block->larger_bytes;
        block->aside_before = block->aside;
    }
    return found;
}

/* Two pairs become one of turns that are twice as long, and so will those be that come. */
static void thin(struct recorder_file *file)
{
    for (unsigned i = 0; i < TURNS; i++) {
        const struct recorder_turns *from = &file->turn[i];
        struct recorder_turns *to = &file->turn[i / 2];
        for (unsigned side = 0; side < 2; side++) {
            struct recorder_turn sum = i & 1 ? to->sides[side] : (struct recorder_turn){0, 0, 0, 0};
            sum.ticks += from->sides[side].ticks;
            sum.calls += from->sides[side].calls;
            sum.larger += from->sides[side].larger;
            sum.larger_bytes += from->sides[side].larger_bytes;
            to->sides[side] = sum;
        }
    }
    file->turns = TURNS;
    file->turn_ticks *= 2;
}

static void keep(struct recorder_file *file, const struct recorder_turn *here, uint64_t ticks)
{
    const struct recorder_turn *before = &file->before;
    struct recorder_turn *turn = &file->turn[file->turns / 2].sides[recorder_trying];
    turn->ticks = ticks;
    turn->calls = here->calls - before->calls;
    turn->larger = here->larger - before->larger;
    turn->larger_bytes = here->larger_bytes - before->larger_bytes;
    if (++file->turns == 2 * TURNS)
        thin(file);
}

void recorder_take_turn(struct recorder_block *block)
{
    struct recorder_file *file = recorder_file;
    const uint64_t now = recorder_ticks();
    uint64_t ends = __atomic_load_n(&file->turn_ends, __ATOMIC_ACQUIRE);
    if (LIKELY(now < ends))
        return;
    /* Of several threads that see it one ends the turn; a handler in the middle of this sees one that does not end. */
    if (!__atomic_compare_exchange_n(&file->turn_ends, &ends, UINT64_MAX, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    const uint64_t all = now - file->before.ticks, less = aside();
    const struct recorder_turn here = so_far(now);
    if (ends)
        keep(file, &here, less < all ? all - less : 0);
    else
        file->turn_ticks = TURN_TICKS;
    bool tried = !recorder_trying;
    if (file->turns % 2 == 0)
        tried = recorder_random(block) >> 63;
    recorder_trying = tried;
    for (unsigned i = 0; i < RECORDER_FUNCTIONS; i++)
        recorder_called[i] = tried ? recorder_tried[i] : recorder_next[i];
    file->before = here;
    __atomic_store_n(&file->turn_ends, now + file->turn_ticks, __ATOMIC_RELEASE);
}
