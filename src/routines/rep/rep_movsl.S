/* rep_movsl: the stock bcopy of 1996, which Asami's mail takes as its yardstick.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n. Clobbers no x87, MMX or vector state.
 * Four bytes a move with movsl, and the 0 to 3 that are left with movsb. The original began with cld; the ABI already
 * promises a clear direction flag. The count is 64 bits wide here.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_movsl)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    shrq    $2, %rcx
    rep movsl
    movl    %edx, %ecx
    andl    $3, %ecx
    rep movsb
    ret
END(wherry_routine_rep_movsl)
