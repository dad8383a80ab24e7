#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"
#include "random.h"

enum { ARENA_KEPT = 1 << 30, LINE = 64, PAGE = 4096, FEW_SLOTS = 64, MARGIN = 2 * PAGE };

static _Thread_local char problem[256];

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* Do a copy's two sides share the caches? */
static bool two_sided(const struct row *row) { return row_has_source(row) && !row_only_reads(row); }

/* Bytes that one side may touch in a cache so that its state holds; 0 when none do. Sides share a cache, so each gets
 * half of what one side alone would. */
static size_t side_share(enum state state, const struct row *row, const struct caches *c)
{
    size_t share = two_sided(row) ? 2 : 1, l3 = c->l3 / row->threads;
    switch (state) {
    case STATE_L1:
        return c->l1d / 2 / share;
    case STATE_L2:
        return c->l2 / 2 / share;
    default:
        break;
    }
    size_t target = most(l3 / 4, 5 * c->l2 / 2) / share;
    return target * share > l3 * 3 / 4 ? 0 : target;
}

/* A single slot may take half as much again. */
static size_t side_most(enum state state, const struct row *row, const struct caches *c)
{
    const size_t share = side_share(state, row, c);
    return share + share / 2;
}

/* What its slots together are to touch; 0 when the size does not fit the state. */
static size_t side_target(enum state state, const struct row *row, size_t touched, const struct caches *c)
{
    if (state == STATE_DRAM)
        return most(most((size_t)256 << 20, 4 * c->l3), 2 * touched);
    return touched <= side_most(state, row, c) ? most(side_share(state, row, c), touched) : 0;
}

/* Does a state mean that the bytes are beyond the cache before it? Then a pool smaller than that cache would lie. */
static size_t side_at_least(enum state state, const struct caches *c)
{
    return state == STATE_L2 ? c->l1d : state == STATE_L3 ? c->l2 : 0;
}

static bool side_plan(struct side *side, const struct row *row, bool is_dst, const struct caches *c)
{
    const size_t largest = row->largest, mean = (size_t)row->mean + 1;
    size_t off = row->placed ? LINE - 1 : is_dst ? row->dst_off : row->src_off;
    size_t distance = most(row->before, row->behind);
    bool placed = is_dst && row->delta >= 0; /* anywhere in the page, as the source's slot asks */
    size_t within = placed ? PAGE : off;
    enum state state = is_dst ? row->dst_state : row->src_state;
    bool pages = row->content != CONTENT_ANY && largest % PAGE == 0; /* what is cleared as pages lies as pages do */
    /* A page that one call has touched is no new one for another. */
    const bool fresh = is_dst && row->content == CONTENT_NEW;
    side->paged = placed || off >= LINE || pages || fresh;
    side->ascending = row->ascending & (is_dst ? SIDES_DESTINATION : SIDES_SOURCE);
    side->span = most(up(off % LINE + largest + distance, LINE), LINE);
    /* What lies between two sides that do not meet is never touched. */
    const size_t reach = is_dst ? row->reach : 0;
    side->span += reach;
    /* Whether a call fits is its own matter; where in the page it lies takes `reach` more of the cache. */
    size_t touched = up(off % LINE + largest + least(distance, largest), LINE), kept = side->span;
    size_t target = side_target(state, row, touched, c);
    if (target == 0 && row->usual < largest) {
        /* The few largest sizes of a mix may reach further out than the state. */
        touched = up(off % LINE + row->usual + least(distance, row->usual), LINE);
        kept = touched + reach;
        target = side_target(state, row, touched, c);
    }
    if (target == 0)
        return false;
    /* Slots of a mix may overlap each other: what counts is how much is touched between two visits. But a line that an
     * earlier call of the pass has used is no longer as another CPU left it. */
    size_t pace = row->table == 1 ? side->span
                  : row->handed   ? touched
                                  : up(off % LINE + mean + least(distance, mean), LINE);
    side->stride = side->paged ? up(within + pace, PAGE) : pace;
    if (fresh && row->huge)
        side->stride = up(MARGIN + within + pace, HUGE_PAGE_BYTES);
    if (state == STATE_DRAM) {
        /* Enough slots that what is touched is twice any L3, but no longer a table than that takes. */
        size_t wanted = most(2 * c->l3 / pace, 1024);
        if (side->ascending) /* one right behind the other */
            target = least(target, most(wanted * side->stride, 2 * touched));
        else
            side->stride =
                most(side->stride, target / wanted / (side->paged ? PAGE : LINE) * (side->paged ? PAGE : LINE));
    }
    if (!side->paged)
        side->stride |= LINE; /* an odd number of lines: slots come to lie everywhere in a page */
    side->slots = target > kept + (side->paged ? within % PAGE : 0) ? (target - kept) / side->stride + 1 : 1;
    if (side->slots * pace < side_at_least(state, c) && side->slots > 1)
        side->slots = side_at_least(state, c) / pace + 1;
    side->bytes = (side->slots - 1) * side->stride + up(within + side->span, PAGE) + PAGE;
    side->kept = side->bytes - (side->span - kept);
    return true;
}

static bool row_plan(struct side *src, struct side *dst, const struct row *row, const struct caches *c)
{
    memset(src, 0, sizeof *src);
    memset(dst, 0, sizeof *dst);
    if (row->stream) {
        size_t pass = row->size ? row->buffer / row->size * row->size : LINE;
        src->bytes = row_has_source(row) ? up(row->src_off + pass, PAGE) + 2 * PAGE : 0;
        dst->bytes = row_only_reads(row) ? 0 : up(row->dst_off + pass, PAGE) + 3 * PAGE;
        src->kept = src->bytes;
        dst->kept = dst->bytes;
        return true;
    }
    if (row_has_source(row) && !side_plan(src, row, false, c))
        return false;
    if (row->overlaps) {
        src->bytes += up(row->before, PAGE);
        src->kept += up(row->before, PAGE);
        return true;
    }
    src->bytes += up(row->before, PAGE);
    src->kept_from = up(row->before, PAGE);
    return side_plan(dst, row, true, c);
}

size_t pool_bytes_needed(const struct row *row, const struct caches *c)
{
    struct side src, dst;
    return row_plan(&src, &dst, row, c) ? src.bytes + dst.bytes + 4 * MARGIN : 0;
}

static volatile unsigned char sink;

/* Reads a byte of each page, so that a row does not pay for page-table entries that the next row finds cached. */
static void touch_pages(const char *at, size_t bytes)
{
    unsigned char sum = 0;
    for (size_t i = 0; i < bytes; i += PAGE)
        sum ^= *(const volatile unsigned char *)(at + i);
    sink = sum;
}

static void fill_random(char *at, size_t bytes, uint64_t *random)
{
    /* A plain xorshift keeps pace with memory; the contents only have to differ. */
    uint64_t x = random_next(random) | 1;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *(uint64_t *)(at + i) = x;
    }
}

static bool arena_hold(struct arena *arena, size_t bytes, bool huge, bool may_be_empty, uint64_t *random)
{
    bytes = pages_bytes(bytes, huge);
    bool far_too_large = arena->bytes > ARENA_KEPT && arena->bytes / 4 > bytes; /* memory is not ours alone */
    if (arena->base && arena->bytes >= bytes && arena->huge == huge && !far_too_large &&
        (may_be_empty || !arena->emptied))
        return true;
    if (arena->base)
        munmap(arena->base, arena->bytes);
    arena->base = NULL;
    char *base = pages_map(bytes, huge);
    if (!base)
        return false;
    fill_random(base, bytes, random);
    *arena = (struct arena){base, bytes, huge, false};
    return true;
}

static void shuffle(uint32_t *items, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(random, i);
        uint32_t held = items[i - 1];
        items[i - 1] = items[other];
        items[other] = held;
    }
}

/* The lines where the slots of one side begin, in shuffled order unless they ascend, over and over until there are
 * `count`. */
static void place(uint32_t *places, size_t count, const struct side *side, bool shifts, uint64_t *random)
{
    for (size_t done = 0; done < count; done += side->slots) {
        size_t some = least(side->slots, count - done);
        uint32_t *turn = places + done;
        /* Spare places of the last turn fall off its end after shuffling, so each slot has the same chance. */
        uint32_t order[FEW_SLOTS];
        uint32_t *all = some < side->slots && side->slots <= FEW_SLOTS ? order : turn;
        size_t made = all == order ? side->slots : some;
        for (size_t i = 0; i < made; i++) {
            size_t at = i * side->stride / LINE;
            all[i] = (uint32_t)(at + (shifts && !side->paged ? random_below(random, PAGE / LINE) : 0));
        }
        if (!side->ascending)
            shuffle(all, made, random);
        if (all == order)
            memcpy(turn, order, some * sizeof *turn);
    }
}

/* Room for the whole of the row's table, so that drawing from it cannot fail. */
static bool hold_calls(struct pool *pool, const struct row *row)
{
    size_t bytes = row->table * (row->placed ? sizeof *row->placed : sizeof *row->sizes);
    if (bytes > pool->calls_room) {
        free(pool->calls);
        pool->calls = malloc(bytes);
        pool->calls_room = pool->calls ? bytes : 0;
    }
    if (row->runs && row->run_count + 1 > pool->begins_room) {
        free(pool->begins);
        pool->begins = malloc(2 * (row->run_count + 1) * sizeof *pool->begins);
        pool->begins_room = pool->begins ? row->run_count + 1 : 0;
    }
    return pool->calls != NULL && (!row->runs || pool->begins);
}

/* Of the calls from `first` on, the runs in shuffled order; the first and the last may be parts of one. */
static void draw_runs(struct pool *pool, const struct row *row, size_t first, size_t count)
{
    struct placed *all = pool->calls;
    uint32_t *begins = pool->begins;
    size_t runs = 0, low = 0, high = row->run_count;
    while (low + 1 < high) { /* the run that `first` lies in */
        const size_t middle = (low + high) / 2;
        if (row->runs[middle] <= first)
            low = middle;
        else
            high = middle;
    }
    for (size_t at = first, taken = 0, run = low; taken < count; runs++) {
        begins[2 * runs] = (uint32_t)at;
        begins[2 * runs + 1] = (uint32_t)least(row->runs[run + 1] - at, count - taken);
        taken += begins[2 * runs + 1];
        run = run + 1 == row->run_count ? 0 : run + 1;
        at = row->runs[run];
    }
    for (size_t i = runs; i > 1; i--) {
        const size_t other = random_below(&pool->random, i);
        const uint32_t begin = begins[2 * i - 2], length = begins[2 * i - 1];
        begins[2 * i - 2] = begins[2 * other];
        begins[2 * i - 1] = begins[2 * other + 1];
        begins[2 * other] = begin;
        begins[2 * other + 1] = length;
    }
    for (size_t i = 0; i < runs; i++) {
        memcpy(all, row->placed + begins[2 * i], begins[2 * i + 1] * sizeof *all);
        all += begins[2 * i + 1];
    }
}

void pool_draw(struct pool *pool, const struct row *row, size_t first, uint64_t calls)
{
    const size_t count = least(calls, row->table);
    struct walk *walk = &pool->walk;
    size_t to_end = least(count, row->table - first);
    if (row->runs) {
        draw_runs(pool, row, first, count);
        walk->placed = walk->place = pool->calls;
        walk->placed_end = walk->placed + count;
        return;
    }
    if (row->placed) {
        struct placed *all = pool->calls;
        memcpy(all, row->placed + first, to_end * sizeof *all);
        memcpy(all + to_end, row->placed, (count - to_end) * sizeof *all);
        for (size_t i = row->table > LEARNT_MOST ? count : 0; i > 1; i--) {
            size_t other = random_below(&pool->random, i);
            struct placed held = all[i - 1];
            all[i - 1] = all[other];
            all[other] = held;
        }
        walk->placed = walk->place = all;
        walk->placed_end = all + count;
        return;
    }
    uint64_t *all = pool->calls;
    memcpy(all, row->sizes + first, to_end * sizeof *all);
    memcpy(all + to_end, row->sizes, (count - to_end) * sizeof *all);
    for (size_t i = row->table > LEARNT_MOST ? count : 0; i > 1; i--) {
        size_t other = random_below(&pool->random, i);
        uint64_t held = all[i - 1];
        all[i - 1] = all[other];
        all[other] = held;
    }
    walk->sizes = walk->size = all;
    walk->sizes_end = all + count;
}

/* As many slots, or up to half of them fewer, as go into the table, or it into them: of two circles that end at ever
 * new places of each other a processor learns a part only, however short they are (Zen 4). */
static size_t in_step(size_t slots, const struct row *row)
{
    if (row->table > LEARNT_MOST)
        return slots;
    if (slots >= row->table)
        return slots - slots % row->table;
    for (size_t fewer = slots; fewer > slots / 2; fewer--)
        if (row->table % fewer == 0)
            return fewer;
    return slots;
}

static bool lay_out(struct pool *pool, const struct row *row)
{
    const struct side *src = &pool->src_side, *dst = &pool->dst_side;
    size_t count = in_step(most(most(src->slots, dst->slots), 1), row);
    if (row->scattered) /* turn after turn, each in an order of its own */
        count = most(count, LEARNT_MOST);
    uint32_t *sources = calloc(count, sizeof *sources), *destinations = calloc(count, sizeof *destinations);
    if (pool->slot_count != count || !pool->slots) {
        free(pool->slots);
        pool->slots = malloc(count * sizeof *pool->slots);
        pool->slot_count = count;
    }
    bool good = sources && destinations && pool->slots;
    if (good && src->slots)
        place(sources, count, src, pool->shifts, &pool->random);
    if (good && dst->slots)
        place(destinations, count, dst, pool->shifts, &pool->random);
    for (size_t i = 0; good && i < count; i++) {
        if (row->overlaps)
            destinations[i] = sources[i];
        else if (row->delta >= 0) /* the page is the destination's own, the place in it the source's plus delta */
            destinations[i] += (uint32_t)((sources[i] + (row->src_off + (size_t)row->delta) / LINE) % (PAGE / LINE));
        pool->slots[i] = (struct slot){destinations[i], sources[i]};
    }
    free(sources);
    free(destinations);
    pool->walk.slots = pool->walk.slot = pool->slots;
    pool->walk.slots_end = good ? pool->slots + count : pool->slots;
    return good;
}

/* The largest size that does, wherever the row has its slots begin; 0: none. */
static size_t size_that_fits(enum state state, const struct row *row, const struct caches *c)
{
    const size_t off = row->placed ? LINE - 1 : most(row->src_off % LINE, row->dst_off % LINE);
    const size_t all = side_most(state, row, c), distance = most(row->before, row->behind);
    if (all <= off)
        return 0;
    /* A distance counts for no more than the size itself. */
    const size_t room = all - off;
    return most(room > distance ? room - distance : 0, room / 2);
}

/* A set takes its byte where a copy takes its source. */
static char *byte_of(const struct row *row) { return (char *)(uintptr_t)(row->op == WHERRY_OP_set ? 0x5a : 0); }

const char *pool_make(struct pool *pool, const struct row *row, const struct caches *caches)
{
    struct side src, dst;
    if (!row_plan(&src, &dst, row, caches)) {
        const enum state state =
            row_has_source(row) && row->src_state < row->dst_state ? row->src_state : row->dst_state;
        const size_t fit = size_that_fits(state, row, caches);
        char advice[80] = "no size does; choose another state";
        if (fit > 0)
            snprintf(advice, sizeof advice, "at most %zu do; choose a smaller size or a state further out", fit);
        snprintf(problem, sizeof problem, "%zu bytes do not fit %s%s (L1d %zu KiB, L2 %zu KiB, L3 %zu KiB): %s",
                 row->usual, state_names[state], two_sided(row) ? " beside the other side" : "", caches->l1d >> 10,
                 caches->l2 >> 10, caches->l3 >> 10, advice);
        return problem;
    }
    if ((src.bytes && !arena_hold(&pool->src, src.bytes + 2 * MARGIN, row->huge, false, &pool->random)) ||
        (dst.bytes &&
         !arena_hold(&pool->dst, dst.bytes + 2 * MARGIN, row->huge, row->content == CONTENT_NEW, &pool->random))) {
        snprintf(problem, sizeof problem, "no memory for pools of %zu MiB", (src.bytes + dst.bytes) >> 20);
        return problem;
    }
    pool->src_side = src;
    pool->dst_side = dst;
    pool->src_base = pool->src.base ? pool->src.base + MARGIN : NULL;
    pool->dst_base = pool->dst.base ? pool->dst.base + MARGIN : NULL;
    pool->zeros = row->op == WHERRY_OP_iszero && row->content == CONTENT_ANY;
    if (pool->zeros)
        memset(pool->dst.base, 0, dst.bytes + 2 * MARGIN);
    touch_pages(pool->src_base, src.bytes);
    touch_pages(pool->dst_base, dst.bytes);
    pool->walk = (struct walk){0};
    if (!hold_calls(pool, row))
        return "no memory for the table of sizes";
    pool_draw(pool, row, 0, 1);
    if (row->stream) {
        pool->walk.step = row->size;
        pool->walk.src_mask = row_has_source(row) ? SIZE_MAX : 0;
        pool->walk.span = row->size ? row->buffer / row->size * row->size : 0;
        pool->keep_warm = src.bytes + dst.bytes <= (size_t)64 << 20;
        pool->shifts = true;
        pool_begin_round(pool, row);
        return NULL;
    }
    pool->keep_warm = row->dst_state != STATE_DRAM || (row_has_source(row) && row->src_state != STATE_DRAM);
    /* Slots that shift may overlap, and then the content of one would be the work of another's call. */
    pool->shifts =
        row->content == CONTENT_ANY && (!src.slots || src.slots < FEW_SLOTS) && (!dst.slots || dst.slots < FEW_SLOTS);
    if (row->overlaps) {
        pool->walk.src = pool->src_base + up(row->before, PAGE) + row->src_off;
        pool->walk.dst = pool->walk.src + row->overlap;
    } else {
        pool->walk.dst = pool->dst_base + (row->delta >= 0 ? (row->src_off + (size_t)row->delta) % LINE : row->dst_off);
        pool->walk.src = row_has_source(row) ? pool->src_base + up(row->before, PAGE) + row->src_off : byte_of(row);
    }
    return lay_out(pool, row) ? NULL : "no memory for the table of slots";
}

void pool_begin_round(struct pool *pool, const struct row *row)
{
    if (!pool->shifts)
        return;
    if (!row->stream) {
        lay_out(pool, row);
        return;
    }
    size_t shift = random_below(&pool->random, PAGE / LINE) * LINE;
    pool->walk.src = row_has_source(row) ? pool->src_base + row->src_off : byte_of(row);
    if (row->delta >= 0)
        shift = (row->src_off + (size_t)row->delta) % PAGE;
    if (row_only_reads(row))
        pool->walk.dst = pool->walk.src;
    else
        pool->walk.dst = pool->dst_base + shift + (row->delta >= 0 ? 0 : row->dst_off);
}

/* Reads or writes a byte of each line, in address order. */
static void pass_over(char *at, size_t bytes, bool writes)
{
    unsigned char sum = 0;
    for (size_t i = 0; i < bytes; i += LINE) {
        volatile unsigned char *line = (volatile unsigned char *)(at + i);
        if (writes)
            *line = (unsigned char)(*line + 1);
        else
            sum ^= *line;
    }
    sink = sum;
}

void pool_warm(struct pool *pool)
{
    if (!pool->keep_warm)
        return;
    /* Reads the source and writes the destination: what the timed calls find is the same for every routine, also after
     * one whose stores went around the caches. A side that lives in DRAM is left. What only rare sizes reach comes
     * first, so that it does not push out the rest. */
    enum { WARM_AT_MOST = 80 << 20 };
    const struct side *src = &pool->src_side, *dst = &pool->dst_side;
    bool src_too = src->bytes && src->bytes <= WARM_AT_MOST,
         dst_too = dst->bytes && dst->bytes <= WARM_AT_MOST && !pool->dst.emptied;
    const size_t src_kept = src->kept_from + src->kept, dst_kept = dst->kept;
    if (src_too) {
        pass_over(pool->src_base + src_kept, src->bytes - src_kept, false);
        pass_over(pool->src_base, src->kept_from, false);
    }
    if (dst_too)
        pass_over(pool->dst_base + dst_kept, dst->bytes - dst_kept, !pool->zeros);
    if (src_too)
        pass_over(pool->src_base + src->kept_from, src->kept, false);
    if (dst_too)
        pass_over(pool->dst_base, dst->kept, !pool->zeros);
}

bool pool_is_huge(const struct pool *pool)
{
    const struct arena *arenas[] = {&pool->src, &pool->dst};
    const size_t used[] = {pool->src_side.bytes, pool->dst_side.bytes};
    for (int i = 0; i < 2; i++)
        if (used[i] && pages_huge(arenas[i]->base, 1) < least(used[i], arenas[i]->bytes / 10 * 9))
            return false;
    return true;
}
