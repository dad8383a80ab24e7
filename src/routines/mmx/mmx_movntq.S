/* mmx_movntq: mmx_movq with stores that go past the caches.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n: 0 to 127 bytes, the head and the tail by rep movsb.
 * From 128 bytes on the contents of the MMX (x87) registers are lost, and emms leaves the x87 stack empty as the ABI
 * asks. sfence orders the stores before whatever the caller stores next.
 * A non-temporal store saves the read of the destination line only when the whole line is written before its buffer is
 * given up. So the head steps up to a line (1 to 63 bytes, if any) and each turn fills one.
 *
 * Registers: rdi dst cursor, rsi src cursor, rdx bytes left, rcx bytes for the string instruction, rax dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_mmx_movntq)
    movq    %rdi, %rax
    cmpq    $128, %rdx
    jb      .Lmovntq_0_to_127
    movl    %edi, %ecx
    negl    %ecx
    andl    $63, %ecx
    subq    %rcx, %rdx
    rep movsb
    .p2align 4
.Lmovntq_64_or_more:
    movq    (%rsi), %mm0
    movq    8(%rsi), %mm1
    movq    16(%rsi), %mm2
    movq    24(%rsi), %mm3
    movq    32(%rsi), %mm4
    movq    40(%rsi), %mm5
    movq    48(%rsi), %mm6
    movq    56(%rsi), %mm7
    movntq  %mm0, (%rdi)
    movntq  %mm1, 8(%rdi)
    movntq  %mm2, 16(%rdi)
    movntq  %mm3, 24(%rdi)
    movntq  %mm4, 32(%rdi)
    movntq  %mm5, 40(%rdi)
    movntq  %mm6, 48(%rdi)
    movntq  %mm7, 56(%rdi)
    addq    $64, %rsi
    addq    $64, %rdi
    subq    $64, %rdx
    cmpq    $64, %rdx
    jae     .Lmovntq_64_or_more
    sfence
    emms
.Lmovntq_0_to_127:
    movq    %rdx, %rcx
    rep movsb
    ret
END(wherry_routine_mmx_movntq)
