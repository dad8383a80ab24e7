/* Bytes beside the destination that belong to somebody else.
 *
 * neighbour: the call is stepped, one instruction at a time, and after each the bytes around the destination are
 * changed, as another thread might. Whoever writes back what it read there earlier loses the change. Deterministic,
 * on one CPU too; of large sizes what touches the pages of either end is stepped. An instruction that reads and writes
 * back in one go escapes it.
 * race: a real thread increments the byte before and the byte after meanwhile, and sees its own count set back.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "verify.h"

enum { BESIDE = 64, ROOM = 65536, MOST_STEPS = 30000, LARGEST = 32 << 20, MOST_STEPS_AT_ENDS = 6000, QUIET = 500 };

static uint8_t *buffer, *origin;

static void prepare(struct unit *unit, uint64_t seed)
{
    if (buffer)
        return;
    (void)unit;
    buffer = map_or_die(2 * ROOM, PROT_READ | PROT_WRITE);
    origin = map_or_die(2 * ROOM, PROT_READ | PROT_WRITE);
    pattern_fill(origin, 2 * ROOM, seed, 1);
}

struct stepping {
    volatile uint8_t *before, *after; /* 64 bytes each */
    unsigned steps;
    uint8_t count;
    bool wrong_side;
    int64_t wrong;
};

/* Runs inside the signal handler. */
static bool change_neighbours(void *context, uintptr_t rip)
{
    struct stepping *s = context;
    (void)rip;
    for (int i = 0; i < BESIDE && s->wrong < 0; i++) {
        if (s->before[i] != s->count)
            s->wrong = i, s->wrong_side = false;
        else if (s->after[i] != s->count)
            s->wrong = i, s->wrong_side = true;
    }
    s->count++;
    for (int i = 0; i < BESIDE; i++)
        s->before[i] = s->after[i] = s->count;
    return ++s->steps < MOST_STEPS && s->wrong < 0;
}

static void fail_neighbour(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src,
                           const struct stepping *s)
{
    int64_t byte = s->wrong_side ? (int64_t)one->n + s->wrong : s->wrong - BESIDE;
    fail(unit, one, dst, src, "neighbour",
         "wrote byte %lld, outside the destination: a neighbour's write in the meantime was lost "
         "(read-modify-write)",
         (long long)byte);
    unit->failure.byte = byte;
}

/* Too large to be stepped: the pages where the destination begins and ends are closed, and what touches them is
 * stepped, until it seems to have gone on elsewhere; then they are closed again. */
struct at_ends {
    struct stepping s; /* comes first: it is the hook's context too */
    uint8_t *first, *last;
    size_t first_length, last_length;
    unsigned quiet;
};

static void protect_ends(const struct at_ends *e, int protection)
{
    mprotect(e->first, e->first_length, protection);
    mprotect(e->last, e->last_length, protection);
}

static bool step_at_ends(void *context, uintptr_t rip)
{
    struct at_ends *e = context;
    if (!change_neighbours(&e->s, rip) || e->s.steps >= MOST_STEPS_AT_ENDS)
        return false;
    if (++e->quiet < QUIET)
        return true;
    protect_ends(e, PROT_NONE);
    return false;
}

static bool open_ends(void *context, uintptr_t address, bool writing, bool *step)
{
    struct at_ends *e = context;
    (void)writing;
    if (address - (uintptr_t)e->first >= e->first_length && address - (uintptr_t)e->last >= e->last_length)
        return false;
    protect_ends(e, PROT_READ | PROT_WRITE);
    e->quiet = 0;
    *step = true;
    return true;
}

static void run_at_ends(struct unit *unit, const struct vcase *one)
{
    static uint8_t *to, *from;
    if (!to) {
        to = map_or_die(LARGEST + 4 * PAGE, PROT_READ | PROT_WRITE);
        from = map_or_die(LARGEST + 4 * PAGE, PROT_READ); /* all zero, and costs no memory */
    }
    uint8_t *dst = to + PAGE + one->d % PAGE, *end = dst + one->n;
    const uint8_t *src = is_set(unit->target) ? NULL : from + PAGE + one->s % PAGE;
    for (uint64_t k = 0; k < one->calls && !unit->failed; k++) {
        struct at_ends e = {.s = {.before = dst - BESIDE, .after = end, .count = 7, .wrong = -1}};
        e.first = dst - BESIDE - (uintptr_t)(dst - BESIDE) % PAGE;
        e.first_length = (size_t)(dst - (uintptr_t)dst % PAGE + PAGE - e.first);
        e.last = end - 1 - (uintptr_t)(end - 1) % PAGE;
        e.last_length = (size_t)(end + BESIDE - 1 - (uintptr_t)(end + BESIDE - 1) % PAGE + PAGE - e.last);
        plain_fill(dst - BESIDE, 7, BESIDE);
        plain_fill(end, 7, BESIDE);
        protect_ends(&e, PROT_NONE);
        call_hook_context = &e;
        call_on_step = step_at_ends;
        call_on_fault = open_ends;
        unit->cases++;
        const bool right = call_checked(unit, one, dst, src, one->n);
        call_on_step = NULL;
        call_on_fault = NULL;
        protect_ends(&e, PROT_READ | PROT_WRITE);
        if (!right)
            return;
        change_neighbours(&e.s, 0);
        if (e.s.wrong >= 0)
            fail_neighbour(unit, one, dst, src, &e.s);
    }
}

static void run_steps(struct unit *unit, const struct vcase *one)
{
    if (one->n > ROOM) {
        run_at_ends(unit, one);
        return;
    }
    prepare(unit, one->seed);
    const bool overlapping = may_overlap(unit, one);
    uint8_t *dst = buffer + PAGE + one->d % PAGE + (overlapping && one->dist > 0 ? one->dist : 0);
    const uint8_t *src = is_set(unit->target) ? NULL : overlapping ? dst - one->dist : origin + PAGE + one->s % PAGE;
    for (uint64_t k = 0; k < one->calls && !unit->failed; k++) {
        struct stepping s = {.before = dst - BESIDE, .after = dst + one->n, .count = 7, .wrong = -1};
        plain_fill(dst - BESIDE, 7, BESIDE);
        plain_fill(dst + one->n, 7, BESIDE);
        call_hook_context = &s;
        call_on_step = change_neighbours;
        unit->cases++;
        bool right = call_checked(unit, one, dst, src, one->n);
        call_on_step = NULL;
        if (!right)
            return;
        change_neighbours(&s, 0);
        if (s.wrong >= 0)
            fail_neighbour(unit, one, dst, src, &s);
    }
}

/* Every number of bytes in a line that loops of large sizes may leave over, the destination beginning a little before a
 * page's end and ending a little behind another's, so that there is little to step. */
static void large_ends(struct unit *unit)
{
    const bool full = unit->level == LEVEL_FULL;
    const unsigned each = full || unit->few ? 1 : unit->target->routine ? 16 : 8, rounds = full ? 4 : 1;
    const uint64_t first = below(unit, each);
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (unsigned round = 0; round < rounds; round++)
        for (uint64_t rest = first; rest < 64 && !unit->failed; rest += each) {
            uint64_t base = (round % 2 ? (uint64_t)128 << 10 : (uint64_t)1 << 20) << rest / each % 2;
            if (round == 0 && rest % 8 == 7 && past_caches(unit))
                base = (uint64_t)4 << 20 << rest / 8 % 3;
            one.d = PAGE - 1 - below(unit, 192);
            one.s = below(unit, PAGE);
            one.c = (int)next_random(&unit->random);
            const uint64_t end = PAGE + 64 * (1 + below(unit, 3)) + (one.d + rest) % 64;
            one.n = fit(unit->target, base + PAGE * below(unit, base / PAGE) + end - one.d);
            run_at_ends(unit, &one);
        }
}

static void generate_steps(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    static const uint16_t larger[] = {128, 160, 200, 256, 300, 511, 700, 1030, 2050, 4100, 6100, 12300};
    bool brief = unit->level == LEVEL_BRIEF;
    unsigned rounds = unit->level == LEVEL_FULL ? 16 : unit->few ? 4 : 1;
    unsigned steps = 0;
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned k = 0; k < 128 + sizeof larger / sizeof larger[0] && !unit->failed; k++) {
            if (brief && k > 16 && k % 8 != round % 8)
                continue;
            one.n = fit(unit->target, k < 128 ? k : larger[k - 128]);
            /* A byte loop needs thousands of steps; its tail is no other for large sizes. */
            if (k >= 128 && steps > 400 && round + 1 < rounds)
                continue;
            one.d = below(unit, 64);
            one.s = below(unit, 64);
            one.c = (int)next_random(&unit->random);
            run_steps(unit, &one);
            for (int sign = -1; sign <= 1 && one.n > 1 && !unit->failed && !brief; sign += 2) {
                struct vcase moved = one;
                moved.dist = sign * (1 + (int64_t)below(unit, one.n - 1));
                if (may_overlap(unit, &moved))
                    run_steps(unit, &moved);
            }
            steps = (unsigned)one.n;
        }
    /* Tails behind a loop: every number of bytes in a line that it may leave over. */
    for (unsigned k = 0; k < 64 && !brief && !unit->failed; k++) {
        one.n = fit(unit->target, 128 + k + 64 * below(unit, unit->few || k % 4 == 0 ? 16 : 2));
        one.d = 27 * k % 64;
        one.s = below(unit, 64);
        one.c = (int)next_random(&unit->random);
        run_steps(unit, &one);
    }
    if (!brief)
        large_ends(unit);
}

struct racing {
    volatile uint8_t *volatile before, *volatile after;
    atomic_uint lost, go, acknowledged;
};

static void *increment(void *context)
{
    struct racing *r = context;
    unsigned seen = 0;
    uint8_t count = 0;
    for (;;) {
        unsigned go = atomic_load_explicit(&r->go, memory_order_acquire);
        if (go == UINT32_MAX)
            return NULL;
        if (go != seen) { /* new places */
            seen = go;
            count = 0;
            *r->before = *r->after = 0;
            atomic_store_explicit(&r->acknowledged, go, memory_order_release);
        }
        if (!seen || seen % 2 == 0) {
            sched_yield();
            continue;
        }
        for (int i = 0; i < 16; i++) {
            volatile uint8_t *b = r->before, *a = r->after;
            if (*b != count)
                atomic_store(&r->lost, 1);
            else if (*a != count)
                atomic_store(&r->lost, 2);
            count++;
            *b = *a = count;
        }
    }
}

static void change_phase(struct racing *r, unsigned phase)
{
    atomic_store_explicit(&r->go, phase, memory_order_release);
    while (atomic_load_explicit(&r->acknowledged, memory_order_acquire) != phase)
        sched_yield();
}

static struct racing racing;
static bool racing_begun;

/* Puts the two threads on CPUs of their own: a scheduler with other work may keep a pair on one, where they never run
 * at the same time and the increments are never in danger. */
static void part(pthread_t other)
{
    cpu_set_t allowed, mine, theirs;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return;
    CPU_ZERO(&mine);
    CPU_ZERO(&theirs);
    int at = sched_getcpu();
    if (at < 0 || !CPU_ISSET(at, &allowed))
        return;
    CPU_SET(at, &mine);
    do {
        at = (at + 1) % CPU_SETSIZE;
    } while (!CPU_ISSET(at, &allowed));
    CPU_SET(at, &theirs);
    sched_setaffinity(0, sizeof mine, &mine);
    pthread_setaffinity_np(other, sizeof theirs, &theirs);
}

static void race(struct unit *unit, const struct vcase *one, unsigned repeats)
{
    static unsigned phase;
    prepare(unit, one->seed);
    if (!racing_begun) {
        pthread_t thread;
        racing.before = buffer;
        racing.after = buffer;
        racing_begun = pthread_create(&thread, NULL, increment, &racing) == 0;
        if (!racing_begun) {
            snprintf(unit->skipped, sizeof unit->skipped, "cannot start a thread");
            return;
        }
        part(thread);
    }
    uint8_t *dst = buffer + PAGE + one->d % PAGE;
    const uint8_t *src = is_set(unit->target) ? NULL : origin + PAGE + one->s % PAGE;
    racing.before = dst - 1;
    racing.after = dst + one->n;
    atomic_store(&racing.lost, 0);
    phase += 2;
    change_phase(&racing, phase | 1);
    for (unsigned i = 0; i < repeats && !unit->failed && !atomic_load_explicit(&racing.lost, memory_order_relaxed);
         i++) {
        unit->cases++;
        call_checked(unit, one, dst, src, one->n);
    }
    change_phase(&racing, (phase | 1) + 1);
    phase++;
    unsigned lost = atomic_load(&racing.lost);
    if (!lost)
        return;
    int64_t byte = lost == 1 ? -1 : (int64_t)one->n;
    fail(unit, one, dst, src, "neighbour",
         "wrote byte %lld, outside the destination: another thread's increment of it was lost (read-modify-write)",
         (long long)byte);
    unit->failure.byte = byte;
}

static void run_race(struct unit *unit, const struct vcase *one)
{
    race(unit, one, one->calls > 200000 ? (unsigned)one->calls : 200000);
}

static void generate_race(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    bool brief = unit->level == LEVEL_BRIEF;
    unsigned rounds = unit->level == LEVEL_FULL || unit->few ? 600 : brief ? 12 : 30;
    for (unsigned k = 0; k < rounds && !unit->failed; k++) {
        one.n = fit(unit->target, 1 + below(unit, k % 4 == 3 ? 600 : 70));
        one.d = 64 + below(unit, 64);
        one.s = below(unit, 64);
        one.c = (int)next_random(&unit->random);
        if (one.n)
            race(unit, &one, 1000);
    }
}

static const char *lacks_room(const struct vcase *one) { return one->n + reach_of(one) > ROOM ? "65536 bytes" : NULL; }
static const char *lacks_room_for_steps(const struct vcase *one)
{
    return one->n > LARGEST ? "32 MiB" : one->dist && one->n + reach_of(one) > ROOM ? "65536 bytes that overlap" : NULL;
}
_Static_assert(ROOM == 65536 && LARGEST == 32 << 20, "said above");

const struct family family_neighbour = {
    .name = "neighbour",
    .what = "bytes beside the destination are not read and written back (stepped by instruction)",
    .applies = writes,
    .generate = generate_steps,
    .run = run_steps,
    .lacks_room = lacks_room_for_steps,
};
const struct family family_race = {
    .name = "race",
    .what = "the same with a real thread that changes the neighbours",
    .applies = writes,
    .generate = generate_race,
    .run = run_race,
    .lacks_room = lacks_room,
};
