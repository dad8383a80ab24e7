/* The copy of AVX2, to the plain loop. Here for the sake of the way to it: each jump taken costs a cycle or two of the ten
 * that 64 bytes take. A part of public.S.
 */
/* clang-format off */
/* What comes before and behind a loop of four blocks a step; it moves rdi and rsi on to the next vector boundary of the
 * destination.
 *
 *   r9  the destination as it was
 *   r11 up to 128 bytes are left from here on
 */
#define COPY_AVX2_BEGINS                       \
    vmovdqu (%rsi), %ymm4;                     \
    vmovdqu -128(%rsi,%rdx), %ymm5;            \
    vmovdqu -96(%rsi,%rdx), %ymm6;             \
    vmovdqu -64(%rsi,%rdx), %ymm7;             \
    vmovdqu -32(%rsi,%rdx), %ymm8;             \
    leaq    -128(%rdi,%rdx), %r11;             \
    movq    %rdi, %r9;                         \
    orq     $31, %rdi;                         \
    subq    %r9, %rsi;                         \
    addq    $1, %rdi;                          \
    addq    %rdi, %rsi
/* 16 to 64: blocks of 16 at 0, t, 2t and n - 16, with t = (n - 16) / 2, less a 64th so that 64 bytes do not ask for 24, in
 * multiples of 8: 0 to 32 bytes, then 8, from 49 on 16. */
#define COPY_16_TO_64                          \
    imull   $63, %edx, %ecx;                   \
    shrl    $7, %ecx;                          \
    andl    $24, %ecx;                         \
    movups  (%rsi), %xmm0;                     \
    movups  (%rsi,%rcx), %xmm1;                \
    movups  (%rsi,%rcx,2), %xmm2;              \
    movups  (%rsi,%rdx), %xmm3;                \
    movups  %xmm0, (%rdi);                     \
    movups  %xmm1, (%rdi,%rcx);                \
    movups  %xmm2, (%rdi,%rcx,2);              \
    movups  %xmm3, (%rdi,%rdx)
#define COPY_AVX2_ENDS                         \
    vmovdqu %ymm5, (%r11);                     \
    vmovdqu %ymm6, 32(%r11);                   \
    vmovdqu %ymm7, 64(%r11);                   \
    vmovdqu %ymm8, 96(%r11);                   \
    vzeroupper
/* clang-format on */

/* Classes to 128 bytes lie in one line of code each: a second one, or a jump taken, costs a cycle of nine, two where another
 * thread shares the core (Zen 3). So the first class has the older encoding, which is a byte shorter an access; no
 * register's upper half is in use there. Stores go in ascending order; in others some sizes take a third longer.
 *
 * At the beginning rdi, rsi and rdx are those of memcpy, behind it rax is what to return. Where this text stands first
 * (public.S), the choice tells size and tier at once (choice.h), and smaller sizes ask for the tier in their own line. A
 * size that was not for the one way by the word as it was could be taken for the other's as it has become, so who asks
 * again takes every answer.
 */
#if WHERRY_FIRST_AVX2
copy_avx2:
    movq    %rdi, %rax
#else
move_low_source:
    incl    %ecx                    /* no source is above what AVX2 has in rcx */
    jnz     move_not_avx2
#endif
copy_avx2_rax:
    subq    $16, %rdx               /* ascending: with sizes of all magnitudes, fewest are guessed wrong that way */
    jb      copy_avx2_to_15
    COMPARE_INLINE(wherry_copy_choice)
    jae     copy_avx2_65_on
copy_avx2_16_to_64:
    COPY_16_TO_64
    ret

/* 4 to 15: the same in blocks of 4, t is 0, 2 or 4. */
    .p2align 6
copy_avx2_to_15:
#if WHERRY_FIRST_AVX2
    cmpb    $1, wherry_copy_choice + CHOICE_CODE(%rip)
    jg      copy_tiers
#endif
    addl    $12, %edx
    jnc     copy_avx2_to_3
    movl    %edx, %ecx
    shrl    $1, %ecx
    andl    $6, %ecx
    movl    (%rsi), %r8d
    movl    (%rsi,%rcx), %r9d
    movl    (%rsi,%rcx,2), %r10d
    movl    (%rsi,%rdx), %esi
    movl    %r8d, (%rdi)
    movl    %r9d, (%rdi,%rcx)
    movl    %r10d, (%rdi,%rcx,2)
    movl    %esi, (%rdi,%rdx)
copy_avx2_none:
    ret

/* 65 to 128. From here on rdx is n - 128. */
    .p2align 6
copy_avx2_65_on:
#if WHERRY_FIRST_AVX2
    testb   $1, %cl
    jz      copy_not_avx2
#endif
copy_avx2_65_on_for_sure:
    subq    $112, %rdx
    jg      copy_avx2_129_on
    PREFETCH_TO_128_AT_128
    vmovdqu (%rsi), %ymm0
    vmovdqu 32(%rsi), %ymm1
    vmovdqu 64(%rsi,%rdx), %ymm2
    vmovdqu 96(%rsi,%rdx), %ymm3
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm1, 32(%rdi)
    vmovdqu %ymm2, 64(%rdi,%rdx)
    vmovdqu %ymm3, 96(%rdi,%rdx)
    vzeroupper
    ret

#if WHERRY_FIRST_AVX2
copy_not_avx2:
    testl   %ecx, %ecx
    jnz     copy_sse2_64_on
    cmpb    $1, wherry_copy_choice + CHOICE_CODE(%rip)
    je      copy_avx2_after_all
copy_tiers:
    leaq    16(%rdx), %rdx          /* the flags are still those of the comparison */
    jmp     copy_avx512
copy_avx2_after_all:                /* since another thread has said so a moment ago */
    cmpq    $AVX2_INLINE, %rdx
    jb      copy_avx2_16_to_64
    jmp     copy_avx2_65_on_for_sure
#else
copy_avx2:                          /* by the choice alone */
    movq    %rdi, %rax
    jmp     copy_avx2_rax
#endif
    .p2align 6
copy_avx2_129_on:
    cmpq    $128, %rdx
    ja      copy_avx2_257_on
    PREFETCH_TO_256_AT_128
    vmovdqu (%rsi), %ymm0
    vmovdqu 32(%rsi), %ymm1
    vmovdqu 64(%rsi), %ymm2
    vmovdqu 96(%rsi), %ymm3
    vmovdqu (%rsi,%rdx), %ymm4
    vmovdqu 32(%rsi,%rdx), %ymm5
    vmovdqu 64(%rsi,%rdx), %ymm6
    vmovdqu 96(%rsi,%rdx), %ymm7
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm1, 32(%rdi)
    vmovdqu %ymm2, 64(%rdi)
    vmovdqu %ymm3, 96(%rdi)
    vmovdqu %ymm4, (%rdi,%rdx)
    vmovdqu %ymm5, 32(%rdi,%rdx)
    vmovdqu %ymm6, 64(%rdi,%rdx)
    vmovdqu %ymm7, 96(%rdi,%rdx)
    vzeroupper
    ret

    .p2align 5
copy_avx2_to_3:
    addl    $4, %edx
    jz      copy_avx2_none
    movl    %edx, %ecx
    shrl    $1, %ecx
    movzbl  (%rsi), %r8d
    movzbl  (%rsi,%rcx), %r9d
    movzbl  -1(%rsi,%rdx), %r10d
    movb    %r8b, (%rdi)
    movb    %r9b, (%rdi,%rcx)
    movb    %r10b, -1(%rdi,%rdx)
    ret

#if WHERRY_EDGE_BRANCH
    .p2align 5
#else
    .p2align 6
#endif
copy_avx2_257_on:
    subq    $-128, %rdx
copy_avx2_large:
    COPY_AVX2_PLAIN(copy_avx2_close, copy_avx2_by_plan)
copy_avx2_forward:
#include "dispatch/copy_avx2_forward.tmpl.S"

/* Forward, with all loaded before it is overwritten. */
    .p2align 4
copy_avx2_close:
    cmpq    %rdx, %rcx              /* the destination begins inside the source */
    jb      copy_avx2_backward
    COPY_AVX2_BEGINS
    .p2align 6
    COPY_AVX2_STEPS
    vmovdqu %ymm4, (%r9)
    COPY_AVX2_ENDS
    ret

#if WHERRY_FIRST_AVX2
#include "dispatch/copy_avx2_backward.tmpl.S"
#endif

copy_avx2_by_routine:
    cmpq    %rdi, %rax
    je      wherry_routine_move_avx2_large
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    wherry_routine_move_avx2_large
    popq    %rax
    .cfi_adjust_cfa_offset -8
    ret
