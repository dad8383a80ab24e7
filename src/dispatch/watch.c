#include "dispatch/watch.h"
#include "dispatch/choice.h"

#include "dispatch/dispatch.h"

/* Calls between two looks: at least, and after many long looks that changed nothing. */
enum { BETWEEN_LEAST = 1 << 12, BETWEEN_MOST = 1 << 16 };
enum { STRANGE_CALLS = 1 << 12 }; /* of other threads; so many later a look is given up */
enum { ASK_IN_VAIN = 16 };        /* times before another thread counts */

/* Factors whose hashes pick 7 to 9 of any 2,048 calls whose sizes or addresses ascend by 1, 2, 4 ... 4096, 12, 24, 48
 * or 192 bytes (the first: 5 to 12). Most picked of some such rows none, as did powers of the first. */
static const uint32_t factors[] = {0x9e3779b1, 0x2b14eb3d, 0x4e110cd9, 0x5b55f125,
                                   0x8966347d, 0xad238499, 0xb71aa57f, 0xbe6297a1};
enum { FACTORS = sizeof factors / sizeof *factors };

struct wherry_watch wherry_watch_copies = {.factor = 0x9e3779b1}, wherry_watch_sets = {.factor = 0x9e3779b1};

#define GET(object) atomic_load_explicit(&(object), memory_order_relaxed)
#define PUT(object, value) atomic_store_explicit(&(object), (value), memory_order_relaxed)

static _Atomic(uint64_t) *choice_of(const struct wherry_watch *watch)
{
    return watch == &wherry_watch_copies ? &wherry_copy_choice : &wherry_set_choice;
}

static uint64_t word_of(const struct wherry_watch *watch, enum wherry_choice choice)
{
    return watch == &wherry_watch_copies ? wherry_copy_word(choice) : wherry_set_word(choice);
}

static enum wherry_choice found(const struct wherry_watch *watch)
{
    return GET(watch->together) ? WHERRY_CHOICE_AVX512_TOGETHER : WHERRY_CHOICE_AVX512;
}

/* The next step of a search is after so many calls, or sooner, when what is sought comes. */
static void arm(struct wherry_watch *watch, uint32_t calls)
{
    PUT(watch->armed, calls - 1);
    PUT(watch->steps, calls - 1);
}

/* As many sizes as the hash holds come before the first mark. */
enum { SEARCH_FIRST = 64, SEARCH_HELD = 3 };
static void prepare_search(struct wherry_watch *watch)
{
    PUT(watch->at, 0);
    PUT(watch->mark, 0);
    PUT(watch->period, 0);
    PUT(watch->matches, 0);
    PUT(watch->path, 0);
    PUT(watch->sought, UINT64_MAX);
    PUT(watch->strange, 0);
    PUT(watch->search_together, GET(watch->together));
    arm(watch, SEARCH_FIRST);
}

static enum wherry_choice choice_by(struct wherry_watch *watch)
{
    const bool looking = GET(watch->looking), recorded = GET(watch->recorded) >= WATCH_CALLS;
    switch (GET(watch->watching)) {
    case HELD_TOGETHER:
        return WHERRY_CHOICE_AVX512_TOGETHER;
    case HELD_APART:
        return WHERRY_CHOICE_AVX512;
    case HELD_LOOKING:
        return WHERRY_CHOICE_AVX512_LOOK;
    case HELD_SEARCHING:
        prepare_search(watch);
        arm(watch, SEARCH_HELD);
        return WHERRY_CHOICE_AVX512_SEARCH;
    case WATCHING:
        break;
    }
    if (looking && recorded)
        prepare_search(watch); /* anew: one that was held may have come between */
    return !looking ? found(watch) : recorded ? WHERRY_CHOICE_AVX512_SEARCH : WHERRY_CHOICE_AVX512_LOOK;
}

void wherry_watch_use(struct wherry_watch *watch, enum wherry_watching watching)
{
    PUT(watch->watching, watching);
    PUT(watch->left, 0); /* a look that is held counts down beyond it */
    PUT(*choice_of(watch), word_of(watch, choice_by(watch)));
}

/* What the branches tell apart: 1 to 8 blocks of 64 bytes, then 10, 12, 14 and 16. */
enum { MOST = 16, BEYOND = 255 };
static uint8_t blocks_of(size_t n)
{
    if (n > 1024)
        return BEYOND;
    return (uint8_t)(n <= 64 ? 1 : n <= 512 ? (n + 63) / 64 : (n + 127) / 128 * 2);
}

/* A predictor that goes by the caller and so many calls before: what came last in that context, and how often in a row,
 * to 3. A context that was not met before says nothing. */
enum { CONTEXTS = 128, PREDICTORS = 3, KNOWN_LEAST = 32 };
static const uint8_t memory[PREDICTORS] = {0, 2, 4};
struct predictor {
    struct {
        uint8_t tag, last, sure;
    } context[CONTEXTS];
    uint32_t known, wrong;
};
static void predict(struct predictor *p, uint32_t context, uint8_t outcome)
{
    const uint32_t hash = context * 0x9e3779b1u;
    const uint8_t tag = (uint8_t)(hash >> 16 | 1), at = (uint8_t)(hash >> 25);
    if (p->context[at].tag != tag) {
        p->context[at].tag = tag;
        p->context[at].last = outcome;
        p->context[at].sure = 0;
        return;
    }
    p->known++;
    if (p->context[at].last == outcome) {
        p->context[at].sure = (uint8_t)(p->context[at].sure + (p->context[at].sure < 3));
        return;
    }
    p->wrong++;
    if (p->context[at].sure)
        p->context[at].sure--;
    else
        p->context[at].last = outcome;
}

/* How many of 64 guesses would be wrong, by the best of the predictors that know enough. */
static unsigned guessed_wrong(const struct wherry_watch *watch)
{
    unsigned least = 0;
    for (int which = 0, judges = 0; which < PREDICTORS; which++) {
        struct predictor p;
        for (int i = 0; i < CONTEXTS; i++)
            p.context[i].tag = 0;
        p.known = p.wrong = 0;
        uint32_t history = 0;
        for (int i = 0; i < WATCH_CALLS; i++) {
            const uint8_t blocks = watch->call[i].blocks;
            const uint32_t before = memory[which] ? history & ((1u << 5 * memory[which]) - 1) : 0;
            if (blocks != BEYOND)
                predict(&p, before * 31 + watch->call[i].caller, blocks);
            history = history << 5 | (blocks & 31);
        }
        if (p.known < KNOWN_LEAST)
            continue;
        const unsigned wrong = p.wrong * 64 / p.known;
        if (!judges++ || wrong < least)
            least = wrong;
    }
    return least;
}

static void decide(struct wherry_watch *watch, bool together)
{
    const uint32_t between = GET(watch->between);
    const bool changes = GET(watch->together) != together;
    PUT(watch->together, together);
    PUT(watch->known, 0);
    PUT(watch->between, changes ? BETWEEN_LEAST : between < BETWEEN_MOST ? 2 * between : BETWEEN_MOST);
}

static void end(struct wherry_watch *watch)
{
    PUT(watch->left, GET(watch->between));
    /* Else another choice was made meanwhile. */
    uint64_t looking = word_of(watch, WHERRY_CHOICE_AVX512_LOOK),
             searching = word_of(watch, WHERRY_CHOICE_AVX512_SEARCH);
    if (!atomic_compare_exchange_strong(choice_of(watch), &looking, word_of(watch, found(watch))))
        atomic_compare_exchange_strong(choice_of(watch), &searching, word_of(watch, found(watch)));
    PUT(watch->looking, false);
}

/* How long a search goes on: a period is found by the next power of two, and what a Zen 4 knows by heart is 16,384
 * sizes. The first ones are shorter, since they may be for nothing, and after each many times as many calls pass. */
enum { LIMIT_FIRST = 1 << 13, LIMIT_MOST = 1 << 15, LIMIT_GROWS = 4, PATIENCE = 32, PATIENCE_MOST = 1 << 23 };
/* So many calls have to have come again, by chance or not; so many times as long as the search was its verdict stands.
 */
enum { RECURRING_LEAST = 1024, RECURRING_FOR = 32, RECURRING_MOST = 1 << 20 };

static void search(struct wherry_watch *watch)
{
    PUT(watch->waited, 0);
    if (GET(watch->limit) == 0)
        PUT(watch->limit, LIMIT_FIRST);
    prepare_search(watch);
    uint64_t looking = word_of(watch, WHERRY_CHOICE_AVX512_LOOK);
    if (!atomic_compare_exchange_strong(choice_of(watch), &looking, word_of(watch, WHERRY_CHOICE_AVX512_SEARCH)))
        PUT(watch->looking, false);
}

static void search_ends(struct wherry_watch *watch, bool recurring)
{
    const uint32_t limit = GET(watch->limit), patience = GET(watch->patience);
    if (GET(watch->together) == recurring)
        decide(watch, !recurring);
    PUT(watch->known, recurring ? GET(watch->period) : 0);
    if (recurring) {
        const uint32_t between = GET(watch->at) * RECURRING_FOR;
        PUT(watch->between, between < RECURRING_MOST ? between : RECURRING_MOST);
        PUT(watch->patience, LIMIT_FIRST * PATIENCE);
    } else if (limit < LIMIT_MOST) {
        PUT(watch->patience, limit * PATIENCE);
        PUT(watch->limit, limit * LIMIT_GROWS);
    } else {
        PUT(watch->patience, patience < PATIENCE_MOST ? 2 * patience : PATIENCE_MOST);
    }
    end(watch);
}

/* Calls come again where the hash is what it was at the mark, and twice as far from there, and so on. Where it is not,
 * the mark moves on to where as many calls lie behind it as before it. */
static void step(struct wherry_watch *watch)
{
    const uint32_t armed = GET(watch->armed), steps = GET(watch->steps);
    const bool again = GET(watch->path) == GET(watch->sought);
    if (steps == armed || !(again || steps == UINT32_MAX))
        return; /* the call was picked or counted for a look besides */
    if (GET(watch->watching) == HELD_SEARCHING) {
        PUT(watch->search_together, !GET(watch->search_together));
        arm(watch, SEARCH_HELD);
        return;
    }
    const uint32_t at = GET(watch->at) + (armed - steps), limit = GET(watch->limit);
    const uint32_t distance = at - GET(watch->mark);
    PUT(watch->at, at);
    PUT(watch->mark, at);
    if (again) {
        const uint32_t matches = distance == GET(watch->period) ? GET(watch->matches) + 1 : 1;
        PUT(watch->matches, matches);
        PUT(watch->period, distance);
        if ((uint64_t)matches * distance >= RECURRING_LEAST) {
            search_ends(watch, true);
            return;
        }
    } else {
        PUT(watch->period, 0);
        PUT(watch->sought, GET(watch->path));
    }
    const uint32_t known = GET(watch->known);
    if (at >= limit)
        search_ends(watch, false);
    else if (at == SEARCH_FIRST && at < known)
        arm(watch, known); /* most likely that again */
    else
        arm(watch, again ? distance : at);
}

/* A wrong guess costs as much as it costs some six calls to go together; between the two verdicts there is room, so
 * that they do not take turns by chance. */
enum { WRONG_ENTERS = 12, WRONG_STAYS = 7 };
static void judge(struct wherry_watch *watch)
{
    const unsigned wrong = guessed_wrong(watch);
    const bool foreseen = wrong < (GET(watch->together) ? WRONG_STAYS : WRONG_ENTERS),
               recurred = GET(watch->known) != 0;
    if (foreseen || !recurred)
        decide(watch, !foreseen);
    if (!foreseen && (recurred || GET(watch->waited) >= GET(watch->patience)))
        search(watch);
    else
        end(watch);
}

/* Do so few calls bear the verdict out? All alike, and apart; or mixed, and together, which may be mixed in a way that
 * can be foreseen, so that one look in so many goes on. */
enum { BRIEF_MOST = 16 };
static bool plain(struct wherry_watch *watch)
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
    const uint32_t looks = GET(watch->looks);
    PUT(watch->looks, looks + 1);
    return GET(watch->together) ? changes >= WATCH_FEW / 4 && looks % BRIEF_MOST != BRIEF_MOST - 1 : changes == 0;
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
    }
}

static void search_by(struct wherry_watch *watch, uintptr_t stack)
{
    if (stack - GET(watch->counting) < WATCH_STACK)
        step(watch);
    else if (atomic_fetch_add_explicit(&watch->strange, 1, memory_order_relaxed) == STRANGE_CALLS / WATCH_PICKED)
        end(watch);
}

static void begin(struct wherry_watch *watch)
{
    if (atomic_exchange(&watch->looking, true))
        return;
    PUT(watch->recorded, 0);
    PUT(watch->strange, 0);
    const uint32_t waited = GET(watch->waited);
    PUT(watch->waited, waited < PATIENCE_MOST ? waited + GET(watch->between) : PATIENCE_MOST);
    const uint32_t begun = GET(watch->begun);
    PUT(watch->begun, begun + 1);
    PUT(watch->factor, factors[(begun + 1) % FACTORS]);
    uint64_t choice = word_of(watch, found(watch));
    if (!atomic_compare_exchange_strong(choice_of(watch), &choice, word_of(watch, WHERRY_CHOICE_AVX512_LOOK)))
        PUT(watch->looking, false);
}

void wherry_watch_look(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack)
{
    const enum wherry_choice choice = wherry_choice_in(GET(*choice_of(watch)));
    if (choice == WHERRY_CHOICE_AVX512_LOOK) {
        record(watch, n, caller, stack);
        return;
    }
    if (choice == WHERRY_CHOICE_AVX512_SEARCH) {
        search_by(watch, stack);
        return;
    }
    const uint64_t counting = GET(watch->counting);
    if (counting && stack - counting >= WATCH_STACK) {
        if (atomic_fetch_add_explicit(&watch->asked, 1, memory_order_relaxed) % ASK_IN_VAIN != ASK_IN_VAIN - 1)
            return;
    } else if (counting && choice == WHERRY_CHOICE_AVX512) {
        /* Below 0 where a call was counted all the same: the routines of sizes together also do copies that overlap. */
        const int32_t left = (int32_t)GET(watch->left);
        if (left > WATCH_PICKED) {
            PUT(watch->left, (uint32_t)(left - WATCH_PICKED));
            return;
        }
    }
    if (GET(watch->between) == 0)
        PUT(watch->between, BETWEEN_LEAST); /* the first look of all */
    PUT(watch->counting, stack - WATCH_STACK / 2);
    PUT(watch->left, GET(watch->between));
    if (GET(watch->watching) == WATCHING)
        begin(watch);
}
