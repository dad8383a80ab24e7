/* rep_stosl: zero four bytes a store with one string instruction; row zero0 of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. n must be a multiple of 4: a tail would make it generic_bzero,
 * which is another row. Clobbers no x87, MMX or vector state.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_stosl)
    movq    %rdi, %r8       /* rax holds the zero that stosl stores */
    movq    %rdx, %rcx
    shrq    $2, %rcx
    xorl    %eax, %eax
    rep stosl
    movq    %r8, %rax
    ret
END(wherry_routine_rep_stosl)
