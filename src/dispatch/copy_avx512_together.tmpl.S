/* Sizes together, to 1024 bytes. A part of copy_avx512.tmpl.S. */
/* clang-format off */
#define MOVE_4(from, ...)                      \
    vmovdqu64 (from), %zmm16;                  \
    vmovdqu64 64(from), %zmm17;                \
    vmovdqu64 128(from), %zmm18;               \
    vmovdqu64 192(from), %zmm19;               \
    vmovdqu64 %zmm16, (__VA_ARGS__);           \
    vmovdqu64 %zmm17, 64(__VA_ARGS__);         \
    vmovdqu64 %zmm18, 128(__VA_ARGS__);        \
    vmovdqu64 %zmm19, 192(__VA_ARGS__)
/* clang-format on */
move_together:
    cmpq    $1024, %rdx             /* the largest first: in real mixes they are few, so this branch is seldom guessed */
    ja      move_513_on             /* wrong, and the next then has them out of its way */
    testb   %dh, %dh                /* 256 and more; four bytes less, for the text has little room */
    jnz     move_256_to_1024
/* Two halves under one mask, and three whole blocks, of which those that n does not reach are moved down to where it ends; to 64
 * bytes these three go from what nobody needs to below the stack, to the 128 bytes that are a function's own. Four blocks
 * under a mask, at places of their own, are slow on Intel (docs/performance-intel.md), and on a Zen 4 whoever reads at once
 * what such a block has stored waits for it (docs/performance-zen4.md). */
move_to_255:
    testl   %edx, %edx              /* null, or what stands for an empty slice */
    jz      move_nothing
    AT_PAGE_END(%rsi, 32, %ecx, move_to_255_at_page_end)
    AT_PAGE_END(%rdi, 32, %ecx, move_to_255_at_page_end)
move_to_255_anyhow:
    PREFETCH_MASKED_COPY            /* on Intel's the source is fetched ahead as soon as a block in three is whole */
    PREFETCH_LAST_LINE
    PLACES_TO_COPY(%rcx, %ecx, move_anything)
#if WHERRY_EDGE_BRANCH
    prefetchw (%r9,%rcx)
    prefetchw (%r9,%r8)
#endif
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
move_together_done:
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)

move_to_255_at_page_end:            /* from 32 bytes on nothing is masked out there */
    cmpl    $32, %edx
    jae     move_to_255_anyhow
    jmp     move_near_page_end

/* The first block and the last two, and between them thirteen that begin at a line: of the source, where a load across
 * lines costs as much as a store across them, else of the destination, as for sizes apart (copy_source_lines_to). Three of
 * those are fixed; of the others those that n does not reach repeat what the last of them copies. They reach 960 bytes at
 * most from that line, so above that they follow the first block.
 *
 *   rcx X, the least multiple of 64 from where three blocks reach what the last two do not
 *   r8  the destination as it was
 *   r9, r10, r11 X where it is less than 192, 384, 576, else that: three blocks, three, and one, and at X three again
 */
move_256_to_1024:
#if !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     move_together_loop
#endif
move_sixteen:
    movl    %esi, %ecx
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
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
#if WHERRY_EDGE_BRANCH
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)
#else
    jmp     move_together_done      /* the text has no room for it once more */
#endif

#if !WHERRY_EDGE_BRANCH
/* The same where a 64-byte store takes two cycles (stores_halved): half of the sixteen blocks would be spare, and a branch
 * guessed wrong costs less, since stores go on meanwhile; the less the more of them come before it. So four blocks where the
 * buffer begins, four that end where it ends, and steps of four at lines of the destination for what lies between, which are
 * so few that many are guessed rightly (docs/performance-zen4.md). For sides that do not overlap.
 *
 *   r8  dst - src
 *   rdi the destination of the first, the source of the steps
 *   rcx the source of the last
 */
move_together_loop:                 /* no filling before the step: it begins early enough in its line, and the text has no room */
    movq    %rdi, %r8
    leal    (%rdx,%rdx), %ecx
    subq    %rsi, %r8
    leaq    (%r8,%rdx), %r10
    cmpq    %rcx, %r10
    jb      move_sixteen
    MOVE_4(%rsi, %rdi)
    leaq    -256(%rsi,%rdx), %rcx
    andq    $-64, %rdi
    MOVE_4(%rcx, %rcx,%r8)
    addq    $256, %rdi
    subq    %r8, %rdi
    cmpl    $512, %edx              /* sooner known than where a step would end */
    jbe     move_together_done
move_together_step:
    MOVE_4(%rdi, %rdi,%r8)
    addq    $256, %rdi
    cmpq    %rcx, %rdi
    jb      move_together_step
    jmp     move_together_done
#endif
