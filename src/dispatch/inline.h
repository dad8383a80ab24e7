/* How far small copies and sets go on in place (copy_avx2.tmpl.S, set_avx2.tmpl.S): of n - 16 the first value that does
 * not. Where the text for AVX2 stands first, this word tells size and tier at once: WHERRY_INLINE with AVX2;
 * else, and before a constructor has run, 0. Sizes below 16 ask for the tier on their own way.
 */
#ifndef WHERRY_INLINE_H
#define WHERRY_INLINE_H

#define WHERRY_INLINE (64 - 16 + 1)

#ifndef __ASSEMBLER__
#include <stdint.h>

extern uint32_t wherry_inline __attribute__((visibility("hidden")));
#endif

#endif
