/* int4x8_prefetch: int4x8 with the prefetch that Rizzo says to sprinkle for better taste.
 *
 * Disjoint. n must be a multiple of 32. Clobbers no x87, MMX or vector state.
 * Each turn asks for the source line 256 bytes ahead, four lines, which hides about a last-level hit at this loop's
 * speed; the distance is ours, since the mail names none. Near the end that lies behind the source: a prefetch never
 * faults and reads nothing that a program could see, and the address is made as an integer because a pointer may
 * not leave its object.
 */
#include "../plain.h"
#include "word.h"

#include <xmmintrin.h>

enum { AHEAD_BYTES = 256 };

void *wherry_routine_int4x8_prefetch(void *dst_, const void *src_, size_t n)
{
    word *dst = dst_;
    const word *src = src_;
    AS_WRITTEN
    for (; n >= 32; n -= 32) {
        _mm_prefetch((const char *)((uintptr_t)src + AHEAD_BYTES), _MM_HINT_T0);
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
        *dst++ = *src++;
    }
    return dst_;
}
