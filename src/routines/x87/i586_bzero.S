/* i586_bzero: the FPU for large sizes with its state saved, integers for small ones; row zeroC of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n.
 * The x87 state (so MMX contents too) is saved before and restored after by fnsave and frstor, which x87_fild64
 * tells more about; a size below 256 does not repay that and touches no x87 register.
 *
 * On the Pentium fstl was the only store of 8 bytes, and it went to the bus as one transfer when aligned: so the head
 * is stepped up to 8 bytes first. The tail, and every small size, goes by 4-byte stores and then bytes.
 * Historic: FPU for large, saved state, integers for small. Ours: the numbers (256, 64 a turn), since the mail names
 * only the routine.
 *
 * Registers: rdi cursor, rcx bytes left, eax zero, r8 dst.
 */
#include "../asm.h"

#define FNSAVE_BYTES 120 /* fnsave writes 108; with the return address, 120 keeps the stack 16-byte aligned */

ENTRY(wherry_routine_i586_bzero)
    movq    %rdi, %r8
    movq    %rdx, %rcx
    xorl    %eax, %eax
    cmpq    $256, %rcx
    jb      .Li586_0_to_255
.Li586_head_0_to_7:
    testl   $7, %edi
    jz      .Li586_aligned
    movb    %al, (%rdi)
    incq    %rdi
    decq    %rcx
    jmp     .Li586_head_0_to_7
.Li586_aligned:
    subq    $FNSAVE_BYTES, %rsp
    .cfi_adjust_cfa_offset FNSAVE_BYTES
    fnsave  (%rsp)
    fldz
    .p2align 4
.Li586_64_or_more:
    fstl    (%rdi)
    fstl    8(%rdi)
    fstl    16(%rdi)
    fstl    24(%rdi)
    fstl    32(%rdi)
    fstl    40(%rdi)
    fstl    48(%rdi)
    fstl    56(%rdi)
    addq    $64, %rdi
    subq    $64, %rcx
    cmpq    $64, %rcx
    jae     .Li586_64_or_more
    frstor  (%rsp)          /* the zero on the stack goes with the rest */
    addq    $FNSAVE_BYTES, %rsp
    .cfi_adjust_cfa_offset -FNSAVE_BYTES
.Li586_0_to_255:
    cmpq    $4, %rcx
    jb      .Li586_0_to_3
.Li586_4_or_more:
    movl    %eax, (%rdi)
    addq    $4, %rdi
    subq    $4, %rcx
    cmpq    $4, %rcx
    jae     .Li586_4_or_more
.Li586_0_to_3:
    testq   %rcx, %rcx
    jz      .Li586_done
.Li586_byte:
    movb    %al, (%rdi)
    incq    %rdi
    decq    %rcx
    jnz     .Li586_byte
.Li586_done:
    movq    %r8, %rax
    ret
END(wherry_routine_i586_bzero)
