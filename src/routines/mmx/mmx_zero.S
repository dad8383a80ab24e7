/* mmx_zero: zero through one MMX register, 64 bytes a turn.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n: 0 to 63 bytes, and what 64-byte turns leave, by rep stosb.
 * The MMX registers are the x87 ones. From 64 bytes on their contents are lost, and emms leaves the x87 stack empty as
 * the ABI asks; below that they are not touched.
 * Evans tried MMX in simple tests and found that stores of 64 bits gain nothing where no cache holds the buffer, as they
 * do through the x87 unit; he gives no figure and no code.
 *
 * Registers: rdi cursor, rcx bytes left, r8 dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_mmx_zero)
    movq    %rdi, %r8
    movq    %rdx, %rcx
    cmpq    $64, %rcx
    jb      .Lzero_0_to_63
    pxor    %mm0, %mm0
    .p2align 4
.Lzero_64_or_more:
    movq    %mm0, (%rdi)
    movq    %mm0, 8(%rdi)
    movq    %mm0, 16(%rdi)
    movq    %mm0, 24(%rdi)
    movq    %mm0, 32(%rdi)
    movq    %mm0, 40(%rdi)
    movq    %mm0, 48(%rdi)
    movq    %mm0, 56(%rdi)
    addq    $64, %rdi
    subq    $64, %rcx
    cmpq    $64, %rcx
    jae     .Lzero_64_or_more
    emms
.Lzero_0_to_63:
    xorl    %eax, %eax
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_mmx_zero)
