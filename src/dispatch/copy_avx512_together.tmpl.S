/* Sizes together, to 1024 bytes. A part of copy_avx512.tmpl.S. */
move_together:
    cmpq    $1024, %rdx             /* the largest first: in real mixes they are few, so this branch is seldom guessed */
    ja      move_513_on             /* wrong, and the next then has them out of its way */
    cmpl    $255, %edx
    ja      move_256_to_1024
/* One block under a mask, and three whole ones, of which those that n does not reach are moved down to where it ends; to 64
 * bytes these three go from what nobody needs to below the stack, to the 128 bytes that are a function's own. For Intel, where the
 * page's end is a branch and several blocks under a mask are slow (docs/performance-intel.md). Elsewhere one block under a
 * mask, four times, or four whole ones of which those that n does not reach repeat the first. */
move_to_255:
#if WHERRY_EDGE_BRANCH
    testl   %edx, %edx              /* null, or what stands for an empty slice */
    jz      move_nothing
    CUT_AT_PAGE_END(%rsi, %edx, %ecx, move_near_page_end)
    CUT_AT_PAGE_END(%rdi, %edx, %ecx, move_near_page_end)
    prefetchw (%rdi)                /* the source is fetched ahead as soon as a block in three is whole */
    PREFETCH_LAST_LINE
    PLACES_TO_COPY(%rcx, %ecx, move_anything)
    prefetchw (%r9,%rcx)
    prefetchw (%r9,%r8)
    vmovdqu8 (%rsi), %ymm16{%k1}{z}
    vmovdqu8 (%rsi,%r10), %ymm21{%k1}{z}
    vmovdqu64 (%r11,%rcx), %zmm17
    vmovdqu64 (%r11,%r8), %zmm18
    vmovdqu64 -64(%r11,%rdx), %ymm19 /* halves, since a byte that is read at once is often the last */
    vmovdqu64 -32(%r11,%rdx), %ymm20
    vmovdqu8 %ymm16, (%rdi){%k1}
    vmovdqu8 %ymm21, (%rdi,%r10){%k1}
    vmovdqu64 %zmm17, (%r9,%rcx)
    vmovdqu64 %zmm18, (%r9,%r8)
    vmovdqu64 %ymm19, -64(%r9,%rdx)
    vmovdqu64 %ymm20, -32(%r9,%rdx)
#else
    cmpq    $4096, %rsi
    jb      move_together_page_0
move_four:
    PREFETCH_MASKED_COPY
    prefetcht0 -1(%rsi,%rdx)
    PREFETCH_LAST_LINE
    movl    %edi, %ecx
    xorl    %r9d, %r9d
    orl     %esi, %ecx
    movq    %rdx, %r10
    notl    %ecx
    subq    $64, %r10
    movq    %r10, %r8
    cmovnsq %r9, %r8                /* the place of the first block: n - 64, where n is less and the block that begins */
    cmovsq  %r9, %r10               /* that of the last; at the buffer might reach into another page; else 0 */
    testl   $0xfc0, %ecx            /* as move_near_page_end, in fewer bytes */
    movq    $-1, %rcx
    cmovneq %r9, %r8
    bzhiq   %rdx, %rcx, %rcx        /* all ones from 64 on */
    subl    %r8d, %r9d
    shlxq   %r9, %rcx, %rcx
    addq    %r8, %rsi
    addq    %rdi, %r8
    kmovq   %rcx, %k1
    rorxl   $1, %edx, %ecx
    leal    (%rdx,%rdx), %r9d
    andl    $64, %ecx               /* 64 from 128 on */
    andl    %edx, %r9d
    andl    $128, %r9d              /* 128 from 192 on */
    vmovdqu8 (%rsi), %zmm16{%k1}{z}
    vmovdqu8 (%rsi,%rcx), %zmm17{%k1}{z}
    vmovdqu8 (%rsi,%r9), %zmm18{%k1}{z}
    vmovdqu8 (%rsi,%r10), %zmm19{%k1}{z}
    vmovdqu8 %zmm16, (%r8){%k1}
    vmovdqu8 %zmm17, (%r8,%rcx){%k1}
    vmovdqu8 %zmm18, (%r8,%r9){%k1}
    vmovdqu8 %zmm19, (%r8,%r10){%k1}
#endif
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)

/* The first block and the last two, and between them thirteen that begin at a line: of the source, where a load across
 * lines costs as much as a store across them, else of the destination, as for sizes apart (copy_source_lines_to). Three of
 * those are fixed; of the others those that n does not reach repeat what the last of them copies. They reach 960 bytes at
 * most from that line, so above that they follow the first block.
 *
 *   rcx X, the least multiple of 64 from where three blocks reach what the last two do not
 *   r8  the destination as it was
 *   r9, r10, r11 X where it is less than 192, 384, 576, else that: three blocks, three, and one, and at X three again
 */
#if !WHERRY_EDGE_BRANCH             /* there it reaches into as many lines of code without, and the text into fewer */
    .p2align 6
#endif
move_256_to_1024:
#if !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     move_together_loop
#endif
move_sixteen:
    movl    %esi, %ecx
    cmpl    $0, wherry_thresholds + COPY_SOURCE_PAGE(%rip)
    cmovel  %edi, %ecx
    negl    %ecx
    andl    $63, %ecx               /* 0 .. 63, to that line */
    movl    $64, %r8d
    cmpl    $960, %edx
    cmoval  %r8d, %ecx
    movq    %rdi, %r8
    vmovdqu64 (%rsi), %zmm16
    addq    %rcx, %rsi
    addq    %rcx, %rdi
    subq    %rcx, %rdx              /* 193 .. 960 */
    vmovdqu64 (%rsi), %zmm17
    vmovdqu64 64(%rsi), %zmm18
    vmovdqu64 128(%rsi), %zmm19
    FARTHEST_3
    LIMITED(192, %r9d)
    vmovdqu64 (%rsi,%r9), %zmm20
    vmovdqu64 64(%rsi,%r9), %zmm21
    vmovdqu64 128(%rsi,%r9), %zmm22
    LIMITED(384, %r10d)
    vmovdqu64 (%rsi,%r10), %zmm23
    vmovdqu64 64(%rsi,%r10), %zmm24
    vmovdqu64 128(%rsi,%r10), %zmm25
    LIMITED(576, %r11d)
    vmovdqu64 (%rsi,%r11), %zmm26
    vmovdqu64 (%rsi,%rcx), %zmm27
    vmovdqu64 64(%rsi,%rcx), %zmm28
    vmovdqu64 128(%rsi,%rcx), %zmm29
    vmovdqu64 -128(%rsi,%rdx), %zmm30
    vmovdqu64 -64(%rsi,%rdx), %zmm31
    vmovdqu64 %zmm16, (%r8)
    vmovdqu64 %zmm17, (%rdi)
    vmovdqu64 %zmm18, 64(%rdi)
    vmovdqu64 %zmm19, 128(%rdi)
    vmovdqu64 %zmm20, (%rdi,%r9)
    vmovdqu64 %zmm21, 64(%rdi,%r9)
    vmovdqu64 %zmm22, 128(%rdi,%r9)
    vmovdqu64 %zmm23, (%rdi,%r10)
    vmovdqu64 %zmm24, 64(%rdi,%r10)
    vmovdqu64 %zmm25, 128(%rdi,%r10)
    vmovdqu64 %zmm26, (%rdi,%r11)
    vmovdqu64 %zmm27, (%rdi,%rcx)
    vmovdqu64 %zmm28, 64(%rdi,%rcx)
    vmovdqu64 %zmm29, 128(%rdi,%rcx)
    vmovdqu64 %zmm30, -128(%rdi,%rdx)
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)

#if !WHERRY_EDGE_BRANCH
/* The same where a 64-byte store takes two cycles (stores_halved): half of the sixteen blocks would be spare, and the end of
 * a loop guessed wrong costs less, since stores go on meanwhile. By lines of the destination, two a step, of which Zen 4
 * took the least time (docs/performance-avx2.md).
 *
 *   r8  dst - src
 *   r9  the source of what comes next
 *   rsi the source of where up to 128 bytes are left; another for each call, as the watch wants it
 */
move_together_loop:                 /* no filling before the step: it begins early enough in its line, and the text has no room */
    CLOSE
    jb      move_sixteen
    vmovdqu64 (%rsi), %ymm16
    vmovdqu64 32(%rsi), %ymm17
    leaq    -128(%rsi,%rdx), %rsi
    vmovdqu64 (%rsi), %zmm18
    vmovdqu64 64(%rsi), %ymm19
    vmovdqu64 96(%rsi), %ymm20
    vmovdqu64 %ymm16, (%rdi)
    vmovdqu64 %ymm17, 32(%rdi)
    TO_NEXT_LINE(%rdi)
    movq    %rdi, %r9
    subq    %r8, %r9
move_together_step:
    vmovdqu64 (%r9), %zmm21
    vmovdqu64 64(%r9), %zmm22
    vmovdqa64 %zmm21, (%r9,%r8)
    vmovdqa64 %zmm22, 64(%r9,%r8)
    subq    $-128, %r9
    cmpq    %rsi, %r9
    jb      move_together_step
    vmovdqu64 %zmm18, (%rsi,%r8)
    vmovdqu64 %ymm19, 64(%rsi,%r8)
    vmovdqu64 %ymm20, 96(%rsi,%r8)
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)
#endif
