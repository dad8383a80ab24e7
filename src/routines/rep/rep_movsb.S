/* rep_movsb: one string instruction moves everything.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n.
 * Since Ivy Bridge (ERMS) microcode moves whole lines and needs no read of the destination line first; it pays
 * 9 to 40 ns to start, so it loses below a few hundred bytes. FSRM (Ice Lake, Zen 3) makes short ones cheaper.
 */
#include "../asm.h"

ENTRY(wherry_routine_rep_movsb)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    rep movsb
    ret
END(wherry_routine_rep_movsb)
