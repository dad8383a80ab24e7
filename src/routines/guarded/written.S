/* written.h's question for the fault-tolerant functions, beside them, since each of those has a page for itself:
 *
 *   wherry_guarded_copied_apart    destination rdi, source rsi, n rdx; sides that overlap go by a loop
 *   wherry_guarded_set_before      destination rdi, n rdx, its end rax, the byte sil
 *
 * The flags are the answer: equal where it was not, so by a loop; else below where the string instruction goes so far, by
 * the thresholds, and above past the caches. Of a copy rax becomes the destination less the source. r10 is lost.
 *
 * Nor past the caches, and so by a loop, where large calls have touched the destination lately (touched.h).
 *
 *   wherry_guarded_summed_before   destination rdi, n rdx, its end rax, the source less the destination r10; equal where
 *                                  it surely was, for a copy that has no string instruction. rax is lost. */
#define VEC_BYTES 16
#include "registers.h"

/* clang-format off */
#define WAY(op)                                            \
    testl   %eax, %eax;                                    \
    jz      779f;                                          \
    cmpq    wherry_thresholds + op##_REP_FROM(%rip), %rdx; \
    jb      780f;                                          \
    cmpl    $WRITTEN_UNKNOWN, %eax;                        \
    je      781f;                                          \
    cmpq    wherry_thresholds + op##_REP_TO(%rip), %rdx;   \
    jae     780f;                                          \
781:                                                       \
    xorl    %eax, %eax;                                    \
    jmp     780f;                                          \
779:                                                       \
    movl    $1, %eax;                                      \
780:                                                       \
    cmpl    $1, %eax
/* clang-format on */

/* On the stack: 1 where the destination is near, and too little for the caches to be passed all the same, else 2. */
/* clang-format off */
#define LOOK_WHETHER_NEAR(op)                              \
    pushq   $2;                                            \
    .cfi_adjust_cfa_offset 8;                              \
    cmpq    wherry_thresholds + op##_STREAM_FROM(%rip), %rdx; \
    jb      782f;                                          \
    cmpq    wherry_thresholds + op##_STREAM_RECENT_FROM(%rip), %rdx; \
    jae     782f;                                          \
    call    near;                                          \
782:
/* Behind WAY: takes it from there, and what would go past the caches goes by a loop where it is near. */
#define UNLESS_NEAR                                        \
    leaq    8(%rsp), %rsp;                                 \
    .cfi_adjust_cfa_offset -8;                             \
    jbe     783f;                                          \
    cmpl    $1, -8(%rsp);                                  \
783:
/* clang-format on */

#define SYMBOL wherry_guarded_copied_apart
ENTRY(SYMBOL)
    movq    %rsi, %r10
    leaq    (%rdi,%rdx), %rax
    subq    %rdi, %r10
    cmpq    %rdx, %r10
    jb      .Loverlap
    LOOK_WHETHER_NEAR(COPY)
    leaq    (%rdi,%rdx), %rax
    COPIED_BEFORE(%rax, %r10)
    WAY(COPY)
    UNLESS_NEAR
.Lcopied_end:
    movq    %r10, %rax
    notq    %rax                    /* leaves the flags */
    leaq    1(%rax), %rax
    ret
.Loverlap:
    cmpl    %eax, %eax
    jmp     .Lcopied_end
END(SYMBOL)
#undef SYMBOL

#define SYMBOL wherry_guarded_set_before
ENTRY(SYMBOL)
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    xorl    %esi, %esi              /* no source */
    LOOK_WHETHER_NEAR(SET)
    movq    8(%rsp), %rsi
    leaq    (%rdi,%rdx), %rax
    SET_BEFORE(%rax, %sil)
    WAY(SET)
    UNLESS_NEAR
    leaq    8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    ret
END(SYMBOL)
#undef SYMBOL

/* Asks wherry_guarded_near of a copy, or of a set where rsi is 0, and has the answer where LOOK_WHETHER_NEAR wants it. rax is
 * lost. */
    .p2align 4
    .type near, @function
near:
    .cfi_startproc
    .irp register, rcx, rdx, rsi, rdi, r8, r9, r10, r11
    pushq   %\register
    .cfi_adjust_cfa_offset 8
    .endr
    call    wherry_guarded_near
    .irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx
    popq    %\register
    .cfi_adjust_cfa_offset -8
    .endr
    movq    %rax, 8(%rsp)
    ret
    .cfi_endproc
    .size near, . - near

#define SYMBOL wherry_guarded_summed_before
ENTRY(SYMBOL)
    COPIED_BEFORE(%rax, %r10)
    cmpl    $WRITTEN_SURELY, %eax
    ret
END(SYMBOL)
