#include "inlined.h"

#include <stdio.h>
#include <string.h>

#include "packet_loops.h"
#include "packets.tmpl.h"

__attribute__((noinline)) static void *padded_function(void *dst, const void *src, size_t n)
{
    return wherry_copy_padded(dst, capacity_now, src, capacity_now, n);
}

#define OF(name) padded_##name
#define CALL(dst, src, n) ((void)fn, padded_here(dst, src, n, capacity_now))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define OF(name) memcpy_##name
#define CALL(dst, src, n) ((void)fn, (memcpy)(dst, src, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define OF(name) wherry_##name
#define CALL(dst, src, n) ((void)fn, wherry_memcpy(dst, src, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"

#define CONSTANT(bytes)                                                                                                \
    POOL_LOOPS(constant_padded, bytes, padded_here(dst, src, bytes, capacity_now))                                     \
    POOL_LOOPS(constant_memcpy, bytes, memcpy_here(dst, src, bytes))
SIZES(CONSTANT)

#define PADDED_ENTRY(bytes) ENTRY(constant_padded, bytes),
#define MEMCPY_ENTRY(bytes) ENTRY(constant_memcpy, bytes),
static const struct constant_loops constant_padded[] = {SIZES(PADDED_ENTRY){0, {NULL}}},
                                   constant_memcpy[] = {SIZES(MEMCPY_ENTRY){0, {NULL}}};

enum form { IN_FUNCTION, PADDED, MEMCPY, WHERRY, PADDED_N, MEMCPY_N, FORM_COUNT };

static const struct {
    const char *name;
    loop_fn *fn; /* what is called where no loop is meant: to verify */
    loop *loops[WALK_COUNT][MODE_COUNT];
} forms[FORM_COUNT] = {
    [IN_FUNCTION] = {"padded", padded_function, {{NULL}}},
    [PADDED] = {"inlined_padded", padded_function, LOOPS(padded)},
    [MEMCPY] = {"inlined_memcpy", memcpy, LOOPS(memcpy)},
    [WHERRY] = {"inlined_wherry", wherry_memcpy, LOOPS(wherry)},
    [PADDED_N] = {"inlined_padded_n", padded_function, {{NULL}}},
    [MEMCPY_N] = {"inlined_memcpy_n", memcpy, {{NULL}}},
};

void targets_add_inlined(struct target_list *list)
{
    for (unsigned form = 0; form < FORM_COUNT; form++) {
        targets_add_known(list, forms[form].name, (void (*)(void))forms[form].fn, form);
        list->items[list->count - 1].kind = TARGET_INLINED;
    }
}

loop *inlined_loop(const struct target *target, enum walk_kind kind, enum mode mode, size_t size, bool mix,
                   const char **reason)
{
    const enum form form = (enum form)target->links;
    const struct packet_loops *own = target->packets;
    if (own && own->layout != PACKET_LOOPS_LAYOUT) {
        *reason = "its loops are those of another wherry-run; make peers builds them anew";
        return NULL;
    }
    loop *found = own ? own->loops[kind][mode] : forms[form].loops[kind][mode];
    if (found || (!own && form == IN_FUNCTION))
        return found;
    const struct constant_loops *constant = own ? own->constants : form == PADDED_N ? constant_padded : constant_memcpy;
    for (; !mix && kind == WALK_POOL && constant->size; constant++)
        if (constant->size == size)
            return constant->loops[mode];
    *reason = "its size is a constant in the code: walk=pool, and 1, 20, 40, 60, 64, 65, 100, 128, 200 or 256 bytes";
    return NULL;
}

const char *inlined_check(const struct target *target, size_t n)
{
    static char problem[160];
    static unsigned char from[4 * CAPACITY], to[4 * CAPACITY];
    const bool padded = target->fn == (void (*)(void))padded_function;
    loop_fn *fn = (loop_fn *)target->fn;
    n = n < CAPACITY ? n : CAPACITY;
    const size_t rooms[] = {n, n + 1, (n + 63) / 64 * 64, n < 256 ? 256 : n, CAPACITY};
    for (size_t k = 0; k < sizeof rooms / sizeof rooms[0]; k++) {
        const size_t room = padded ? rooms[k] : n, at = CAPACITY + k * 13;
        for (size_t i = 0; i < sizeof from; i++) {
            from[i] = (unsigned char)(i * 167 + (i >> 8) + k);
            to[i] = (unsigned char)~from[i];
        }
        capacity_now = room;
        const bool returned = fn(to + at, from + at, n) == to + at;
        capacity_now = CAPACITY;
        for (size_t i = 0; i < sizeof from; i++) {
            const bool copied = i >= at && i < at + n, spare = i >= at + n && i < at + room;
            if (!spare && to[i] != (copied ? from[i] : (unsigned char)~from[i])) {
                snprintf(problem, sizeof problem, "%s of %zu bytes with room for %zu: byte %td is wrong", target->name,
                         n, room, (ptrdiff_t)i - (ptrdiff_t)at);
                return problem;
            }
        }
        if (!returned)
            return "did not return its destination";
    }
    return NULL;
}
