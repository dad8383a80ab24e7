/* The set of AVX2, to the plain loop: as copy_avx2.tmpl.S, and with the same registers at the beginning and behind it. A part
 * of public.S. */
/* clang-format off */
/* As COPY_16_TO_64, in the older encoding, too. */
#define SET_16_TO_64                           \
    imull   $63, %edx, %ecx;                   \
    shrl    $7, %ecx;                          \
    andl    $24, %ecx;                         \
    movups  %xmm0, (%rdi);                     \
    movups  %xmm0, (%rdi,%rcx);                \
    movups  %xmm0, (%rdi,%rcx,2);              \
    movups  %xmm0, (%rdi,%rdx)
/* clang-format on */

#if !WHERRY_FIRST_AVX2
set_low_destination:
    cmpb    $1, wherry_set_choice + CHOICE_CODE(%rip)
    jne     set_not_avx2
#endif
set_avx2:
    movd    %esi, %xmm0             /* before the branches: where one was guessed wrong, it would be waited for */
    movq    %rdi, %rax
    subq    $16, %rdx               /* ascending: with sizes of all magnitudes, fewest are guessed wrong that way */
    jb      set_avx2_to_15
    COMPARE_INLINE(wherry_set_choice)
    jae     set_avx2_65_on
set_avx2_16_to_64:
    vpbroadcastb %xmm0, %xmm0
    SET_16_TO_64
    ret

/* 4 to 15, and in set_avx2_to_3 less. */
    .p2align 6
set_avx2_to_15:
#if WHERRY_FIRST_AVX2
    cmpb    $1, wherry_set_choice + CHOICE_CODE(%rip)
    jg      set_tiers
#endif
    addl    $12, %edx
    jnc     set_avx2_to_3
    movzbl  %sil, %esi
    movl    %edx, %ecx
    imull   $0x01010101, %esi, %esi
    shrl    $1, %ecx
    andl    $6, %ecx
    movl    %esi, (%rdi)
    movl    %esi, (%rdi,%rcx)
    movl    %esi, (%rdi,%rcx,2)
    movl    %esi, (%rdi,%rdx)
set_avx2_none:
    ret

/* 65 to 128. From here on rdx is n - 128. */
    .p2align 6
set_avx2_65_on:
#if WHERRY_FIRST_AVX2
    testl   %ecx, %ecx
    jz      set_not_avx2
#endif
set_avx2_65_on_for_sure:
    vpbroadcastb %xmm0, %ymm0
    subq    $112, %rdx
    jg      set_avx2_129_on
    PREFETCH_TO_128_AT_128
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm0, 32(%rdi)
    vmovdqu %ymm0, 64(%rdi,%rdx)
    vmovdqu %ymm0, 96(%rdi,%rdx)
    vzeroupper
    ret

#if WHERRY_FIRST_AVX2
set_not_avx2:                       /* as in copy_avx2 */
    movb    wherry_set_choice + CHOICE_CODE(%rip), %cl
    testb   %cl, %cl
    jz      set_sse2_16_on
    cmpb    $1, %cl
    je      set_avx2_after_all
set_tiers:
    leaq    16(%rdx), %rdx
    jmp     set_avx512
set_avx2_after_all:
    cmpq    $AVX2_INLINE, %rdx
    jb      set_avx2_16_to_64
    jmp     set_avx2_65_on_for_sure
#endif
    .p2align 6
set_avx2_129_on:
    cmpq    $128, %rdx
    ja      set_avx2_257_on
    PREFETCH_TO_256_AT_128
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm0, 32(%rdi)
    vmovdqu %ymm0, 64(%rdi)
    vmovdqu %ymm0, 96(%rdi)
    vmovdqu %ymm0, (%rdi,%rdx)
    vmovdqu %ymm0, 32(%rdi,%rdx)
    vmovdqu %ymm0, 64(%rdi,%rdx)
    vmovdqu %ymm0, 96(%rdi,%rdx)
    vzeroupper
    ret

    .p2align 5
set_avx2_257_on:
    subq    $-128, %rdx
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
    jae     set_avx2_longer
    RECENT_FIND_SET(RECENT_SHIFTED_BMI2, wherry_routine_set_avx2)
    jmp     set_avx2_not_by_string
set_avx2_longer:
    vzeroupper
    SET_BY_STRING(wherry_routine_set_avx2)

/* The first vector and the last, seven from the first vector boundary on, and seven that end at the last one. Of the middle
 * they leave one vector at most: an eighth before the last boundary, or at the destination where that would begin
 * before it.
 *
 *   rcx the place of the eighth
 *   r9  the last vector boundary that the destination reaches
 */
    .p2align 5
set_avx2_257_to_512:
    PREFETCH_TO_512
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

    .p2align 5
set_avx2_to_3:
    addl    $4, %edx
    jz      set_avx2_none
    movl    %edx, %ecx
    shrl    $1, %ecx
    movb    %sil, (%rdi)
    movb    %sil, (%rdi,%rcx)
    movb    %sil, -1(%rdi,%rdx)
    ret
