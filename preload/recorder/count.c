/* Counting. Counted one by one, beside the copies, calls would change what is measured: a counter whose place hangs on
 * a size that has yet to come from memory keeps the processor from looking ahead, which a routine without branches on
 * the size gains by. So they are logged as they come, three stores each, and what more is to be done is done when the
 * log has ended: 128 calls later, or as many as there are to the next event. The time that goes into that is known and
 * in no turn of a trial. So is what goes into those of ALWAYS_FROM bytes and more, which are counted at once.
 *
 * Every call gets a place, those too, so that which of them an event falls on hangs on their number alone. A signal
 * handler gets places behind that of the call that it interrupts; as long as that one has not been written the log is
 * not begun anew, and calls that find it ended are counted at once. So they are for good where the handler does not
 * return.
 */
#include "recorder.h"

#define SET(word, value) (*(volatile uint64_t *)&(word) = (value))

enum { PLACE = sizeof(struct logged_call) };

/* `octave`: n's. */
static inline unsigned size_class(size_t n, unsigned octave)
{
    if (UNLIKELY(octave >= LARGEST_LOG))
        return SIZES - 1;
    return EXACT + 1 + (octave - 10) * OCTAVE + ((unsigned)(n >> (octave - 4)) & (OCTAVE - 1));
}

static inline unsigned alignment(uintptr_t address) { return (unsigned)__builtin_ctzll(address | 64); }

/* `apart`: no byte is in both, as is known of most that are logged. */
static inline __attribute__((always_inline)) void count_place(struct recorder_block *block, enum recorder_op op,
                                                              unsigned group, uintptr_t dst, uintptr_t src, size_t n,
                                                              bool apart)
{
    const unsigned place = group * ALIGNMENTS;
    if (op == OP_SET) {
        add(&block->set_places[place + alignment(dst)], 1);
    } else {
        const unsigned ahead = (unsigned)(dst - src) & (PAGE - 1);
        const unsigned distance = 3u - (ahead < 1) - (ahead < 64) - (ahead < 1537);
        const unsigned both = (place + alignment(src)) * ALIGNMENTS + alignment(dst);
        const unsigned overlap = apart ? 0 : recorder_overlap(dst, src, n);
        add(&block->places[op][(both * DISTANCES + distance) * OVERLAPS + overlap], 1);
    }
}

/* size_group() of sizes to EXACT, by eights. */
#define TWICE(x) x, x
#define FOUR(x) x, x, x, x
#define EIGHT(x) FOUR(x), FOUR(x)
static const uint8_t SMALL_GROUPS[EXACT / 8 + 1] = {
    0,        1,        1,        2,        2,        3,        3,        3,
    3,        EIGHT(4), EIGHT(5), EIGHT(5), EIGHT(6), EIGHT(6), EIGHT(6), EIGHT(6),
    EIGHT(7), EIGHT(7), EIGHT(7), EIGHT(7), EIGHT(7), EIGHT(7), EIGHT(7), EIGHT(7),
};

/* Classes, from 0 on, of the sizes above EXACT that are logged: by 64 bytes, which none is finer than. */
#define ONCE(x) x
#define SIXTEEN(some, x)                                                                                               \
    some(x), some(x + 1), some(x + 2), some(x + 3), some(x + 4), some(x + 5), some(x + 6), some(x + 7), some(x + 8),   \
        some(x + 9), some(x + 10), some(x + 11), some(x + 12), some(x + 13), some(x + 14), some(x + 15)
static const uint8_t LARGER_CLASSES[ALWAYS_FROM / 64] = {
    [EXACT / 64] = SIXTEEN(ONCE, 0),
    [2 * EXACT / 64] = SIXTEEN(TWICE, 16),
    [4 * EXACT / 64] = SIXTEEN(FOUR, 32),
    [8 * EXACT / 64] = SIXTEEN(EIGHT, 48),
};
_Static_assert(EXACT == 1024 && OCTAVE == 16 && ALWAYS_FROM == 16 * EXACT, "the tables are made for these");

static inline __attribute__((always_inline)) void count_small(struct recorder_block *block, enum recorder_op op,
                                                              enum recorder_function function, uintptr_t dst,
                                                              uintptr_t src, size_t n, bool apart)
{
    add(&block->functions[function], 1);
    add(&block->sizes[op][n], 1);
    count_place(block, op, SMALL_GROUPS[(n + 7) / 8], dst, src, n, apart);
}

/* Of larger calls, since these are all the same counters: what a log adds to them. */
struct larger {
    uint64_t calls, bytes;
};

static inline __attribute__((always_inline)) void count_larger(struct recorder_block *block, enum recorder_op op,
                                                               enum recorder_function function, uintptr_t dst,
                                                               uintptr_t src, size_t n, struct larger *sum, bool logged,
                                                               bool apart)
{
    unsigned class, group;
    if (logged) {
        class = EXACT + 1 + LARGER_CLASSES[n / 64];
        group = 8 + LARGER_CLASSES[(n - 1) / 64] / OCTAVE;
    } else {
        class = size_class(n, 63u - (unsigned)__builtin_clzll(n));
        group = size_group(n);
    }
    add(&block->functions[function], 1);
    add(&block->sizes[op][class], 1);
    add(&block->log_bytes[op][class - EXACT - 1], n);
    count_place(block, op, group, dst, src, n, apart);
    const uint64_t number = block->larger + sum->calls;
    const uint64_t each = logged && number >= ORDER_OFTEN ? ORDER_EACH_LATER : ORDER_EACH;
    const uint64_t place = number & (each - 1); /* powers of two, or there would be a division */
    sum->calls++;
    sum->bytes += n;
    if (place < ORDER_SOME)
        recorder_note_order(block, op, dst, src, n, place > 0);
}

static void add_larger(struct recorder_block *block, const struct larger *sum)
{
    add(&block->larger, sum->calls);
    add(&block->larger_bytes, sum->bytes);
}

static inline __attribute__((always_inline)) void count_as(struct recorder_block *block, const struct logged_call *call,
                                                           struct larger *sum, bool apart)
{
    const uint64_t what = call->what;
    const size_t n = what & (ALWAYS_FROM - 1);
    const enum recorder_function function = (enum recorder_function)(what >> 16 & 31);
    const enum recorder_op op = (enum recorder_op)(what >> 21 & 3);
    if (LIKELY(n <= EXACT))
        count_small(block, op, function, call->dst, call->src, n, apart);
    else
        count_larger(block, op, function, call->dst, call->src, n, sum, true, apart);
}

static inline __attribute__((always_inline)) void count_logged(struct recorder_block *block, struct logged_call *call,
                                                               struct larger *sum)
{
    if (LIKELY(!(call->what & (LOGGED_AT_ONCE | LOGGED_MEET))))
        count_as(block, call, sum, true);
    else if (!(call->what & LOGGED_AT_ONCE))
        count_as(block, call, sum, false);
    SET(call->what, 0);
}

/* False: of a call that was given its place before, and interrupted, nothing is there yet. */
static bool empty_log(struct recorder_block *block, uint32_t calls)
{
    struct larger sum = {0, 0};
    uint32_t i = block->emptied;
    for (; i < calls && LIKELY(block->log[i].what); i++)
        count_logged(block, &block->log[i], &sum);
    add_larger(block, &sum);
    block->emptied = i < calls ? i : 0;
    return i >= calls;
}

/* Whether the log was as it is thought to be, and is now what is asked for. No lock: one instruction. */
static bool turn_log(struct recorder_block *block, uint64_t *thought, uint64_t to)
{
    bool same;
    __asm__ volatile("cmpxchgq %3, %1" : "+a"(*thought), "+m"(block->both), "=@ccz"(same) : "r"(to) : "cc");
    return same;
}

/* Gives out no more places, and tells what had been given out. */
static uint64_t end_log(struct recorder_block *block)
{
    uint64_t both = block->both;
    if (LIKELY(turn_log(block, &both, 0)) || turn_log(block, &both, 0))
        return both;
    /* Handlers come one after the other: this waits for none. */
    both = 0;
    __asm__ volatile("xchgq %0, %1" : "+r"(both), "+m"(block->both));
    return both;
}

static uint64_t room_for(uint64_t calls) { return (calls < LOG ? calls : LOG) * PLACE << 32; }

/* Whether an event is due. */
static bool begin_anew(struct recorder_block *block)
{
    if (block->emptying) {
        /* Where what a handler interrupted is never gone on with, it stays so: places must not run over. */
        if (UNLIKELY(block->at > UINT32_MAX / 2)) {
            block->calls += block->at / PLACE;
            SET(block->both, 0);
        }
        return false;
    }
    SET(block->emptying, 1);
    const uint64_t both = end_log(block), ends = both >> 32;
    const uint64_t at = (uint32_t)both, logged = at < ends ? at : ends;
    const bool empty = empty_log(block, (uint32_t)logged / PLACE);
    block->calls += (at - (empty ? 0 : logged)) / PLACE;
    const uint64_t calls = block->calls + (empty ? 0 : logged / PLACE);
    const bool due = calls >= block->sample_at;
    if (due)
        block->sample_at = calls + SAMPLE_EACH;
    /* The next event's call is the first without a place. */
    const uint64_t left = block->sample_at - calls - 1;
    SET(block->both, empty ? room_for(left) : logged | ends << 32);
    SET(block->emptying, 0);
    return due;
}

void recorder_begin_log(struct recorder_block *block)
{
    struct larger sum = {0, 0};
    for (uint32_t i = 0; i < LOG; i++)
        if (block->log[i].what)
            count_logged(block, &block->log[i], &sum);
    add_larger(block, &sum);
    block->calls += block->at / PLACE;
    block->both = 0;
    block->emptied = 0;
    block->emptying = 0;
}

static bool settle(struct recorder_block *block, enum recorder_op op, uintptr_t dst, uintptr_t src, size_t n,
                   uintptr_t caller)
{
    if (!begin_anew(block))
        return false;
    const unsigned overlap = op == OP_SET ? 0 : recorder_overlap(dst, src, n);
    const bool timed = recorder_event(block, op, dst, src, n, overlap, caller);
    /* As it has been begun, unless a handler logged meanwhile. */
    uint64_t thought = room_for(SAMPLE_EACH - 1);
    block->sample_at = block->calls + block->at / PLACE + block->until_sample;
    if (UNLIKELY(!turn_log(block, &thought, room_for(block->until_sample - 1))))
        begin_anew(block);
    return timed;
}

bool recorder_count(enum recorder_op op, enum recorder_function function, uintptr_t dst, uintptr_t src, size_t n,
                    uintptr_t caller, bool placed)
{
    struct recorder_block *block = recorder_mine;
    if (UNLIKELY((uintptr_t)block <= (uintptr_t)CLAIMING || !*recorder_alive)) {
        block = recorder_claim();
        if (!block)
            return false;
        placed = false;
    }
    uint32_t at = 0;
    const bool ended = placed || !recorder_place(block, &at);
    if (!ended && n < ALWAYS_FROM) {
        recorder_log(block, at, op, function, dst, src, n, op != OP_SET && recorder_overlap(dst, src, n));
        return false;
    }
    const uint64_t begin = recorder_ticks();
    bool timed = false;
    if (!ended)
        SET(((struct logged_call *)((char *)block->log + at))->what, (uint64_t)1 << 31 | LOGGED_AT_ONCE);
    if (n <= EXACT) {
        count_small(block, op, function, dst, src, n, false);
    } else {
        struct larger sum = {0, 0};
        count_larger(block, op, function, dst, src, n, &sum, false, false);
        add_larger(block, &sum);
        if (n >= ALWAYS_FROM) {
            recorder_note_caller(block, op, n, caller, true);
            if (falls_to_zero(&block->until_timed) || n >= TIME_FROM) {
                block->until_timed = recorder_about(block, TIME_EACH);
                timed = true;
            }
        }
    }
    if (ended)
        timed |= settle(block, op, dst, src, n, caller);
    if (timed && n < ALWAYS_FROM)
        block->began = begin; /* recorder_timed goes on with it */
    else
        recorder_set_aside(block, begin);
    return timed;
}
