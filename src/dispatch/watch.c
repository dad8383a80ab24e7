#include "dispatch/watch.h"
#include "dispatch/choice.h"

#include "dispatch/dispatch.h"
#include "routines/thresholds.h"

/* Calls between two looks: at least, and after many that changed nothing. Of 4,096 calls one look, of which a fifth of
 * the calls are timed, takes a cycle of each of them (Zen 5), of 65,536 what cannot be told. */
enum { BETWEEN_LEAST = 1 << 12, BETWEEN_MOST = 1 << 16 };
enum { STRANGE_CALLS = 1 << 12 }; /* of other threads, or too many; so many later a look is given up */
enum { ASK_IN_VAIN = 16 };        /* times before another thread counts */
enum { BEGIN_IN_VAIN = 4 };       /* times before whoever was at it is gone: its thread, or by a fork */

/* Factors whose hashes pick 5 to 12 of any 2,048 calls that ascend by steps to 4096 that are an odd number to 17, or
 * 25, 33 or 75, times a power of two. Most picked of some such rows none, as did powers of one that did not. */
#define FIRST_FACTOR 0xb44151a9
const uint32_t wherry_watch_factors[WATCH_FACTORS] = {FIRST_FACTOR, 0x630488c3, 0xf814c96f, 0x30c618c3,
                                                      0xac1b74b1,   0xa90232ab, 0xa47b5c87, 0x8708cafd};

/* Between what a byte takes from the last level of any cache and from memory, with what it takes to read the counter
 * (Zen 4: to 130 and from 420 on). A tick is 0.25 to 0.5 ns; where a hypervisor makes it longer, nothing is slow. */
enum { SLOW_FROM = 200 };

struct wherry_watch wherry_watch_copies = {.factor = FIRST_FACTOR, .slow_from = SLOW_FROM},
                    wherry_watch_sets = {.factor = FIRST_FACTOR, .slow_from = SLOW_FROM};

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

void wherry_watch_use(struct wherry_watch *watch, enum wherry_watching watching)
{
    PUT(watch->watching, watching);
    PUT(watch->left, 0); /* a look that is held counts down beyond it */
    const enum wherry_choice choice = watching == HELD_TOGETHER                         ? WHERRY_CHOICE_AVX512_TOGETHER
                                      : watching == HELD_APART                          ? WHERRY_CHOICE_AVX512
                                      : watching == HELD_LOOKING || GET(watch->looking) ? WHERRY_CHOICE_AVX512_LOOK
                                                                                        : found(watch);
    PUT(*choice_of(watch), word_of(watch, choice));
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

/* Whether 64 sizes in a row are there that one of some fourteen earlier looks has seen; then enters some of its own,
 * where their hashes say, in place of what was there. */
enum { IN_A_ROW = 64, ENTERED_EVERY = 24 };
static uint64_t row_on(uint64_t row, uint16_t size) { return 2 * row + (size + 1ull) * 0x9e3779b97f4a7c15u; }
static uint64_t *place_of(struct wherry_watch *watch, uint64_t row)
{
    return &watch->seen[row * 0x9e3779b97f4a7c15u >> 57];
}
_Static_assert(WATCH_SEEN == 1 << (64 - 57), "as many places as hashes tell apart");
static bool seen_again(struct wherry_watch *watch)
{
    bool again = false;
    uint64_t row = 0;
    for (int i = 0; i < WATCH_CALLS; i++) {
        row = row_on(row, watch->call[i].size);
        again |= i >= IN_A_ROW - 1 && *place_of(watch, row) == row;
    }
    row = 0;
    for (int i = 0; i < WATCH_CALLS; i++) {
        row = row_on(row, watch->call[i].size);
        if (i >= IN_A_ROW - 1 && (i - (IN_A_ROW - 1)) % ENTERED_EVERY == 0)
            *place_of(watch, row) = row;
    }
    return again;
}

/* Of sizes with a period of 4,096 calls 94 of 100 looks meet some that were seen, of 16,384 half, of 65,536 15. A Zen 4
 * (stores_halved) learns 16,384 of them, so there five of twelve looks tell that sizes come again; and that none does
 * for as long as should have brought four, or no more than a fourth do, that they do not, or not so soon. A Zen 5
 * learns 4,096, and copies to 1024 bytes whose sizes come again after 8,192 take 1.8 of the time when they are held
 * apart (docs/performance.md): there, and where nobody has measured it, all but one of 24 looks must, and most from
 * then on. */
enum { AGAIN_LOOKS = 32, AGAIN_LEAVES = 4 };
struct again {
    uint32_t enters, within; /* so many of so many looks */
    uint32_t least;          /* of AGAIN_LOOKS */
    uint32_t before;         /* what is thought of the looks before those: that as many had met some */
};
static const struct again many = {5, 12, 8, 0x55555000u}, few = {23, 24, 26, 0xff000000u};
static const struct again *again_of_cpu(void) { return wherry_thresholds.stores_halved ? &many : &few; }
static uint32_t ones(uint32_t word) /* without libgcc, which the drop-in has not */
{
    uint32_t count = 0;
    for (; word; word &= word - 1)
        count++;
    return count;
}
static bool missed(const struct wherry_watch *watch, uint32_t expected)
{
    const uint32_t since = watch->again ? (uint32_t)__builtin_ctz(watch->again) : AGAIN_LOOKS;
    return since * ones(watch->again) > expected * (AGAIN_LOOKS - since) || since == AGAIN_LOOKS;
}
static bool comes_again(struct wherry_watch *watch)
{
    const struct again *own = again_of_cpu();
    if (watch->by_heart)
        return !missed(watch, AGAIN_LEAVES) && ones(watch->again) >= own->least;
    const uint32_t lately = watch->again & ((1u << own->within) - 1);
    if (ones(lately) < own->enters)
        return false;
    watch->again = own->before | lately;
    return true;
}

/* Some calls of a look are timed. Calls that wait for memory lose some 11 ns together, those that do not 2 ns apart, so
 * they go apart from a fourth of them on, and together again below an eighth. Where a hypervisor or a debugger answers
 * for the counter, a look would take milliseconds: then none is timed any more. */
enum { TIMED_EVERY = 5, COLD_ENTERS = WATCH_CALLS / TIMED_EVERY / 4, COLD_STAYS = COLD_ENTERS / 2 };
enum { COLD_FEW = WATCH_FEW / TIMED_EVERY / 4, CLOCK_TRIES = 3, CLOCK_SLOW = 400 };
static uint32_t ticks(void)
{
    uint32_t low;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low) : : "rdx", "memory");
    return low;
}
static bool clock_answers(void)
{
    for (int i = 0; i < CLOCK_TRIES; i++) {
        const uint32_t before = ticks();
        if (ticks() - before < CLOCK_SLOW)
            return true;
    }
    return false;
}
static bool waits(const struct wherry_watch *watch, const volatile uint8_t *at)
{
    const uint32_t before = ticks();
    (void)*at;
    return ticks() - before >= watch->slow_from;
}

/* Of so many looks at sizes together one is long, and where they are rare one of so few. */
enum { BRIEF_MOST = 16, BRIEF_LEAST = 4 };

/* A wrong guess costs as much as it costs some six calls to go together; between the two verdicts there is room, so
 * that they do not take turns by chance. While it is open whether sizes come again looks follow each other soon. */
enum { WRONG_ENTERS = 12, WRONG_STAYS = 7 };
enum { UNFORESEEN_FIRST = 8, AGAIN_LATELY = 0xff };
static bool open_yet(const struct wherry_watch *watch)
{
    return watch->unforeseen < UNFORESEEN_FIRST || watch->again & AGAIN_LATELY;
}
static void look_more_seldom(struct wherry_watch *watch)
{
    const uint32_t between = GET(watch->between);
    if (between < BETWEEN_MOST)
        PUT(watch->between, 2 * between);
}
static void judge(struct wherry_watch *watch)
{
    const bool before = GET(watch->together);
    const uint32_t between = GET(watch->between);
    const bool foreseen = guessed_wrong(watch) < (before ? WRONG_STAYS : WRONG_ENTERS);
    watch->again = foreseen ? 0 : watch->again << 1 | seen_again(watch);
    watch->unforeseen = foreseen ? 0 : watch->unforeseen < UNFORESEEN_FIRST ? watch->unforeseen + 1 : UNFORESEEN_FIRST;
    watch->by_heart = !foreseen && comes_again(watch);
    watch->cold = watch->slow >= (watch->cold ? COLD_STAYS : COLD_ENTERS);
    const bool now = !foreseen && !watch->by_heart && !watch->cold;
    PUT(watch->together, now);
    if (now != before || (now && open_yet(watch)))
        PUT(watch->between, BETWEEN_LEAST);
    else if (watch->by_heart && missed(watch, 1))
        PUT(watch->between, between / 4 > BETWEEN_LEAST ? between / 4 : BETWEEN_LEAST);
    else
        look_more_seldom(watch);
}

/* Do so few calls bear the verdict out? All alike, and apart; or mixed, and together, which may be mixed in a way that
 * can be foreseen, so that one look in so many goes on. */
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
    if (!GET(watch->together)) {
        if (changes == 0)
            look_more_seldom(watch);
        return changes == 0;
    }
    const uint32_t brief = GET(watch->between) < BETWEEN_MOST ? BRIEF_MOST : BRIEF_LEAST;
    return changes >= WATCH_FEW / 4 && looks % brief != brief - 1 && !open_yet(watch) && watch->slow < COLD_FEW;
}

/* Not always as many calls further, which would meet a period of as many at the same places of it, or never at those.
 */
static uint32_t to_next(const struct wherry_watch *watch)
{
    const uint32_t between = GET(watch->between);
    return between - (between >> 10) * (GET(watch->begun) * 0x9e3779b1u >> 24);
}

static void end(struct wherry_watch *watch)
{
    PUT(watch->left, to_next(watch));
    uint64_t looking = word_of(watch, WHERRY_CHOICE_AVX512_LOOK); /* else another choice was made meanwhile */
    atomic_compare_exchange_strong(choice_of(watch), &looking, word_of(watch, found(watch)));
    PUT(watch->looking, false);
}

static void record(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack, const void *dst,
                   const void *src)
{
    const uint32_t i = GET(watch->recorded);
    if (stack - GET(watch->counting) >= WATCH_STACK || i >= WATCH_CALLS) {
        const uint32_t strange = atomic_fetch_add_explicit(&watch->strange, 1, memory_order_relaxed);
        if (strange % STRANGE_CALLS == STRANGE_CALLS - 1)
            end(watch);
        return;
    }
    watch->call[i].caller = (uint16_t)(caller ^ caller >> 16);
    watch->call[i].size = (uint16_t)(n ^ n >> 16);
    watch->call[i].blocks = blocks_of(n);
    if (n && i % TIMED_EVERY == 0 && watch->slow_from < UINT32_MAX)
        watch->slow += waits(watch, dst) || (watch == &wherry_watch_copies && waits(watch, src));
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
    if (atomic_exchange(&watch->looking, true) &&
        atomic_fetch_add_explicit(&watch->strange, 1, memory_order_relaxed) % BEGIN_IN_VAIN != BEGIN_IN_VAIN - 1)
        return;
    PUT(watch->recorded, 0);
    PUT(watch->strange, 0);
    watch->slow = 0;
    if (watch->slow_from < UINT32_MAX && !clock_answers())
        watch->slow_from = UINT32_MAX;
    const uint32_t begun = GET(watch->begun);
    PUT(watch->begun, begun + 1);
    PUT(watch->factor, wherry_watch_factors[(begun + 1) % WATCH_FACTORS]);
    /* From either verdict: the last is not in force where its look was given up before it came. */
    uint64_t word = GET(*choice_of(watch));
    const enum wherry_choice choice = wherry_choice_in(word);
    if ((choice != WHERRY_CHOICE_AVX512 && choice != WHERRY_CHOICE_AVX512_TOGETHER) ||
        !atomic_compare_exchange_strong(choice_of(watch), &word, word_of(watch, WHERRY_CHOICE_AVX512_LOOK)))
        PUT(watch->looking, false);
    else if (GET(watch->watching) != WATCHING)
        wherry_watch_use(watch, GET(watch->watching)); /* held meanwhile */
}

void wherry_watch_look(struct wherry_watch *watch, size_t n, uintptr_t caller, uintptr_t stack, const void *dst,
                       const void *src)
{
    const enum wherry_choice choice = wherry_choice_in(GET(*choice_of(watch)));
    if (choice == WHERRY_CHOICE_AVX512_LOOK) {
        if (dst)
            record(watch, n, caller, stack, dst, src);
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
