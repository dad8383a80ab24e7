/* The copy of AVX-512, to the plain loop: goes on behind memcpy's one comparison, so that nothing stands between a
 * caller and the smallest copies. A part of public.S. At move rax is what to return. */
/* clang-format off */
#ifdef FIRST_WHOLE
#define LOAD_FIRST(at) END_MOVE (at), FIRST_WHOLE
#define STORE_FIRST(at) END_MOVE FIRST_WHOLE, (at)
#else
#define LOAD_FIRST(at)                         \
    END_MOVE (at), FIRST_0;                    \
    END_MOVE 32(at), FIRST_32
#define STORE_FIRST(at)                        \
    END_MOVE FIRST_0, (at);                    \
    END_MOVE FIRST_32, 32(at)
#endif
#define LOAD_LAST(at, n)                       \
    END_MOVE -64(at,n), LAST_0;                \
    END_MOVE -32(at,n), LAST_32
#define STORE_LAST(at, n)                      \
    END_MOVE LAST_0, -64(at,n);                \
    END_MOVE LAST_32, -32(at,n);               \
    END_CLEAN
/* Up to 256 bytes are left from r11 on. */
#define STORE_LAST_OF_256                      \
    END_MOVE LAST_0, 192(%r11);                \
    END_MOVE LAST_32, 224(%r11);               \
    END_CLEAN
/* The first four blocks, of 257 to 512 bytes. */
#define STORE_4                                \
    STORE_FIRST(%rdi);                         \
    vmovdqu64 %zmm16, 64(%rdi);                \
    vmovdqu64 %zmm17, 128(%rdi);               \
    vmovdqu64 %zmm18, 192(%rdi)

/* What comes before a loop of four blocks a step. It moves rdi and rsi on to the next line of the destination, and
 * loses r10.
 *
 *   r8  the last line that the destination reaches
 *   r9  the destination as it was
 *   r11 up to 256 bytes are left from here on
 */
#define LOOP_BEGINS                            \
    leaq    -1(%rdi,%rdx), %r8;                \
    andq    $-64, %r8;                         \
    movq    %r8, %r10;                         \
    subq    %rdi, %r10;                        \
    addq    %rsi, %r10;                        \
    LOAD_FIRST(%rsi);                          \
    vmovdqu64 -192(%r10), %zmm17;              \
    vmovdqu64 -128(%r10), %zmm18;              \
    vmovdqu64 -64(%r10), %zmm19;               \
    LOAD_LAST(%rsi, %rdx);                     \
    movq    %rdi, %r9;                         \
    leaq    -256(%rdi,%rdx), %r11;             \
    TO_NEXT_LINE(%rdi);                        \
    subq    %r9, %rsi;                         \
    addq    %rdi, %rsi

/* Not late in a line of code, which takes up to a tenth more. */
#if WHERRY_EDGE_BRANCH
#define LOOP_HERE .p2align 5
#else
#define LOOP_HERE .p2align 4
#endif
#define TO_NEXT_LINE(at)                       \
    orq     $63, at;                           \
    incq    at                      /* a byte less: all that copies lies in one page, and the text is to be small */

/* r8 becomes dst - src; below: the destination begins inside the source, or at most 256 bytes below it, where a
 * loop would overwrite what is yet to be loaded. Loses r10 and rcx. */
#define CLOSE                                  \
    movq    %rdi, %r8;                         \
    leaq    256(%rdx), %r10;                   \
    subq    %rsi, %r8;                         \
    leaq    256(%r8), %rcx;                    \
    cmpq    %r10, %rcx
/* clang-format on */

#include "dispatch/copy_avx512_small.tmpl.S"

/* Sizes apart. Stores always in ascending order: one across lines is then joined with its neighbours. One line of code, so
 * what is asked is asked by ecx, which is COPY_BELOW, or where n has been compared with another tier's 0. */
    .p2align 6
#if !WHERRY_FIRST_AVX2
move_blocks_or_not:
    jrcxz   move_not_apart
#endif
move_blocks:
#if WHERRY_EDGE_BRANCH
    leal    -2(%rcx,%rcx), %ecx
#else
    movb    $128, %cl               /* two bytes less: so it is one line of code */
#endif
    cmpq    %rcx, %rdx
    ja      move_129_on
    PREFETCH_TO_128
    LOAD_FIRST(%rsi)
    LOAD_LAST(%rsi, %rdx)
    STORE_FIRST(%rdi)
    STORE_LAST(%rdi, %rdx)
move_nothing:
    ret

/* No more jumps for sizes together than must be: it is what they cost. */
move_not_apart:
    cmpb    $-2, wherry_copy_choice + CHOICE_CODE(%rip)
    jne     move_others
#include "dispatch/copy_avx512_together.tmpl.S"
#if WHERRY_EDGE_BRANCH              /* here and above, where a line of code has room */
    UNCOUNTED(move_uncounted, wherry_watch_copies, %rsi, move_look_back)
#endif

    .p2align 6
move_129_on:
#if !WHERRY_EDGE_BRANCH             /* the larger first: two jumps fewer for them (docs/performance-zen4.md) */
    cmpq    $512, %rdx
    ja      move_513_on
#endif
    cmpq    $256, %rdx
    ja      move_257_on
    PREFETCH_TO_256
    LOAD_FIRST(%rsi)
    vmovdqu64 64(%rsi), %zmm16
    vmovdqu64 -128(%rsi,%rdx), %zmm17
    LOAD_LAST(%rsi, %rdx)
    STORE_FIRST(%rdi)
    vmovdqu64 %zmm16, 64(%rdi)
    vmovdqu64 %zmm17, -128(%rdi,%rdx)
    STORE_LAST(%rdi, %rdx)
    WATCH_PICK(wherry_watch_copies, %rsi, move_picked_back)
    ret

#if !WHERRY_EDGE_BRANCH
/* Where a 64-byte store takes two cycles the loop follows at once, and sizes together go this way too: nobody need watch. */
    .p2align 6
move_513_on:
    cmpl    $0, wherry_thresholds + STORES_HALVED(%rip)
    je      move_513_whole
    COPY_AVX2_PLAIN(copy_avx2_close, copy_avx2_by_plan)
#include "dispatch/copy_avx2_forward.tmpl.S"
#endif

    .p2align 6
move_257_on:
#if WHERRY_EDGE_BRANCH
    cmpq    $512, %rdx
    ja      move_513_on
#endif
    WATCH_PICK(wherry_watch_copies, %rsi, move_picked_at_257)
move_257_watched:
    PREFETCH_TO_512
    LOAD_FIRST(%rsi)
    vmovdqu64 64(%rsi), %zmm16
    vmovdqu64 128(%rsi), %zmm17
    LOAD_LAST(%rsi, %rdx)
    vmovdqu64 192(%rsi), %zmm18
    cmpl    $384, %edx
#if WHERRY_EDGE_BRANCH
    ja      move_385_on
    cmpl    $320, %edx
    ja      move_321_on
    STORE_4
    STORE_LAST(%rdi, %rdx)
    ret

move_321_on:
    vmovdqu64 256(%rsi), %zmm19
    STORE_4
    vmovdqu64 %zmm19, 256(%rdi)
move_all_but_last:
    STORE_LAST(%rdi, %rdx)
    ret

move_385_on:
    prefetchw 256(%rdi)
    prefetchw 320(%rdi)
    vmovdqu64 256(%rsi), %zmm19
    vmovdqu64 320(%rsi), %zmm20
    cmpl    $448, %edx
    jbe     move_to_448
    vmovdqu64 384(%rsi), %zmm21
move_to_448:
    STORE_4                         /* no move changes the flags */
    vmovdqu64 %zmm19, 256(%rdi)
    vmovdqu64 %zmm20, 320(%rdi)
    jbe     move_all_but_last
    vmovdqu64 %zmm21, 384(%rdi)
    STORE_LAST(%rdi, %rdx)
    ret

/* Of move_close, where there is room. All loaded before any is stored, or, where the lines are the destination's (copy_source_lines_to), step by step: an
 * Intel CPU whose loads wait for the stores of the move before waits for the first of them only. The loop counts what
 * is left behind two steps, from 577 bytes on not below none. */
move_close_to_1024:
    cmpl    $0, wherry_thresholds + COPY_BY_SOURCE(%rip)
    jne     move_all_at_once        /* the rarer: it may jump twice */
    cmpl    $576, %edx
    ja      move_step_by_step
move_all_at_once:
    jmp     move_sixteen
#else
    jbe     move_to_384
    vmovdqu64 256(%rsi), %zmm19
    vmovdqu64 320(%rsi), %zmm20
    cmpl    $448, %edx
    jbe     move_to_448
    vmovdqu64 384(%rsi), %zmm21
    STORE_4
    vmovdqu64 %zmm19, 256(%rdi)
    vmovdqu64 %zmm20, 320(%rdi)
    vmovdqu64 %zmm21, 384(%rdi)
    STORE_LAST(%rdi, %rdx)
    ret

    .p2align 6
move_to_384:
    cmpl    $320, %edx
    ja      move_321_on
    STORE_4
    STORE_LAST(%rdi, %rdx)
    ret

    .p2align 6
move_321_on:
    vmovdqu64 256(%rsi), %zmm19
    STORE_4
    vmovdqu64 %zmm19, 256(%rdi)
    STORE_LAST(%rdi, %rdx)
    ret

    .p2align 6
move_to_448:
    STORE_4
    vmovdqu64 %zmm19, 256(%rdi)
    vmovdqu64 %zmm20, 320(%rdi)
    STORE_LAST(%rdi, %rdx)
    ret
#endif

#include "dispatch/copy_avx512_lines.tmpl.S"

/* The same for sizes together and for larger ones: up to 256 bytes are left for four blocks that end where the buffer
 * ends. Lines of the source even to two pages, since a branch on that, which changes with the address, costs as much.
 *
 *   r8  dst - src
 *   r9  the last line that the source reaches
 *   r10 the source of what rdi is at
 *   r11 up to 256 bytes are left from here on
 *   FORWARD_END where the source ends
 */
#if WHERRY_EDGE_BRANCH
#define FORWARD_END %rcx
move_forward_by_source:
    leaq    -1(%rcx), %r9
    TO_NEXT_LINE(%rsi)
    andq    $-64, %r9
    movq    %rsi, %r10
    leaq    (%rsi,%r8), %rdi
    jmp     move_step_forward

    .p2align 4
move_forward:
    LOAD_FIRST(%rsi)
    leaq    -256(%rdi,%rdx), %r11
    leaq    (%rsi,%rdx), %rcx
    STORE_FIRST(%rdi)
    cmpq    wherry_thresholds + COPY_LOOP_BELOW(%rip), %rdx
    jb      move_forward_by_source
    leaq    -1(%rdi,%rdx), %r9
    TO_NEXT_LINE(%rdi)
    andq    $-64, %r9
    movq    %rdi, %r10
    subq    %r8, %r9
    movl    %r8d, %esi
    subq    %r8, %r10
    andl    $63, %esi
    rorl    $2, %esi                /* far above 15 unless it is a multiple of 4 */
    decl    %esi
    cmpl    $15, %esi
    jb      move_joined
#else
#define FORWARD_END %rsi
/* The loops of large.tmpl.h. Whatever they are not for goes to the routine. Where 32-byte vectors make the faster ones,
 * COPY_LOOP_BELOW is at most COPY_YMM_FROM, so that the others do not ask. */
move_1025_on:
    cmpq    wherry_thresholds + COPY_STRING_FROM(%rip), %rdx
    jae     move_longer
    cmpq    wherry_thresholds + COPY_LOOP_BELOW(%rip), %rdx
    jae     move_by_destination_or_long
move_forward:
    LOAD_FIRST(%rsi)
    movq    %rsi, %r10
    leaq    -1(%rsi,%rdx), %r9
    leaq    -256(%rdi,%rdx), %r11
    addq    %rdx, %rsi
    andq    $-64, %r9
    STORE_FIRST(%rdi)
    TO_NEXT_LINE(%r10)
    leaq    (%r10,%r8), %rdi
#endif
    LOOP_HERE
move_step_forward:
    vmovdqu64 (%r10), %zmm21
    vmovdqu64 64(%r10), %zmm22
    vmovdqu64 128(%r10), %zmm23
    vmovdqu64 192(%r10), %zmm24
    addq    $256, %r10
    vmovdqu64 %zmm21, (%rdi)
    vmovdqu64 %zmm22, 64(%rdi)
    vmovdqu64 %zmm23, 128(%rdi)
    vmovdqu64 %zmm24, 192(%rdi)
    addq    $256, %rdi
    cmpq    %r11, %rdi
    jb      move_step_forward
move_last_256:
    vmovdqu64 -192(%r9), %zmm17
    vmovdqu64 -128(%r9), %zmm18
    vmovdqu64 -64(%r9), %zmm19
    END_MOVE -64(FORWARD_END), LAST_0
    END_MOVE -32(FORWARD_END), LAST_32
    addq    %r8, %r9
    vmovdqu64 %zmm17, -192(%r9)
    vmovdqu64 %zmm18, -128(%r9)
    vmovdqu64 %zmm19, -64(%r9)
    STORE_LAST_OF_256
    ret

#if WHERRY_EDGE_BRANCH
/* The same with the sides a multiple of 4 bytes apart, as blocks of malloc are, but not of 64: of two lines of the source
 * one of the destination, since a load across lines takes longer than a load of a line and a vpermt2d. The source's first
 * line may begin before the source, so the destination's first is loaded across. 64 to 319 bytes are left.
 *
 *   r10 the line of the source that what goes to the line before rdi begins in
 *   esi (dst - src) mod 64 in doublewords, less 1
 *   zmm16 which doublewords of two lines
 */
move_joined:
    vmovdqu64 (%r10), %zmm17
    xorl    $15, %esi
    orq     $63, %r10
    vpbroadcastd %esi, %zmm16
    incq    %r10
    vpaddd  move_places(%rip), %zmm16, %zmm16
    vmovdqa64 %zmm17, (%rdi)
    subq    $-128, %rdi
    LOOP_HERE
move_step_joined:
    vmovdqa64 (%r10), %zmm21
    vmovdqa64 64(%r10), %zmm22
    vmovdqa64 128(%r10), %zmm23
    vmovdqa64 192(%r10), %zmm24
    vmovdqa64 256(%r10), %zmm25
    addq    $256, %r10
    prefetchw (%rdi)
    prefetchw 64(%rdi)
    prefetchw 128(%rdi)
    prefetchw 192(%rdi)
    vpermt2d %zmm22, %zmm16, %zmm21
    vpermt2d %zmm23, %zmm16, %zmm22
    vpermt2d %zmm24, %zmm16, %zmm23
    vpermt2d %zmm25, %zmm16, %zmm24
    vmovdqa64 %zmm21, -64(%rdi)
    vmovdqa64 %zmm22, (%rdi)
    vmovdqa64 %zmm23, 64(%rdi)
    vmovdqa64 %zmm24, 128(%rdi)
    addq    $256, %rdi
    cmpq    %r11, %rdi
    jbe     move_step_joined
    subq    %r8, %rdi
    vmovdqu64 -64(%rdi), %zmm16
    vmovdqa64 %zmm16, -64(%rdi,%r8)
    jmp     move_last_256
#endif

#if !WHERRY_EDGE_BRANCH
/* Of move_513_whole, where there is room. */
move_by_destination:
    movq    %rdi, %r9
    orq     $-64, %r9
    jmp     move_from_line
#endif

#if !WHERRY_EDGE_BRANCH
/* As move_forward, but by lines of the destination, r9 the source of the last. */
move_forward_by_destination:
    LOAD_FIRST(%rsi)
    leaq    -1(%rdi,%rdx), %r9
    leaq    -256(%rdi,%rdx), %r11
    addq    %rdx, %rsi
    andq    $-64, %r9
    STORE_FIRST(%rdi)
    subq    %r8, %r9
    TO_NEXT_LINE(%rdi)
    movq    %rdi, %r10
    subq    %r8, %r10
    jmp     move_step_forward
#endif

#if !WHERRY_EDGE_BRANCH
    UNCOUNTED(move_uncounted, wherry_watch_copies, %rsi, move_look_back)
#endif

move_others:
    BY_CHOICE(wherry_copy_choice, copy_avx2, move_by_size, move_together, copy_sse2, move_look, wherry_routine_move_avx512_ladder)

move_close:
    cmpq    $1024, %rdx
#if WHERRY_EDGE_BRANCH
    jbe     move_close_to_1024
#else
    jbe     move_sixteen            /* all loaded before any is stored */
#endif
    cmpq    wherry_thresholds + COPY_YMM_FROM(%rip), %rdx
    jae     copy_avx2_large
move_step_by_step:
    cmpq    %rdx, %r8               /* the destination begins inside the source */
    jb      move_by_routine
move_upwards:
    orl     $-1, %ecx
    jmp     move_loop

#if WHERRY_EDGE_BRANCH
/* The loops of large.tmpl.h. Whatever they are not for goes to the routine. */
move_1025_on:
    cmpq    wherry_thresholds + COPY_STRING_FROM(%rip), %rdx
    jae     move_longer
    cmpq    wherry_thresholds + COPY_FORWARD_BELOW(%rip), %rdx
    jb      move_forward
#include "dispatch/copy_avx512_long.tmpl.S"
#endif
