/* The smallest copies, under a mask. A part of copy_avx512.tmpl.S. */
/* clang-format off */
/* For those who have not compared n with the word. */
#define BY_SIZE                                \
move_by_size:                                  \
    movl    $COPY_SMALL, %ecx;                 \
    cmpq    %rcx, %rdx;                        \
    jb      move_small;                        \
    jmp     move_blocks
#if WHERRY_FIRST_AVX2
#define MOVE_LOW_SOURCE move_low_source
#else
#define MOVE_LOW_SOURCE move_low_source_for_sure /* the other tiers were told */
#endif
#define LOW_SOURCE                             \
MOVE_LOW_SOURCE:                               \
    testl   %edx, %edx;                        \
    jnz     move_small_anyhow;                 \
    ret
/* clang-format on */

/* With the flags of n and rcx, which is COPY_BELOW. */
#if WHERRY_FIRST_AVX2
    jae     move_blocks
#else
    jae     move_blocks_or_not
#endif

/* What is masked out must not lie in another page: where nothing is mapped, or nothing has been written yet, even that takes
 * 180 ns, and a store across pages takes 4.
 *
 * Two halves of 32 bytes. The second begins where 32 bytes are left, or at 0 where n is less: then one mask serves both,
 * which is all ones from 32 bytes on, so that a byte that is read at once need not wait. Or it is in its place. Either way
 * fewer copies ask for a line that they do not need than with one block of 64 bytes.
 *
 * On AMD's the blocks have a line of code of their own, to which the first line jumps: to run on into a second line takes a
 * cycle of eleven, and a jump none (Zen 4).
 */
#if SECOND_HALF_IN_PLACE
#define SMALL_REACH 64
#else
#define SMALL_REACH 32
#endif
/* Whether n is below 32, so that anything is masked out, is asked behind the branch on the page's end; or with it, which then
 * is taken the less, and guessed wrong (random places on a Zen 4: 40 to 63 bytes 8.1 cycles in place of 9.2). */
#define SMALL_ASKED_LATER (WHERRY_EDGE_BRANCH || SECOND_HALF_IN_PLACE)
move_small:
    cmpq    %rcx, %rsi              /* null, or what stands for an empty slice in Rust: then n is 0 */
    jbe     move_low_source
move_small_anyhow:
#if ONE_BYTE_APART
    cmpl    $1, %edx
    je      move_one
#endif
#if SMALL_ASKED_LATER
    AT_PAGE_END(%rsi, SMALL_REACH, %ecx, move_near_page_end)
    AT_PAGE_END(%rdi, SMALL_REACH, %ecx, move_near_page_end)
#else
    CUT_AT_PAGE_END(%rsi, %edx, %ecx, move_near_page_end)
    CUT_AT_PAGE_END(%rdi, %edx, %ecx, move_near_page_end)
#endif
#if !WHERRY_EDGE_BRANCH
    jmp     move_small_blocks

    .p2align 6
move_small_blocks:
#endif
#if SECOND_HALF_IN_PLACE
    PREFETCH_MASKED_COPY
#if !WHERRY_EDGE_BRANCH
    prefetcht0 -1(%rsi,%rdx)        /* programs that join strings: docs/performance.md, "Masks in memory" */
#endif
    PREFETCH_LAST_LINE
    movq    $-1, %rcx
    bzhiq   %rdx, %rcx, %rcx
    kmovq   %rcx, %k1
    kshiftrq $32, %k1, %k2
    vmovdqu8 (%rsi), %ymm16{%k1}{z}
    vmovdqu8 32(%rsi), %ymm17{%k2}{z}
    vmovdqu8 %ymm16, (%rdi){%k1}
    vmovdqu8 %ymm17, 32(%rdi){%k2}
#else
move_halves:
    PREFETCH_MASKED_COPY
    PREFETCH_LAST_LINE
    movl    $-1, %ecx               /* waits for no address, as orl would */
    xorl    %r8d, %r8d
    bzhil   %edx, %ecx, %ecx
    kmovd   %ecx, %k1
    subl    $32, %edx
    cmovbl  %r8d, %edx
    vmovdqu8 (%rsi), %ymm16{%k1}{z}
    vmovdqu8 (%rsi,%rdx), %ymm17{%k1}{z}
    vmovdqu8 %ymm16, (%rdi){%k1}
    vmovdqu8 %ymm17, (%rdi,%rdx){%k1}
#endif
    ret

#if WHERRY_EDGE_BRANCH
    LOW_SOURCE
#endif
#if ONE_BYTE_APART
move_one:
    movzbl  (%rsi), %ecx
    movb    %cl, (%rdi)
    ret
#endif
/* Below 32 bytes the block that ends where the buffer ends. It cannot reach into another page on the side that begins near a
 * page's end; on the other it may, where that begins near a page's begin, and then costs what it costs. */
move_near_page_end:
#if SMALL_ASKED_LATER
    cmpl    $32, %edx
    jae     move_halves
#endif
#if WHERRY_EDGE_BRANCH
    testl   %edx, %edx              /* from the last address of all also in SSE2's tier, which has no mask */
    jz      move_done
    PREFETCH_MASKED_COPY
#endif
    orl     $-1, %ecx
    shrxl   %edx, %ecx, %ecx
    notl    %ecx                    /* the upper n bits */
    kmovd   %ecx, %k1
    vmovdqu8 -32(%rsi,%rdx), %ymm16{%k1}{z}
    vmovdqu8 %ymm16, -32(%rdi,%rdx){%k1}
move_done:
    ret
#if SECOND_HALF_IN_PLACE
move_halves:
    vmovdqu64 (%rsi), %ymm16
    vmovdqu64 -32(%rsi,%rdx), %ymm17
    vmovdqu64 %ymm16, (%rdi)
    vmovdqu64 %ymm17, -32(%rdi,%rdx)
    ret
#endif

    BY_SIZE
#if !WHERRY_EDGE_BRANCH
    LOW_SOURCE
#endif
