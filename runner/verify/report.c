/* From what was seen to a sentence. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verify.h"

void fail(struct unit *unit, const struct vcase *one, const void *dst, const void *src, const char *state,
          const char *format, ...)
{
    if (unit->failed)
        return;
    unit->failed = true;
    struct verify_failure *f = &unit->failure;
    const struct target *t = unit->target;
    const bool two_sided = src || op_copies(t->op); /* a null source is one as well */
    f->at = *one;
    f->dst_off = (unsigned)((uintptr_t)dst % PAGE);
    f->src_off = two_sided ? (unsigned)((uintptr_t)src % PAGE) : 0;
    f->distance = two_sided ? (int64_t)((uintptr_t)dst - (uintptr_t)src) : 0;
    f->byte = INT64_MIN;
    f->expected = f->got = -1;
    f->ordinal = unit->ordinal;
    snprintf(f->state, sizeof f->state, "%s", state ? state : "");
    char where[128] = "", value[32] = "", addresses[64] = "";
    if (two_sided)
        snprintf(where, sizeof where, ", source offset %u, destination offset %u, distance %+" PRId64, f->src_off,
                 f->dst_off, f->distance);
    else
        snprintf(where, sizeof where, ", destination offset %u", f->dst_off);
    if (is_set(t) && t->abi == ABI_MEMSET)
        snprintf(value, sizeof value, ", value %d", value_of(t, one->c));
    else if (op_sums(t->op))
        snprintf(value, sizeof value, ", after 0x%08x", (unsigned)one->c);
    if (unit->family->tells_addresses && dst)
        snprintf(addresses, sizeof addresses, ", destination at %p", dst);
    const char *name = t->kind == TARGET_ROUTINE ? t->name : selector(t);
    int at = snprintf(f->message, sizeof f->message, "%s (%s, %" PRIu64 " bytes%s%s%s): ", name, wherry_op_names[t->op],
                      one->n, where, addresses, value);
    va_list arguments;
    va_start(arguments, format);
    if (at > 0 && (size_t)at < sizeof f->message)
        vsnprintf(f->message + at, sizeof f->message - (size_t)at, format, arguments);
    va_end(arguments);
}

void fail_byte(struct unit *unit, const struct vcase *one, const uint8_t *dst, const uint8_t *src, const char *where,
               int64_t byte, int expected, int got)
{
    if (unit->failed)
        return;
    if (strcmp(where, "destination") == 0) {
        if (byte < 0)
            fail(unit, one, dst, src, "", "wrote %" PRId64 " B before the destination: 0x%02x is now 0x%02x", -byte,
                 expected, got);
        else if ((uint64_t)byte >= one->n)
            fail(unit, one, dst, src, "",
                 "wrote past the end of the destination, at byte %" PRId64 ": 0x%02x is now 0x%02x", byte, expected,
                 got);
        else
            fail(unit, one, dst, src, "", "byte %" PRId64 " is 0x%02x, expected 0x%02x", byte, got, expected);
    } else if (byte < 0) {
        fail(unit, one, dst, src, "source", "wrote %" PRId64 " B before the source: 0x%02x is now 0x%02x", -byte,
             expected, got);
    } else if ((uint64_t)byte >= one->n) {
        fail(unit, one, dst, src, "source",
             "wrote past the end of the source, at byte %" PRId64 ": 0x%02x is now 0x%02x", byte, expected, got);
    } else {
        fail(unit, one, dst, src, "source", "changed the source: byte %" PRId64 " was 0x%02x and is now 0x%02x", byte,
             expected, got);
    }
    unit->failure.byte = byte;
    unit->failure.expected = expected;
    unit->failure.got = got;
}
