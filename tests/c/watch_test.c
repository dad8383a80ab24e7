/* What the watch finds of copies and sets whose sizes can be foreseen, or not; that it finds out again when they
 * change, and when another thread goes on; and that every call is right meanwhile. By counts alone: no clock. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/choice.h"
#include "dispatch/dispatch.h"
#include "dispatch/watch.h"
#include "routines/thresholds.h"
#include "wherry.h"

enum { CALLS = 1 << 18, MOST = 1024, PLACES = 4096, EVEN = 4096, SHORT = 5000, LONG = 12000 };
enum { ROW = 2048, ROW_STEP = 320, ROW_LEAST = 5, ROW_MOST = 12 };

static unsigned failures;
static uint8_t from[ROW * ROW_STEP + MOST], to[ROW * ROW_STEP + MOST + 2];
static uint64_t state = 88172645463325252u;

static unsigned any(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % below;
}

struct way {
    const char *name;
    struct wherry_watch *watch;
    void (*call)(size_t at, size_t n);
};

static void copy(size_t at, size_t n) { wherry_memcpy(to + 1 + at, from + at, n); }
static void copy_end(size_t at, size_t n) { wherry_mempcpy(to + 1 + at, from + at, n); }
static void copy_swapped(size_t at, size_t n) { wherry_bcopy(from + at, to + 1 + at, n); }
static void set(size_t at, size_t n) { wherry_memset(to + 1 + at, from[at], n); }
static void zero(size_t at, size_t n) { wherry_bzero(to + 1 + at, n); }

static const struct way ways[] = {
    {"memcpy", &wherry_watch_copies, copy},        {"mempcpy", &wherry_watch_copies, copy_end},
    {"bcopy", &wherry_watch_copies, copy_swapped}, {"memset", &wherry_watch_sets, set},
    {"bzero", &wherry_watch_sets, zero},
};
static const struct way *way;

static bool right(size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t wanted = way->call == zero ? 0 : way->call == set ? from[at] : from[at + i];
        if (to[1 + at + i] != wanted)
            return false;
    }
    return to[at] == 0xa5 && to[1 + at + n] == 0xa5;
}

/* Always the same, six in turn, any; as any, but the first so many of them again and again; and mostly the same, so
 * that any few of them in a row come again soon. */
enum sizes { SAME, TURNS, ANY, AGAIN_EVEN, AGAIN_SHORT, AGAIN_LONG, MOSTLY };
static uint16_t again[LONG];
static size_t size(enum sizes sizes, unsigned i)
{
    static const uint16_t turns[] = {600, 24, 130, 600, 900, 8};
    switch (sizes) {
    case SAME:
        return 600;
    case TURNS:
        return turns[i % 6];
    case AGAIN_EVEN:
        return again[i % EVEN];
    case AGAIN_SHORT:
        return again[i % SHORT];
    case AGAIN_LONG:
        return again[i % LONG];
    case MOSTLY:
        return any(10) < 7 ? 300 : any(MOST + 1);
    case ANY:
        break;
    }
    return any(MOST + 1);
}

static void run(enum sizes sizes, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        const size_t at = any(PLACES), n = size(sizes, i);
        if (i % 64 == 0)
            memset(to, 0xa5, PLACES + MOST + 2);
        way->call(at, n);
        if (i % 64 == 0 && !right(at, n)) {
            failures++;
            printf("%s of %zu bytes is wrong after %u calls\n", way->name, n, i);
            return;
        }
    }
}

static void expect(const char *what, bool together)
{
    const bool copies = way->watch == &wherry_watch_copies;
    const enum wherry_choice choice = wherry_choice_in(copies ? wherry_copy_choice : wherry_set_choice);
    const enum wherry_choice other = wherry_choice_in(copies ? wherry_set_choice : wherry_copy_choice);
    if (way->watch->together == together &&
        (choice == WHERRY_CHOICE_AVX512_LOOK ||
         choice == (together ? WHERRY_CHOICE_AVX512_TOGETHER : WHERRY_CHOICE_AVX512)) &&
        other == WHERRY_CHOICE_AVX512)
        return;
    failures++;
    printf("%s, %s: %s, choice %d, that of the others %d\n", way->name, what,
           way->watch->together ? "together" : "apart", choice, other);
}

static void *any_elsewhere(void *calls)
{
    run(ANY, *(const unsigned *)calls);
    return NULL;
}

static void elsewhere(unsigned calls)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, any_elsewhere, &calls) || pthread_join(thread, NULL)) {
        puts("no thread");
        failures++;
    }
}

/* The same call over and over, with the same in rbx, by which calls are picked too. */
static bool picked_at(size_t at, size_t n, unsigned calls)
{
    register uintptr_t held __asm__("rbx") = 0;
    const uint32_t left = way->watch->left, begun = way->watch->begun;
    for (unsigned i = 0; i < calls; i++) {
        __asm__ volatile("" : "+r"(held));
        way->call(at, n);
        __asm__ volatile("" : "+r"(held));
    }
    return way->watch->left != left || way->watch->begun != begun;
}

/* A call that is picked, and counted with no look, goes on as the others do: of each size, by whole vectors and by half
 * ones. */
static void counted(void)
{
    struct wherry_watch *watch = way->watch;
    const struct wherry_thresholds kept = wherry_thresholds;
    const uint32_t factor = watch->factor, left = watch->left;
    const uint64_t counting = watch->counting;
    wherry_watch_use(watch, HELD_APART);
    watch->factor = 0;                                                         /* each is picked */
    watch->counting = (uintptr_t)__builtin_frame_address(0) - WATCH_STACK / 2; /* by this thread */
    for (int halves = 0; halves < 2; halves++) {
        wherry_thresholds.copy_ymm_from = halves ? YMM_LEAST : SIZE_MAX;
        wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
        for (size_t n = 0; n <= MOST; n++) {
            const size_t at = any(64);
            memset(to, 0xa5, PLACES + MOST + 2);
            watch->left = 2 * WATCH_PICKED;
            way->call(at, n);
            /* Where lines of the source are wanted these go by the way of sizes together, which counts each call. */
            const bool together =
                WHERRY_EDGE_BRANCH && watch == &wherry_watch_copies && n > 512 && wherry_thresholds.copy_by_source;
            const bool counts = way->watch->left == (together ? 2 * WATCH_PICKED - 1 : WATCH_PICKED);
            /* None of the smallest is, of copies none that goes AVX2's way, and of sets to 512 those by halves alone.
             */
            const bool must = n > 128 && (watch == &wherry_watch_copies ? n <= 512 || !halves : n <= 256 || n > 512);
            if (!right(at, n) || (must && !counts)) {
                failures++;
                printf("%s of %zu bytes, picked, %s: %s\n", way->name, n, halves ? "by halves" : "whole",
                       counts ? "wrong" : "not counted");
                break;
            }
        }
    }
    wherry_thresholds = kept;
    watch->factor = factor;
    watch->counting = counting;
    wherry_watch_use(watch, WATCHING);
    watch->left = left;
}

/* Of calls that are picked each time there is none for long. */
static void repeat(void)
{
    const bool source = way->call == copy || way->call == copy_end || way->call == copy_swapped;
    const size_t n = source ? 300 : 600; /* sizes that are picked on every CPU */
    unsigned found = 0, begun = 0;
    for (size_t at = 0; at < PLACES && found < 4; at++) {
        if (!picked_at(at, n, 1))
            continue;
        found++;
        const uint32_t before = way->watch->begun;
        picked_at(at, n, CALLS);
        expect("one call for ever", false);
        begun += way->watch->begun - before;
    }
    if (!found || begun > 3 * found) {
        failures++;
        printf("%s, one call for ever: %u found, %u looks\n", way->name, found, begun);
    }
}

/* The longer calls are all alike, the more seldom one is looked at. */
static void seldom(void)
{
    run(SAME, 4 * CALLS);
    const uint32_t before = way->watch->begun;
    run(SAME, 16 * CALLS);
    const uint32_t begun = way->watch->begun - before, most = 16 * CALLS / (1 << 15);
    if (begun < 1 || begun > most) {
        failures++;
        printf("%s, always the same: %u looks, not 1 to %u\n", way->name, begun, most);
    }
}

/* Of sizes from one place to one other no more than half are watched, of which perhaps none is picked: but for rbx,
 * where callers count. */
static void one_place(void)
{
    register uintptr_t counted __asm__("rbx");
    for (counted = 0; counted < 16 * CALLS; counted++) {
        way->call(7, any(257));
        __asm__ volatile("" : "+r"(counted));
    }
    expect("any, at one place", true);
}

/* The hash by which calls are picked does so evenly, whatever they ascend by. */
static void even(void)
{
    static const unsigned odds[] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 25, 33, 75};
    for (unsigned f = 0; f < WATCH_FACTORS; f++)
        for (unsigned o = 0; o < sizeof odds / sizeof *odds; o++)
            for (uint32_t step = odds[o]; step <= 4096; step *= 2)
                for (int begins = 0; begins < 50; begins++) {
                    const uint32_t first = any(UINT32_MAX);
                    unsigned picked = 0;
                    for (uint32_t i = 0; i < ROW; i++)
                        picked += (first + i * step) * wherry_watch_factors[f] < WATCH_LIMIT;
                    if (picked < ROW_LEAST || picked > ROW_MOST) {
                        failures++;
                        printf("factor %u picks %u of steps of %u from %u\n", f, picked, step, first);
                        return;
                    }
                }
}

/* Threads that do not count ask now and then, though rbx ascends or descends as the address does. */
static void others_ask(void)
{
    static const struct {
        unsigned step;
        int rbx;
    } rows[] = {{1, 0}, {1, 1}, {1, -1}, {ROW_STEP, 0}, {ROW_STEP, ROW_STEP}, {ROW_STEP, -ROW_STEP}};
    struct wherry_watch *watch = way->watch;
    const uint32_t factor = watch->factor;
    const uint64_t counting = watch->counting;
    wherry_watch_use(watch, HELD_TOGETHER);
    for (unsigned f = 0; f < WATCH_FACTORS; f++)
        for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++) {
            watch->factor = wherry_watch_factors[f];
            watch->counting = 1; /* where no stack is */
            watch->asked = 0;
            register uintptr_t held __asm__("rbx") = 0;
            for (unsigned i = 0; i < ROW; i++) {
                __asm__ volatile("" : "+r"(held));
                way->call(i * rows[r].step, ROW_STEP);
                __asm__ volatile("" : "+r"(held));
                held += (uintptr_t)rows[r].rbx;
            }
            if (watch->asked < ROW_LEAST || watch->asked > ROW_MOST) {
                failures++;
                printf("%s, by another thread: factor %u, steps of %u, rbx %d: %u ask\n", way->name, f, rows[r].step,
                       rows[r].rbx, watch->asked);
            }
        }
    watch->factor = factor;
    watch->counting = counting;
    wherry_watch_use(watch, WATCHING);
}

/* What looks meet again is by chance, so a verdict may change for a while: it is asked for now and then. */
static void mostly(const char *what, enum sizes sizes, bool together)
{
    enum { TIMES = 16 };
    int right_ones = 0;
    run(sizes, 16 * CALLS);
    for (int i = 0; i < TIMES; i++) {
        run(sizes, 4 * CALLS);
        right_ones += way->watch->together == together;
    }
    if (right_ones < TIMES - TIMES / 4) {
        failures++;
        printf("%s, %s: %s only %d times of %d\n", way->name, what, together ? "together" : "apart", right_ones, TIMES);
    }
}

/* What processors know by heart is apart, though no few calls of it can be foreseen: more of it where stores are
 * halved. */
static void recur(void)
{
    const struct wherry_thresholds kept = wherry_thresholds;
    for (int halves = 0; halves < 2; halves++) {
        wherry_thresholds.copy_ymm_from = halves ? YMM_LEAST : SIZE_MAX;
        wherry_thresholds = wherry_thresholds_complete(wherry_thresholds);
        run(ANY, 16 * CALLS);
        expect("any, before some come again", true);
        mostly("some thousands again and again", halves ? AGAIN_SHORT : AGAIN_EVEN, false);
        run(ANY, 64 * CALLS);
        expect("any, after some thousands", true);
        mostly("12,000 again and again", AGAIN_LONG, !halves);
        run(MOSTLY, 64 * CALLS);
        expect("mostly the same", true);
        run(SAME, 4 * CALLS);
        expect("the same for ever", false);
    }
    wherry_thresholds = kept;
}

/* What waits for memory is apart, whatever its sizes; here any byte that is read, or none, counts as waiting. */
static void cold(void)
{
    run(ANY, 16 * CALLS);
    expect("any, before it waits for memory", true);
    way->watch->slow_from = 0;
    run(ANY, 4 * CALLS);
    expect("any, that waits for memory", false);
    run(TURNS, CALLS);
    run(ANY, 4 * CALLS);
    expect("any, that waits for memory still", false);
    way->watch->slow_from = UINT32_MAX;
    run(ANY, 4 * CALLS);
    expect("any, that waits no more", true);
}

/* A look reads no byte of a buffer that has none, wherever it is said to lie. */
static void nothing(void)
{
    static void *volatile nowhere = (void *)1;
    struct wherry_watch *watch = way->watch;
    const uint64_t counting = watch->counting;
    const uint32_t slow_from = watch->slow_from;
    wherry_watch_use(watch, HELD_LOOKING);
    watch->counting = (uintptr_t)__builtin_frame_address(0) - WATCH_STACK / 2;
    watch->recorded = 0; /* the first one of a look is timed */
    watch->slow_from = 0;
    if (watch == &wherry_watch_copies)
        wherry_memcpy(nowhere, nowhere, 0);
    else
        wherry_memset(nowhere, 1, 0);
    /* Where AVX2 stands first sizes below 16 bytes go its way, but where sizes are apart: then nothing is recorded. */
    if (watch->recorded != (WHERRY_FIRST_AVX2 ? 0 : 1)) {
        failures++;
        printf("%s of no bytes: recorded %u times\n", way->name, watch->recorded);
    }
    watch->slow_from = slow_from;
    watch->counting = counting;
    wherry_watch_use(watch, WATCHING);
}

/* Copies of which both sides overlap are counted even while sizes are apart. */
static void overlap(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        wherry_memmove(to + 100, to, 600);
    expect("overlapping", false);
    run(ANY, CALLS);
    expect("any, after overlapping", true);
}

/* A period that is the number of calls between two looks is found as soon as another. */
static void in_step(void)
{
    run(AGAIN_EVEN, 2 * CALLS);
    expect("4,096 again and again, at first", false);
    run(ANY, 16 * CALLS);
    expect("any, after 4,096", true);
    run(SAME, 4 * CALLS);
    expect("the same, after any", false);
}

static void look(void)
{
    run(SAME, CALLS);
    expect("always the same", false);
    run(ANY, CALLS);
    expect("any", true);
    run(TURNS, CALLS);
    expect("six in turn", false);
    elsewhere(CALLS);
    expect("any, in a thread that has ended", true);
    run(SAME, 4 * CALLS);
    expect("always the same, in another thread", false);
    /* A thread that ends in the midst of its look: the look is given up, and goes on here. */
    for (unsigned calls = 1; way->watch->looking == false && calls < CALLS; calls += 1000)
        elsewhere(calls);
    run(ANY, CALLS);
    expect("after a thread that looked", true);

    const enum wherry_watching held[] = {HELD_APART, HELD_TOGETHER, HELD_LOOKING};
    for (int i = 0; i < 3; i++) {
        wherry_watch_use(way->watch, held[i]);
        run(ANY, 1000);
        run(SAME, 1000);
    }
    wherry_watch_use(way->watch, WATCHING);
    expect("no longer held", true);
    run(SAME, 4 * CALLS);
    expect("at last", false);
    seldom();
    counted();
    nothing();
    others_ask();
    repeat();
    one_place();
    recur();
    cold();
    if (way->watch == &wherry_watch_copies)
        overlap();
    run(SAME, 4 * CALLS);
    expect("the same again", false);
}

int main(void)
{
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 31 >> 3);
    for (size_t i = 0; i < LONG; i++)
        again[i] = (uint16_t)any(MOST + 1);
    if (!wherry_dispatch_force(WHERRY_ISA_AVX512)) {
        puts("this CPU has no AVX-512");
        return 77;
    }
    even();
    wherry_watch_copies.slow_from = wherry_watch_sets.slow_from = UINT32_MAX;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        way = &ways[i];
        if (!way->watch->begun)
            in_step();
        look();
    }
    /* Another tier is not watched. */
    wherry_dispatch_force(WHERRY_ISA_AVX2);
    way = &ways[0];
    run(ANY, CALLS);
    if (wherry_copy_choice != wherry_copy_word(WHERRY_CHOICE_AVX2) || wherry_watch_copies.together) {
        failures++;
        puts("AVX2 was watched");
    }
    wherry_dispatch_force(WHERRY_ISA_AVX512_TOGETHER);
    run(SAME, CALLS);
    if (wherry_copy_choice != wherry_copy_word(WHERRY_CHOICE_AVX512_TOGETHER) ||
        wherry_set_choice != wherry_set_word(WHERRY_CHOICE_AVX512_TOGETHER)) {
        failures++;
        puts("avx512_together does not last");
    }
    puts(failures ? "wrong" : "all right");
    return failures != 0;
}
