#include "entry.h"

#include <stdio.h>
#include <string.h>

#include "inlined.h"
#include "usercopy/paths.h"
#include "yardsticks.h"

static char reason[256];

static struct {
    wherry_copy_fn *copy;
    wherry_csum_fn *csum;
    wherry_crc32c_fn *crc32c;
} pair;

static uint32_t copy_then_csum(void *dst, const void *src, size_t n, uint32_t sum)
{
    pair.copy(dst, src, n);
    return pair.csum(src, n, sum);
}

static uint32_t copy_then_crc32c(uint32_t crc, void *dst, const void *src, size_t n)
{
    pair.copy(dst, src, n);
    return pair.crc32c(crc, src, n);
}

/* The op before a colon, or WHERRY_OP_COUNT. */
static enum wherry_op op_before(const char *name, const char *colon)
{
    int op = 0;
    while (op < WHERRY_OP_COUNT && !(colon && strlen(wherry_op_names[op]) == (size_t)(colon - name) &&
                                     strncmp(name, wherry_op_names[op], (size_t)(colon - name)) == 0))
        op++;
    return (enum wherry_op)op;
}

/* Can a routine of this op work in the memory of a row? */
static bool fits(enum wherry_op op, const struct row *row)
{
    if (op == row->op)
        return true;
    if (row->overlaps && !row_only_reads(row))
        return op == WHERRY_OP_move;
    const bool reads = op_reads(op) && op != WHERRY_OP_iszero;
    return op_copies(row->op) ? op_copies(op) || reads : row_only_reads(row) ? reads : op_sets(op) && op_sets(row->op);
}

static const char *find(const struct target **found, const struct target_list *targets, const char *name,
                        enum wherry_op op)
{
    *found = target_for(targets, name, op);
    if (*found)
        return target_unavailable(*found);
    snprintf(reason, sizeof reason, "has nothing for op=%s", wherry_op_names[op]);
    return reason;
}

static bool is_target(const struct target_list *targets, const char *name)
{
    for (size_t i = 0; i < targets->count; i++)
        if (strcmp(targets->items[i].name, name) == 0)
            return true;
    return false;
}

static const char *find_pair(struct cell *cell, const struct target_list *targets, const struct row *row)
{
    const bool crc = row->op == WHERRY_OP_copy_crc32c;
    if (row->op != WHERRY_OP_copy_csum && !crc)
        return "COPY+SUM needs op=copy_csum or op=copy_crc32c";
    const char *plus = strrchr(cell->name, '+');
    char first[80];
    snprintf(first, sizeof first, "%.*s", (int)(plus - cell->name), cell->name);
    const char *wrong = find(&cell->target, targets, first, WHERRY_OP_copy);
    if (!wrong)
        wrong = find(&cell->second, targets, plus + 1, crc ? WHERRY_OP_crc32c : WHERRY_OP_csum);
    if (wrong)
        return wrong;
    if (cell->target->forced && cell->second->forced && cell->target->isa != cell->second->isa)
        return "its two parts force different tiers";
    cell->fn = crc ? (loop_fn *)(void (*)(void))copy_then_crc32c : (loop_fn *)(void (*)(void))copy_then_csum;
    return NULL;
}

static const char *find_path(struct cell *cell, const struct row *row)
{
    if (row->op != WHERRY_OP_copy || row->threads > 1)
        return "needs op=copy and threads=1";
    cell->fn = (loop_fn *)cell->path->fn;
    return path_unavailable(cell->path);
}

const char *entry_find(struct cell *cell, const struct target_list *targets, const struct row *row)
{
    const char *name = cell->name, *colon = strchr(name, ':');
    const enum walk_kind kind = row->stream ? WALK_STREAM : row->placed ? WALK_PLACED : WALK_POOL;
    const enum wherry_op named = op_before(name, colon);
    cell->op = named == WHERRY_OP_COUNT ? row->op : named;
    if (named != WHERRY_OP_COUNT)
        name = colon + 1;
    if (!fits(cell->op, row)) {
        snprintf(reason, sizeof reason, "op=%s does not fit a row of op=%s", wherry_op_names[cell->op],
                 wherry_op_names[row->op]);
        return reason;
    }
    const char *wrong = NULL;
    enum wherry_op called = cell->op;
    if ((cell->fn = yardstick(name, row->op)))
        called = WHERRY_OP_copy;
    else if (named == WHERRY_OP_COUNT && (cell->path = path_find(name)))
        wrong = find_path(cell, row);
    else if (named == WHERRY_OP_COUNT && strchr(name, '+') && !is_target(targets, name))
        wrong = find_pair(cell, targets, row);
    else if (!(wrong = find(&cell->target, targets, name, cell->op)))
        cell->fn = (loop_fn *)cell->target->fn;
    cell->loop = cell->second ? loop_for_pair(row->op, kind, row->mode) : loop_for(called, kind, row->mode);
    const bool alone = row->cold || row->percentile > 0;
    if (!wrong && alone && !op_is_plain(called))
        wrong = "calls that are timed alone are those of a copy, a move or a set";
    if (!wrong && cell->target && (cell->target->kind == TARGET_INLINED || cell->target->packets)) {
        loop *own = inlined_loop(cell->target, kind, row->mode, row->size, row->table > 1, &wrong);
        if (own && alone)
            wrong = "stands inline in its loop, and has no call to be timed alone";
        cell->loop = own ? own : cell->loop;
    }
    for (int part = 0; part < 2 && !wrong; part++) {
        const struct target *target = part ? cell->second : cell->target;
        const size_t quantum = target && target->routine ? target->routine->quantum : 1;
        for (size_t k = 0; !wrong && quantum > 1 && k < row->table; k++)
            if (row->sizes[k] % quantum) {
                snprintf(reason, sizeof reason, "takes sizes that are multiples of %zu bytes only, not %llu", quantum,
                         (unsigned long long)row->sizes[k]);
                wrong = reason;
            }
    }
    return wrong;
}

bool entry_known(const char *name, bool (*known)(const void *context, const char *name), const void *context)
{
    const char *colon = strchr(name, ':'), *plus = strrchr(name, '+');
    char first[80];
    if (known(context, name) || path_find(name) ||
        (op_before(name, colon) != WHERRY_OP_COUNT && known(context, colon + 1) && !is_yardstick(colon + 1)))
        return true;
    if (!plus || (size_t)(plus - name) >= sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(plus - name), name);
    return known(context, first) && known(context, plus + 1) && !is_yardstick(first) && !is_yardstick(plus + 1);
}

void entry_enter(const struct cell *cell)
{
    if (!cell->second)
        return;
    pair.copy = (wherry_copy_fn *)cell->target->fn;
    pair.csum = (wherry_csum_fn *)cell->second->fn;
    pair.crc32c = (wherry_crc32c_fn *)cell->second->fn;
}
