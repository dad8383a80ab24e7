/* clzero_zero: whole lines by AMD's clzero, which names a line of 64 bytes and zeroes it past the caches.
 *
 * dst rdi, c esi (ignored, zero), n rdx; returns dst. Any n: 0 to 127 bytes, the head and the tail by rep stosb.
 * Clobbers no x87, MMX or vector state.
 * The instruction takes no data and reads no line; it zeroes all of the line that holds the address in rax, so only lines
 * that lie in the buffer as a whole are named. Like non-temporal stores it is ordered by sfence alone, which stands
 * before whatever the caller stores next. Each turn is one line: it is memory that takes the time.
 *
 * Registers: rdi cursor of the string instructions, rax line, rdx bytes left, rcx bytes for the string instruction, r8 dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_clzero_zero)
    movq    %rdi, %r8
    xorl    %eax, %eax
    cmpq    $128, %rdx
    jb      .Lclzero_0_to_127
    movl    %edi, %ecx
    negl    %ecx
    andl    $63, %ecx
    subq    %rcx, %rdx
    rep stosb
    movq    %rdi, %rax
    .p2align 4
.Lclzero_64_or_more:
    clzero
    addq    $64, %rax
    subq    $64, %rdx
    cmpq    $64, %rdx
    jae     .Lclzero_64_or_more
    sfence
    movq    %rax, %rdi
    xorl    %eax, %eax
.Lclzero_0_to_127:
    movq    %rdx, %rcx
    rep stosb
    movq    %r8, %rax
    ret
END(wherry_routine_clzero_zero)
