/* written.h's question for the fault-tolerant functions, beside them, since each of those has a page for itself:
 *
 *   wherry_guarded_copied_apart    destination rdi, source rsi, n rdx; sides that overlap go by a loop
 *   wherry_guarded_set_before      destination rdi, n rdx, its end rax, the byte sil
 *
 * The flags are the answer: equal where it was not, so by a loop; else below where the string instruction goes so far, by
 * the thresholds, and above past the caches. Of a copy rax becomes the destination less the source. r10 is lost.
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

#define SYMBOL wherry_guarded_copied_apart
ENTRY(SYMBOL)
    movq    %rsi, %r10
    leaq    (%rdi,%rdx), %rax
    subq    %rdi, %r10
    cmpq    %rdx, %r10
    jb      .Loverlap
    COPIED_BEFORE(%rax, %r10)
    WAY(COPY)
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
    WAY(SET)
    ret
END(SYMBOL)
#undef SYMBOL

#define SYMBOL wherry_guarded_summed_before
ENTRY(SYMBOL)
    COPIED_BEFORE(%rax, %r10)
    cmpl    $WRITTEN_SURELY, %eax
    ret
END(SYMBOL)
