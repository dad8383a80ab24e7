/* i486_bzero: unrolled integer stores, big chunks first and then smaller ones; row zeroB of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * On the 486 a 4-byte store of a register took one clock where stosl took more, and a taken jump took three: hence
 * chunks of 64 bytes, then of 16, then of 4, and bytes at the end.
 * Historic: the descending chunks of 32-bit stores. Ours: the sizes of the chunks, since the mail names only the
 * routine.
 *
 * Registers: rdi cursor, rcx bytes left, edx zero, rax dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_i486_bzero)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    xorl    %edx, %edx
    subq    $64, %rcx
    jb      .Li486_0_to_63
    .p2align 4
.Li486_64_or_more:
    movl    %edx, (%rdi)
    movl    %edx, 4(%rdi)
    movl    %edx, 8(%rdi)
    movl    %edx, 12(%rdi)
    movl    %edx, 16(%rdi)
    movl    %edx, 20(%rdi)
    movl    %edx, 24(%rdi)
    movl    %edx, 28(%rdi)
    movl    %edx, 32(%rdi)
    movl    %edx, 36(%rdi)
    movl    %edx, 40(%rdi)
    movl    %edx, 44(%rdi)
    movl    %edx, 48(%rdi)
    movl    %edx, 52(%rdi)
    movl    %edx, 56(%rdi)
    movl    %edx, 60(%rdi)
    addq    $64, %rdi
    subq    $64, %rcx
    jae     .Li486_64_or_more
.Li486_0_to_63:
    addq    $64 - 16, %rcx
    jnc     .Li486_0_to_15
.Li486_16_or_more:
    movl    %edx, (%rdi)
    movl    %edx, 4(%rdi)
    movl    %edx, 8(%rdi)
    movl    %edx, 12(%rdi)
    addq    $16, %rdi
    subq    $16, %rcx
    jae     .Li486_16_or_more
.Li486_0_to_15:
    addq    $16 - 4, %rcx
    jnc     .Li486_0_to_3
.Li486_4_or_more:
    movl    %edx, (%rdi)
    addq    $4, %rdi
    subq    $4, %rcx
    jae     .Li486_4_or_more
.Li486_0_to_3:
    addq    $4, %rcx
    jz      .Li486_done
.Li486_byte:
    movb    %dl, (%rdi)
    incq    %rdi
    decq    %rcx
    jnz     .Li486_byte
.Li486_done:
    ret
END(wherry_routine_i486_bzero)
