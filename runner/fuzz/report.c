/* From a finding to a sentence, and to the case of wherry-run verify that looks at the same call. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static void target_text(char *text, size_t room, const struct target *t)
{
    const char *tier = fuzz_tier_name();
    if (t->kind == TARGET_ROUTINE)
        snprintf(text, room, "%s", t->name);
    else if (t->kind == TARGET_PUBLIC && *tier)
        snprintf(text, room, "%s@%s:%s", t->name, tier, t->function);
    else
        snprintf(text, room, "%s:%s", t->name, t->function);
}

static bool sets(const struct fuzz_call *call)
{
    return call->target->op == WHERRY_OP_set || call->target->op == WHERRY_OP_zero;
}

static void where(char *text, size_t room, const struct finding *f)
{
    int64_t a = f->address, dst = (int64_t)f->call.dst, src = (int64_t)f->call.src, n = (int64_t)f->call.n;
    /* What is read belongs to the nearer of the two: a routine may read and rewrite beside its destination. */
    int64_t from_src = a < src ? src - a : a - (src + n), from_dst = a < dst ? dst - a : a - (dst + n);
    bool source = !sets(&f->call) && !f->writing && from_src <= from_dst;
    int64_t begin = source ? src : dst;
    const char *name = source ? "source" : "destination";
    if (a < -65536 || a > ARENA + 65536)
        snprintf(text, room, "an address far from both buffers");
    else if (a < begin)
        snprintf(text, room, "%" PRId64 " B before the %s", begin - a, name);
    else if (a >= begin + n)
        snprintf(text, room, "%" PRId64 " B past the end of the %s", a - begin - n + 1, name);
    else
        snprintf(text, room, "byte %" PRId64 " of the %s", a - begin, name);
}

/* A byte of the source may lie beside the destination, which tells more of what went wrong; `at` from its begin. */
static void beside_destination(char *text, size_t room, int64_t at, int64_t n)
{
    const int64_t near = 4096;
    *text = '\0';
    if (at < 0 && at >= -near)
        snprintf(text, room, " (%" PRId64 " B before the destination)", -at);
    else if (at >= n && at < n + near)
        snprintf(text, room, " (%" PRId64 " B past the end of the destination)", at - n + 1);
}

static void what(char *text, size_t room, const struct finding *f)
{
    char place[96];
    int64_t n = (int64_t)f->call.n;
    switch (f->kind) {
    case FOUND_BYTE:
        snprintf(text, room, "byte %" PRId64 " is 0x%02x, expected 0x%02x", f->byte, f->got, f->expected);
        break;
    case FOUND_OUTSIDE:
        if (f->byte < 0)
            snprintf(text, room, "wrote %" PRId64 " B before the destination: 0x%02x is now 0x%02x", -f->byte,
                     f->expected, f->got);
        else
            snprintf(text, room, "wrote past the end of the destination, at byte %" PRId64 ": 0x%02x is now 0x%02x",
                     f->byte, f->expected, f->got);
        break;
    case FOUND_SOURCE:
        beside_destination(place, sizeof place, (int64_t)f->call.src + f->byte - (int64_t)f->call.dst, n);
        snprintf(text, room, "changed the source: byte %" PRId64 "%s was 0x%02x and is now 0x%02x", f->byte, place,
                 f->expected, f->got);
        break;
    case FOUND_RETURN:
        if (f->byte < -ARENA || f->byte > ARENA)
            snprintf(text, room, "returned an address outside both buffers");
        else
            snprintf(text, room, "returned an address %+" PRId64 " B from the right one (%s)", f->byte,
                     f->call.target->abi == ABI_MEMPCPY ? "destination + size" : "the destination");
        break;
    case FOUND_HANG:
        if (f->signo)
            snprintf(text, room, "did not return within 1.2 s of CPU time; stopped");
        else
            snprintf(text, room, "did not return within %d s; stopped", BLOCKED_AFTER);
        break;
    case FOUND_END:
        if (f->signo)
            snprintf(text, room, "ended the process by signal %d", f->signo);
        else
            snprintf(text, room, "ended the process with exit status %d", f->got);
        break;
    case FOUND_FAULT:
        where(place, sizeof place, f);
        if (f->signo == SIGSEGV)
            snprintf(text, room, "%s %s: a segmentation fault", f->writing ? "wrote" : "read", place);
        else
            snprintf(text, room, "crashed with signal %d", f->signo);
        break;
    default:
        snprintf(text, room, "nothing wrong (%" PRId64 " bytes)", n);
    }
}

void fuzz_message(char *text, size_t room, const struct finding *f)
{
    const struct fuzz_call *call = &f->call;
    char name[256], seen[192], thresholds[256], from[96] = "", value[32] = "";
    target_text(name, sizeof name, call->target);
    what(seen, sizeof seen, f);
    fuzz_thresholds_text(thresholds, sizeof thresholds, call->thresholds);
    if (!sets(call))
        snprintf(from, sizeof from, "source offset %zu, ", call->src % 4096);
    else if (call->target->abi == ABI_MEMSET)
        snprintf(value, sizeof value, ", value %d", call->c);
    int at = snprintf(text, room, "%s (%s, %zu bytes, %sdestination offset %zu%s", name,
                      wherry_op_names[call->target->op], call->n, from, call->dst % 4096, value);
    if (!sets(call))
        at += snprintf(text + at, room - (size_t)at, ", distance %+" PRId64, (int64_t)call->dst - (int64_t)call->src);
    snprintf(text + at, room - (size_t)at, "%s%s): %s", *thresholds ? ", thresholds " : "", thresholds, seen);
}

void fuzz_case(char *text, size_t room, const struct finding *f)
{
    const struct fuzz_call *call = &f->call;
    char name[256], peer[4300] = "";
    text[0] = '\0';
    if (call->thresholds % 2) /* verify has no words for thresholds of one's own */
        return;
    target_text(name, sizeof name, call->target);
    if (call->target->kind == TARGET_PEER)
        snprintf(peer, sizeof peer, " --peer '%s'", call->target->peer_path);
    size_t dst = call->dst, src = call->src, n = call->n;
    bool overlap = !sets(call) && src < dst + n && dst < src + n;
    int at = snprintf(text, room, "wherry-run verify %s%s --case '", name, peer);
    text += at;
    room -= (size_t)at;
    if (overlap)
        snprintf(text, room, "overlap:n=%zu,dist=%" PRId64 ",s=%zu,seed=1'", n, (int64_t)dst - (int64_t)src,
                 (src < dst ? src : dst) % 4096);
    else if (f->kind == FOUND_FAULT)
        snprintf(text, room, "guard:n=%zu,d=%zu,s=%zu,c=%d,at=%d,seed=1'", n,
                 dst < ARENA / 2 ? dst % 64 : (ARENA - dst - n) % 64,
                 src < ARENA / 2 ? src % 64 : (ARENA - src - n) % 64, call->c,
                 (src >= ARENA / 2) | (dst >= ARENA / 2) << 1);
    else
        snprintf(text, room, "sweep:n=%zu,d=%zu,s=%zu,c=%d,seed=1'", n, dst % 4096, src % 4096, call->c);
}
