/* i686_pagezero: look first, write only where something is not zero; row zeroD of Evans' tables.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n. Clobbers no x87, MMX or vector state.
 * repe scasl runs over words that are zero already. At a word that is not, sixteen words from there on (or what is
 * left) are zeroed with rep stosl, on the guess that dirt comes in lumps, and the search goes on behind them. Over
 * memory that is zero already nothing is written, so no line is dirtied and the speed is that of reading. It pays to
 * ask this of a page that is idle-zeroed or fresh; over dirty memory it costs a read more than the others.
 * Historic: the search, the fill and its sixteen words, for one page of 4 KiB. Added: any n, with the 0 to 3 bytes that
 * are left looked at one by one.
 *
 * Registers: rdi cursor, rcx words (for the string instructions), rdx words left behind a fill, rsi n, r8 dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_i686_pagezero)
    movq    %rdi, %r8
    movq    %rdx, %rsi
    movq    %rdx, %rcx
    shrq    $2, %rcx
    xorl    %eax, %eax      /* what scasl compares with and stosl stores */
.Lpagezero_search:
    testq   %rcx, %rcx      /* repe scasl leaves the flags alone when there is nothing to scan */
    jz      .Lpagezero_0_to_3
    repe scasl
    je      .Lpagezero_0_to_3
    subq    $4, %rdi        /* back onto the word that is not zero */
    incq    %rcx
    movq    %rcx, %rdx
    movl    $16, %r9d
    cmpq    %r9, %rcx
    cmovaq  %r9, %rcx
    subq    %rcx, %rdx
    rep stosl
    movq    %rdx, %rcx
    jmp     .Lpagezero_search
.Lpagezero_0_to_3:
    andl    $3, %esi
    jz      .Lpagezero_done
.Lpagezero_byte:
    cmpb    $0, (%rdi)
    je      .Lpagezero_byte_is_zero
    movb    $0, (%rdi)
.Lpagezero_byte_is_zero:
    incq    %rdi
    decl    %esi
    jnz     .Lpagezero_byte
.Lpagezero_done:
    movq    %r8, %rax
    ret
END(wherry_routine_i686_pagezero)
