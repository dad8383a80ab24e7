/* State that a routine keeps between or during calls: two threads at once, and a call in the middle of a call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "verify.h"

enum { ROOM = 1 << 20, HELD = ROOM + 2 * PAGE };
enum { SMALL_STACK = 1 /* by at, of the family threads */, STACK = 1 << 20, STACK_LEFT = 32 << 10 };

struct buffers {
    uint8_t *dst, *src;
    uint8_t *back; /* what src holds when nobody has written to it */
    uint8_t value;
};

static void prepare(struct buffers *b, uint64_t seed)
{
    b->dst = map_or_die(HELD, PROT_READ | PROT_WRITE);
    b->src = map_or_die(HELD, PROT_READ | PROT_WRITE);
    pattern_fill(b->src, HELD, seed, 1);
    b->back = map_or_die(HELD, PROT_READ | PROT_WRITE);
    plain_copy(b->back, b->src, HELD);
}

/* The two in one, by the distance of the case. Returns what dst must hold after the call. */
static const uint8_t *overlapped(struct buffers *b, const struct vcase *one, uint8_t **dst, const uint8_t **src)
{
    uint8_t *low = b->dst + 64 + one->d % 64;
    const uint8_t *back = b->back + 64 + one->s % 64;
    const uint64_t reach = reach_of(one);
    plain_copy(low, back, one->n + reach);
    *dst = one->dist > 0 ? low + reach : low;
    *src = *dst - one->dist;
    return back + (*src - low);
}

/* One call on these buffers with everything checked. */
static bool checked(struct unit *unit, struct buffers *b, const struct vcase *one)
{
    bool set = is_set(unit->target);
    uint8_t *dst = b->dst + 64 + one->d % PAGE;
    const uint8_t *src = set ? NULL : b->src + 64 + one->s % PAGE;
    uint8_t c = (uint8_t)value_of(unit->target, one->c);
    if (may_overlap(unit, one)) {
        const uint8_t *model = overlapped(b, one, &dst, &src);
        if (!call_checked(unit, one, dst, src, one->n))
            return false;
        const size_t wrong = first_difference(dst, model, one->n);
        if (wrong < one->n)
            fail_byte(unit, one, dst, src, "destination", (int64_t)wrong, model[wrong], dst[wrong]);
        return wrong == one->n;
    }
    plain_fill(dst, set ? (uint8_t)~c : 0, one->n);
    if (!call_checked(unit, one, dst, src, one->n))
        return false;
    if (only_reads(unit->target))
        return true;
    size_t at = set ? first_other(dst, c, one->n) : first_difference(dst, src, one->n);
    const uint8_t *back = set ? NULL : b->back + (src - b->src);
    const size_t changed = set || at == one->n ? one->n : first_difference(src, back, one->n);
    if (changed < one->n)
        fail_byte(unit, one, dst, src, "source", (int64_t)changed, back[changed], src[changed]);
    else if (at < one->n)
        fail_byte(unit, one, dst, src, "destination", (int64_t)at, set ? c : src[at], dst[at]);
    return at == one->n;
}

static int64_t some_distance(struct unit *unit, uint64_t n)
{
    const int64_t distance = 1 + (int64_t)below(unit, n - 1);
    return next_random(&unit->random) % 2 ? distance : -distance;
}

struct worker {
    struct unit unit; /* its own record; merged at the end */
    struct buffers buffers;
    struct vcase one;
    unsigned calls;
    bool vary;
    atomic_uint *ready;
};

static void *work(void *context)
{
    struct worker *w = context;
    call_init_thread();
    atomic_fetch_add(w->ready, 1);
    while (atomic_load(w->ready) < 2)
        continue;
    for (unsigned i = 0; i < w->calls && !w->unit.failed; i++) {
        struct vcase one = w->one;
        if (w->vary) {
            static const uint16_t ceilings[] = {64, 512, 4096, 8192};
            one.n = fit(w->unit.target, below(&w->unit, ceilings[i % 4]));
            one.d = below(&w->unit, 64);
            one.s = below(&w->unit, 64);
            one.c = (int)next_random(&w->unit.random);
            one.dist = i % 8 < 4 && one.n > 1 ? some_distance(&w->unit, one.n) : 0;
        }
        w->unit.cases++;
        checked(&w->unit, &w->buffers, &one);
    }
    return NULL;
}

static void two_threads(struct unit *unit, const struct vcase *one, unsigned calls, bool vary)
{
    static struct worker workers[2];
    atomic_uint ready = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        workers[i].unit = *unit;
        workers[i].unit.cases = 0;
        workers[i].unit.random = unit->random + (unsigned)i * 77777;
        if (!workers[i].buffers.dst)
            prepare(&workers[i].buffers, one->seed + (unsigned)i);
        workers[i].one = *one;
        workers[i].one.c += i;
        workers[i].calls = calls;
        workers[i].vary = vary;
        workers[i].ready = &ready;
    }
    if (pthread_create(&threads[0], NULL, work, &workers[0]) != 0) {
        snprintf(unit->skipped, sizeof unit->skipped, "cannot start a thread");
        return;
    }
    if (pthread_create(&threads[1], NULL, work, &workers[1]) != 0)
        atomic_fetch_add(&ready, 1);
    else
        pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    for (int i = 0; i < 2; i++) {
        unit->cases += workers[i].unit.cases;
        if (!workers[i].unit.failed || unit->failed)
            continue;
        unit->failed = true;
        unit->failure = workers[i].unit.failure;
        size_t length = __builtin_strlen(unit->failure.message);
        snprintf(unit->failure.message + length, sizeof unit->failure.message - length,
                 " (while another thread ran it on other buffers)");
    }
    next_random(&unit->random);
}

/* A thread whose stack ends not far below the calls: what is beneath is closed, since a thread's own variables lie on
 * its stack as well, and take as much as they do. */
static uint8_t *stack;

static void *work_alone(void *context)
{
    struct worker *w = context;
    call_init_thread();
    uint8_t *here = (uint8_t *)__builtin_frame_address(0);
    const size_t beneath = (size_t)(here - stack) - (uintptr_t)here % PAGE - STACK_LEFT;
    mprotect(stack, beneath, PROT_NONE);
    for (unsigned i = 0; i < w->calls && !w->unit.failed; i++) {
        w->unit.cases++;
        checked(&w->unit, &w->buffers, &w->one);
    }
    mprotect(stack, beneath, PROT_READ | PROT_WRITE);
    return NULL;
}

static void small_stack(struct unit *unit, const struct vcase *one)
{
    static struct worker worker;
    if (!stack) {
        stack = map_or_die(STACK, PROT_READ | PROT_WRITE);
        prepare(&worker.buffers, one->seed);
    }
    worker.unit = *unit;
    worker.one = *one;
    worker.calls = (unsigned)one->calls;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    const bool begun = pthread_attr_setstack(&attributes, stack, STACK) == 0 &&
                       pthread_create(&thread, &attributes, work_alone, &worker) == 0;
    pthread_attr_destroy(&attributes);
    if (!begun) {
        snprintf(unit->skipped, sizeof unit->skipped, "cannot start a thread with a small stack");
        return;
    }
    pthread_join(thread, NULL);
    unit->cases = worker.unit.cases;
    unit->ordinal = worker.unit.ordinal;
    if (!worker.unit.failed)
        return;
    unit->failed = true;
    unit->failure = worker.unit.failure;
    size_t length = __builtin_strlen(unit->failure.message);
    snprintf(unit->failure.message + length, sizeof unit->failure.message - length,
             " (in a thread that has %d KiB of stack)", STACK_LEFT >> 10);
}

static void small_stacks(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed, .at = SMALL_STACK};
    for (uint64_t power = 1; power < ROOM && !unit->failed; power *= 2) {
        one.n = fit(unit->target, power + below(unit, power));
        one.d = below(unit, 64);
        one.s = below(unit, 64);
        one.c = (int)next_random(&unit->random);
        one.dist = 0;
        small_stack(unit, &one);
        one.dist = one.n > 1 ? some_distance(unit, one.n) : 0;
        if (may_overlap(unit, &one) && one.n + reach_of(&one) <= ROOM && !unit->failed)
            small_stack(unit, &one);
    }
}

static void run_threads(struct unit *unit, const struct vcase *one)
{
    if (one->at == SMALL_STACK) {
        small_stack(unit, one);
        return;
    }
    two_threads(unit, one, one->calls > 200000 ? (unsigned)one->calls : 200000, false);
}

static void generate_threads(struct unit *unit)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    unsigned calls = unit->level == LEVEL_FULL ? 200000 : unit->level == LEVEL_BRIEF ? 1500 : unit->few ? 20000 : 6000;
    two_threads(unit, &one, calls, true);
    if (!unit->failed)
        small_stacks(unit);
}

/* The step at which the second call is made, inside the signal handler, as an interrupted program's handler may. */
struct nesting {
    struct unit *unit;
    struct buffers *inner;
    const struct vcase *one;
    size_t n; /* of the second call */
    unsigned steps, at;
    bool done, right; /* the second call's result */
    uint8_t *dst;
    const uint8_t *src, *model; /* model: of moves that overlap */
};

static bool call_again(void *context, uintptr_t rip)
{
    struct nesting *nest = context;
    (void)rip;
    if (nest->steps++ < nest->at)
        return true;
    struct unit *unit = nest->unit;
    struct verify_regs regs = {.trap = 0};
    void *frame = verify_frame; /* the trampoline finds the interrupted call by it */
    uint8_t *dst = nest->dst;
    const uint8_t *src = nest->src;
    const size_t n = nest->n;
    const uint32_t value = (uint32_t)value_of(unit->target, ~nest->one->c);
    const struct target_arguments with = target_arguments(unit->target->abi, dst, src, n, value);
    regs.fourth = with.word[3];
    const uint8_t *from = nest->model ? nest->model : src; /* as it was before the call */
    const uint32_t sum = target_sum;
    call_on_step = NULL; /* from here on nothing is stepped, and a call that does not end is a hang as any other */
    nest->done = true;   /* even if this one crashes */
    void *returned = verify_trampoline(unit->target->fn, with.word[0], with.word[1], with.word[2], &regs);
    nest->right = op_result_right(unit->target->op, (uintptr_t)returned, value, from, n) &&
                  (!sums_as_well(unit->target) || op_result_right(WHERRY_OP_copy_csum, target_sum, value, from, n));
    target_sum = sum;
    verify_frame = frame;
    return false;
}

static struct buffers outer, inner;
static unsigned steps_made; /* of the last call, and whether it was interrupted so early that it had not ended */
static bool interrupted;

/* The second call is as long as the first or, by d, of another length that is likely to go the same way. Where what is
 * kept is a buffer the first shows most, where it is the length only the second. */
enum { LINE_OFFSETS = 64, LENGTHS = 16 };

static size_t second_length(const struct unit *unit, const struct vcase *one)
{
    const uint64_t which = one->d / LINE_OFFSETS % LENGTHS;
    return which % 2 ? fit(unit->target, one->n ^ (uint64_t)1 << which / 2) : one->n;
}

static void run_reentry(struct unit *unit, const struct vcase *one)
{
    if (!outer.dst) {
        prepare(&outer, one->seed);
        prepare(&inner, one->seed + 1);
    }
    bool set = is_set(unit->target);
    for (uint64_t k = 0; k < one->calls && !unit->failed; k++) {
        struct vcase second = *one;
        second.n = second_length(unit, one);
        struct nesting nest = {.unit = unit, .inner = &inner, .one = one, .n = second.n, .at = one->at};
        uint8_t c = (uint8_t)value_of(unit->target, ~one->c);
        nest.dst = inner.dst + 64;
        nest.src = inner.src + 64;
        if (may_overlap(unit, one))
            nest.model = overlapped(&inner, &second, &nest.dst, &nest.src);
        else
            plain_fill(nest.dst, set ? (uint8_t)~c : 0, second.n);
        call_hook_context = &nest;
        call_on_step = call_again;
        unit->cases++;
        bool right = checked(unit, &outer, one);
        call_on_step = NULL;
        steps_made = nest.steps;
        interrupted = nest.done;
        if (right && nest.done) {
            uint8_t *dst = nest.dst;
            const uint8_t *src = set ? NULL : nest.src, *model = nest.model ? nest.model : src;
            size_t at = only_reads(unit->target) ? second.n
                        : set                    ? first_other(dst, c, second.n)
                                                 : first_difference(dst, model, second.n);
            if (at < second.n)
                fail_byte(unit, one, dst, src, "destination", (int64_t)at, set ? c : model[at], dst[at]);
            else if (!nest.right)
                fail(unit, one, dst, src, "result", "the second call returned a wrong result");
            right = !unit->failed;
        }
        if (!right) {
            size_t length = __builtin_strlen(unit->failure.message);
            char *const end = unit->failure.message + length;
            const size_t room = sizeof unit->failure.message - length;
            if (nest.done)
                snprintf(end, room,
                         " (a signal handler made a second call, of %zu bytes, after %u instructions of the first)",
                         second.n, one->at);
            else
                snprintf(end, room,
                         " (a signal handler overwrote what is below the red zone after each of %u instructions; it "
                         "made no second call)",
                         nest.steps);
        }
    }
}

/* Small sizes, each interrupted at every instruction, or at some where there are many. */
static void everywhere(struct unit *unit)
{
    const bool many = unit->few || unit->level == LEVEL_FULL;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (uint64_t n = 1; n <= (many ? 256 : 128) && !unit->failed; n += n < 128 ? 1 : 4) {
        one.n = n;
        if (!size_fits(unit->target, n))
            continue;
        one.d = below(unit, 64);
        one.s = below(unit, 64);
        one.c = (int)next_random(&unit->random);
        one.dist = n % 4 == 3 ? some_distance(unit, n) : 0;
        one.at = UINT32_MAX; /* to its end, to count them */
        run_reentry(unit, &one);
        const unsigned steps = steps_made, budget = many ? 600 : 24;
        const unsigned tries = steps * steps <= budget ? steps : 1 + budget / (steps + 1);
        const unsigned count = tries == steps ? 2 * tries : tries + 1;
        for (unsigned k = 0; k < count && !unit->failed; k++) {
            one.at = tries == steps ? k / 2 : (unsigned)below(unit, steps);
            one.d = one.d % LINE_OFFSETS + LINE_OFFSETS * (k % 2 + 2 * below(unit, LENGTHS / 2));
            run_reentry(unit, &one);
        }
    }
}

/* What only a large call keeps: a buffer of its own that takes no smaller one, or the length for its last part.
 * Interrupted within the first few thousand instructions, which leave something in it. */
static void large_calls(struct unit *unit)
{
    const unsigned rounds = unit->level == LEVEL_FULL ? 8 : unit->few ? 4 : 1;
    struct vcase one = {.calls = 1, .seed = unit->seed};
    for (uint64_t power = 8192; power < ROOM; power *= 2)
        for (unsigned k = 0; k < (power < 65536 ? 8 : 4) * rounds && !unit->failed; k++) {
            one.n = fit(unit->target, power + power / 4 * (k / 2 % 4) + below(unit, power / 4));
            one.at = k % 2 ? 64 + (unsigned)below(unit, rounds > 1 ? 2048 : 512) : (unsigned)below(unit, 64);
            one.d = below(unit, LINE_OFFSETS) + LINE_OFFSETS * below(unit, LENGTHS);
            one.s = below(unit, 64);
            one.c = (int)next_random(&unit->random);
            one.dist = k / 8 % 2 ? (int64_t)below(unit, 512) - 256 : 0;
            run_reentry(unit, &one);
        }
}

static void generate_reentry(struct unit *unit)
{
    if (unit->level != LEVEL_BRIEF) {
        everywhere(unit);
        large_calls(unit);
    }
    struct vcase one = {.calls = 1, .seed = unit->seed};
    unsigned count = unit->level == LEVEL_FULL ? 4000 : unit->level == LEVEL_BRIEF ? 60 : unit->few ? 600 : 200;
    for (unsigned k = 0; k < count && !unit->failed; k++) {
        one.n = fit(unit->target, 1 + below(unit, k % 3 == 0 ? 8192 : 256));
        one.at = (unsigned)below(unit, k / 3 % 2 ? 16 : 200); /* by itself, not tied to the size */
        one.d = below(unit, LINE_OFFSETS) + LINE_OFFSETS * below(unit, LENGTHS);
        one.s = below(unit, 64);
        one.c = (int)next_random(&unit->random);
        one.dist = k % 4 == 1 && one.n > 1 ? some_distance(unit, one.n) : 0;
        run_reentry(unit, &one);
        if (interrupted || unit->failed || !steps_made)
            continue;
        one.at = (unsigned)below(unit, steps_made);
        run_reentry(unit, &one);
    }
}

static const char *lacks_room(const struct vcase *one) { return one->n + reach_of(one) > ROOM ? "1 MiB" : NULL; }
_Static_assert(ROOM == 1 << 20, "said above");

const struct family family_threads = {
    .name = "threads",
    .what = "two threads at once on buffers of their own; one with a small stack",
    .applies = any_target,
    .generate = generate_threads,
    .run = run_threads,
    .lacks_room = lacks_room,
};
const struct family family_reentry = {
    .name = "reentry",
    .what = "a signal handler calls the routine in the middle of a call",
    .applies = any_target,
    .generate = generate_reentry,
    .run = run_reentry,
    .lacks_room = lacks_room,
};
