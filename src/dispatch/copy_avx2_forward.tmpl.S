/* The plain loop of AVX2: as move_forward, but from a line of the destination on, since stores across lines cost more than loads
 * there. Of what is left behind the loop only the last block does not begin at a vector boundary. A part of public.S,
 * twice: where a 64-byte store takes two cycles AVX-512 has one of its own, since cold code waits for each jump that is taken
 * (docs/performance-zen4.md).
 *
 *   r8  the source's end
 *   r11 up to 128 bytes are left from here on
 */
    PREFETCH_257_ON
    vmovdqu (%rsi), %ymm4
    vmovdqu 32(%rsi), %ymm5
    leaq    (%rsi,%rdx), %r8
    leaq    -128(%rdi,%rdx), %r11
    movq    %rdi, %r9
    orq     $63, %rdi
    subq    %r9, %rsi
    vmovdqu %ymm4, (%r9)
    vmovdqu %ymm5, 32(%r9)
    addq    $1, %rdi
    addq    %rdi, %rsi
    .p2align 6
    COPY_AVX2_STEPS
    leaq    127(%r11), %r9          /* the last byte, so the last vector boundary that the destination reaches */
    andq    $-32, %r9
    movq    %r9, %r10
    subq    %rdi, %r10
    vmovdqu -96(%rsi,%r10), %ymm0
    vmovdqu -64(%rsi,%r10), %ymm1
    vmovdqu -32(%rsi,%r10), %ymm2
    vmovdqu -32(%r8), %ymm3
    vmovdqa %ymm0, -96(%r9)
    vmovdqa %ymm1, -64(%r9)
    vmovdqa %ymm2, -32(%r9)
    vmovdqu %ymm3, 96(%r11)
    vzeroupper
    ret
