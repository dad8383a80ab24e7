/* written.h's question for the fault-tolerant functions, beside them, since each of those has a page for itself:
 *
 *   wherry_guarded_copied_apart    destination rdi, source rsi, n rdx; sides that overlap go by a loop
 *   wherry_guarded_copied_before   destination rdi, n rdx, its end rax, the source less the destination r10
 *   wherry_guarded_set_before      destination rdi, n rdx, its end rax, the byte sil
 *
 * The flags are the answer: above where it was, so past the caches; else below where the string instruction goes so far,
 * by the thresholds, and equal where a loop does. Of a copy rax becomes the destination less the source. r10 is lost. */
#define VEC_BYTES 16
#include "registers.h"

/* clang-format off */
#define NEW(op)                                            \
    movl    $2, %eax;                                      \
    jnz     778f;                                          \
    movl    $1, %eax;                                      \
    cmpq    wherry_thresholds + op##_REP_FROM(%rip), %rdx; \
    jb      778f;                                          \
    movq    wherry_thresholds + op##_REP_TO(%rip), %rax;   \
    cmpq    wherry_thresholds + op##_STREAM_FROM(%rip), %rax; \
    sbbl    %eax, %eax;             /* -1 when it ends before */ \
    negl    %eax;                                          \
778:                                                       \
    cmpl    $1, %eax
/* clang-format on */

#define SYMBOL wherry_guarded_copied_apart
ENTRY(SYMBOL)
    movq    %rsi, %r10
    leaq    (%rdi,%rdx), %rax
    subq    %rdi, %r10
    cmpq    %rdx, %r10
    jb      .Loverlap
    .globl  wherry_guarded_copied_before
    .hidden wherry_guarded_copied_before
wherry_guarded_copied_before:
    COPIED_BEFORE(%rax, %r10)
    NEW(COPY)
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
    SET_BEFORE(%rax, %sil)
    NEW(SET)
    ret
END(SYMBOL)
