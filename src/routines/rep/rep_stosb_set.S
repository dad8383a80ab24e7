/* rep_stosb_set: set with one string instruction.
 *
 * dst rdi, c esi (its low byte), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * The same instruction as rep_stosb, with the byte that the caller asks for.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_stosb_set)
    movq    %rdi, %r8       /* al holds the byte that stosb stores */
    movq    %rdx, %rcx
    movl    %esi, %eax
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_rep_stosb_set)
