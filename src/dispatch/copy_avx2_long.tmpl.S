/* AVX2's copies that the plan is asked for. A part of public.S, beside the page of copy_avx2.tmpl.S. */
/* rcx is dst - src. */
copy_avx2_by_plan:
    cmpq    wherry_thresholds + COPY_STRING_FROM(%rip), %rdx
    jae     copy_avx2_longer
    cmpq    wherry_thresholds + COPY_REP_FROM(%rip), %rdx
    jae     copy_avx2_maybe_by_string
copy_avx2_not_by_string:
    cmpq    wherry_thresholds + COPY_STREAM_FROM(%rip), %rdx
    jae     copy_avx2_by_routine
    cmpq    $ALIAS_FROM, %rdx
    jb      copy_avx2_forward

/* As move_loop. Below ALIAS_FROM bytes the way there would cost more than it gains. Loads and stores by turns take 0.85 of
 * the time where both sides lie alike (Zen 5, docs/performance-avx2.md); then the vectors of a step go the loop's way, or loads
 * would meet the stores of the same step.
 *
 *   rcx to the next step, r9 to its last vector
 */
    cmpl    $0, wherry_thresholds + COPY_BACKWARD_AHEAD(%rip)
    je      copy_avx2_only_forward  /* whose loops are the faster ones */
    movq    %rcx, %r8
    negq    %r8
    cmpq    %rdx, %r8               /* the source begins inside the destination */
    jb      copy_avx2_forward
    COPY_AVX2_BEGINS
    vmovdqu (%rsi), %ymm0           /* the first step, while it is found out where the next is */
    vmovdqu 32(%rsi), %ymm1
    vmovdqu 64(%rsi), %ymm2
    vmovdqu 96(%rsi), %ymm3
    leaq    -129(%r11), %rdx
    subq    %rdi, %rdx              /* 128 for each step but the first two, and a rest */
    movq    %rdx, %r10
    andq    $-128, %r10             /* from the second to the last */
    andl    $(ALIAS_BYTES - 1), %ecx
    subl    $1, %ecx
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %ecx
    sbbq    %rcx, %rcx
    andq    %rcx, %r10
    vmovdqu %ymm4, (%r9)
    vmovdqa %ymm0, (%rdi)
    movq    %rcx, %r9
    shlq    $6, %rcx
    andl    $96, %r9d
    leaq    32(%rcx), %r8           /* to the next vector: -32 or 32; a step goes that way, too (below) */
    vmovdqa %ymm1, 32(%rdi)
    addq    %r9, %r10
    leaq    (%r8,%r8,2), %r9
    leaq    (,%r8,4), %rcx
    vmovdqa %ymm2, 64(%rdi)
    vmovdqa %ymm3, 96(%rdi)
    leaq    128(%rsi,%r10), %rsi
    leaq    128(%rdi,%r10), %rdi
    .p2align 6
copy_avx2_step_either_way:
    vmovdqu (%rsi), %ymm0
    vmovdqa %ymm0, (%rdi)
    vmovdqu (%rsi,%r8), %ymm1
    vmovdqa %ymm1, (%rdi,%r8)
    vmovdqu (%rsi,%r8,2), %ymm2
    vmovdqa %ymm2, (%rdi,%r8,2)
    vmovdqu (%rsi,%r9), %ymm3
    vmovdqa %ymm3, (%rdi,%r9)
    addq    %rcx, %rsi
    addq    %rcx, %rdi
    addq    $-128, %rdx
    jc      copy_avx2_step_either_way
    COPY_AVX2_ENDS
    ret

copy_avx2_only_forward:
    cmpq    $HALVES_FROM, %rdx
    jb      copy_avx2_forward
    jmp     copy_avx2_by_routine

/* As copy_avx2_step_backward, where no load waits for the store before it. */
    .p2align 6
copy_avx2_backward_by_turns:
    vmovdqu -32(%r10), %ymm0
    vmovdqa %ymm0, -32(%r8)
    vmovdqu -64(%r10), %ymm1
    vmovdqa %ymm1, -64(%r8)
    vmovdqu -96(%r10), %ymm2
    vmovdqa %ymm2, -96(%r8)
    vmovdqu -128(%r10), %ymm3
    addq    $-128, %r10
    vmovdqa %ymm3, -128(%r8)
    addq    $-128, %r8
    cmpq    %r11, %r8
    ja      copy_avx2_backward_by_turns
    jmp     copy_avx2_backward_ends
