/* The public functions.
 *
 * One tier of two goes on right here, so that nothing at all stands between a caller and the smallest copies; the build says
 * which (meson.options, first_tier), since a jump taken is a tenth of what those take. One comparison tells whether the size
 * is small and the tier that one (choice.h); then AVX2 asks for classes of sizes (copy_avx2.tmpl.S), AVX-512 for nothing but
 * pages. What is not small and not the plain loop the routine of the registry does.
 * The blocks are those of routines/vector/move.tmpl.h and set.tmpl.h, which say why; verification and measurement call
 * both.
 *
 * In AVX-512 there are two ways for sizes to 1024: apart, with the blocks that each needs behind branches, and
 * together, with the same run of instructions for a whole class. watch.h says which is when.
 *
 * The choices are zero-initialised data and zero is the baseline, so a call that comes before this object's
 * constructors, or before its relocations, is right.
 *
 * All that copies lies in one page of 4 KiB, and so does all that sets: a jump taken to another page costs a cycle more
 * (Zen 4: 64 bytes with AVX2 12 cycles instead of 11).
 *
 * Of AVX-512 only zmm16 to zmm31 and k1 are used, which need no vzeroupper, but for copies of more than 64 bytes, which
 * begin and end by halves of VEX where page_edge is select (routines/ends.h). The drop-in assembles this file again with
 * names of its own for PUBLIC(). The *.tmpl.S beside it are its parts.
 */
#include "dispatch/choice.h"
#include "dispatch/watch.h"
#include "routines/asm.h"
#include "routines/ends.h"
#include "routines/lines.h"
#include "routines/recent.h"
#include "routines/thresholds.h"
#include "routines/written.h"

#ifndef PUBLIC
#define PUBLIC(name) wherry_##name
#endif
/* Is a copy of one byte asked for? Whole programs have many, from calls that copy nothing else, and gain by a plain byte
 * on Intel; where sizes cannot be predicted a wrong guess costs more (docs/performance-intel.md). So the drop-in asks. */
#ifndef ONE_BYTE_APART
#define ONE_BYTE_APART 0
#endif
/* Does the second half of a small copy lie 32 bytes behind the first, under a mask of its own, or where the buffer ends?
 * There a byte that is read at once need not wait; but the former, which asks for the next line of either side, too, is
 * better for programs that gather strings, so the drop-in has that (docs/performance-intel.md). */
#ifndef SECOND_HALF_IN_PLACE
#define SECOND_HALF_IN_PLACE 0
#endif

/* clang-format off */
#define NAME(symbol)                           \
    .globl symbol;                             \
    .type symbol, @function;                   \
symbol:

#define EXPORT(symbol)                         \
    NAME(symbol)                               \
    .cfi_startproc;                            \
    _CET_ENDBR

/* Is n - 16 for AVX2's smallest sizes? Where the tier has not been asked for yet, the answer has it, and ecx is 0 when it is
 * not AVX2. */
#if WHERRY_FIRST_AVX2
#define COMPARE_INLINE(choice)                 \
    movl    choice(%rip), %ecx;                \
    cmpq    %rcx, %rdx
#else
#define COMPARE_INLINE(choice) cmpq $AVX2_INLINE, %rdx
#endif

/* By the choice alone, whatever it has become since it was read last. The one comparison tells the frequent ones apart; of
 * the differences from 1 below 0 only that of sizes together has odd parity. */
#define BY_CHOICE(choice, avx2, by_size, together, baseline, look, ladder) \
    cmpb    $1, choice + CHOICE_CODE(%rip);    \
    je      avx2;                              \
    jg      by_size;                           \
    jnp     together;                          \
    cmpb    $-3, choice + CHOICE_CODE(%rip);   \
    jg      baseline;                          \
    jl      look;                              \
    jmp     ladder

/* Looks. Every register of the call stays. */
#define LOOK(watch)                            \
    leaq    watch(%rip), %r8;                  \
    call    look

/* The same where the call has been done, and rdi and rsi may be anything. */
#define LOOK_BACK(watch)                       \
    xorl    %edi, %edi;                        \
    LOOK(watch);                               \
    ret

/* Sizes together: a call that is done is watched and returns. Here, since a branch on the size that was guessed wrong
 * is found out the sooner the fewer instructions come before it. */
#define RETURN_WATCHED(watch, look, uncounted) \
    WATCH(watch, look, uncounted);             \
    ret

#define UNCOUNTED(label, watch, address, look) \
label:                                         \
    WATCH_PICK(watch, address, look);          \
    ret

/* Sizes together, from 256 bytes on: n from a line on is in rdx; ecx is the least multiple of 64 from where three
 * blocks reach n - 128, and 0 at least. Loses r9. Then the same, but limit at most. */
#define FARTHEST_3                             \
    xorl    %r9d, %r9d;                        \
    leal    -257(%rdx), %ecx;                  \
    andl    $-64, %ecx;                        \
    cmovsl  %r9d, %ecx
#define LIMITED(limit, to)                     \
    movl    $limit, to;                        \
    cmpl    to, %ecx;                          \
    cmovbl  %ecx, to

/* Is a copy for the plain loop of AVX2? Goes to close where the destination begins inside the source, or at most 128 bytes
 * below it. Loses rcx, r8, r10. */
#define COPY_AVX2_PLAIN(close, by_plan)        \
    movq    %rdi, %rcx;                        \
    leaq    128(%rdx), %r10;                   \
    subq    %rsi, %rcx;                        \
    leaq    128(%rcx), %r8;                    \
    cmpq    %r10, %r8;                         \
    jb      close;                             \
    cmpq    wherry_thresholds + COPY_YMM_BELOW(%rip), %rdx; \
    jae     by_plan

/* Its loop, four vectors a step, to where up to 128 bytes are left, r11. Both additions behind the first store: 0.92 to 0.94 of
 * the time at misaligned places. */
#define COPY_AVX2_STEPS                        \
773:                                           \
    vmovdqu (%rsi), %ymm0;                     \
    vmovdqu 32(%rsi), %ymm1;                   \
    vmovdqu 64(%rsi), %ymm2;                   \
    vmovdqu 96(%rsi), %ymm3;                   \
    vmovdqa %ymm0, (%rdi);                     \
    subq    $-128, %rsi;                       \
    subq    $-128, %rdi;                       \
    vmovdqa %ymm1, -96(%rdi);                  \
    vmovdqa %ymm2, -64(%rdi);                  \
    vmovdqa %ymm3, -32(%rdi);                  \
    cmpq    %r11, %rdi;                        \
    jb      773b

/* Copies and sets that nobody asks of where they were written. A string instruction begins when what is before it is done,
 * so no more is asked on the way there than must be, and all of one cache line. Goes to other when they are not for
 * it. r8 is dst - src; loses rcx. */
#define COPY_BY_STRING(other)                                          \
    cmpq    wherry_thresholds + COPY_STRING_BELOW(%rip), %rdx;         \
    jae     other;                                                     \
    movq    %rsi, %rcx;                                                \
    cmpq    %rdx, %r8;                                                 \
    jb      other;                                                     \
    subq    %rdi, %rcx;                                                \
    cmpq    %rdx, %rcx;                                                \
    jb      other;                                                     \
    cmpq    wherry_thresholds + COPY_STRING_ALL_FROM(%rip), %rdx;      \
    jae     774f;                                                      \
    leal    -1(%r8), %ecx;                                             \
    andl    $(ALIAS_BYTES - 1), %ecx;                                  \
    cmpq    wherry_thresholds + COPY_STRING_SLOW_AHEAD(%rip), %rcx;    \
    jb      other;                                                     \
774:                                                                   \
    movq    %rdx, %rcx;                                                \
    rep movsb;                                                         \
    ret
#define SET_BY_STRING(other)                                           \
    cmpq    wherry_thresholds + SET_STRING_BELOW(%rip), %rdx;          \
    jae     other;                                                     \
    movq    %rdi, %r8;                                                 \
    movl    %esi, %eax;                                                \
    movq    %rdx, %rcx;                                                \
    rep stosb;                                                         \
    movq    %r8, %rax;                                                 \
    ret

/* Accesses under a mask do not set the processor's own fetching ahead going: call after call along a side that lies in
 * memory each would wait for its line (Zen 5: 10.6 ns a copy of 24 bytes, with these 3.8). In the caches they cost
 * nothing. Where an Intel CPU builds the source needs none: small sources in memory are as fast without, and programs
 * that gather them faster (docs/performance-intel.md). */
#if WHERRY_EDGE_BRANCH
#define PREFETCH_MASKED_COPY prefetchw (%rdi)
#else
#define PREFETCH_MASKED_COPY                   \
    prefetchw (%rdi);                          \
    prefetcht0 (%rsi)
#endif
#define PREFETCH_MASKED_SET prefetchw (%rdi)

/* clang-format on */

    .text
    .p2align 12
/* void *memcpy(void *dst rdi, const void *src rsi, size_t n rdx); memmove is the same function. */
NAME(PUBLIC(memmove))
EXPORT(PUBLIC(memcpy))
#if WHERRY_FIRST_AVX2
#include "dispatch/copy_avx2.tmpl.S"
    .cfi_endproc
    .size PUBLIC(memcpy), . - PUBLIC(memcpy)
    .size PUBLIC(memmove), . - PUBLIC(memmove)
#include "dispatch/bcopy.tmpl.S"

    .type copy_avx512, @function
    .p2align 6
copy_avx512:                        /* with the flags of a comparison of the choice with 1 that tells it is not AVX2 */
    .cfi_startproc
    jl      move_not_apart
    movl    $COPY_SMALL, %ecx
    cmpq    %rcx, %rdx
#include "dispatch/copy_avx512.tmpl.S"
    .cfi_endproc
    .size copy_avx512, . - copy_avx512
#else
    movslq  wherry_copy_choice(%rip), %rcx
    movq    %rdi, %rax
    cmpq    %rcx, %rdx
#include "dispatch/copy_avx512.tmpl.S"
    .cfi_endproc
    .size PUBLIC(memcpy), . - PUBLIC(memcpy)
    .size PUBLIC(memmove), . - PUBLIC(memmove)

    .type copy_avx2, @function
    .p2align 6
    .cfi_startproc
#include "dispatch/copy_avx2.tmpl.S"
    .cfi_endproc
    .size copy_avx2, . - copy_avx2
#include "dispatch/bcopy.tmpl.S"
#endif

    .section .rodata
    .p2align 6
move_places:                        /* RECENT_ENTER_COPY_AT_ONCE */
    .set    place, 0
    .rept   RECENT_COPY_PLACES
    .long   place
    .set    place, place + 1
    .endr
    .long   RECENT_COPY_PLACES - 1
    .p2align 6
move_anything:                      /* what blocks load that n does not reach (copy_avx512_together.tmpl.S) */
    .skip   128
    .text

/* void *mempcpy(void *dst rdi, const void *src rsi, size_t n rdx), returns dst + n */
    .p2align 4
EXPORT(PUBLIC(mempcpy))
    leaq    (%rdi,%rdx), %rax
#if WHERRY_FIRST_AVX2
#define MEMPCPY_AVX2 mempcpy_avx2
#else
#define MEMPCPY_AVX2 copy_avx2_rax
#endif
    BY_CHOICE(wherry_copy_choice, MEMPCPY_AVX2, move_by_size, move_together, copy_sse2_rax, move_look, mempcpy_ladder)

#define THEN_END(label, routine)               \
label:                                         \
    pushq   %rax;                              \
    .cfi_adjust_cfa_offset 8;                  \
    call    routine;                           \
    popq    %rax;                              \
    .cfi_adjust_cfa_offset -8;                 \
    ret
    THEN_END(mempcpy_ladder, wherry_routine_move_avx512_ladder)
#if WHERRY_FIRST_AVX2
mempcpy_avx2:                       /* past the words: the ways of other tiers give memcpy's result */
    subq    $16, %rdx
    jb      copy_avx2_to_15
    cmpq    $AVX2_INLINE, %rdx
    jae     copy_avx2_65_on_for_sure
    jmp     copy_avx2_16_to_64
#endif
    .cfi_endproc
    .size PUBLIC(mempcpy), . - PUBLIC(mempcpy)

/* void *memset(void *dst rdi, int c esi, size_t n rdx) */
    .p2align 12
EXPORT(PUBLIC(memset))
#if WHERRY_FIRST_AVX2
#include "dispatch/set_avx2.tmpl.S"
    .cfi_endproc
    .size PUBLIC(memset), . - PUBLIC(memset)

    .type set_avx512, @function
    .p2align 6
set_avx512:                         /* as copy_avx512 */
    .cfi_startproc
    jl      set_not_apart
    movl    $SET_SMALL, %ecx
    cmpq    %rcx, %rdx
#include "dispatch/set_avx512.tmpl.S"
    .cfi_endproc
    .size set_avx512, . - set_avx512
#else
    movslq  wherry_set_choice(%rip), %rcx
    cmpq    %rcx, %rdx
#include "dispatch/set_avx512.tmpl.S"
    .cfi_endproc
    .size PUBLIC(memset), . - PUBLIC(memset)

    .type set_avx2, @function
    .p2align 6
    .cfi_startproc
#include "dispatch/set_avx2.tmpl.S"
    .cfi_endproc
    .size set_avx2, . - set_avx2
#endif

/* void bzero(void *dst rdi, size_t n rsi) */
    .p2align 6
EXPORT(PUBLIC(bzero))
    movq    %rsi, %rdx
    xorl    %esi, %esi
    BY_CHOICE(wherry_set_choice, set_avx2, set_by_size, set_together, set_sse2, set_look, wherry_routine_set_avx512_ladder)
    .cfi_endproc
    .size PUBLIC(bzero), . - PUBLIC(bzero)

/* Copies that look, one in some hundreds: not in the page of what copies. */
    .p2align 4
    .type move_looks, @function
move_looks:
    .cfi_startproc
move_picked_back:
    WATCH_PICKED_ONE(wherry_watch_copies, move_look_back)
    ret
move_picked_at_257:
    WATCH_PICKED_ONE(wherry_watch_copies, move_look)
    jmp     move_257_watched
#if !WHERRY_EDGE_BRANCH
move_picked_at_513:
    WATCH_PICKED_ONE(wherry_watch_copies, move_look)
    jmp     move_513_watched
#endif
move_look_back:
    LOOK_BACK(wherry_watch_copies)
move_look:
    LOOK(wherry_watch_copies)
    jmp     move_together
look:                               /* rdx bytes, r8 the watch, for the call that came here by another */
    .cfi_adjust_cfa_offset 8
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    movq    %rsi, %r9
    movq    %rdx, %rsi
    movq    40(%rsp), %rdx
    leaq    40(%rsp), %rcx
    xchgq   %rdi, %r8
    call    wherry_watch_look
    popq    %rax
    .cfi_adjust_cfa_offset -8
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size move_looks, . - move_looks

/* Copies that take so long that a jump to another page is nothing. */
    .p2align 4
    .type move_longest, @function
move_longest:
    .cfi_startproc
#if !WHERRY_EDGE_BRANCH
#include "dispatch/copy_avx512_long.tmpl.S"
#endif
#include "dispatch/copy_avx2_long.tmpl.S"
#if !WHERRY_FIRST_AVX2
#include "dispatch/copy_avx2_backward.tmpl.S"
#endif
copy_avx2_maybe_by_string:
    cmpq    wherry_thresholds + COPY_REP_RECENT_FROM(%rip), %rdx
    jae     copy_avx2_longer
    RECENT_FIND_COPY(RECENT_SHIFTED_BMI2, copy_avx2_by_routine)
    jmp     copy_avx2_not_by_string

/* What is most frequent here, without the routine: on the way to it a tenth of what 8000 bytes take in L2 is spent. */
move_far:
    negq    %rcx                    /* src - dst: below n the two sides overlap */
    cmpq    %rdx, %rcx
    jb      move_by_routine
    cmpq    wherry_thresholds + COPY_REP_TO(%rip), %rdx
    jae     move_by_routine
    RECENT_ENTER_COPY_AT_ONCE(move_places)
    movq    %rdx, %rcx
    rep movsb
    ret

move_longer:
    COPY_BY_STRING(move_by_routine)
copy_avx2_longer:
    movq    %rcx, %r8
    COPY_BY_STRING(copy_avx2_by_routine)

move_by_routine:
    cmpq    %rdi, %rax              /* mempcpy wants another result than the routine gives */
    je      wherry_routine_move_avx512_large
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    wherry_routine_move_avx512_large
    popq    %rax
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size move_longest, . - move_longest

#include "dispatch/sse2.tmpl.S"
