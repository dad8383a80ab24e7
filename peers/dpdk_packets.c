/* Copies of packets as a program of DPDK's has them, inlined in loops of its own: rte_memcpy (COPY 1), and compiled by
 * the same options what it is compared with: libc's memcpy (2) and wherry_copy_padded (3); of a variable size, or
 * CONSTANT ones. */
#include <rte_memcpy.h>
#include <stddef.h>

#include "packet_loops.h"
#include "packets.tmpl.h"

#define EXPORTED __attribute__((visibility("default"), aligned(64)))
extern struct packet_loops wherry_packet_loops;

/* Where the copy itself calls them: memcpy of a constant size, and what wherry_copy_padded has no room for. */
__attribute__((visibility("hidden"))) void *wherry_memcpy(void *dst, const void *src, size_t n)
{
    return wherry_packet_loops.wherry(dst, src, n);
}

#if COPY == 1
EXPORTED void *memcpy(void *dst, const void *src, size_t n) { return rte_memcpy(dst, src, n); }

static inline void *rte_here(void *dst, const void *src, size_t n)
{
    void *copied = rte_memcpy(dst, src, n);
    __asm__ volatile("" : : : "memory");
    return copied;
}
#define HERE(dst, src, n) rte_here(dst, src, n)
#elif COPY == 2
EXPORTED void *memcpy(void *dst, const void *src, size_t n) { return wherry_packet_loops.libc(dst, src, n); }
#ifdef CONSTANT
#define HERE(dst, src, n) memcpy_here(dst, src, n)
#else
#define HERE(dst, src, n) wherry_packet_loops.libc(dst, src, n)
#endif
#else
EXPORTED void *memcpy(void *dst, const void *src, size_t n) { return wherry_copy_padded(dst, n, src, n, n); }
#define HERE(dst, src, n) padded_here(dst, src, n, capacity_now)
#endif

#ifdef CONSTANT
#define CONSTANT_LOOPS(bytes) POOL_LOOPS(constant, bytes, HERE(dst, src, bytes))
SIZES(CONSTANT_LOOPS)
#define CONSTANT_ENTRY(bytes) ENTRY(constant, bytes),
#else
#define OF(name) variable_##name
#define CALL(dst, src, n) ((void)fn, HERE(dst, src, n))
#define AFTER BYTE_WRITTEN
#include "loops.tmpl.h"
#endif

EXPORTED struct packet_loops wherry_packet_loops = {
    .layout = PACKET_LOOPS_LAYOUT,
#ifdef CONSTANT
    .constants = {SIZES(CONSTANT_ENTRY){0, {NULL}}},
#else
    .loops = LOOPS(variable),
#endif
};
