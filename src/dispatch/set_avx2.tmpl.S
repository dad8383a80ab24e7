/* The set of AVX2, to the plain loop: as copy_avx2.tmpl.S. A part of public.S. */
    .type set_avx2, @function
    .p2align 6
set_avx2:
    .cfi_startproc
    vmovd   %esi, %xmm0             /* before the branches: where one was guessed wrong, it would be waited for */
    movq    %rdi, %rax
    cmpq    $16, %rdx
    jb      set_avx2_to_15
    cmpq    $64, %rdx
    ja      set_avx2_65_on
    vpbroadcastb %xmm0, %xmm0
    leal    -1(%rdx), %ecx          /* as in copy_avx2 */
    movl    %edx, %r8d
    shrl    $1, %ecx
    andl    $16, %ecx
    subl    %ecx, %r8d
    vmovdqu %xmm0, (%rdi)
    vmovdqu %xmm0, (%rdi,%rcx)
    vmovdqu %xmm0, -16(%rdi,%r8)
    vmovdqu %xmm0, -16(%rdi,%rdx)
    ret

    .p2align 5
set_avx2_65_on:
    vpbroadcastb %xmm0, %ymm0
    cmpq    $128, %rdx
    jbe     set_avx2_65_to_128
    cmpq    $256, %rdx
    jbe     set_avx2_129_to_256
    cmpq    $512, %rdx
    jbe     set_avx2_257_to_512
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx
    jae     set_avx2_maybe_by_string
set_avx2_not_by_string:
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     wherry_routine_set_avx2
    leaq    -256(%rdi,%rdx), %r8    /* up to 256 bytes are left from here on */
    leaq    -1(%rdi,%rdx), %r9
    andq    $-32, %r9               /* the last vector boundary that the destination reaches */
    vmovdqu %ymm0, (%rdi)
    orq     $31, %rdi
    addq    $1, %rdi
    .p2align 4
set_avx2_step:
    vmovdqa %ymm0, (%rdi)
    vmovdqa %ymm0, 32(%rdi)
    vmovdqa %ymm0, 64(%rdi)
    vmovdqa %ymm0, 96(%rdi)
    vmovdqa %ymm0, 128(%rdi)
    vmovdqa %ymm0, 160(%rdi)
    vmovdqa %ymm0, 192(%rdi)
    vmovdqa %ymm0, 224(%rdi)
    addq    $256, %rdi
    cmpq    %r8, %rdi
    jb      set_avx2_step
    vmovdqa %ymm0, -224(%r9)
    vmovdqa %ymm0, -192(%r9)
    vmovdqa %ymm0, -160(%r9)
    vmovdqa %ymm0, -128(%r9)
    vmovdqa %ymm0, -96(%r9)
    vmovdqa %ymm0, -64(%r9)
    vmovdqa %ymm0, -32(%r9)
    vmovdqu %ymm0, 224(%r8)
    vzeroupper
    ret

set_avx2_maybe_by_string:
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jae     wherry_routine_set_avx2
    RECENT_FIND_SET(wherry_routine_set_avx2)
    jmp     set_avx2_not_by_string

    .p2align 6
set_avx2_65_to_128:
    leal    -2(%rdx,%rdx), %ecx     /* as in copy_avx2 */
    andl    $64, %ecx
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm0, 32(%rdi)
    vmovdqu %ymm0, (%rdi,%rcx)
    vmovdqu %ymm0, -32(%rdi,%rdx)
    vzeroupper
    ret

    .p2align 5
set_avx2_129_to_256:
    leal    -2(%rdx,%rdx), %ecx
    andl    $128, %ecx              /* 128 when n > 192 */
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm0, 32(%rdi)
    vmovdqu %ymm0, 64(%rdi)
    vmovdqu %ymm0, 96(%rdi)
    vmovdqu %ymm0, (%rdi,%rcx)
    vmovdqu %ymm0, 32(%rdi,%rcx)
    vmovdqu %ymm0, -64(%rdi,%rdx)
    vmovdqu %ymm0, -32(%rdi,%rdx)
    vzeroupper
    ret

/* The first vector and the last, seven from the first vector boundary on, and seven that end at the last one. Of the middle
 * they leave one vector at most: an eighth before the last boundary, or at the destination where that would begin
 * before it.
 *
 *   rcx the place of the eighth
 *   r9  the last vector boundary that the destination reaches
 */
    .p2align 5
set_avx2_257_to_512:
    leaq    -1(%rdi,%rdx), %r9
    andq    $-32, %r9
    leaq    -256(%r9), %rcx
    cmpq    %rdi, %rcx
    cmovlq  %rdi, %rcx
    vmovdqu %ymm0, (%rdi)
    leaq    -32(%rdi,%rdx), %r8
    orq     $31, %rdi
    vmovdqa %ymm0, 1(%rdi)
    vmovdqa %ymm0, 33(%rdi)
    vmovdqa %ymm0, 65(%rdi)
    vmovdqa %ymm0, 97(%rdi)
    vmovdqa %ymm0, 129(%rdi)
    vmovdqa %ymm0, 161(%rdi)
    vmovdqa %ymm0, 193(%rdi)
    vmovdqu %ymm0, (%rcx)
    vmovdqa %ymm0, -224(%r9)
    vmovdqa %ymm0, -192(%r9)
    vmovdqa %ymm0, -160(%r9)
    vmovdqa %ymm0, -128(%r9)
    vmovdqa %ymm0, -96(%r9)
    vmovdqa %ymm0, -64(%r9)
    vmovdqa %ymm0, -32(%r9)
    vmovdqu %ymm0, (%r8)
    vzeroupper
    ret

/* Four blocks of 4 bytes, or three of 1, each in one line of code. */
    .p2align 6
set_avx2_to_15:
    movl    %edx, %ecx
    shrl    $1, %ecx
    cmpl    $4, %edx
    jb      set_avx2_to_3
    movzbl  %sil, %esi
    andl    $4, %ecx                /* 4 from 8 on */
    imull   $0x01010101, %esi, %esi
    movq    %rdx, %r8
    subq    %rcx, %r8
    movl    %esi, (%rdi)
    movl    %esi, (%rdi,%rcx)
    movl    %esi, -4(%rdi,%r8)
    movl    %esi, -4(%rdi,%rdx)
    ret

set_avx2_to_3:
    testl   %edx, %edx
    jz      set_avx2_none
    movb    %sil, (%rdi)
    movb    %sil, (%rdi,%rcx)
    movb    %sil, -1(%rdi,%rdx)
set_avx2_none:
    ret
    .cfi_endproc
    .size set_avx2, . - set_avx2
