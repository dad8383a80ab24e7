/* What a routine may know of the world outside, beside recent.h: the sizes at which the plan in force changes method.
 * The object is hidden plain data, right before any constructor has run. */
#ifndef WHERRY_THRESHOLDS_H
#define WHERRY_THRESHOLDS_H

#include "touched.h"
#include "written.h"

#ifndef __ASSEMBLER__
#include <stddef.h>
#endif

/* X(field): sizes and distances in bytes. Everything that walks the thresholds (verification, forcing, printing, plan
 * files) is made of this list.
 *   copy_rep_from, copy_rep_to        disjoint copies of from <= n < to go by rep movsb
 *   copy_stream_from                  disjoint copies of at least this size bypass the caches
 *   set_rep_from, set_rep_to          sets of from <= n < to go by rep stosb
 *   set_stream_from                   sets of at least this size bypass the caches
 *   copy_rep_recent_from              below this size not where the destination was written lately (recent.h)
 *   set_rep_recent_from               the same for rep stosb
 *   copy_rep_slow_ahead               from copy_rep_recent_from on not with the destination 1 to so many bytes ahead
 *                                     of the source (mod ALIAS_BYTES), where rep movsb is slow
 *   copy_rep_all_from                 from this size on even so
 *   copy_backward_ahead               copies by the loop with the destination 1 to so many bytes ahead of the source
 *                                     (mod ALIAS_BYTES) go from the end down, from ALIAS_FROM bytes on, with AVX-512
 *                                     from ALIAS_FORWARD
 *   copy_ymm_from                     with AVX-512, but for its ladder, copies from this size on go as with AVX2: by
 *                                     32-byte vectors; none to 1024 bytes
 *   copy_source_lines_to              with AVX-512, but for its ladder, copies of 513 bytes and more that go by 64-byte
 *                                     vectors forward, below this size by lines of the source, else of the destination;
 *                                     those of 513 to 1024 bytes are one
 *   copy_parts_from                   copies of at least this size that bypass the caches go in PARTS parts side by
 *                                     side, smaller ones from both ends
 *   copy_stream_recent_from           copies below this size do not bypass the caches where the destination was touched
 *                                     lately by other large calls (touched.h)
 *   set_stream_recent_from            the same for sets; with these no larger than the stream_from nothing is asked
 *
 * SIZE_MAX in a "from" turns its method off. Any value of any field is safe: a method that needs a least size for its
 * own sake has it in its code.
 */
#define WHERRY_THRESHOLDS(X)                                                                                           \
    X(copy_rep_from)                                                                                                   \
    X(copy_rep_to)                                                                                                     \
    X(copy_stream_from)                                                                                                \
    X(set_rep_from)                                                                                                    \
    X(set_rep_to)                                                                                                      \
    X(set_stream_from)                                                                                                 \
    X(copy_rep_slow_ahead)                                                                                             \
    X(copy_rep_all_from)                                                                                               \
    X(copy_rep_recent_from)                                                                                            \
    X(set_rep_recent_from)                                                                                             \
    X(copy_backward_ahead)                                                                                             \
    X(copy_ymm_from)                                                                                                   \
    X(copy_source_lines_to)                                                                                            \
    X(copy_parts_from)                                                                                                 \
    X(copy_stream_recent_from)                                                                                         \
    X(set_stream_recent_from)

/* Made of those by wherry_thresholds_complete: what most have to ask. Where nobody has called it 0 is
 * right, but in the last.
 *   copy_loop_below      copies of fewer bytes go by the loop of 64-byte vectors, forward, at lines of the source; as
 *                        the next two at most half of all addresses
 *   copy_forward_below   the same at lines of either side
 *   copy_ymm_below       the same by 32-byte vectors, none of which goes by halves
 *   copy_xmm_below       the same by SSE2's
 *   copy_by_source       not 0 where copies of 513 to 1024 bytes begin at lines of the source, but, where page_edge is
 *                        no branch, those of a destination that goes on in another page
 *   copy_string_from     copies from here on go by no loop of the public functions: by rep movsb, or the routine; with
 *                        AVX-512 none above copy_ymm_from
 *   copy_string_below    those of copy_rep_from and copy_rep_recent_from on, below this size and disjoint, by rep movsb
 *                        right away, as also say
 *   copy_string_slow_ahead, copy_string_all_from    copy_rep_slow_ahead and copy_rep_all_from, in the same cache line;
 *                        the latter 0 where the former is
 *   set_string_below     the same for sets and rep stosb
 *   copy_stream_any_from    copy_stream_from or copy_stream_recent_from, what is more: from here on copies bypass the
 *                        caches wherever they go, also those that do not ask: by 64-byte vectors, and those that sum
 *   copy_ahead_from      past the caches fault-tolerant copies, and those that sum, have their source fetched ahead:
 *                        from copy_parts_from on, where there are string instructions. On a Granite Rapids that gains,
 *                        on a Zen 3 it takes up to a tenth longer
 *   sum_source_page      what makes copies that sum by 64-byte vectors begin at lines of the source, or of the
 *                        destination where that goes on in another page: all bits but those that tell the place in a
 *                        page. Or-ed with the lower half of the destination's address, to which the size is added then,
 *                        it makes that carry there. Or all bits, so that it always carries: where copy_by_source is 0,
 *                        or a 64-byte store takes two cycles
 *   touched_blocks       for so many blocks of other memory what large calls touch stays near: 11 of 12 that a set of
 *                        set_stream_recent_from has, or both sides of a copy of copy_stream_recent_from, since what is
 *                        walked through again and again fits by a little less than what is copied once
 *   stores_halved        not 0 where copy_ymm_from is the least, since what makes 32-byte vectors the better is that a
 *                        64-byte store takes two cycles. Then a store to spare costs more than a branch guessed wrong
 *                        behind others: copies of 256 to 1024 bytes, sizes together, go by four blocks at either end
 *                        and as many steps between as they need; from 513 bytes on others go AVX2's way; sets go by
 *                        half lines from 257 bytes on, sizes apart, and above 1024. Not asked where page_edge is a
 *                        branch
 *   set_whole_from       sets from here on, to 1024 bytes, go by whole lines: from 257 bytes on unless stores_halved;
 *                        SIZE_MAX where nobody has called it. Not asked where page_edge is a branch
 */
#define WHERRY_THRESHOLDS_MADE(X)                                                                                      \
    X(copy_loop_below)                                                                                                 \
    X(copy_ymm_below)                                                                                                  \
    X(copy_forward_below)                                                                                              \
    X(copy_by_source)                                                                                                  \
    X(copy_string_from)                                                                                                \
    X(copy_string_below)                                                                                               \
    X(copy_string_all_from)                                                                                            \
    X(copy_string_slow_ahead)                                                                                          \
    X(set_string_below)                                                                                                \
    X(stores_halved)                                                                                                   \
    X(copy_xmm_below)                                                                                                  \
    X(copy_stream_any_from)                                                                                            \
    X(copy_ahead_from)                                                                                                 \
    X(sum_source_page)                                                                                                 \
    X(touched_blocks)                                                                                                  \
    X(set_whole_from)

/* Offsets of those that assembly reads. */
#define COPY_REP_FROM 0
#define COPY_REP_TO 8
#define COPY_STREAM_FROM 16
#define SET_REP_FROM 24
#define SET_REP_TO 32
#define SET_STREAM_FROM 40
#define COPY_REP_SLOW_AHEAD 48
#define COPY_REP_ALL_FROM 56
#define COPY_REP_RECENT_FROM 64
#define SET_REP_RECENT_FROM 72
#define COPY_BACKWARD_AHEAD 80
#define COPY_YMM_FROM 88
#define COPY_SOURCE_LINES_TO 96
#define COPY_PARTS_FROM 104
#define COPY_STREAM_RECENT_FROM 112
#define SET_STREAM_RECENT_FROM 120
#define COPY_LOOP_BELOW 128
#define COPY_YMM_BELOW 136
#define COPY_FORWARD_BELOW 144
#define COPY_BY_SOURCE 152
#define COPY_STRING_FROM 160
#define COPY_STRING_BELOW 168
#define COPY_STRING_ALL_FROM 176
#define COPY_STRING_SLOW_AHEAD 184
#define SET_STRING_BELOW 192
#define STORES_HALVED 200
#define COPY_XMM_BELOW 208
#define COPY_STREAM_ANY_FROM 216
#define COPY_AHEAD_FROM 224
#define SUM_SOURCE_PAGE 232
#define SET_WHOLE_FROM 248

/* On many CPUs a load waits for an earlier store whose address has the same low twelve bits. Forward, with the
 * destination this little ahead of the source (mod ALIAS_BYTES), each load meets a store that is still on its way;
 * backward none does. Below ALIAS_FROM bytes a branch on that costs more than it gains where the distance changes from
 * call to call. Below ALIAS_FORWARD it gains only with both sides in L1, and costs a fifth farther out, where lines
 * should be asked for in ascending order; from there on recent.h tells.
 */
#define ALIAS_BYTES 4096
#define ALIAS_SPAN 1536
#define ALIAS_FROM 2049
#define ALIAS_FORWARD 4096

/* Copies by 32-byte vectors of at least so many bytes, where loops go forward whatever the distance, load them by
 * halves: from the L3 a Zen 3 serves those the faster who load more often (docs/performance-zen3.md). In L2, where two
 * sides that large are not, they take a twentieth less or more. With AVX-512 nobody has measured it. */
#define HALVES_FROM (256 << 10)

/* The least that copy_ymm_from can say. */
#define YMM_LEAST 1025

/* copy_source_lines_to above this is for 513 bytes too. */
#define SOURCE_LINES_ONE 1024

#ifndef __ASSEMBLER__
struct wherry_thresholds {
#define WHERRY_FIELD(field) size_t field;
    WHERRY_THRESHOLDS(WHERRY_FIELD)
    WHERRY_THRESHOLDS_MADE(WHERRY_FIELD)
#undef WHERRY_FIELD
};

#define WHERRY_OFFSET(field, offset)                                                                                   \
    _Static_assert(offsetof(struct wherry_thresholds, field) == (offset), "read by assembly")
WHERRY_OFFSET(copy_rep_from, COPY_REP_FROM);
WHERRY_OFFSET(copy_rep_to, COPY_REP_TO);
WHERRY_OFFSET(copy_stream_from, COPY_STREAM_FROM);
WHERRY_OFFSET(set_rep_from, SET_REP_FROM);
WHERRY_OFFSET(set_rep_to, SET_REP_TO);
WHERRY_OFFSET(set_stream_from, SET_STREAM_FROM);
WHERRY_OFFSET(copy_rep_slow_ahead, COPY_REP_SLOW_AHEAD);
WHERRY_OFFSET(copy_rep_all_from, COPY_REP_ALL_FROM);
WHERRY_OFFSET(copy_rep_recent_from, COPY_REP_RECENT_FROM);
WHERRY_OFFSET(set_rep_recent_from, SET_REP_RECENT_FROM);
WHERRY_OFFSET(copy_backward_ahead, COPY_BACKWARD_AHEAD);
WHERRY_OFFSET(copy_ymm_from, COPY_YMM_FROM);
WHERRY_OFFSET(copy_source_lines_to, COPY_SOURCE_LINES_TO);
WHERRY_OFFSET(copy_parts_from, COPY_PARTS_FROM);
WHERRY_OFFSET(copy_stream_recent_from, COPY_STREAM_RECENT_FROM);
WHERRY_OFFSET(set_stream_recent_from, SET_STREAM_RECENT_FROM);
WHERRY_OFFSET(copy_loop_below, COPY_LOOP_BELOW);
WHERRY_OFFSET(copy_ymm_below, COPY_YMM_BELOW);
WHERRY_OFFSET(copy_forward_below, COPY_FORWARD_BELOW);
WHERRY_OFFSET(copy_by_source, COPY_BY_SOURCE);
WHERRY_OFFSET(copy_string_from, COPY_STRING_FROM);
WHERRY_OFFSET(copy_string_below, COPY_STRING_BELOW);
WHERRY_OFFSET(copy_string_all_from, COPY_STRING_ALL_FROM);
WHERRY_OFFSET(copy_string_slow_ahead, COPY_STRING_SLOW_AHEAD);
WHERRY_OFFSET(set_string_below, SET_STRING_BELOW);
WHERRY_OFFSET(stores_halved, STORES_HALVED);
WHERRY_OFFSET(copy_xmm_below, COPY_XMM_BELOW);
WHERRY_OFFSET(copy_stream_any_from, COPY_STREAM_ANY_FROM);
WHERRY_OFFSET(copy_ahead_from, COPY_AHEAD_FROM);
WHERRY_OFFSET(sum_source_page, SUM_SOURCE_PAGE);
WHERRY_OFFSET(set_whole_from, SET_WHOLE_FROM);
#undef WHERRY_OFFSET

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* With what is made of the other fields. Whoever changes one of those in wherry_thresholds does this too. */
static inline struct wherry_thresholds wherry_thresholds_complete(struct wherry_thresholds t)
{
    /* The fault-tolerant copy may be asked for more than there is, and finds that out where the plan is asked. */
    const size_t other = smaller(smaller(t.copy_rep_from, t.copy_stream_from), SIZE_MAX / 2 + 1);
    const size_t zmm = smaller(t.copy_ymm_from, other);
    t.copy_forward_below = t.copy_backward_ahead ? smaller(zmm, ALIAS_FORWARD) : zmm;
    t.copy_loop_below = smaller(t.copy_source_lines_to, t.copy_forward_below);
    t.copy_by_source = t.copy_source_lines_to > SOURCE_LINES_ONE;
    t.copy_xmm_below = t.copy_backward_ahead ? smaller(other, ALIAS_FROM) : other;
    t.copy_ymm_below = t.copy_ymm_from == SIZE_MAX ? smaller(t.copy_xmm_below, HALVES_FROM) : t.copy_xmm_below;
    t.copy_string_from = smaller(larger(t.copy_rep_from, t.copy_rep_recent_from), t.copy_stream_from);
    t.copy_string_from = larger(t.copy_string_from, YMM_LEAST);
    if (t.copy_string_from >= t.copy_ymm_from)
        t.copy_string_from = SIZE_MAX;
    t.copy_string_below = smaller(smaller(t.copy_rep_to, t.copy_stream_from), WRITTEN_FROM);
    t.copy_string_all_from = t.copy_rep_slow_ahead ? t.copy_rep_all_from : 0;
    t.copy_string_slow_ahead = t.copy_rep_slow_ahead;
    t.set_string_below = smaller(smaller(t.set_rep_to, t.set_stream_from), WRITTEN_FROM);
    t.stores_halved = t.copy_ymm_from == YMM_LEAST;
    t.copy_stream_any_from = larger(t.copy_stream_from, t.copy_stream_recent_from);
    t.copy_ahead_from = t.copy_rep_from == SIZE_MAX ? SIZE_MAX : t.copy_parts_from;
    t.set_whole_from = t.stores_halved ? SIZE_MAX : 257;
    t.sum_source_page = t.copy_by_source && !t.stores_halved ? ~(size_t)(ALIAS_BYTES - 1) : SIZE_MAX;
    const size_t blocks =
        larger(t.copy_stream_recent_from >> (TOUCHED_BLOCK_LOG - 1), t.set_stream_recent_from >> TOUCHED_BLOCK_LOG);
    t.touched_blocks = smaller(blocks - blocks / 12, TOUCHED_TIME >> TOUCHED_UNIT_LOG);
    return t;
}

extern struct wherry_thresholds wherry_thresholds __attribute__((visibility("hidden")));
#endif

#endif
