/* Now and then: who called, a run of consecutive calls, and whether calls go on where others were. */
#include "recorder.h"

uint64_t recorder_random(struct recorder_block *block)
{
    uint64_t x = block->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return block->random = x;
}

uint64_t recorder_about(struct recorder_block *block, uint64_t mean)
{
    return 1 + recorder_random(block) % (2 * mean - 1);
}

static void count_caller(struct recorder_caller *entry, size_t n, bool always)
{
    add(always ? &entry->always : &entry->sampled, 1);
    add(always ? &entry->always_bytes : &entry->sampled_bytes, n);
}

void recorder_note_caller(struct recorder_block *block, enum recorder_op op, size_t n, uintptr_t caller, bool always)
{
    const uint64_t own = (uint64_t)op << 62, key = own | (caller & CALLER_ADDRESS);
    uint64_t at = (key * 0x9e3779b97f4a7c15u) >> 40;
    for (unsigned tries = 0; tries < 32; tries++, at++) {
        struct recorder_caller *entry = &block->callers[at & (CALLERS - 1)];
        if (!entry->address) {
            entry->address = key;
            recorder_note_module(caller);
        }
        if (entry->address == key) {
            count_caller(entry, n, always);
            return;
        }
    }
    /* Left out, their calls would be told as those of the callers that have room. */
    struct recorder_caller *others = &block->callers[CALLERS + op];
    others->address = own | CALLER_NOWHERE;
    count_caller(others, n, always);
}

/* A burst stands for the samples since the one before it. It takes the place of one of those kept in proportion to that
 * (weighted reservoir sampling): in the end each stands for an equal part of the thread's calls. Intervals grow with
 * the number of calls, so that short programs are seen in full and long ones cost nothing. */
static void begin_burst(struct recorder_block *block)
{
    const uint64_t begun = block->bursts_begun++;
    const uint64_t interval = block->samples / 64 > 8 ? block->samples / 64 : 8;
    block->next_burst = block->samples + recorder_about(block, interval);
    uint64_t place = begun;
    if (begun >= BURSTS) {
        place = recorder_random(block) % BURSTS;
        if (recorder_random(block) % (block->samples + 1) >= (uint64_t)BURSTS * interval)
            return;
    }
    for (volatile recorded_call *at = block->bursts[place]; at < block->bursts[place] + BURST; at++)
        *at = 0;
    block->burst_place = place;
    block->burst_at = 0;
}

static void put(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                unsigned overlap)
{
    const uint64_t at = take_one(&block->burst_at);
    if (at >= BURST || block->burst_place >= BURSTS)
        return;
    if (n <= EXACT)
        recorder_note_order(block, op, dst, src, n, at > 0);
    const uint64_t largest = ((uint64_t)1 << 40) - 1;
    block->bursts[block->burst_place][at] = (n < largest ? n : largest) | (uint64_t)op << 40 |
                                            (uint64_t)(src & 63) << 42 | (uint64_t)((dst - src) & (PAGE - 1)) << 48 |
                                            (uint64_t)overlap << 60 | (uint64_t)1 << 63;
}

void recorder_note_order(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                         bool counts)
{
    struct recorder_order *order = &block->order[op][size_group(n)];
    bool source = false, destination = false;
    for (unsigned i = 0; i < FOLLOWED; i++) {
        const uint64_t *before = block->places_kept[i], reach = before[2] + PAGE;
        destination |= dst - before[0] <= reach;
        source |= src - before[1] <= reach;
    }
    if (counts) {
        add(&order->calls, 1);
        add(&order->destination, destination);
        add(&order->source, source);
    }
    uint64_t *mine = block->places_kept[block->followed++ % FOLLOWED];
    mine[0] = dst;
    mine[1] = src;
    mine[2] = n;
}

bool recorder_event(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                    unsigned overlap, uintptr_t caller)
{
    /* Calls of a burst after its first, and a thread's very first, are met whatever they are: each stands for itself. A
     * call that was drawn stands for those between bursts. */
    const bool drawn = block->burst_at >= BURST && block->samples > 0;
    if (n < ALWAYS_FROM)
        recorder_note_caller(block, op, n, caller, !drawn);
    if (block->burst_at >= BURST) {
        block->samples++;
        if (block->samples >= block->next_burst)
            begin_burst(block);
    }
    if (block->burst_at < BURST) {
        put(block, op, dst, src, n, overlap);
        if (block->burst_at < BURST) {
            block->until_sample = 1;
            return false;
        }
    }
    block->until_sample = recorder_about(block, SAMPLE_EACH);
    if (UNLIKELY(recorder_trial)) {
        const bool before = recorder_trying;
        recorder_take_turn(block);
        /* A call that begins a turn of the other routines finds their code cold. */
        if (recorder_trying != before)
            return false;
    }
    /* What is timed of larger calls takes longer; of the largest it is not asked here. */
    return n <= EXACT || (n < ALWAYS_FROM && recorder_random(block) & 1);
}
