/* x87_fst64: zero through the floating-point unit, 64 bytes a turn; row zero7 (fstl) of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n: 0 to 63 bytes, and what 64-byte turns leave, by rep stosb.
 * The x87 stack must have a free register, as the ABI asks of every caller (MMX code: emms first); it is empty again
 * on return. The condition codes of the status word are lost; nothing else is touched and nothing is saved.
 *
 * +0.0 as a double is eight zero bytes and storing it raises nothing, so one fldz serves every turn, and eight fstl
 * write what sixteen 32-bit stores would.
 * Historic: fstl of one zero. Added: the 64 bytes a turn (the mail gives no number) and the tail.
 *
 * Registers: rdi cursor, rcx bytes left, r8 dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_x87_fst64)
    movq    %rdi, %r8
    movq    %rdx, %rcx
    cmpq    $64, %rcx
    jb      .Lfst64_0_to_63
    fldz
    .p2align 4
.Lfst64_64_or_more:
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
    jae     .Lfst64_64_or_more
    fstp    %st(0)
.Lfst64_0_to_63:
    xorl    %eax, %eax
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_x87_fst64)
