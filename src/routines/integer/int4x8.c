/* int4x8: Rizzo's fast_bcopy, four 8-byte words a turn and no start-up at all.
 *
 * Disjoint. n must be a multiple of 32, as packets padded to 32 are. Clobbers no x87, MMX or vector state.
 * Each word is stored before the next is loaded, as his loop says. Historic but for the argument order, the return
 * value and a size of 64 bits, where his was an int.
 */
#include "../plain.h"
#include "word.h"

void *wherry_routine_int4x8(void *dst_, const void *src_, size_t n)
{
    word *dst = dst_;
    const word *src = src_;
    AS_WRITTEN
    for (; n >= 32; n -= 32) {
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
    }
    return dst_;
}
