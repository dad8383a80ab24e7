/* Copies of AVX-512 of COPY_FORWARD_BELOW bytes and more. A part of copy_avx512.tmpl.S, or of where there is room. */
#if !WHERRY_EDGE_BRANCH             /* so that move_step begins early in its line */
    .p2align 6
    .nops   3
move_by_destination_or_long:
    cmpq    wherry_thresholds + COPY_FORWARD_BELOW(%rip), %rdx
    jb      move_forward_by_destination
#endif
move_at_length:                     /* r8 is dst - src */
    cmpq    wherry_thresholds + COPY_YMM_FROM(%rip), %rdx
    jae     copy_avx2_large
    movq    %r8, %rcx
    cmpq    wherry_thresholds + COPY_REP_FROM(%rip), %rdx
    jb      move_not_by_string      /* below COPY_REP_RECENT_FROM: others went by COPY_STRING_FROM or COPY_YMM_FROM */
    RECENT_FIND_COPY(RECENT_SHIFTED_BMI2, move_far)
move_not_by_string:
    negq    %rcx
    cmpq    %rdx, %rcx              /* the source begins inside the destination */
    jb      move_upwards
    negl    %ecx
    andl    $(ALIAS_BYTES - 1), %ecx
    decl    %ecx
/* Where loads would wait for stores 4 KiB apart (copy_backward_ahead), from the end down: the same steps in another
 * order, so that there is no branch, which would be guessed wrong where the distance changes from call to call. */
move_loop:
    LOOP_BEGINS
    vmovdqu64 (%rsi), %zmm21        /* the first step, while it is found out where the next is */
    vmovdqu64 64(%rsi), %zmm22
    vmovdqu64 128(%rsi), %zmm23
    vmovdqu64 192(%rsi), %zmm24
    leaq    -257(%r11), %rdx
    subq    %rdi, %rdx              /* 256 for each step but the first two, and a rest */
    movq    %rdx, %r10
    movb    $0, %r10b               /* from the second to the last; an and takes four bytes more */
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %ecx
    sbbq    %rcx, %rcx
    andq    %rcx, %r10
    shlq    $9, %rcx
    incb    %ch                     /* to the next step: -256 or 256; an addition takes five bytes more */
    STORE_FIRST(%r9)
    vmovdqa64 %zmm21, (%rdi)
    vmovdqa64 %zmm22, 64(%rdi)
    vmovdqa64 %zmm23, 128(%rdi)
    vmovdqa64 %zmm24, 192(%rdi)
    addq    %r10, %rsi
    addq    %r10, %rdi
#if WHERRY_EDGE_BRANCH
    LOOP_HERE
#endif
move_step:
    vmovdqu64 256(%rsi), %zmm21
    vmovdqu64 320(%rsi), %zmm22
    vmovdqu64 384(%rsi), %zmm23
    vmovdqu64 448(%rsi), %zmm24
    addq    %rcx, %rsi
    vmovdqa64 %zmm21, 256(%rdi)
    vmovdqa64 %zmm22, 320(%rdi)
    vmovdqa64 %zmm23, 384(%rdi)
    vmovdqa64 %zmm24, 448(%rdi)
    addq    %rcx, %rdi
    subq    $256, %rdx
    jae     move_step
    vmovdqa64 %zmm17, -192(%r8)
    vmovdqa64 %zmm18, -128(%r8)
    vmovdqa64 %zmm19, -64(%r8)
    STORE_LAST_OF_256
    ret
