/* Non-temporal stores must be fenced before the routine returns, or a flag written afterwards may be seen first.
 *
 * Waiting for the reordering to show is a lottery. Instead the pages of the destination are closed; a write opens the
 * one it meets. The last ones to be met, wherever they lie, begin to step the call, one instruction at a time. Of each
 * the bytes are looked at: a non-temporal store that no fence or locked instruction follows is the bug.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "stores.h"
#include "verify.h"

enum { STEPPED_PAGES = 3, MOST_STEPS = 6000, MOST_PENDING = 200000, SMALL = 8192, REPEATED_FROM = 64 << 20 };

struct watch {
    uintptr_t closed, end; /* the pages that were closed at first */
    size_t left;           /* of them, still closed */
    unsigned steps;
    bool pending, stepped, whole;
};

static bool on_step(void *context, uintptr_t rip)
{
    struct watch *w = context;
    const enum store_kind kind = store_kind((const uint8_t *)rip);
    w->stepped = true;
    if (kind == STORE_WEAK)
        w->pending = true;
    else if (kind == STORE_FENCE)
        w->pending = false;
    if (w->pending) { /* the fence may come after a slow loop, or a tail by string instruction */
        if (++w->steps < MOST_PENDING)
            return true;
        w->pending = false; /* nobody knows */
        return false;
    }
    /* A string instruction traps once an element; the next closed page begins the stepping again. */
    return (w->whole || kind != STORE_REPEATED) && ++w->steps < MOST_STEPS;
}

static bool on_fault(void *context, uintptr_t address, bool writing, bool *step)
{
    struct watch *w = context;
    if (address < w->closed || address >= w->end)
        return false;
    if (!writing) { /* where the two overlap, which may be long before it is written */
        mprotect((void *)(address & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ);
        return true;
    }
    /* One page a time: a routine may store its tail first, or work from both ends. */
    mprotect((void *)(address & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
    w->steps = 0;
    *step = w->left-- <= STEPPED_PAGES;
    return true;
}

static void unfenced(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src)
{
    fail(unit, one, dst, src, "store order",
         "non-temporal stores were not fenced (sfence) before it returned: another thread may see what is written "
         "afterwards first");
}

static uint8_t *dst_base, *src_base;
static size_t mapped;

/* Too few bytes for pages to tell anything: the whole call is stepped. */
static void step_all(struct unit *unit, const struct vcase *one, uint8_t *dst, const uint8_t *src)
{
    struct watch w = {.whole = true};
    call_hook_context = &w;
    call_on_step = on_step;
    unit->cases++;
    const bool right = call_checked(unit, one, dst, src, one->n);
    call_on_step = NULL;
    if (right && w.pending)
        unfenced(unit, one, dst, src);
}

static void run(struct unit *unit, const struct vcase *one)
{
    const uint64_t reach = may_overlap(unit, one) ? reach_of(one) : 0;
    size_t need = ((size_t)(one->n + reach) + 4 * PAGE + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (mapped < need) {
        /* The bytes are not looked at, so that many of them need not take as much memory. */
        dst_base = need < REPEATED_FROM ? map_or_die(need, PROT_READ | PROT_WRITE) : map_repeated(need);
        if (!is_set(unit->target)) /* all zero, so that untouched pages of the source cost nothing */
            src_base = map_or_die(need, PROT_READ | PROT_WRITE);
        mapped = need;
    }
    uint8_t *dst = dst_base + one->d % PAGE;
    const uint8_t *src = is_set(unit->target) ? NULL : src_base + one->s % PAGE;
    if (reach) {
        dst += one->dist > 0 ? reach : 0;
        src = dst - one->dist;
    }
    for (uint64_t k = 0; k < one->calls && one->n > 0 && !unit->failed; k++) {
        struct watch w = {.closed = ((uintptr_t)dst + PAGE) & ~(uintptr_t)(PAGE - 1),
                          .end = ((uintptr_t)dst + one->n + PAGE - 1) & ~(uintptr_t)(PAGE - 1)};
        plain_fill(dst, 1, one->n); /* past the caches goes only what was written before (routines/written.h) */
        if (one->n < SMALL) {
            step_all(unit, one, dst, src);
            continue;
        }
        w.left = (w.end - w.closed) / PAGE;
        mprotect((void *)w.closed, w.end - w.closed, PROT_NONE);
        call_hook_context = &w;
        call_on_step = on_step;
        call_on_fault = on_fault;
        unit->cases++;
        bool right = call_checked(unit, one, dst, src, one->n);
        call_on_step = NULL;
        call_on_fault = NULL;
        mprotect((void *)w.closed, w.end - w.closed, PROT_READ | PROT_WRITE);
        if (right && w.pending)
            unfenced(unit, one, dst, src);
    }
}

enum shape { ANY, ALIGNED, WHOLE_LINES, WHOLE_PAGES, FORWARD, BACKWARD, SHAPES };

/* With nothing before the first line of the destination, nothing behind the last, or neither a way may end elsewhere;
 * and so may moves that overlap. */
static void of_size(struct unit *unit, uint64_t about, uint64_t range, enum shape shape)
{
    struct vcase one = {.calls = 1, .seed = unit->seed};
    one.n = about + below(unit, range);
    one.d = shape == ALIGNED || shape == WHOLE_PAGES ? 0 : below(unit, 64);
    one.s = shape == WHOLE_PAGES ? 0 : below(unit, 64);
    one.c = (int)next_random(&unit->random);
    if (shape == WHOLE_LINES)
        one.n -= (one.n + one.d) % 64;
    else if (shape == WHOLE_PAGES && one.n >= PAGE)
        one.n -= one.n % PAGE;
    else if (shape >= FORWARD)
        one.dist = (shape == FORWARD ? -1 : 1) * (64 + (int64_t)below(unit, one.n / 2));
    one.n = fit(unit->target, one.n);
    run(unit, &one);
}

static void generate(struct unit *unit)
{
    static const uint32_t usual[] = {16 << 10, 70 << 10, 300 << 10, 1100 << 10, 3 << 20, 5 << 20, 9 << 20, 40 << 20};
    const bool full = unit->level == LEVEL_FULL, brief = unit->level == LEVEL_BRIEF;
    size_t count = brief ? 3 : full || unit->few ? 8 : 6;
    bool streams = unit->target->routine && unit->target->routine->traits & TRAIT_NT;
    for (size_t k = 0; k < count && !unit->failed; k++) {
        /* Historic routines take long and either stream at every size or at none. */
        if (k > 3 && unit->target->routine && !streams)
            break;
        of_size(unit, usual[k], 8192, ANY);
    }
    if (brief || (unit->target->routine && !streams))
        return;
    /* Of each octave both halves, in every shape, of the larger ones one after the other; with many functions one half.
     */
    const bool much = unit->few || full;
    unsigned turn = 0;
    for (uint64_t power = 64; power <= 4 << 20; power *= 2)
        for (unsigned half = 0; half < (much ? 2 : 1); half++) {
            const bool each = much && (full || half == 0) && power <= 1 << 20;
            for (unsigned k = 0; k < (each ? SHAPES : 1) && !unit->failed; k++)
                of_size(unit, power + half * power / 2, power / 2, (enum shape)(turn++ % SHAPES));
        }
    /* Large moves that overlap, both ways, from a line's beginning on and from within one. */
    for (unsigned k = 0; k < (much ? 4 : 2) && unit->target->op == WHERRY_OP_move && !unit->failed; k++) {
        struct vcase one = {.calls = 1, .seed = unit->seed};
        one.n = fit(unit->target, (4 << 20) + below(unit, 1 << 20));
        one.dist = 64 + (int64_t)below(unit, one.n / 2);
        if (k < 2) /* the one that comes first begins there, and so does the destination */
            one.dist &= -64;
        else
            one.d = 1 + below(unit, 63);
        if (k % 2)
            one.dist = -one.dist;
        run(unit, &one);
    }
    /* Larger than most last-level caches, and than nearly all. */
    static const uint32_t large[] = {100 << 20, 300 << 20};
    for (unsigned k = 0; k < 2 && full && !unit->failed; k++)
        of_size(unit, large[k], 8192, ANY);
}

const struct family family_ordering = {
    .name = "ordering",
    .what = "non-temporal stores are fenced before return",
    .applies = writes,
    .generate = generate,
    .run = run,
};
