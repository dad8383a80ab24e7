/* AVX2's copies whose destination begins inside the source. A part of public.S: in the page of what copies where AVX2
 * stands first, elsewhere there is no room in it.
 *
 * From the end down, by vector boundaries of the destination, not by its lines (docs/performance-avx2.md). Of the up to
 * 128 bytes that are left below the loop all but the first block begin at such boundaries.
 *
 *   rcx dst - src
 *   r8  the destination from here on is copied, or loaded
 *   r9  the byte before the first vector boundary of the destination
 *   r10 what is copied to r8
 */
    .p2align 4
copy_avx2_backward:
    testq   %rcx, %rcx              /* programs that close gaps move much to where it is */
    je      copy_avx2_none
    leaq    -1(%rdi,%rdx), %r8
    movq    %rdi, %r9
    vmovdqu (%rsi), %ymm4
    vmovdqu -32(%rsi,%rdx), %ymm5
    orq     $31, %r9
    andq    $-32, %r8
    movq    %r9, %rsi
    subq    %rcx, %rsi
    movq    %r8, %r10
    vmovdqu 1(%rsi), %ymm6
    vmovdqu 33(%rsi), %ymm7
    vmovdqu 65(%rsi), %ymm8
    subq    %rcx, %r10
    leaq    128(%rdi), %r11
    cmpl    $0, wherry_thresholds + COPY_BACKWARD_AHEAD(%rip)
    jne     copy_avx2_backward_by_turns /* not Zen 3 and 4, where this order was measured */
    .p2align 5
copy_avx2_step_backward:
    vmovdqu -32(%r10), %ymm0
    vmovdqu -64(%r10), %ymm1
    vmovdqu -96(%r10), %ymm2
    vmovdqu -128(%r10), %ymm3
    vmovdqa %ymm0, -32(%r8)
    addq    $-128, %r10
    addq    $-128, %r8
    vmovdqa %ymm1, 64(%r8)
    vmovdqa %ymm2, 32(%r8)
    vmovdqa %ymm3, (%r8)
    cmpq    %r11, %r8
    ja      copy_avx2_step_backward
copy_avx2_backward_ends:
    vmovdqa %ymm8, 65(%r9)
    vmovdqa %ymm7, 33(%r9)
    vmovdqa %ymm6, 1(%r9)
    vmovdqu %ymm5, -32(%rdi,%rdx)
    vmovdqu %ymm4, (%rdi)
    vzeroupper
    ret
