/* rep_stosb: zero with one string instruction.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * Since Ivy Bridge (ERMS) microcode writes whole lines, and large fills need no read of the line first.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_stosb)
    movq    %rdi, %r8       /* rax holds the zero that stosb stores */
    movq    %rdx, %rcx
    xorl    %eax, %eax
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_rep_stosb)
