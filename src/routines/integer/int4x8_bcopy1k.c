/* int4x8_bcopy1k: Rizzo's good_bcopy, int4x8 below 1024 bytes and the stock bcopy from there on.
 *
 * Disjoint. n must be a multiple of 32. Below 1024 clobbers no x87, MMX or vector state; above, what libc clobbers.
 * His loop broke even with bcopy at about 1 KiB. bcopy is memmove with its arguments the other way round, so libc's
 * memmove serves: the one call out of the library that a routine here makes.
 */
#include "../plain.h"
#include "word.h"

#include <string.h>

void *wherry_routine_int4x8_bcopy1k(void *dst_, const void *src_, size_t n)
{
    word *dst = dst_;
    const word *src = src_;
    if (__builtin_expect(n >= 1024, 0))
        return memmove(dst_, src_, n);
    AS_WRITTEN
    for (; n >= 32; n -= 32) {
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
    }
    return dst_;
}
