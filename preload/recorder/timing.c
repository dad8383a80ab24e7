/* What a call takes inside the program, with the caches and the branches as they are there.
 *
 * A page that is not there yet is brought by the kernel at its first access, which takes longer than copying it and is
 * no fault of the routine's. So before the clock starts, a byte of each page of the destination gets what the call
 * would put there anyway; calls that are too small to be told from that are left out when they take as long as a page
 * fault.
 */
#include "recorder.h"
#include "switched.h"

enum {
    TOUCHES = 16,            /* pages of one call at most; of a larger one these stand for all */
    LEAST_FAULT_TICKS = 500, /* an access to memory takes less */
    MOST_FAULT_TICKS = 1500, /* and a page fault more */
    SMALL = 1024,            /* calls below it are not touched: the lines would be there then */
    SMALL_TICKS = 800,       /* what they take at most beside a page fault */
    NEAR_TICKS = 24,         /* a load from the second cache takes less than this more, from the last one more */
    CACHED_TICKS = 160,      /* a load from the last cache takes less than this more, from memory more */
    LOOK_EACH = 4,           /* of these calls it is looked where both sides are */
    LATE_TICKS_A_BYTE = 4,
    ENOUGH = 8, /* calls of a class; with fewer those that another program interrupted tell more than none */
};

/* An access that takes longer was a page fault. */
static uint64_t fault_ticks = MOST_FAULT_TICKS;

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static unsigned time_class(size_t n)
{
    if (n < 2)
        return (unsigned)n;
    const unsigned octave = 63u - (unsigned)__builtin_clzll(n);
    const unsigned class = 2 * octave + ((unsigned)(n >> (octave - 1)) & 1);
    return class < TIME_CLASSES ? class : TIME_CLASSES - 1;
}

void recorder_learn_fault(volatile unsigned char *page)
{
    const uint64_t begin = ticks();
    *page = 0;
    /* The first is slower than those that follow: the page's table may be new as well. */
    const uint64_t some = (ticks() - begin) / 3;
    fault_ticks = some < LEAST_FAULT_TICKS ? LEAST_FAULT_TICKS : some > MOST_FAULT_TICKS ? MOST_FAULT_TICKS : some;
}

/* As above, and what was stored has left the processor: else copies of cold lines would leave most of their time to
 * whatever comes after them. Of small ones it is hidden there. */
static inline uint64_t ticks_after(size_t n)
{
    if (n >= SMALL)
        __asm__ volatile("mfence" : : : "memory");
    return ticks();
}

/* Whether another program ran meanwhile. `known`: calls that tell what such calls take. */
static bool is_late(size_t n, uint64_t took, bool switched, uint64_t known)
{
    return took > LATE_TICKS + LATE_TICKS_A_BYTE * n || (switched && took > LATE_TICKS && known >= ENOUGH);
}

/* In a trial: how much of a turn its largest calls take. Whether this one tells of its own side; while turns settle it
 * finds in the caches what the other side left there. */
static bool is_settled(size_t n, uint64_t took)
{
    struct recorder_file *file = recorder_file;
    if (LIKELY(n < LASTING_FROM) || !recorder_trial)
        return true;
    __atomic_fetch_add(&file->largest_calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&file->largest_ticks, took, __ATOMIC_RELAXED);
    return !file->settling;
}

struct touched {
    uint64_t faults, ticks; /* of these pages */
    uint64_t left;          /* ticks that the others may take during the call */
};

/* The first byte of the call in its page number `page`. */
static size_t in_page(uintptr_t dst, size_t page) { return page ? page * PAGE - (dst & (PAGE - 1)) : 0; }

static struct touched touch(uintptr_t dst, uintptr_t src, size_t pages, uint32_t fill)
{
    struct touched found = {0, 0, 0};
    const size_t some = pages < TOUCHES ? pages : TOUCHES;
    for (size_t i = 0; i < some; i++) {
        const size_t at = in_page(dst, i * pages / some);
        const uint64_t begin = ticks();
        *(volatile unsigned char *)(dst + at) =
            src ? *(const volatile unsigned char *)(src + at) : (unsigned char)(fill >> 8 * (at & 3));
        const uint64_t took = ticks() - begin;
        if (took > fault_ticks && took < LATE_TICKS) {
            found.faults++;
            found.ticks += took;
        }
    }
    if (found.faults)
        found.left = found.ticks * (pages - some) / some;
    return found;
}

static uint64_t load_ticks(uintptr_t address)
{
    const uint64_t begin = ticks();
    (void)*(const volatile unsigned char *)address;
    return ticks() - begin;
}

/* Where a line is, by how much longer it takes than one that has just been used. */
static unsigned place_of(uintptr_t address, uint64_t usual)
{
    const uint64_t took = load_ticks(address);
    return took <= usual + NEAR_TICKS ? 0 : took <= usual + CACHED_TICKS ? 1 : 2;
}

/* Looks at one line of each side, half a page behind one that was touched, so that its page is known to the processor.
 */
static void find_places(struct recorder_time *time, uint64_t looks, uintptr_t dst, uintptr_t src, size_t n,
                        size_t pages)
{
    const size_t some = pages < TOUCHES ? pages : TOUCHES;
    const size_t behind = in_page(dst, looks / LOOK_EACH % some * pages / some) + PAGE / 2;
    const size_t at = behind < n ? behind : n / 2;
    load_ticks((uintptr_t)time);
    const uint64_t usual = load_ticks((uintptr_t)time);
    const unsigned source = src ? place_of(src + at, usual) : 0;
    add(&time->places[source][place_of(dst + at, usual)], 1);
}

static long do_nothing(long a, long b, long c, long d)
{
    (void)b, (void)c, (void)d;
    return a;
}

/* What timing adds grows with all that makes the processor slow: its clock, a neighbour on the same core. */
static void time_nothing(struct recorder_block *block)
{
    void *called = (void *)do_nothing;
    __asm__ volatile("" : "+r"(called)); /* it is called as the routines are */
    uint64_t took = 0;
    /* The second time: the first may have to find the code. */
    for (volatile int times = 0; times < 2; times++) {
        const uint64_t begin = ticks();
        ((long (*)(long, long, long, long))called)(0, 0, 0, 0);
        took = ticks() - begin;
    }
    if (took > SMALL_TICKS || !*recorder_alive || recorder_mine != block)
        return;
    add(&block->nothings, 1);
    add(&block->nothing_ticks, took);
}

/* In a trial: the whole of the call, nothing of it touched beforehand. */
static long timed_whole(struct recorder_block *block, enum recorder_op op, size_t n, bool side, void *called,
                        const long arguments[4])
{
    const unsigned group = (unsigned)(take_one(&block->timed) / 8 % TRIAL_GROUPS);
    recorder_watch_for_switch();
    const uint64_t begin = ticks();
    const long result =
        ((long (*)(long, long, long, long))called)(arguments[0], arguments[1], arguments[2], arguments[3]);
    const uint64_t took = ticks_after(n) - begin;
    const bool switched = recorder_switched();
    if (!*recorder_alive || recorder_mine != block)
        return result;
    struct recorder_trial *trial = &block->trials[op][time_class(n)];
    uint64_t known = 0;
    for (unsigned i = 0; i < TRIAL_GROUPS; i++)
        known += trial->sides[side][i].calls;
    if (!is_settled(n, took) || is_late(n, took, switched, known))
        return result;
    add(&trial->sides[side][group].calls, 1);
    add(&trial->sides[side][group].ticks, took);
    return result;
}

static long timed(struct recorder_block *block, enum recorder_op op, enum recorder_function function, uintptr_t dst,
                  uintptr_t src, size_t n, uint32_t fill, long a, long b, long c, long d)
{
    void *called = recorder_next[function];
    bool side = false;
    if (UNLIKELY(recorder_trial)) {
        if (n >= ALWAYS_FROM)
            recorder_take_turn(block);
        side = recorder_trying;
        called = recorder_called[function];
        /* The other half is timed as without a trial, of either side: neither may pay more for it in its turns. */
        if (recorder_random(block) >> 40 & 1 && recorder_next[function] != recorder_tried[function])
            return timed_whole(block, op, n, side, called, (const long[4]){a, b, c, d});
    }
    struct recorder_time *time = &block->times[op][time_class(n)];
    struct touched touched = {0, 0, 0};
    /* Of ranges that overlap no byte may come before its turn. */
    if (n >= SMALL && (src || op == OP_SET)) {
        const size_t pages = ((dst & (PAGE - 1)) + n + PAGE - 1) / PAGE;
        touched = touch(dst, src, pages, fill);
        const uint64_t looks = take_one(&block->looks);
        if (looks % LOOK_EACH == 0)
            find_places(time, looks, dst, src, n, pages);
    }
    recorder_watch_for_switch();
    const uint64_t begin = ticks();
    const long result = ((long (*)(long, long, long, long))called)(a, b, c, d);
    const uint64_t took = ticks_after(n) - begin;
    const bool switched = recorder_switched();
    /* A handler may have forked meanwhile: the child has no such block. What libc's routines take is what is told. */
    if (UNLIKELY(!*recorder_alive || recorder_mine != block))
        return result;
    if (!is_settled(n, took) || side)
        return result;
    add(&time->faults, touched.faults);
    add(&time->fault_ticks, touched.ticks);
    if (n < SMALL && took > fault_ticks + SMALL_TICKS && took < LATE_TICKS) {
        add(&time->faults, 1);
        add(&time->fault_ticks, took);
    } else if (is_late(n, took, switched, time->calls)) {
        add(&time->late, 1);
    } else {
        /* At least a quarter is the call's own: the pages that were not touched are guessed. */
        const uint64_t left = touched.left < took / 4 * 3 ? touched.left : took / 4 * 3;
        add(&time->fault_ticks, left);
        add(&time->faults, touched.faults ? left * touched.faults / touched.ticks : 0);
        add(&time->calls, 1);
        add(&time->bytes, n);
        add(&time->ticks, took - left);
        if (time->calls % NOTHING_EACH == 0)
            time_nothing(block);
    }
    return result;
}

long recorder_timed(enum recorder_op op, enum recorder_function function, uintptr_t dst, uintptr_t src, size_t n,
                    uint32_t fill, long a, long b, long c, long d)
{
    struct recorder_block *block = recorder_mine;
    const long result = timed(block, op, function, dst, src, n, fill, a, b, c, d);
    /* Of such a call nothing is in a turn, since timing it takes far longer; of large ones, where it does not, all. A
     * handler may have forked meanwhile: the child has no such block. */
    if (n < ALWAYS_FROM && LIKELY(*recorder_alive && recorder_mine == block))
        recorder_set_aside(block, block->began);
    return result;
}
