/* Copies and sets of SSE2, to the plain loop. Not in the pages of the other tiers: there is no room in the copies'. To 256
 * bytes each class is one run of instructions, and all is loaded before anything is stored. The smallest copies are
 * AVX2's, which have nothing that SSE2 has not. A part of public.S.
 */
/* clang-format off */
#define SSE2_LOAD_4(from, at, a, b, c, d)      \
    movups  from at, a;                        \
    movups  from + 16 at, b;                   \
    movups  from + 32 at, c;                   \
    movups  from + 48 at, d
#define SSE2_STORE_4(store, from, at, a, b, c, d) \
    store   a, from at;                        \
    store   b, from + 16 at;                   \
    store   c, from + 32 at;                   \
    store   d, from + 48 at
#define SSE2_SET_4(store, from, at) SSE2_STORE_4(store, from, at, %xmm0, %xmm0, %xmm0, %xmm0)
/* clang-format on */

    .p2align 6
    .type copies_sse2, @function
copies_sse2:
    .cfi_startproc
copy_sse2:
    movq    %rdi, %rax
#if !WHERRY_FIRST_AVX2
    jmp     copy_sse2_rax
move_not_avx2:                      /* with the flags of ecx, the number and 1: below 0 it is SSE2's */
    jns     move_low_source_for_sure
#endif
copy_sse2_rax:                      /* rax is what to return */
    subq    $16, %rdx
    jb      copy_avx2_to_15
    cmpq    $49, %rdx
    jae     copy_sse2_64_on
    COPY_16_TO_64
    ret

/* 64 to 128; rdx is n - 16, then n - 128. */
copy_sse2_64_on:
    subq    $112, %rdx
    jg      copy_sse2_129_on
    SSE2_LOAD_4(0, (%rsi), %xmm0, %xmm1, %xmm2, %xmm3)
    SSE2_LOAD_4(64, (%rsi,%rdx), %xmm4, %xmm5, %xmm6, %xmm7)
    SSE2_STORE_4(movups, 0, (%rdi), %xmm0, %xmm1, %xmm2, %xmm3)
    SSE2_STORE_4(movups, 64, (%rdi,%rdx), %xmm4, %xmm5, %xmm6, %xmm7)
    ret

/* As move_forward; the first vector is stored last, so that a destination below the source may be as close as it
 * likes. Whatever else the plan or an overlap asks for the routine does. */
    .p2align 5
copy_sse2_129_on:
    cmpq    $128, %rdx
    jbe     copy_sse2_129_to_256
    subq    $-128, %rdx
    movq    %rdi, %r8
    subq    %rsi, %r8
    cmpq    wherry_thresholds + COPY_STRING_FROM(%rip), %rdx
    jae     copy_sse2_by_string
    cmpq    %rdx, %r8               /* the destination begins inside the source, or where it does */
    jb      copy_sse2_backward
    cmpq    wherry_thresholds + COPY_XMM_BELOW(%rip), %rdx
    jae     copy_sse2_by_routine
    movups  (%rsi), %xmm4
    SSE2_LOAD_4(-64, (%rsi,%rdx), %xmm5, %xmm6, %xmm7, %xmm8)
    leaq    -64(%rdi,%rdx), %r11    /* up to 64 bytes are left from here on */
    movq    %rdi, %r9
    orq     $15, %rdi
    subq    %r9, %rsi
    addq    $1, %rdi
    addq    %rdi, %rsi
    .p2align 6
copy_sse2_step:                     /* by turns: docs/performance-avx2.md, "Loads and stores by turns" */
    movups  (%rsi), %xmm0
    movaps  %xmm0, (%rdi)
    movups  16(%rsi), %xmm1
    movaps  %xmm1, 16(%rdi)
    movups  32(%rsi), %xmm2
    movaps  %xmm2, 32(%rdi)
    movups  48(%rsi), %xmm3
    addq    $64, %rsi
    movaps  %xmm3, 48(%rdi)
    addq    $64, %rdi
    cmpq    %r11, %rdi
    jb      copy_sse2_step
    SSE2_STORE_4(movups, 0, (%r11), %xmm5, %xmm6, %xmm7, %xmm8)
    movups  %xmm4, (%r9)
    ret

/* From the end down; r8 is dst - src. */
    .p2align 5
copy_sse2_backward:
    testq   %r8, %r8
    jz      copy_sse2_none
    SSE2_LOAD_4(0, (%rsi), %xmm5, %xmm6, %xmm7, %xmm8)
    movups  -16(%rsi,%rdx), %xmm4
    leaq    -1(%rdi,%rdx), %rcx
    leaq    64(%rdi), %r11          /* up to 64 bytes are left from here down */
    leaq    -16(%rdi,%rdx), %r9
    andq    $-16, %rcx
    movq    %rcx, %rsi
    subq    %r8, %rsi
    .p2align 6
copy_sse2_step_backward:
    movups  -16(%rsi), %xmm0
    movaps  %xmm0, -16(%rcx)
    movups  -32(%rsi), %xmm1
    movaps  %xmm1, -32(%rcx)
    movups  -48(%rsi), %xmm2
    movaps  %xmm2, -48(%rcx)
    movups  -64(%rsi), %xmm3
    subq    $64, %rsi
    movaps  %xmm3, -64(%rcx)
    subq    $64, %rcx
    cmpq    %r11, %rcx
    ja      copy_sse2_step_backward
    SSE2_STORE_4(movups, 0, (%rdi), %xmm5, %xmm6, %xmm7, %xmm8)
    movups  %xmm4, (%r9)
copy_sse2_none:
    ret

/* r8 is dst - src. */
    .p2align 4
copy_sse2_by_string:
    COPY_BY_STRING(copy_sse2_by_routine)
copy_sse2_by_routine:
    cmpq    %rdi, %rax
    je      wherry_routine_move_sse2
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    wherry_routine_move_sse2
    popq    %rax
    .cfi_adjust_cfa_offset -8
    ret

    .p2align 5
copy_sse2_129_to_256:
    SSE2_LOAD_4(0, (%rsi), %xmm0, %xmm1, %xmm2, %xmm3)
    SSE2_LOAD_4(64, (%rsi), %xmm4, %xmm5, %xmm6, %xmm7)
    SSE2_LOAD_4(0, (%rsi,%rdx), %xmm8, %xmm9, %xmm10, %xmm11)
    SSE2_LOAD_4(64, (%rsi,%rdx), %xmm12, %xmm13, %xmm14, %xmm15)
    SSE2_STORE_4(movups, 0, (%rdi), %xmm0, %xmm1, %xmm2, %xmm3)
    SSE2_STORE_4(movups, 64, (%rdi), %xmm4, %xmm5, %xmm6, %xmm7)
    SSE2_STORE_4(movups, 0, (%rdi,%rdx), %xmm8, %xmm9, %xmm10, %xmm11)
    SSE2_STORE_4(movups, 64, (%rdi,%rdx), %xmm12, %xmm13, %xmm14, %xmm15)
    ret
    .cfi_endproc
    .size copies_sse2, . - copies_sse2

    .p2align 6
    .type sets_sse2, @function
sets_sse2:
    .cfi_startproc
#if !WHERRY_FIRST_AVX2
set_not_avx2:
    testl   %ecx, %ecx              /* no destination is above what SSE2 has in rcx */
    jns     set_low_destination_for_sure
#endif
set_sse2:
    movq    %rdi, %rax
    subq    $16, %rdx
    jb      set_avx2_to_15
set_sse2_16_on:
    movzbl  %sil, %esi
    imull   $0x01010101, %esi, %esi
    movd    %esi, %xmm0
    pshufd  $0, %xmm0, %xmm0
    cmpq    $49, %rdx
    jae     set_sse2_65_on
    SET_16_TO_64
    ret

    .p2align 5
set_sse2_65_on:
    subq    $112, %rdx
    jg      set_sse2_129_on
    SSE2_SET_4(movups, 0, (%rdi))
    SSE2_SET_4(movups, 64, (%rdi,%rdx))
    ret

    .p2align 5
set_sse2_129_on:
    cmpq    $128, %rdx
    jbe     set_sse2_129_to_256
    subq    $-128, %rdx
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx
    jae     set_sse2_maybe_by_string
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     wherry_routine_set_sse2
    leaq    -64(%rdi,%rdx), %r8     /* up to 64 bytes are left from here on */
    movups  %xmm0, (%rdi)
    orq     $15, %rdi
    addq    $1, %rdi
    .p2align 6
set_sse2_step:
    SSE2_SET_4(movaps, 0, (%rdi))
    addq    $64, %rdi
    cmpq    %r8, %rdi
    jb      set_sse2_step
    SSE2_SET_4(movups, 0, (%r8))
    ret

set_sse2_maybe_by_string:
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jb      wherry_routine_set_sse2
    SET_BY_STRING(wherry_routine_set_sse2)

    .p2align 5
set_sse2_129_to_256:
    SSE2_SET_4(movups, 0, (%rdi))
    SSE2_SET_4(movups, 64, (%rdi))
    SSE2_SET_4(movups, 0, (%rdi,%rdx))
    SSE2_SET_4(movups, 64, (%rdi,%rdx))
    ret
    .cfi_endproc
    .size sets_sse2, . - sets_sse2
