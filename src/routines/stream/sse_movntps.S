/* sse_movntps: the first SSE's own copy, 16-byte registers and stores that go past the caches.
 *
 * dst rdi, src rsi, n rdx; returns dst. Disjoint. Any n: 0 to 127 bytes, the head and the tail by rep movsb.
 * Uses xmm0 to xmm3, which the ABI lets a callee lose; movups and movntps move bits and raise no floating-point
 * exception. sfence orders the stores before whatever the caller stores next.
 * movntps faults on an address that is not a multiple of 16, and is worth its while only for whole lines: so the head
 * steps up to a line of 64 bytes (1 to 63, if any) and each turn fills one.
 *
 * Registers: rdi dst cursor, rsi src cursor, rdx bytes left, rcx bytes for the string instruction, rax dst.
 */
#include "../asm.h"

ENTRY(wherry_routine_sse_movntps)
    movq    %rdi, %rax
    cmpq    $128, %rdx
    jb      .Lmovntps_0_to_127
    movl    %edi, %ecx
    negl    %ecx
    andl    $63, %ecx
    subq    %rcx, %rdx
    rep movsb
    .p2align 4
.Lmovntps_64_or_more:
    movups  (%rsi), %xmm0
    movups  16(%rsi), %xmm1
    movups  32(%rsi), %xmm2
    movups  48(%rsi), %xmm3
    movntps %xmm0, (%rdi)
    movntps %xmm1, 16(%rdi)
    movntps %xmm2, 32(%rdi)
    movntps %xmm3, 48(%rdi)
    addq    $64, %rsi
    addq    $64, %rdi
    subq    $64, %rdx
    cmpq    $64, %rdx
    jae     .Lmovntps_64_or_more
    sfence
.Lmovntps_0_to_127:
    movq    %rdx, %rcx
    rep movsb
    ret
END(wherry_routine_sse_movntps)
