/* A trial by turns: for a millisecond or two all calls of the process go to the usual routines, then as long to those
 * that are tried, in pairs whose order is drawn at random. How many calls the process makes in a turn tells how fast it
 * is with these routines, and with all that they do to the code around them. Calls of megabytes find what others before
 * them left in the last cache, or not; among such calls turns last longer (LASTING_FROM). */
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
static void thin(struct recorder_turns *pairs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct recorder_turns *from = &pairs[i];
        struct recorder_turns *to = &pairs[i / 2];
        for (unsigned side = 0; side < 2; side++) {
            struct recorder_turn sum = i & 1 ? to->sides[side] : (struct recorder_turn){0, 0, 0, 0};
            sum.ticks += from->sides[side].ticks;
            sum.calls += from->sides[side].calls;
            sum.larger += from->sides[side].larger;
            sum.larger_bytes += from->sides[side].larger_bytes;
            to->sides[side] = sum;
        }
    }
}

static void keep(struct recorder_file *file, const struct recorder_turn *here, uint64_t ticks)
{
    const struct recorder_turn *before = &file->before;
    struct recorder_turns *pairs = file->lasting ? file->lasting_turn : file->turn;
    const unsigned count = file->lasting ? LASTING_TURNS : TURNS;
    uint64_t *turns = &file->kinds[file->lasting].turns;
    struct recorder_turn *turn = &pairs[*turns / 2].sides[recorder_trying];
    turn->ticks = ticks;
    turn->calls = here->calls - before->calls;
    turn->larger = here->larger - before->larger;
    turn->larger_bytes = here->larger_bytes - before->larger_bytes;
    if (++*turns == 2 * count) {
        thin(pairs, count);
        *turns = count;
        file->kinds[file->lasting].ticks *= 2;
    }
}

/* What went before is not forgotten at once: where turns last, what they are told by begins later. */
static void begin(struct recorder_file *file, const struct recorder_turn *here, bool settling)
{
    file->settling = settling;
    file->before = *here;
    file->largest_before = file->largest_ticks;
    file->largest_end = file->lasting ? file->largest_calls + LASTING_CALLS : UINT64_MAX;
    const uint64_t ticks = settling ? LASTING_TICKS : file->kinds[file->lasting].ticks;
    __atomic_store_n(&file->turn_ends, here->ticks + ticks, __ATOMIC_RELEASE);
}

/* Of the largest calls that were tried before the first turn that lasts: they found what the other side had left, and
 * the first of them pages that were not there. */
static void forget_largest(void)
{
    const unsigned first = 2 * (unsigned)__builtin_ctzll(LASTING_FROM); /* time_class of timing.c */
    struct recorder_block *block;
    for (uint32_t i = 0; i < CALLING && (block = recorder_block(i)); i++)
        for (unsigned op = 0; op < OPS; op++)
            for (unsigned class = first; class < TIME_CLASSES; class++)
                block->trials[op][class] = (struct recorder_trial){0};
}

static void give_turn(struct recorder_block *block, struct recorder_file *file, bool lasts)
{
    bool tried = !recorder_trying;
    if (file->kinds[file->lasting].turns % 2 == 0) {
        tried = recorder_random(block) >> 63;
        file->lasting = lasts;
        if (lasts && file->kinds[true].turns == 0)
            forget_largest();
    }
    recorder_trying = tried;
    for (unsigned i = 0; i < RECORDER_FUNCTIONS; i++)
        recorder_called[i] = tried ? recorder_tried[i] : recorder_next[i];
}

void recorder_take_turn(struct recorder_block *block)
{
    struct recorder_file *file = recorder_file;
    const uint64_t now = recorder_ticks();
    uint64_t ends = __atomic_load_n(&file->turn_ends, __ATOMIC_ACQUIRE);
    if (LIKELY(now < ends && file->largest_calls < file->largest_end))
        return;
    /* Another thread ends it, or a handler came in the middle of this. */
    if (ends == UINT64_MAX)
        return;
    /* Of several threads that see it one ends the turn; a handler in the middle of this sees one that does not end. */
    if (!__atomic_compare_exchange_n(&file->turn_ends, &ends, UINT64_MAX, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    const uint64_t all = now - file->before.ticks, less = aside();
    const struct recorder_turn here = so_far(now);
    if (file->settling) {
        begin(file, &here, false);
        return;
    }
    bool lasts = false;
    if (ends) {
        keep(file, &here, less < all ? all - less : 0);
        lasts = file->largest_ticks - file->largest_before >= all / LASTING_PART;
    } else {
        file->kinds[false].ticks = TURN_TICKS;
        file->kinds[true].ticks = LASTING_TICKS;
    }
    give_turn(block, file, lasts);
    begin(file, &here, file->lasting);
}
