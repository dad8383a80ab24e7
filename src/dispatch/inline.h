/* How far small copies and sets go on in place (copy_avx2.tmpl.S, set_avx2.tmpl.S): of n - 16 the first value that does
 * not. Where the text for AVX2 stands first, the comparison with this word tells size and tier at once: WHERRY_INLINE
 * with AVX2; else, and before a constructor has run, 0. Sizes below 16 ask for the tier on their own way.
 */
#ifndef WHERRY_INLINE_H
#define WHERRY_INLINE_H

#include <stdint.h>

enum { WHERRY_INLINE = 64 - 16 + 1 };

extern uint64_t wherry_inline __attribute__((visibility("hidden")));

#endif
