/* rep_stosq: generic_bzero grown to the 64-bit word.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * Eight bytes a store with stosq, and the 0 to 7 that are left with stosb.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_stosq)
    movq    %rdi, %r8       /* rax holds the zero that stosq stores */
    movq    %rdx, %rcx
    shrq    $3, %rcx
    xorl    %eax, %eax
    rep stosq
    movl    %edx, %ecx
    andl    $7, %ecx
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_rep_stosq)
