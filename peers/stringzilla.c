/* StringZilla's routines of one TIER (haswell, skylake) as functions with the plain names. They are inlined here, so
 * that nothing is paid for the other order of arguments and the value returned. */
#include <stddef.h>
#include <stringzilla/types.h>

#include <stringzilla/memory.h>

#define JOIN(verb, tier) sz_##verb##_##tier
#define ROUTINE(verb, tier) JOIN(verb, tier)
#define PEER __attribute__((visibility("default"), aligned(64)))

PEER void *memcpy(void *dst, const void *src, size_t n)
{
    ROUTINE(copy, TIER)(dst, src, n);
    return dst;
}

PEER void *memmove(void *dst, const void *src, size_t n)
{
    ROUTINE(move, TIER)(dst, src, n);
    return dst;
}

PEER void *memset(void *dst, int c, size_t n)
{
    ROUTINE(fill, TIER)(dst, n, (unsigned char)c);
    return dst;
}
