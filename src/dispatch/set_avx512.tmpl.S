/* The set of AVX-512, to the plain loop: as copy_avx512.tmpl.S. A part of public.S. */
#define SET_ROUTINE_FROM 0x20000 /* bytes */
/* clang-format off */
/* Where sizes above 1024 bytes go, n in rdx; falls through to a loop. */
#define SET_1025_ON                            \
set_1025_on:                                   \
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx; \
    jae     set_maybe_by_string;               \
set_not_by_string:                             \
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx; \
    jae     wherry_routine_set_avx512
/* r9 becomes the last half line that the rdx bytes at rdi reach, and k1 what of it they have. Loses rcx. */
#define LAST_HALF_LINE                         \
    leaq    -1(%rdi,%rdx), %r9;                \
    movl    $-2, %ecx;                         \
    shlxl   %r9d, %ecx, %ecx;                  \
    notl    %ecx;                              \
    kmovd   %ecx, %k1;                         \
    andq    $-32, %r9
/* Where a 64-byte store takes two cycles: by half lines, four a step, and four to the end, the last under a mask, since one
 * across pages takes 9 ns. Twice, and behind no jump that is taken, since cold code waits 5 ns for each
 * (docs/performance-zen4.md).
 *
 *   r8  up to 128 bytes are left from here on
 */
#define SET_BY_HALVES                          \
    leaq    -128(%rdi,%rdx), %r8;              \
    LAST_HALF_LINE;                            \
    vmovdqu64 %ymm16, (%rdi);                  \
    andq    $-32, %rdi;                        \
    addq    $32, %rdi;                         \
772:                                           \
    vmovdqa64 %ymm16, 0(%rdi);                 \
    vmovdqa64 %ymm16, 32(%rdi);                \
    vmovdqa64 %ymm16, 64(%rdi);                \
    vmovdqa64 %ymm16, 96(%rdi);                \
    subq    $-128, %rdi;                       \
    cmpq    %r8, %rdi;                         \
    jb      772b;                              \
    vmovdqa64 %ymm16, -96(%r9);                \
    vmovdqa64 %ymm16, -64(%r9);                \
    vmovdqa64 %ymm16, -32(%r9);                \
    vmovdqu8 %ymm16, (%r9){%k1};               \
    ret
/* clang-format on */

/* As in copy_avx512_small.tmpl.S, with the flags of n and rcx, which is SET_BELOW. */
#if WHERRY_FIRST_AVX2
    jae     set_65_on
#else
    jae     set_65_on_or_not
#endif
set_to_64:
    cmpq    %rcx, %rdi
    jbe     set_low_destination
set_to_64_anyhow:
    vpbroadcastb %esi, %ymm16
#if WHERRY_EDGE_BRANCH
    AT_PAGE_END(%rdi, 32, %eax, set_near_page_end)
#else
    CUT_AT_PAGE_END(%rdi, %edx, %eax, set_near_page_end)
    jmp     set_halves

    .p2align 6
#endif
set_halves:                         /* as move_halves */
    movq    %rdi, %rax
    PREFETCH_LAST_LINE
    movl    $-1, %ecx
    xorl    %esi, %esi
    bzhil   %edx, %ecx, %ecx
    kmovd   %ecx, %k1
    subl    $32, %edx
    cmovbl  %esi, %edx
    PREFETCH_MASKED_SET
    vmovdqu8 %ymm16, (%rdi){%k1}
    vmovdqu8 %ymm16, (%rdi,%rdx){%k1}
    ret

set_near_page_end:
#if WHERRY_EDGE_BRANCH
    cmpl    $32, %edx
    jae     set_halves
#endif
    movq    %rdi, %rax
    PREFETCH_MASKED_SET
    orl     $-1, %ecx
    shrxl   %edx, %ecx, %ecx
    notl    %ecx                    /* the upper n bits */
    kmovd   %ecx, %k1
    vmovdqu8 %ymm16, -32(%rdi,%rdx){%k1}
    ret

#if WHERRY_FIRST_AVX2
set_low_destination:
#else
set_low_destination_for_sure:       /* in set_avx2 and sets_sse2 the other tiers were told */
#endif
    testl   %edx, %edx
    jnz     set_to_64_anyhow
    movq    %rdi, %rax
    ret

/* To 128 bytes the ends as in copies (routines/ends.h); above that halves gain nothing where a byte is not read at once. */
    .p2align 6
#if !WHERRY_FIRST_AVX2
set_65_on_or_not:
    jrcxz   set_not_apart
#endif
set_65_on:
    leal    -2(%rcx,%rcx), %ecx
    movq    %rdi, %rax
    vpbroadcastb %esi, %zmm16
    cmpq    %rcx, %rdx
    ja      set_129_on
    PREFETCH_TO_128
#if WHERRY_EDGE_BRANCH
    vmovdqu64 %zmm16, (%rdi)
#else
    vmovdqu64 %ymm16, (%rdi)
    vmovdqu64 %ymm16, 32(%rdi)
#endif
    vmovdqu64 %ymm16, -64(%rdi,%rdx)
    vmovdqu64 %ymm16, -32(%rdi,%rdx)
    ret

/* As move_not_apart. From 28 to 49 bytes into a line of code on unpredictable sizes to 256 take 1.05 to 1.09 (Zen 5). */
    .p2align 6
    .nops   25
set_not_apart:
    cmpb    $-2, wherry_set_choice + CHOICE_CODE(%rip)
    jne     set_others
set_together:
    vpbroadcastb %esi, %zmm16
    movq    %rdi, %rax
    cmpq    $1024, %rdx
    ja      set_1025_on
    testb   %dh, %dh
    jnz     set_256_to_1024
set_to_255:                         /* as move_to_255; a line to move blocks off to, since there is nothing to load */
    cmpq    $4096, %rdi
    jb      set_together_page_0
set_four:
    AT_PAGE_END(%rdi, 32, %ecx, set_four_at_page_end)
set_four_anyhow:
    PREFETCH_MASKED_SET
    PREFETCH_LAST_LINE
    PLACES_TO_SET(%rcx, %ecx)
    prefetchw (%r8,%rcx)
    prefetchw (%r8,%r9)
    vmovdqu8 %ymm16, (%rdi){%k1}
    vmovdqu8 %ymm16, (%rdi,%r11){%k1}
    vmovdqu64 %zmm16, (%r8,%rcx)
    vmovdqu64 %zmm16, (%r8,%r9)
    vmovdqu64 %ymm16, (%r8,%r10)
    vmovdqu64 %ymm16, 32(%r8,%r10)
    RETURN_WATCHED(wherry_watch_sets, set_look_back, set_uncounted)

    .p2align 6
set_129_on:
#if !WHERRY_EDGE_BRANCH
    cmpq    $1024, %rdx             /* here, since cold code goes by each jump that is taken */
    ja      set_1025_on
    cmpq    wherry_thresholds + SET_WHOLE_FROM(%rip), %rdx
    jae     set_257_whole
#endif
    cmpq    $256, %rdx
    ja      set_257_on
    PREFETCH_TO_256
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, 64(%rdi)
    vmovdqu64 %zmm16, -128(%rdi,%rdx)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    WATCH_PICK(wherry_watch_sets, %rdi, set_picked_back)
    ret
set_together_page_0:
    testl   %edx, %edx
    jnz     set_four
    ret

/* As move_by_size. */
set_by_size:
    movl    $SET_SMALL, %ecx
    cmpq    %rcx, %rdx
    jb      set_to_64
    jmp     set_65_on

#if !WHERRY_EDGE_BRANCH
    .p2align 6
SET_1025_ON
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    je      set_forward
    SET_BY_HALVES
set_picked_by_halves:               /* here, where a line of code has room */
    WATCH_PICKED_ONE(wherry_watch_sets, set_look)
    jmp     set_by_halves_watched
#endif

#if WHERRY_EDGE_BRANCH
    .p2align 5
set_257_on:
    cmpq    $1024, %rdx
    ja      set_1025_on
#else
    .p2align 6
set_257_on:
    WATCH_PICK(wherry_watch_sets, %rdi, set_picked_by_halves)
set_by_halves_watched:
    SET_BY_HALVES

    .p2align 5
set_257_whole:
#endif
    cmpl    $512, %edx
    ja      set_513_on
/* Lines from either end, three and three, which meet or overlap to 448 bytes, wherever the first begins; above, one more. A
 * store takes a cycle whether another has been there or not, and so few are the least with one branch, which to 448 bytes
 * always goes one way.
 *
 *   rcx the last line that the destination reaches
 *   r8  the end
 */
    PREFETCH_TO_512
    leaq    -1(%rdi,%rdx), %rcx
    leaq    (%rdi,%rdx), %r8
    andq    $-64, %rcx
    vmovdqu64 %zmm16, (%rdi)
    andq    $-64, %rdi
    vmovdqa64 %zmm16, 64(%rdi)
    vmovdqa64 %zmm16, 128(%rdi)
    vmovdqa64 %zmm16, 192(%rdi)
    cmpl    $448, %edx
    jbe     set_last_of_512
    vmovdqa64 %zmm16, 256(%rdi)
set_last_of_512:
    vmovdqa64 %zmm16, -192(%rcx)
    vmovdqa64 %zmm16, -128(%rcx)
    vmovdqa64 %zmm16, -64(%rcx)
    vmovdqu64 %zmm16, -64(%r8)
    ret

#if WHERRY_EDGE_BRANCH
    .p2align 5
set_513_on:
    WATCH_PICK(wherry_watch_sets, %rdi, set_picked_at_513)
    jmp     set_forward
#else
/* The first block, lines as many as the size alone tells, wherever they lie, three lines to the end and the block that ends
 * there. By halves, as set_step.
 *
 *   r9  the last line that the destination reaches
 */
#define SET_LINE(n)                            \
    vmovdqa64 %ymm16, 64*(n)(%rdi);            \
    vmovdqa64 %ymm16, 64*(n)+32(%rdi)
#define SET_LINE_MORE(n)                       \
    subl    $64, %ecx;                         \
    jbe     set_last_of_1024;                  \
    SET_LINE(n)
    .p2align 5
set_513_on:
    WATCH_PICK(wherry_watch_sets, %rdi, set_picked_at_513)
set_513_watched:
    leaq    -1(%rdi,%rdx), %r9
    leal    -512(%rdx), %ecx
    vmovdqu64 %zmm16, (%rdi)
    andq    $-64, %rdi
    andq    $-64, %r9
    SET_LINE(1)
    SET_LINE(2)
    SET_LINE(3)
    SET_LINE(4)
    SET_LINE(5)
    SET_LINE_MORE(6)
    SET_LINE_MORE(7)
    SET_LINE_MORE(8)
    SET_LINE_MORE(9)
    SET_LINE_MORE(10)
    SET_LINE_MORE(11)
    SET_LINE_MORE(12)
set_last_of_1024:
    vmovdqa64 %ymm16, -192(%r9)
    vmovdqa64 %ymm16, -160(%r9)
    vmovdqa64 %ymm16, -128(%r9)
    vmovdqa64 %ymm16, -96(%r9)
    vmovdqa64 %ymm16, -64(%r9)
    vmovdqa64 %ymm16, -32(%r9)
    vmovdqu64 %zmm16, -64(%rax,%rdx)
    ret
    UNCOUNTED(set_uncounted, wherry_watch_sets, %rdi, set_look_back)
#endif
set_four_at_page_end:
    cmpl    $32, %edx
    jae     set_four_anyhow
    jmp     set_near_page_end

#if !WHERRY_EDGE_BRANCH
/* To 512 bytes half of the sixteen blocks would be spare, which is more than a branch guessed wrong costs where a store takes a
 * cycle for each half line (stores_halved). So eight half lines from the begin, eight to the end, the last under a mask, and
 * the one behind the first eight, as far as there is one: the last eight begin 288 bytes behind the first at most.
 *
 *   r8  that one
 */
    .p2align 6
set_256_to_512:
    LAST_HALF_LINE
    vmovdqu64 %ymm16, (%rdi)
    andq    $-32, %rdi
    leaq    256(%rdi), %r8
    leaq    -32(%r9), %rcx
    vmovdqa64 %ymm16, 32(%rdi)
    vmovdqa64 %ymm16, 64(%rdi)
    vmovdqa64 %ymm16, 96(%rdi)
    vmovdqa64 %ymm16, 128(%rdi)
    vmovdqa64 %ymm16, 160(%rdi)
    vmovdqa64 %ymm16, 192(%rdi)
    vmovdqa64 %ymm16, 224(%rdi)
    cmpq    %rcx, %r8
    cmovaq  %rcx, %r8
    vmovdqa64 %ymm16, (%r8)
    vmovdqa64 %ymm16, -224(%r9)
    vmovdqa64 %ymm16, -192(%r9)
    vmovdqa64 %ymm16, -160(%r9)
    vmovdqa64 %ymm16, -128(%r9)
    vmovdqa64 %ymm16, -96(%r9)
    vmovdqa64 %ymm16, -64(%r9)
    vmovdqa64 %ymm16, -32(%r9)
    vmovdqu8 %ymm16, (%r9){%k1}
    movq    %rax, %rdi              /* where the hash that picks wants it */
    RETURN_WATCHED(wherry_watch_sets, set_look_back, set_uncounted)
#endif

/* As set_257_whole, with nine more lines: three behind the first three and so on, or, where the destination ends before them,
 * the last three in their place.
 *
 *   ecx from the first line that the destination reaches to the last, 192 .. 1024
 *   r9, r10, r11 the same, where it is less than 448, 640, 832, else that
 */
    .p2align 5
set_256_to_1024:
#if !WHERRY_EDGE_BRANCH
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    je      set_256_to_1024_whole
    cmpl    $512, %edx
    jbe     set_256_to_512
set_256_to_1024_whole:
#endif
    PREFETCH_TO_512
    leaq    -1(%rdi,%rdx), %rcx
    vmovdqu64 %zmm16, (%rdi)
    andq    $-64, %rdi
    andq    $-64, %rcx
    subq    %rdi, %rcx
    LIMITED(448, %r9d)
    LIMITED(640, %r10d)
    LIMITED(832, %r11d)
    vmovdqa64 %zmm16, 64(%rdi)
    vmovdqa64 %zmm16, 128(%rdi)
    vmovdqa64 %zmm16, 192(%rdi)
    vmovdqa64 %zmm16, -192(%rdi,%r9)
    vmovdqa64 %zmm16, -128(%rdi,%r9)
    vmovdqa64 %zmm16, -64(%rdi,%r9)
    vmovdqa64 %zmm16, -192(%rdi,%r10)
    vmovdqa64 %zmm16, -128(%rdi,%r10)
    vmovdqa64 %zmm16, -64(%rdi,%r10)
    vmovdqa64 %zmm16, -192(%rdi,%r11)
    vmovdqa64 %zmm16, -128(%rdi,%r11)
    vmovdqa64 %zmm16, -64(%rdi,%r11)
    vmovdqa64 %zmm16, -192(%rdi,%rcx)
    vmovdqa64 %zmm16, -128(%rdi,%rcx)
    vmovdqa64 %zmm16, -64(%rdi,%rcx)
    vmovdqu64 %zmm16, -64(%rax,%rdx)
    movq    %rax, %rdi              /* where the hash that picks wants it */
    RETURN_WATCHED(wherry_watch_sets, set_look_back, set_uncounted)

#if WHERRY_EDGE_BRANCH
    UNCOUNTED(set_uncounted, wherry_watch_sets, %rdi, set_look_back)
#endif
set_picked_back:
    WATCH_PICKED_ONE(wherry_watch_sets, set_look_back)
    ret
set_picked_at_513:
    WATCH_PICKED_ONE(wherry_watch_sets, set_look)
#if WHERRY_EDGE_BRANCH
    jmp     set_forward
#else
    jmp     set_513_watched
#endif
set_look_back:
    LOOK_BACK(wherry_watch_sets)
set_others:
    BY_CHOICE(wherry_set_choice, set_avx2, set_by_size, set_together, set_sse2, set_look, wherry_routine_set_avx512_ladder)
set_look:
    LOOK(wherry_watch_sets)
    jmp     set_together

#if WHERRY_EDGE_BRANCH
    .p2align 6
SET_1025_ON
#else
/* Many sets of 256 KiB in L2 take a fifth longer by half lines than by whole ones, which the routine has (Zen 5). */
set_maybe_by_string:
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jae     set_longer
    RECENT_FIND_SET(RECENT_SHIFTED_BMI2, wherry_routine_set_avx512)
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    jne     set_not_by_string
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     wherry_routine_set_avx512
    cmpl    $SET_ROUTINE_FROM, %edx /* below SET_REP_RECENT_FROM, or too large for it anyway */
    jae     wherry_routine_set_avx512
#endif
set_forward:
    leaq    -256(%rdi,%rdx), %r8    /* up to 256 bytes are left from here on */
    leaq    -1(%rdi,%rdx), %r9
    andq    $-64, %r9               /* the last line that the destination reaches */
    PREFETCH_513_ON
    vmovdqu64 %zmm16, (%rdi)
    andq    $-64, %rdi
    addq    $64, %rdi
/* Stores of half a line: with whole ones rows in memory take 1.03 to 1.2 of the time (Zen 5); in L1 they are as fast. */
    .p2align 4
set_step:
    vmovdqa64 %ymm16, 0(%rdi)
    vmovdqa64 %ymm16, 32(%rdi)
    vmovdqa64 %ymm16, 64(%rdi)
    vmovdqa64 %ymm16, 96(%rdi)
    vmovdqa64 %ymm16, 128(%rdi)
    vmovdqa64 %ymm16, 160(%rdi)
    vmovdqa64 %ymm16, 192(%rdi)
    vmovdqa64 %ymm16, 224(%rdi)
    addq    $256, %rdi
    cmpq    %r8, %rdi
    jb      set_step
    vmovdqa64 %zmm16, -192(%r9)
    vmovdqa64 %zmm16, -128(%r9)
    vmovdqa64 %zmm16, -64(%r9)
    vmovdqu64 %zmm16, 192(%r8)
    ret

#if WHERRY_EDGE_BRANCH
set_maybe_by_string:
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jae     set_longer
    RECENT_FIND_SET(RECENT_SHIFTED_BMI2, wherry_routine_set_avx512)
    jmp     set_not_by_string
#endif
set_longer:
    SET_BY_STRING(wherry_routine_set_avx512)
