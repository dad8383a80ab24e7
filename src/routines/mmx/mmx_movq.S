/* mmx_movq: through the eight MMX registers, 64 bytes a turn.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n: 0 to 63 bytes, and what 64-byte turns leave, by rep movsb.
 * The MMX registers are the x87 ones. From 64 bytes on their contents are lost, and emms leaves the x87 stack empty as
 * the ABI asks; below that they are not touched.
 * x87_fild64 without its conversions, its stack order and its 108 bytes of saved state: what Pulavarty suggested to
 * Anand in place of integer registers.
 *
 * Registers: rdi dst cursor, rsi src cursor, rcx bytes left, rax dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_mmx_movq)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    cmpq    $64, %rcx
    jb      .Lmovq_0_to_63
    .p2align 4
.Lmovq_64_or_more:
    movq    (%rsi), %mm0
    movq    8(%rsi), %mm1
    movq    16(%rsi), %mm2
    movq    24(%rsi), %mm3
    movq    32(%rsi), %mm4
    movq    40(%rsi), %mm5
    movq    48(%rsi), %mm6
    movq    56(%rsi), %mm7
    movq    %mm0, (%rdi)
    movq    %mm1, 8(%rdi)
    movq    %mm2, 16(%rdi)
    movq    %mm3, 24(%rdi)
    movq    %mm4, 32(%rdi)
    movq    %mm5, 40(%rdi)
    movq    %mm6, 48(%rdi)
    movq    %mm7, 56(%rdi)
    addq    $64, %rsi
    addq    $64, %rdi
    subq    $64, %rcx
    cmpq    $64, %rcx
    jae     .Lmovq_64_or_more
    emms
.Lmovq_0_to_63:
    rep movsb
    ret
END(wherry_routine_mmx_movq)
