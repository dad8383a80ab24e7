/* Looks at whether sizes can be foreseen (dispatch/watch.h): however they are interrupted, the next find out what is
 * so. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "dispatch/choice.h"
#include "dispatch/dispatch.h"
#include "dispatch/watch.h"
#include "scene.h"
#include "wherry.h"

enum { MOST = 1024, PLACES = 4096, STRANGE = 5000, OFTEN = 50000, CALLS = 150000 };

static uint8_t from[PLACES + MOST], to[PLACES + MOST];
static _Thread_local uint64_t state = 88172645463325252u;
static unsigned any(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % below;
}

static __attribute__((noinline)) void copy(size_t n) { wherry_memcpy(to + any(PLACES), from + any(PLACES), n); }
static void any_size(void) { copy(any(MOST + 1)); }
static void any_sizes(unsigned calls)
{
    while (calls-- > 0)
        any_size();
}

static struct wherry_watch *const watch = &wherry_watch_copies;

static void begin(void)
{
    if (wherry_dispatch_isa() != WHERRY_ISA_AVX512)
        _exit(SKIPPED);
    watch->slow_from = UINT32_MAX; /* each instruction takes long here */
}

/* One call before the first verdict, which is another than what was so. */
static void look(void)
{
    begin();
    while (watch->recorded != WATCH_CALLS - 1 || watch->together)
        any_size();
}

/* One call before the next look. */
static void count(void)
{
    begin();
    while (!watch->together || watch->looking || watch->left)
        any_size();
}

static void many_strange(void) { any_sizes(STRANGE); }
static void go_by_verdicts(void) { wherry_watch_use(watch, WATCHING); }
static void hold(void) { wherry_watch_use(watch, HELD_TOGETHER); }
static void begin_a_look(void)
{
    do
        any_size();
    while (!watch->looking);
}
static void several_looks(void) { any_sizes(OFTEN); }
static void nothing(void) {}

static bool found(bool together)
{
    const enum wherry_choice choice = wherry_choice_in(wherry_copy_choice);
    return watch->together == together && (choice == WHERRY_CHOICE_AVX512_LOOK ||
                                           choice == (together ? WHERRY_CHOICE_AVX512_TOGETHER : WHERRY_CHOICE_AVX512));
}

static bool finds_out(void)
{
    any_sizes(CALLS);
    if (!found(true))
        return false;
    for (unsigned i = 0; i < CALLS; i++)
        copy(600);
    return found(false);
}

/* As in the child of a fork by another thread than the one that was at it. */
static void *finds_out_here(void *is)
{
    *(bool *)is = finds_out();
    return NULL;
}
static bool finds_out_elsewhere(void)
{
    pthread_t thread;
    bool is = false;
    return !pthread_create(&thread, NULL, finds_out_here, &is) && !pthread_join(thread, NULL) && is;
}

static bool held(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        copy(600);
    return wherry_choice_in(wherry_copy_choice) == WHERRY_CHOICE_AVX512_TOGETHER;
}

/* A verdict takes some ten thousand instructions. */
#define VERDICT 200, 1999
const struct scene scenes_of_looks[] = {
    {"others-in-verdict", look, any_size, THREAD, many_strange, finds_out, true, VERDICT},
    {"plan-in-verdict", look, any_size, THREAD, go_by_verdicts, finds_out, true, VERDICT},
    {"left-in-verdict", look, any_size, HANDLER, nothing, finds_out, false, VERDICT},
    {"fork-in-verdict", look, any_size, HANDLER, nothing, finds_out_elsewhere, false, VERDICT},
    {"others-in-look", count, any_size, THREAD, several_looks, finds_out, true, 0, 0},
    {"plan-in-look", count, any_size, THREAD, go_by_verdicts, finds_out, true, 0, 0},
    {"fork-in-look", count, any_size, HANDLER, nothing, finds_out_elsewhere, false, 0, 0},
    {"hold-in-look", count, any_size, THREAD, hold, held, true, 0, 0},
    {"begin-in-plan", count, go_by_verdicts, THREAD, begin_a_look, finds_out, true, 0, 0},
    {"look-in-plan", look, go_by_verdicts, THREAD, several_looks, finds_out, true, 0, 0},
    {"count-in-plan", count, go_by_verdicts, THREAD, several_looks, finds_out, true, 0, 0},
    {0},
};
