/* int_prefetch64_from, int_prefetch64_to: Anand's copies through integer registers, for misaligned buffers.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n. Clobbers no x87, MMX or vector state.
 * A Pentium III moved data with rep movsl at half speed or less when a pointer was not a multiple of 8. So, from 64
 * bytes on and when the source (_from) or the destination (_to) is not 8-aligned, 64 bytes a turn go through two
 * integer registers. Every other size, every aligned one and the tail go by rep movsl and rep movsb as before.
 * Each turn begins with plain loads of the words 32 and 64 bytes ahead, whose values are dropped: they bring in the
 * next lines of 32 bytes, as prefetch instructions would, on CPUs without those. The word at 64 belongs to the next
 * turn and is touched only when more than 67 bytes are left, so that nothing past the end is read.
 * Historic: all of it. The moves stay 32 bits wide and the registers two, since those are the subject; with 64-bit
 * moves it would be int_unrolled64. Left out: the fix-up table for faults, which belongs to the fault-tolerant copies.
 *
 * Registers: rdi dst cursor, rsi src cursor, rcx bytes left, edx and r8d the words on their way, rax dst.
 */
#include "../asm.h"

.macro MOVE_8 at
    movl    \at(%rsi), %edx
    movl    \at + 4(%rsi), %r8d
    movl    %edx, \at(%rdi)
    movl    %r8d, \at + 4(%rdi)
.endm

.macro INT_PREFETCH64 name, pointer
ENTRY(wherry_routine_\name)
    movq    %rdi, %rax
    movq    %rdx, %rcx
    cmpq    $64, %rcx
    jb      .L\name\()_string
    testl   $7, \pointer
    jz      .L\name\()_string
    .p2align 4
.L\name\()_64_or_more:
    movl    32(%rsi), %edx
    cmpq    $67, %rcx
    jbe     .L\name\()_touched
    movl    64(%rsi), %edx
.L\name\()_touched:
    MOVE_8  0
    MOVE_8  8
    MOVE_8  16
    MOVE_8  24
    MOVE_8  32
    MOVE_8  40
    MOVE_8  48
    MOVE_8  56
    addq    $64, %rsi
    addq    $64, %rdi
    subq    $64, %rcx
    cmpq    $64, %rcx
    jae     .L\name\()_64_or_more
.L\name\()_string:
    movl    %ecx, %edx
    andl    $3, %edx
    shrq    $2, %rcx
    rep movsl
    movl    %edx, %ecx
    rep movsb
    ret
END(wherry_routine_\name)
.endm

INT_PREFETCH64 int_prefetch64_from, %esi
INT_PREFETCH64 int_prefetch64_to, %edi
