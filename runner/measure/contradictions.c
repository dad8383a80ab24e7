#include "contradictions.h"

#include <stdio.h>

#include "single.h"

static char problem[256];

static const char *contradiction_of_content(const struct row *row, bool mixed)
{
    if (row->content == CONTENT_NEW && (row_only_reads(row) || row->op == WHERRY_OP_iszero))
        return "content=new needs an op that writes; give another op";
    if (row->content == CONTENT_NEW && row->overlaps)
        return "content=new and overlap cannot be had together: the destination lies where the source does";
    if (row->content != CONTENT_ANY && row->content != CONTENT_NEW && row_has_source(row))
        return "content=dirty, zero and mixed are for ops with a destination alone; give op=zero";
    if ((row->content == CONTENT_ZERO || row->content == CONTENT_MIXED) && row->op == WHERRY_OP_set)
        return "content=zero and mixed need op=zero, iszero or pagezero: op=set leaves no zeros behind";
    if (row->content != CONTENT_ANY && (mixed || row->size == 0))
        return "content takes one size, from 1 byte on, and no mix: slots of a mix overlap each other";
    return NULL;
}

/* Calls that are timed one by one. */
static const char *contradiction_of_single(const struct row *row)
{
    if (row->stream)
        return "calls that are timed one by one (mode=p50 and so on) take walk=pool";
    if (row->content != CONTENT_ANY)
        return "calls that are timed one by one (mode=p50 and so on) and content cannot be had together; give one "
               "of them";
    if (!op_is_plain(row->op))
        return "calls that are timed one by one (mode=p50 and so on) take op=copy, move, set or zero";
    if (row->calls && (row->calls > SINGLE_MOST || row->calls < single_least(row->percentile))) {
        snprintf(problem, sizeof problem, "calls=%llu: give 0, or for this percentile %llu to %d",
                 (unsigned long long)row->calls, (unsigned long long)single_least(row->percentile), SINGLE_MOST);
        return problem;
    }
    return NULL;
}

/* Lines that another CPU has used last. */
static const char *contradiction_of_handed(const struct row *row)
{
    if (row->handed_by >= 0 && !row->handed)
        return "handed_by says who used the lines of handed=source, destination or both last; give handed with it";
    if (!row->handed)
        return NULL;
    if (row->stream || row->overlaps)
        return "handed takes walk=pool and no overlap";
    if (row->cold || row->content != CONTENT_ANY || row->percentile > 0 || row->mode == MODE_FRESH)
        return "handed takes code=warm, no content, and mode=throughput or latency";
    if (row->threads > 1)
        return "handed takes threads=1: the other CPU hands lines to one";
    const bool source = row->handed & SIDES_SOURCE, destination = row->handed & SIDES_DESTINATION;
    if (row->op == WHERRY_OP_iszero)
        return "handed is for ops that copy, sum or fill, not for op=iszero";
    if ((source && !row_has_source(row)) || (destination && row_only_reads(row))) {
        snprintf(problem, sizeof problem, "handed=%s: op=%s has no %s; give %s", side_names[row->handed],
                 wherry_op_names[row->op], row_only_reads(row) ? "destination" : "source",
                 row_only_reads(row) ? "source" : "destination");
        return problem;
    }
    if ((source && row->src_state == STATE_DRAM) || (destination && row->dst_state == STATE_DRAM))
        return "handed takes a state of L1, L2 or L3 on that side: what no cache has, no CPU hands over";
    return NULL;
}

/* Calls whose places change. */
static const char *contradiction_of_places(const struct row *row)
{
    if (!row->scattered)
        return NULL;
    if (row->stream)
        return "places=change takes walk=pool";
    if (row->src_off || row->dst_off || row->delta >= 0 || row->overlaps)
        return "places=change says where each call lies; give no src_off, dst_off, delta or overlap with it";
    if (row->ascending || row->handed || row->content != CONTENT_ANY)
        return "places=change comes back to its slots at random; give no ascending, handed or content with it";
    if (row->size > UINT32_MAX)
        return "places=change takes sizes below 4 GiB";
    if (row->table <= LEARNT_MOST)
        return "places=change takes a table of more than 32768: the places of a shorter one come in an order that is "
               "learnt";
    return NULL;
}

const char *row_contradiction(const struct row *row, bool mixed)
{
    const char *wrong = contradiction_of_places(row);
    if (wrong)
        return wrong;
    if (row->overlaps && row->op != WHERRY_OP_move)
        return "overlap needs op=move";
    if (row->overlaps && row->src_state != row->dst_state)
        return "overlap needs src_state and dst_state to be the same: both sides share their bytes";
    if (row->overlaps && (row->delta >= 0 || row->dst_off))
        return "overlap says where dst lies; give no delta and no dst_off with it";
    if (row->delta >= 0 && (!row_has_source(row) || row_only_reads(row))) {
        snprintf(problem, sizeof problem, "delta needs a source and a destination; op=%s lacks one",
                 wherry_op_names[row->op]);
        return problem;
    }
    if (row->delta >= 0 && row->dst_off)
        return "delta says where dst lies; give no dst_off with it";
    if (row->stream && (mixed || row->overlaps))
        return "walk=stream takes one size and two buffers of its own; give no mix and no overlap";
    if (row->stream && row->ascending)
        return "walk=stream ascends by itself; give no ascending with it";
    if (row->ascending & SIDES_SOURCE && !row_has_source(row)) {
        snprintf(problem, sizeof problem, "ascending=%s: op=%s has no source; give destination or none",
                 side_names[row->ascending], wherry_op_names[row->op]);
        return problem;
    }
    if (row->ascending & SIDES_DESTINATION && (row_only_reads(row) || row->overlaps)) {
        snprintf(problem, sizeof problem, "ascending: %s; give source or none",
                 row->overlaps ? "the destination lies where the source does, by overlap" : "there is no destination");
        return problem;
    }
    if (row->stream && row->size > row->buffer)
        return "size is larger than buffer; give a buffer of at least the size";
    if (row->mode == MODE_FRESH && !row_has_source(row)) {
        snprintf(problem, sizeof problem, "mode=fresh stores into the source, which op=%s lacks; give another mode",
                 wherry_op_names[row->op]);
        return problem;
    }
    if (row->cold && (row->stream || row->mode != MODE_THROUGHPUT || row->percentile > 0))
        return "code=cold takes walk=pool and mode=throughput: each of its calls is timed alone";
    if (row->cold && row->content != CONTENT_ANY)
        return "code=cold and content cannot be had together; give one of them";
    if (row->cold && !op_is_plain(row->op))
        return "code=cold takes op=copy, move, set or zero";
    wrong = contradiction_of_handed(row);
    if (wrong)
        return wrong;
    return row->percentile > 0 ? contradiction_of_single(row) : contradiction_of_content(row, mixed);
}
