/* The fault-tolerant set, one algorithm for every vector width V = VEC_BYTES: classes of sizes as in copy.tmpl.S, with an
 * entry in the fault table for each store. From the label TOP on:
 *
 *   size_t (void *dst rdi, int c esi, size_t n rdx, struct wherry_fault *fault rcx), the bytes not set
 *
 *   to 1024, V = 64   set_apart.tmpl.S; or set_together.tmpl.S, which the includer includes behind this and chooses by going to
 *                     AT(together)
 *   to 8V, 16V        classes of blocks
 *   beyond            forward loop; rep stosb; non-temporal loop
 *
 * Exact for the same reasons: the first store goes to the first byte, the loops store in ascending order, and after a fault
 * rep stosb goes on at the first byte that has not been stored.
 *
 * The includer defines VEC_BYTES, SYMBOL, TOP and AT(name), as for copy.tmpl.S.
 */
#include "routines/arrangement.h"
#include "registers.h"

#if V == 32
#define LARGE (8 * V)
#else
#define LARGE (16 * V)
#endif

#if V == 64
#include "set_apart.tmpl.S"
#else
TOP:
    cmpq    $LARGE, %rdx
    ja      AT(large)
    movzbl  %sil, %eax
    movabsq $0x0101010101010101, %r8
    imulq   %r8, %rax               /* eight times the byte */
    cmpl    $16, %edx
    jb      AT(tiny)
#if V == 32
    vmovd   %eax, %xmm0
    vpbroadcastd %xmm0, %ymm0
    cmpl    $32, %edx
    jb      AT(half)
#else
    movd    %eax, %xmm0
    pshufd  $0, %xmm0, %xmm0
#endif

/* Of four blocks the middle ones are at V when n > 2V and at 2V when n > 3V, else they repeat the first. */
AT(four):
    cmpl    $(4 * V), %edx
    ja      AT(eight)
    leal    -1(%rdx), %eax
    movl    %eax, %r8d
    shrl    $1, %eax
    leal    (%r8,%r8), %r9d
    andl    $V, %eax
    andl    %r9d, %r8d
    andl    $(2 * V), %r8d
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), (%rdi,%rax))
    STORE(AT(redo), MOVE R(0), (%rdi,%r8))
    STORE(AT(redo), MOVE R(0), -V(%rdi,%rdx))
    CLEAN
    xorl    %eax, %eax
    ret

    .p2align 5
AT(eight):
#if V == 16
    cmpl    $(8 * V), %edx
    ja      AT(sixteen)
#endif
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), V(%rdi))
    STORE(AT(redo), MOVE R(0), 2 * V(%rdi))
    STORE(AT(redo), MOVE R(0), 3 * V(%rdi))
    STORE(AT(redo), MOVE R(0), -4 * V(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -3 * V(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -2 * V(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -V(%rdi,%rdx))
    CLEAN
    xorl    %eax, %eax
    ret

#if V == 16
/* Here the blocks after the first begin at a boundary of the destination: stores across lines take twice as long. */
    .p2align 5
AT(sixteen):
    leaq    V(%rdi), %r8
    andq    $-V, %r8                /* 1 to V bytes on */
    leaq    (%rdi,%rdx), %r9
    subq    %r8, %r9                /* 7V .. 16V - 1 bytes from there on */
    xorl    %eax, %eax
    movl    $(7 * V), %r10d
    cmpq    $(9 * V), %r9
    cmovaq  %r10, %rax
    xorl    %r10d, %r10d
    movl    $(9 * V), %r11d
    cmpq    $(11 * V), %r9
    cmovaq  %r11, %r10
    xorl    %r11d, %r11d
    cmpq    $(13 * V), %r9
    movl    $(11 * V), %r9d
    cmovaq  %r9, %r11
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), (%r8))
    STORE(AT(redo), MOVE R(0), V(%r8))
    STORE(AT(redo), MOVE R(0), 2 * V(%r8))
    STORE(AT(redo), MOVE R(0), 3 * V(%r8))
    STORE(AT(redo), MOVE R(0), 4 * V(%r8))
    STORE(AT(redo), MOVE R(0), 5 * V(%r8))
    STORE(AT(redo), MOVE R(0), 6 * V(%r8))
    STORE(AT(redo), MOVE R(0), (%r8,%rax))
    STORE(AT(redo), MOVE R(0), V(%r8,%rax))
    STORE(AT(redo), MOVE R(0), (%r8,%r10))
    STORE(AT(redo), MOVE R(0), V(%r8,%r10))
    STORE(AT(redo), MOVE R(0), (%r8,%r11))
    STORE(AT(redo), MOVE R(0), V(%r8,%r11))
    STORE(AT(redo), MOVE R(0), -3 * V(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -2 * V(%rdi,%rdx))
    STORE(AT(redo), MOVE R(0), -V(%rdi,%rdx))
    xorl    %eax, %eax
    ret
#endif

#if V == 32
AT(half):
    STORE(AT(redo), vmovdqu %xmm0, (%rdi))
    STORE(AT(redo), vmovdqu %xmm0, -16(%rdi,%rdx))
    CLEAN
    xorl    %eax, %eax
    ret
#endif

    .p2align 4
AT(tiny):
    cmpl    $8, %edx
    jb      AT(below_8)
    STORE(AT(redo), movq %rax, (%rdi))
    STORE(AT(redo), movq %rax, -8(%rdi,%rdx))
    xorl    %eax, %eax
    ret
AT(below_8):
    cmpl    $4, %edx
    jb      AT(below_4)
    STORE(AT(redo), movl %eax, (%rdi))
    STORE(AT(redo), movl %eax, -4(%rdi,%rdx))
    xorl    %eax, %eax
    ret
AT(below_4):
    testl   %edx, %edx
    jz      AT(none)
    movl    %edx, %r8d
    shrl    $1, %r8d
    STORE(AT(redo), movb %al, (%rdi))
    STORE(AT(redo), movb %al, (%rdi,%r8))
    STORE(AT(redo), movb %al, -1(%rdi,%rdx))
AT(none):
    xorl    %eax, %eax
    ret
#endif

/* rdx bytes are left from rdi on. */
AT(redo):
    CLEAN
AT(by_string):
    movq    %rcx, %r8
    movq    %rdx, %rcx
    movl    %esi, %eax
    addq    %rdi, %rdx
    CAN_FAULT(SYMBOL, FAULT_STORE | FAULT_REPORT, AT(report), rep stosb)
AT(report): /* as in copy.tmpl.S */
    movq    %rdx, %rax
    subq    %rdi, %rax
    jz      AT(reported)
    testq   %r8, %r8
    jz      AT(reported)
    movq    %rdi, FAULT_ADDRESS(%r8)
    movq    %r10, FAULT_SIGNO(%r8)
    movb    %r11b, FAULT_WRITING(%r8)
AT(reported):
    ret

/* r11 is where up to 4V are left, r8 the last boundary. What the sum of an address and n would wrap around at the string
 * instruction meets by itself. */
    .p2align 6
AT(large):
    testq   %rdx, %rdx
    js      AT(by_string)
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx
    jae     AT(maybe_by_string)
AT(not_by_string):
#if V < 64
    movzbl  %sil, %eax
    imull   $0x01010101, %eax, %eax
#if V == 32
    vmovd   %eax, %xmm0
    vpbroadcastd %xmm0, %ymm0
#else
    movd    %eax, %xmm0
    pshufd  $0, %xmm0, %xmm0
#endif
#endif
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     AT(maybe_stream)
AT(forward):
#if V == 64 && !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     AT(halves)
#endif
    leaq    -4 * V(%rdi,%rdx), %r11
    leaq    -1(%rdi,%rdx), %r8
    andq    $-V, %r8
    STORE(AT(redo), MOVE R(0), (%rdi))
    addq    $V, %rdi
    andq    $-V, %rdi
#if V == 64
    .p2align 6                      /* in two lines of code */
AT(step):                           /* by halves, as in set_avx512 */
    STORE(AT(step_0), vmovdqu64 %ymm16, (%rdi))
    STORE(AT(step_0), vmovdqu64 %ymm16, 32(%rdi))
    STORE(AT(step_1), vmovdqu64 %ymm16, 64(%rdi))
    STORE(AT(step_1), vmovdqu64 %ymm16, 96(%rdi))
    STORE(AT(step_2), vmovdqu64 %ymm16, 128(%rdi))
    STORE(AT(step_2), vmovdqu64 %ymm16, 160(%rdi))
    STORE(AT(step_3), vmovdqu64 %ymm16, 192(%rdi))
    STORE(AT(step_3), vmovdqu64 %ymm16, 224(%rdi))
#else
    .p2align 4
AT(step):
    STORE(AT(step_0), MOVE R(0), (%rdi))
    STORE(AT(step_1), MOVE R(0), V(%rdi))
    STORE(AT(step_2), MOVE R(0), 2 * V(%rdi))
    STORE(AT(step_3), MOVE R(0), 3 * V(%rdi))
#endif
    addq    $(4 * V), %rdi
    cmpq    %r11, %rdi
    jb      AT(step)
    STORE(AT(step_0), MOVE R(0), -3 * V(%r8))
    STORE(AT(step_0), MOVE R(0), -2 * V(%r8))
    STORE(AT(step_0), MOVE R(0), -V(%r8))
    STORE(AT(step_0), MOVE R(0), 3 * V(%r11))
    CLEAN
    xorl    %eax, %eax
    ret

AT(step_3):
    addq    $V, %rdi
AT(step_2):
    addq    $V, %rdi
AT(step_1):
    addq    $V, %rdi
AT(step_0):
    leaq    4 * V(%r11), %rdx
    subq    %rdi, %rdx
    jmp     AT(redo)

#if V == 64 && !WHERRY_EDGE_BRANCH
/* By half lines, as set_by_halves of public.S: up to 128 bytes are left from r9 on, r8 the last half line. */
    .p2align 6
AT(halves):
    leaq    -128(%rdi,%rdx), %r9
    leaq    -1(%rdi,%rdx), %r8
    leaq    -256(%rdi,%rdx), %r11   /* step_0 */
    andq    $-32, %r8
    STORE(AT(redo), vmovdqu64 %ymm16, (%rdi))
    andq    $-32, %rdi
    addq    $32, %rdi
AT(half_step):
    STORE(AT(step_0), vmovdqa64 %ymm16, (%rdi))
    STORE(AT(half_1), vmovdqa64 %ymm16, 32(%rdi))
    STORE(AT(half_2), vmovdqa64 %ymm16, 64(%rdi))
    STORE(AT(half_3), vmovdqa64 %ymm16, 96(%rdi))
    subq    $-128, %rdi
    cmpq    %r9, %rdi
    jb      AT(half_step)
    STORE(AT(step_0), vmovdqa64 %ymm16, -96(%r8))
    STORE(AT(step_0), vmovdqa64 %ymm16, -64(%r8))
    STORE(AT(step_0), vmovdqa64 %ymm16, -32(%r8))
    STORE(AT(step_0), vmovdqu64 %ymm16, 96(%r9))
    xorl    %eax, %eax
    ret

AT(half_3):
    addq    $32, %rdi
AT(half_2):
    addq    $32, %rdi
AT(half_1):
    addq    $32, %rdi
    jmp     AT(step_0)
#endif

AT(maybe_by_string):
    cmpq    wherry_thresholds + SET_REP_TO(%rip), %rdx
    jae     AT(not_by_string)
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jae     AT(unless_new)
    RECENT_FIND_SET(SHIFTED, AT(far))
    jmp     AT(not_by_string)
AT(far):
    RECENT_ENTER(AT(enter), RECENT_SET_PLACES)
AT(unless_new):
    cmpq    $WRITTEN_FROM, %rdx
    jb      AT(by_string)
    leaq    (%rdi,%rdx), %rax
    call    wherry_guarded_set_before
    je      AT(not_by_string)
    jmp     AT(by_string)

AT(maybe_stream):
    leaq    (%rdi,%rdx), %rax
    call    wherry_guarded_set_before
    jb      AT(redo)                /* the string instruction; the block is in a register already */
    je      AT(forward)

/* Whole lines past the caches; the first by ordinary stores, and what is left by the string instruction. */
    leaq    -4 * V(%rdi,%rdx), %r11
#if V == 64
    STORE(AT(redo), MOVE R(0), (%rdi))
#else
    STORE(AT(redo), MOVE R(0), (%rdi))
    STORE(AT(redo), MOVE R(0), V(%rdi))
#if V == 16
    STORE(AT(redo), MOVE R(0), 2 * V(%rdi))
    STORE(AT(redo), MOVE R(0), 3 * V(%rdi))
#endif
#endif
    addq    $64, %rdi
    andq    $-64, %rdi
    .p2align 4
AT(stream_step):
    STORE(AT(streamed), MOVE_NT R(0), (%rdi))
    STORE(AT(streamed_1), MOVE_NT R(0), V(%rdi))
    STORE(AT(streamed_2), MOVE_NT R(0), 2 * V(%rdi))
    STORE(AT(streamed_3), MOVE_NT R(0), 3 * V(%rdi))
    addq    $(4 * V), %rdi
    cmpq    %r11, %rdi
    jbe     AT(stream_step)
AT(streamed):
    sfence
    jmp     AT(step_0)
AT(streamed_3):
    addq    $V, %rdi
AT(streamed_2):
    addq    $V, %rdi
AT(streamed_1):
    addq    $V, %rdi
    jmp     AT(streamed)
