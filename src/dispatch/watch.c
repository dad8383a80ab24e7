#include "dispatch/watch.h"

#include "dispatch/dispatch.h"

/* Calls between two looks: at least, and after many long looks that changed nothing. */
enum { BETWEEN_LEAST = 1 << 12, BETWEEN_MOST = 1 << 16 };
enum { STRANGE_CALLS = 1 << 12 }; /* of other threads; so many later a look is given up */

struct wherry_watch wherry_watch_copies, wherry_watch_sets;

#define GET(object) atomic_load_explicit(&(object), memory_order_relaxed)
#define PUT(object, value) atomic_store_explicit(&(object), (value), memory_order_relaxed)

static _Atomic(signed char) *choice_of(const struct wherry_watch *watch)
{
    return watch == &wherry_watch_copies ? &wherry_copy_choice : &wherry_set_choice;
}

static signed char found(const struct wherry_watch *watch)
{
    return GET(watch->together) ? WHERRY_CHOICE_AVX512_TOGETHER : WHERRY_CHOICE_AVX512;
}

void wherry_watch_use(struct wherry_watch *watch, enum wherry_watching watching)
{
    PUT(watch->watching, watching);
    PUT(*choice_of(watch), watching == HELD_TOGETHER ? WHERRY_CHOICE_AVX512_TOGETHER
                           : watching == HELD_APART  ? WHERRY_CHOICE_AVX512
                           : GET(watch->looking)     ? WHERRY_CHOICE_AVX512_LOOK
                                                     : found(watch));
}

/* What the branches tell apart: 1 to 8 blocks of 64 bytes, then 10, 12, 14 and 16. */
enum { MOST = 16, BEYOND = 255 };
static uint8_t blocks_of(size_t n)
{
    if (n > 1024)
        return BEYOND;
    return (uint8_t)(n <= 64 ? 1 : n <= 512 ? (n + 63) / 64 : (n + 127) / 128 * 2);
}

/* A predictor: what came last in a context, and how often in a row, to 3. */
enum { CONTEXTS = 64 };
struct predictor {
    uint8_t last[CONTEXTS], sure[CONTEXTS];
    unsigned wrong;
};
static void predict(struct predictor *p, unsigned context, uint8_t outcome)
{
    uint8_t *last = &p->last[context % CONTEXTS], *sure = &p->sure[context % CONTEXTS];
    if (*last == outcome) {
        *sure = (uint8_t)(*sure + (*sure < 3));
    } else {
        p->wrong += *last != 0; /* the first of a context says nothing */
        if (*sure)
            --*sure;
        else
            *last = outcome;
    }
}

/* Wrong guesses of the better of two predictors, one that goes by the caller alone and one that knows the two calls
 * before as well. */
static unsigned guessed_wrong(const struct wherry_watch *watch)
{
    struct predictor by_caller, by_history;
    unsigned history = 0;
    for (int i = 0; i < CONTEXTS; i++)
        by_caller.last[i] = by_caller.sure[i] = by_history.last[i] = by_history.sure[i] = 0;
    by_caller.wrong = by_history.wrong = 0;
    for (int i = 0; i < WATCH_CALLS; i++) {
        const uint8_t blocks = watch->call[i].blocks;
        const unsigned caller = watch->call[i].caller;
        if (blocks != BEYOND) {
            predict(&by_caller, caller, blocks);
            predict(&by_history, caller * 5 + history * 7, blocks);
        }
        history = history % 29 * 29 + blocks;
    }
    return by_caller.wrong < by_history.wrong ? by_caller.wrong : by_history.wrong;
}

/* A wrong guess costs as much as it costs some seven calls to go together; between the two verdicts there is room, so
 * that they do not take turns by chance. */
static void judge(struct wherry_watch *watch)
{
    const bool before = GET(watch->together);
    const uint32_t between = GET(watch->between);
    unsigned calls = 0;
    for (int i = 0; i < WATCH_CALLS; i++)
        calls += watch->call[i].blocks != BEYOND;
    const bool now = guessed_wrong(watch) * (before ? 10 : 7) > calls;
    PUT(watch->together, now);
    PUT(watch->between, now != before ? BETWEEN_LEAST : between < BETWEEN_MOST ? 2 * between : between);
}

/* Do so few calls bear the verdict out? All alike, and apart; or mixed, and together. */
static bool plain(const struct wherry_watch *watch)
{
    unsigned changes = 0;
    uint8_t last = BEYOND;
    for (int i = 0; i < WATCH_FEW; i++) {
        const uint8_t blocks = watch->call[i].blocks;
        if (blocks == BEYOND)
            continue;
        changes += last != BEYOND && last != blocks;
        last = blocks;
    }
    return GET(watch->together) ? changes >= WATCH_FEW / 4 : changes == 0;
}

static void end(struct wherry_watch *watch)
{
    PUT(watch->left, GET(watch->between));
    signed char looking = WHERRY_CHOICE_AVX512_LOOK; /* else another choice was made meanwhile */
    atomic_compare_exchange_strong(choice_of(watch), &looking, found(watch));
    PUT(watch->looking, false);
}

static void record(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack)
{
    if (stack - GET(watch->counting) >= WATCH_STACK) {
        if (atomic_fetch_add_explicit(&watch->strange, 1, memory_order_relaxed) == STRANGE_CALLS)
            end(watch);
        return;
    }
    const uint32_t i = GET(watch->recorded);
    if (i >= WATCH_CALLS)
        return;
    watch->call[i].caller = (uint16_t)(caller ^ caller >> 16);
    watch->call[i].blocks = blocks_of(n);
    PUT(watch->recorded, i + 1);
    if (i + 1 == WATCH_FEW && plain(watch)) {
        end(watch);
    } else if (i + 1 == WATCH_CALLS) {
        judge(watch);
        end(watch);
    }
}

static void begin(struct wherry_watch *watch)
{
    if (atomic_exchange(&watch->looking, true))
        return;
    PUT(watch->recorded, 0);
    PUT(watch->strange, 0);
    signed char choice = found(watch);
    if (!atomic_compare_exchange_strong(choice_of(watch), &choice, WHERRY_CHOICE_AVX512_LOOK))
        PUT(watch->looking, false);
}

void wherry_watch_look(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack)
{
    if (GET(*choice_of(watch)) == WHERRY_CHOICE_AVX512_LOOK) {
        record(watch, n, caller, stack);
        return;
    }
    if (GET(watch->between) == 0)
        PUT(watch->between, BETWEEN_LEAST); /* the first look of all */
    PUT(watch->counting, stack - WATCH_STACK / 2);
    PUT(watch->left, GET(watch->between));
    if (GET(watch->watching) == WATCHING)
        begin(watch);
}
