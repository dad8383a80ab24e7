/* x87_fild64: Asami's copy through the floating-point registers, 64 bytes a turn.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n: 0 to 63 bytes, and what 64-byte turns leave, by rep movsb.
 * The x87 state (control word, status, tags, all eight registers, so MMX contents too) is saved before and restored
 * after. fnsave and not fsave: an exception that the caller left pending stays pending and is not raised here.
 * fnsave also re-initialises the unit, so the stack is empty, the precision is 64 bits and exceptions are masked,
 * whatever the caller had. Only the addresses of the last x87 instruction and its operand, which serve exception
 * handlers, lose their upper halves, as this save format has 32 bits for each.
 *
 * Eight fildq fill the register stack: eight loads in flight, where a 1996 Pentium had seven integer registers of 4
 * bytes. fild and fistp and not fld and fstp, which would quieten or trap on bit patterns that are signalling NaNs; an
 * 80-bit register has a 64-bit mantissa, so every 64-bit integer comes back as it was. The stack would give the words
 * back last one first; four fxch turn it so that the stores ascend.
 * Historic: everything but the 64-bit count.
 *
 * Registers: rdi dst cursor, rsi src cursor, rcx bytes left, rax dst.
 */
#include "../asm.h"

#define FNSAVE_BYTES 120 /* fnsave writes 108; with the return address, 120 keeps the stack 16-byte aligned */

ENTRY(wherry_routine_x87_fild64)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    cmpq    $64, %rcx
    jb      .Lfild64_0_to_63
    subq    $FNSAVE_BYTES, %rsp
    .cfi_adjust_cfa_offset FNSAVE_BYTES
    fnsave  (%rsp)
    .p2align 4
.Lfild64_64_or_more:
    fildq   (%rsi)
    fildq   8(%rsi)
    fildq   16(%rsi)
    fildq   24(%rsi)
    fildq   32(%rsi)
    fildq   40(%rsi)
    fildq   48(%rsi)
    fildq   56(%rsi)
    fxch    %st(7)          /* words from the top: 0 6 5 4 3 2 1 7 */
    fistpq  (%rdi)
    fxch    %st(5)          /* 1 5 4 3 2 6 7 */
    fistpq  8(%rdi)
    fxch    %st(3)          /* 2 4 3 5 6 7 */
    fistpq  16(%rdi)
    fxch    %st(1)          /* 3 4 5 6 7 */
    fistpq  24(%rdi)
    fistpq  32(%rdi)
    fistpq  40(%rdi)
    fistpq  48(%rdi)
    fistpq  56(%rdi)
    addq    $64, %rsi
    addq    $64, %rdi
    subq    $64, %rcx
    cmpq    $64, %rcx
    jae     .Lfild64_64_or_more
    frstor  (%rsp)
    addq    $FNSAVE_BYTES, %rsp
    .cfi_adjust_cfa_offset -FNSAVE_BYTES
.Lfild64_0_to_63:
    rep movsb
    ret
END(wherry_routine_x87_fild64)
