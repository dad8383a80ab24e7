/* The public functions.
 *
 * Each begins with one comparison of its choice (dispatch.h): the tier of the AVX2 and the baseline are one jump
 * away, and AVX-512, where a whole block costs no more than a byte, goes on right here, so that nothing at all stands
 * between a caller and the smallest copies. What is not small and not the plain loop the routine of the registry does.
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
 * Of AVX-512 only zmm16 to zmm31 and k1 are used: they need no vzeroupper. The drop-in assembles this file again with
 * names of its own for PUBLIC(). copy_avx2.tmpl.S and set_avx2.tmpl.S are its parts for AVX2.
 */
#include "dispatch/watch.h"
#include "routines/asm.h"
#include "routines/recent.h"
#include "routines/thresholds.h"

#ifndef PUBLIC
#define PUBLIC(name) wherry_##name
#endif

/* clang-format off */
#define EXPORT(symbol)                         \
    .globl symbol;                             \
    .type symbol, @function;                   \
symbol:                                        \
    _CET_ENDBR

/* One comparison, two answers that are not taken: the AVX2 choice is 1, that of AVX-512 above it, others below. */
#define TIERS(choice, avx2, others)            \
    cmpb    $1, choice(%rip);                  \
    je      avx2;                              \
    jl      others

/* Those below 1. Of their differences from 1 only that of sizes together has odd parity; what comes next is theirs. */
#define OTHERS(label)                          \
label:                                         \
    jp      label##_but_together

#define OTHERS_BUT_TOGETHER(label, choice, baseline, look, ladder) \
label##_but_together:                          \
    cmpb    $-3, choice(%rip);                 \
    jg      baseline;                          \
    jl      look;                              \
    jmp     ladder

/* Looks, then goes on with the instruction `then`. Every register of the call stays. */
#define LOOK(label, watch, then)               \
label:                                         \
    pushq   %rdi;                              \
    .cfi_adjust_cfa_offset 8;                  \
    pushq   %rsi;                              \
    .cfi_adjust_cfa_offset 8;                  \
    pushq   %rdx;                              \
    .cfi_adjust_cfa_offset 8;                  \
    pushq   %rax;                              \
    .cfi_adjust_cfa_offset 8;                  \
    subq    $8, %rsp;                          \
    .cfi_adjust_cfa_offset 8;                  \
    movq    %rdx, %rsi;                        \
    leaq    watch(%rip), %rdi;                 \
    movq    40(%rsp), %rdx;                    \
    leaq    40(%rsp), %rcx;                    \
    call    wherry_watch_look;                 \
    addq    $8, %rsp;                          \
    .cfi_adjust_cfa_offset -8;                 \
    popq    %rax;                              \
    .cfi_adjust_cfa_offset -8;                 \
    popq    %rdx;                              \
    .cfi_adjust_cfa_offset -8;                 \
    popq    %rsi;                              \
    .cfi_adjust_cfa_offset -8;                 \
    popq    %rdi;                              \
    .cfi_adjust_cfa_offset -8;                 \
    then

/* Sizes together: a call that is done is watched and returns. Here, since a branch on the size that was guessed wrong
 * is found out the sooner the fewer instructions come before it. */
#define RETURN_WATCHED(watch, look, uncounted) \
    WATCH(watch, look, uncounted);             \
    ret

#define UNCOUNTED(label, watch, address, look, then) \
label:                                         \
    WATCH_UNCOUNTED(watch, address, look);     \
    then

/* Stores of blocks that were loaded in order, from the destination on. */
#define STORE_3                                \
    vmovdqu64 %zmm16, (%rdi);                  \
    vmovdqu64 %zmm17, 64(%rdi);                \
    vmovdqu64 %zmm18, 128(%rdi)
#define STORE_4                                \
    STORE_3;                                   \
    vmovdqu64 %zmm19, 192(%rdi)
#define STORE_5                                \
    STORE_4;                                   \
    vmovdqu64 %zmm20, 256(%rdi)
#define STORE_6                                \
    STORE_5;                                   \
    vmovdqu64 %zmm21, 320(%rdi)
#define STORE_7                                \
    STORE_6;                                   \
    vmovdqu64 %zmm22, 384(%rdi)

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
    vmovdqu64 (%rsi), %zmm16;                  \
    vmovdqu64 -192(%r10), %zmm17;              \
    vmovdqu64 -128(%r10), %zmm18;              \
    vmovdqu64 -64(%r10), %zmm19;               \
    vmovdqu64 -64(%rsi,%rdx), %zmm20;          \
    movq    %rdi, %r9;                         \
    leaq    -256(%rdi,%rdx), %r11;             \
    orq     $63, %rdi;                         \
    subq    %r9, %rsi;                         \
    addq    $1, %rdi;                          \
    addq    %rdi, %rsi

/* rcx becomes dst - src; below: the two sides overlap. Loses r8 and r10. */
#define DISTANCE                               \
    movq    %rdi, %rcx;                        \
    leaq    -1(%rdx,%rdx), %r8;                \
    subq    %rsi, %rcx;                        \
    leaq    -1(%rcx,%rdx), %r10;               \
    cmpq    %r8, %r10
/* clang-format on */

    .text
    .p2align 12
/* void *memcpy(void *dst rdi, const void *src rsi, size_t n rdx); memmove is the same function. */
EXPORT(PUBLIC(memmove))
EXPORT(PUBLIC(memcpy))
    .cfi_startproc
    TIERS(wherry_copy_choice, copy_avx2, move_others)
    movq    %rdi, %rax

/* rax is what to return. */
move:
    cmpq    $64, %rdx
    ja      move_65_on
    cmpq    $4096, %rsi             /* null, or what stands for an empty slice in Rust: then n is 0, and even a */
    jb      move_from_page_0        /* block under an empty mask takes 180 ns where nothing is mapped */
move_masked:
    movl    %edi, %ecx
    orl     %esi, %ecx
    leaq    -64(%rdx), %r8
    andl    $0xfc0, %ecx
    xorl    %r9d, %r9d
    cmpl    $0xfc0, %ecx            /* might a whole block from here reach into another page? (masked_block) */
    movq    $-1, %rcx
    cmovneq %r9, %r8                /* then take the one that ends where the buffer ends, else the one here */
    bzhiq   %rdx, %rcx, %rcx
    subl    %r8d, %r9d
    shlxq   %r9, %rcx, %rcx         /* n bits, the upper ones (by 64 - n, modulo 64) or the lower */
    kmovq   %rcx, %k1
    vmovdqu8 (%rsi,%r8), %zmm16{%k1}{z}
    vmovdqu8 %zmm16, (%rdi,%r8){%k1}
    ret

move_from_page_0:
    testl   %edx, %edx
    jnz     move_masked
    ret

/* Sizes apart. Stores always in ascending order: one across lines is then joined with its neighbours. */
    .p2align 5
move_65_on:
    cmpq    $256, %rdx
    ja      move_257_on
    cmpl    $128, %edx
    ja      move_129_on
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 -64(%rsi,%rdx), %zmm31
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

    .p2align 5
move_129_on:
    WATCH(wherry_watch_copies, move_look, move_129_uncounted)
move_129_to_256:
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 64(%rsi), %zmm17
    vmovdqu64 -64(%rsi,%rdx), %zmm31
    cmpl    $192, %edx
    jbe     move_3_blocks
    vmovdqu64 128(%rsi), %zmm18
    STORE_3
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

move_3_blocks:
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, 64(%rdi)
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

    .p2align 5
move_257_on:
    cmpq    $1024, %rdx
    ja      move_1025_on
    WATCH(wherry_watch_copies, move_look, move_257_uncounted)
move_257_to_1024:
    cmpl    $512, %edx
    ja      move_513_apart
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 64(%rsi), %zmm17
    vmovdqu64 128(%rsi), %zmm18
    vmovdqu64 192(%rsi), %zmm19
    vmovdqu64 -64(%rsi,%rdx), %zmm31
    cmpl    $384, %edx
    jbe     move_to_384
    vmovdqu64 256(%rsi), %zmm20
    vmovdqu64 320(%rsi), %zmm21
    cmpl    $448, %edx
    jbe     move_7_blocks
    vmovdqu64 384(%rsi), %zmm22
    STORE_7
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

move_7_blocks:
    STORE_6
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

move_to_384:
    cmpl    $320, %edx
    jbe     move_5_blocks
    vmovdqu64 256(%rsi), %zmm20
    STORE_5
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

move_5_blocks:
    STORE_4
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

/* Where the branches of a loop are guessed rightly it has the fewest blocks. Forward, whatever the distance. */
    .p2align 5
move_513_apart:
    movq    %rdi, %rcx
    subq    %rsi, %rcx
    cmpq    %rdx, %rcx              /* the destination begins inside the source */
    jb      move_256_to_1024
    LOOP_BEGINS
    .p2align 4
move_step_apart:
    vmovdqu64 (%rsi), %zmm21
    vmovdqu64 64(%rsi), %zmm22
    vmovdqu64 128(%rsi), %zmm23
    vmovdqu64 192(%rsi), %zmm24
    addq    $256, %rsi
    vmovdqa64 %zmm21, (%rdi)
    vmovdqa64 %zmm22, 64(%rdi)
    vmovdqa64 %zmm23, 128(%rdi)
    vmovdqa64 %zmm24, 192(%rdi)
    addq    $256, %rdi
    cmpq    %r11, %rdi
    jb      move_step_apart
    vmovdqa64 %zmm17, -192(%r8)
    vmovdqa64 %zmm18, -128(%r8)
    vmovdqa64 %zmm19, -64(%r8)
    vmovdqu64 %zmm20, 192(%r11)
    vmovdqu64 %zmm16, (%r9)
    ret

/* The first block and the last two, and between them thirteen that begin at a line of the source: a load across lines
 * costs as much as a store across them. Three of those are fixed; of the others those that n does not reach repeat what
 * the last of them copies. They reach 960 bytes at most from that line, so above that they follow the first block.
 *
 *   rcx X, the least multiple of 64 from where three blocks reach what the last two do not
 *   r8  the destination as it was
 *   r9, r10, r11 X where it is less than 192, 384, 576, else that: three blocks, three, and one, and at X three again
 */
    .p2align 5
move_256_to_1024:
    movl    %esi, %ecx
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

    .p2align 5
    OTHERS(move_others)
    movq    %rdi, %rax
move_together:
    cmpq    $1024, %rdx             /* the largest first: in real mixes they are few, so this branch is seldom guessed */
    ja      move_1025_on            /* wrong, and the next then has them out of its way */
    cmpl    $255, %edx
    ja      move_256_to_1024
/* One block under a mask, four times, or four whole ones of which those that n does not reach repeat the first. */
move_to_255:
    cmpq    $4096, %rsi             /* as above */
    jb      move_together_page_0
move_four:
    movl    %edi, %ecx
    xorl    %r9d, %r9d
    orl     %esi, %ecx
    movq    %rdx, %r10
    andl    $0xfc0, %ecx
    subq    $64, %r10
    movq    %r10, %r8
    cmovnsq %r9, %r8                /* the place of the first block: n - 64, where n is less and the block that begins */
    cmovsq  %r9, %r10               /* that of the last; at the buffer might reach into another page; else 0 */
    cmpl    $0xfc0, %ecx
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
    RETURN_WATCHED(wherry_watch_copies, move_look_back, move_uncounted)

move_together_page_0:
    testl   %edx, %edx
    jnz     move_four
    ret

    UNCOUNTED(move_uncounted, wherry_watch_copies, %rsi, move_look_back, ret)
    UNCOUNTED(move_129_uncounted, wherry_watch_copies, %rsi, move_look, jmp move_129_to_256)
    UNCOUNTED(move_257_uncounted, wherry_watch_copies, %rsi, move_look, jmp move_257_to_1024)
    LOOK(move_look_back, wherry_watch_copies, ret)
    OTHERS_BUT_TOGETHER(move_others, wherry_copy_choice, wherry_routine_move_sse2, move_looked_at, wherry_routine_move_avx512_ladder)
move_looked_at:
    movq    %rdi, %rax
/* From here on as if sizes were together. */
    LOOK(move_look, wherry_watch_copies,)
    cmpq    $255, %rdx
    jbe     move_to_255
    cmpq    $1024, %rdx
    jbe     move_256_to_1024
    jmp     move_1025_on

/* The loop of large.tmpl.h. Whatever it is not for goes to the routine. */
    .p2align 6
move_1025_on:
    DISTANCE
    jb      move_overlapping
    cmpq    wherry_thresholds + COPY_REP_FROM(%rip), %rdx
    jae     move_maybe_by_string
move_not_by_string:
    cmpq    wherry_thresholds + COPY_STREAM_FROM(%rip), %rdx
    jae     move_by_routine
/* Where loads would wait for stores 4 KiB apart (copy_backward_ahead), from the end down: the same steps in another
 * order, so that there is no branch, which would be guessed wrong where the distance changes from call to call. */
move_loop:
    andl    $(ALIAS_BYTES - 1), %ecx
    subl    $1, %ecx
move_loop_by_distance:
    LOOP_BEGINS
    vmovdqu64 (%rsi), %zmm21        /* the first step, while it is found out where the next is */
    vmovdqu64 64(%rsi), %zmm22
    vmovdqu64 128(%rsi), %zmm23
    vmovdqu64 192(%rsi), %zmm24
    leaq    -257(%r11), %rdx
    subq    %rdi, %rdx              /* 256 for each step but the first two, and a rest */
    movq    %rdx, %r10
    andq    $-256, %r10             /* from the second to the last */
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %ecx
    sbbq    %rcx, %rcx
    andq    %rcx, %r10
    shlq    $9, %rcx
    addq    $256, %rcx              /* to the next step: -256 or 256 */
    vmovdqu64 %zmm16, (%r9)
    vmovdqa64 %zmm21, (%rdi)
    vmovdqa64 %zmm22, 64(%rdi)
    vmovdqa64 %zmm23, 128(%rdi)
    vmovdqa64 %zmm24, 192(%rdi)
    addq    %r10, %rsi
    addq    %r10, %rdi
    .p2align 4
move_step:
    vmovdqu64 256(%rsi), %zmm21
    vmovdqu64 320(%rsi), %zmm22
    vmovdqu64 384(%rsi), %zmm23
    vmovdqu64 448(%rsi), %zmm24
    addq    %rcx, %rsi
    vmovdqa64 %zmm21, 256(%rdi)
    vmovdqa64 %zmm22, 320(%rdi)
    vmovdqa64 %zmm23, 384(%rdi)
    vmovdqa64 %zmm24, 448(%rdi)
    addq    %rcx, %rdi
    subq    $256, %rdx
    jae     move_step
    vmovdqa64 %zmm17, -192(%r8)
    vmovdqa64 %zmm18, -128(%r8)
    vmovdqa64 %zmm19, -64(%r8)
    vmovdqu64 %zmm20, 192(%r11)
    ret

move_overlapping:
    cmpq    %rdx, %rcx              /* the destination begins inside the source */
    jb      move_by_routine
    movl    $-1, %ecx               /* else it is the source that begins inside the destination: upwards */
    jmp     move_loop_by_distance

/* rcx, which is dst - src, stays. */
move_maybe_by_string:
    cmpq    wherry_thresholds + COPY_REP_RECENT_FROM(%rip), %rdx
    jae     move_by_routine
    RECENT_FIND_COPY(move_by_routine)   /* which enters it there */
    jmp     move_not_by_string

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
    .size PUBLIC(memcpy), . - PUBLIC(memcpy)
    .size PUBLIC(memmove), . - PUBLIC(memmove)

#include "dispatch/copy_avx2.tmpl.S"

/* void bcopy(const void *src rdi, void *dst rsi, size_t n rdx) */
    .p2align 6
EXPORT(PUBLIC(bcopy))
    .cfi_startproc
    xchgq   %rdi, %rsi
    TIERS(wherry_copy_choice, copy_avx2, move_others)
    movq    %rdi, %rax
    jmp     move
    .cfi_endproc
    .size PUBLIC(bcopy), . - PUBLIC(bcopy)

/* void *mempcpy(void *dst rdi, const void *src rsi, size_t n rdx), returns dst + n */
    .p2align 6
EXPORT(PUBLIC(mempcpy))
    .cfi_startproc
    TIERS(wherry_copy_choice, mempcpy_avx2, mempcpy_others)
    leaq    (%rdi,%rdx), %rax
    jmp     move

#define THEN_END(label, routine)               \
label:                                         \
    leaq    (%rdi,%rdx), %rax;                 \
    pushq   %rax;                              \
    .cfi_adjust_cfa_offset 8;                  \
    call    routine;                           \
    popq    %rax;                              \
    .cfi_adjust_cfa_offset -8;                 \
    ret
    OTHERS(mempcpy_others)
    leaq    (%rdi,%rdx), %rax
    jmp     move_together
    OTHERS_BUT_TOGETHER(mempcpy_others, wherry_copy_choice, mempcpy_baseline, mempcpy_looked_at, mempcpy_ladder)
mempcpy_looked_at:
    leaq    (%rdi,%rdx), %rax
    jmp     move_look
    THEN_END(mempcpy_baseline, wherry_routine_move_sse2)
mempcpy_avx2:
    leaq    (%rdi,%rdx), %rax
    jmp     copy_avx2_rax
    THEN_END(mempcpy_ladder, wherry_routine_move_avx512_ladder)
    .cfi_endproc
    .size PUBLIC(mempcpy), . - PUBLIC(mempcpy)

/* void *memset(void *dst rdi, int c esi, size_t n rdx) */
    .p2align 12
EXPORT(PUBLIC(memset))
    .cfi_startproc
    TIERS(wherry_set_choice, set_avx2, set_others)
set:
    vpbroadcastb %esi, %zmm16
    movq    %rdi, %rax
    cmpq    $64, %rdx
    ja      set_65_on
    cmpq    $4096, %rdi             /* as in move */
    jb      set_page_0
set_masked:
    movl    %edi, %ecx
    leaq    -64(%rdx), %r8
    andl    $0xfc0, %ecx
    xorl    %r9d, %r9d
    cmpl    $0xfc0, %ecx            /* as in move */
    movq    $-1, %rcx
    cmovneq %r9, %r8
    bzhiq   %rdx, %rcx, %rcx
    subl    %r8d, %r9d
    shlxq   %r9, %rcx, %rcx
    kmovq   %rcx, %k1
    vmovdqu8 %zmm16, (%rdi,%r8){%k1}
    ret

set_page_0:
    testl   %edx, %edx
    jnz     set_masked
    ret

/* To 512 bytes nothing is gained by fewer stores than a class has. */
    .p2align 5
set_65_on:
    cmpq    $256, %rdx
    ja      set_257_on
    leal    -1(%rdx), %ecx          /* 64 .. 255 */
    movl    %ecx, %r8d
    shrl    $1, %ecx
    leal    (%r8,%r8), %r9d
    andl    $64, %ecx               /* 64 when n > 128 */
    andl    %r9d, %r8d
    andl    $128, %r8d              /* 128 when n > 192 */
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, (%rdi,%rcx)
    vmovdqu64 %zmm16, (%rdi,%r8)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    ret

    .p2align 5
set_257_on:
    cmpq    $1024, %rdx
    ja      set_1025_on
    cmpl    $512, %edx
    jbe     set_257_to_512
    WATCH(wherry_watch_sets, set_look, set_513_uncounted)
    jmp     set_forward

    .p2align 5
set_257_to_512:
    movl    %edi, %ecx
    negl    %ecx
    andl    $63, %ecx               /* 0 .. 63, to the next line */
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, -128(%rdi,%rdx)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    addq    %rcx, %rdi
    subl    %ecx, %edx              /* 194 .. 512 from there on */
    movl    $320, %ecx              /* which three lines and which one beside the first three and the last two: ecx */
    subl    %edx, %ecx              /* becomes 192 when n > 320, r8d 320 when n > 448, else 0 */
    sarl    $31, %ecx
    andl    $192, %ecx
    movl    $448, %r8d
    subl    %edx, %r8d
    sarl    $31, %r8d
    andl    $320, %r8d
    vmovdqa64 %zmm16, (%rdi)
    vmovdqa64 %zmm16, 64(%rdi)
    vmovdqa64 %zmm16, 128(%rdi)
    vmovdqa64 %zmm16, (%rdi,%rcx)
    vmovdqa64 %zmm16, 64(%rdi,%rcx)
    vmovdqa64 %zmm16, (%rdi,%r8)
    ret

/* As move_256_to_1024; two blocks at r11, since those from a line on reach to the end, 193 to 1024 bytes further. */
    .p2align 5
set_256_to_1024:
    movl    %edi, %ecx
    negl    %ecx
    andl    $63, %ecx
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, -128(%rdi,%rdx)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    addq    %rcx, %rdi
    subl    %ecx, %edx
    FARTHEST_3
    LIMITED(192, %r9d)
    LIMITED(384, %r10d)
    LIMITED(576, %r11d)
    vmovdqa64 %zmm16, (%rdi)
    vmovdqa64 %zmm16, 64(%rdi)
    vmovdqa64 %zmm16, 128(%rdi)
    vmovdqa64 %zmm16, (%rdi,%r9)
    vmovdqa64 %zmm16, 64(%rdi,%r9)
    vmovdqa64 %zmm16, 128(%rdi,%r9)
    vmovdqa64 %zmm16, (%rdi,%r10)
    vmovdqa64 %zmm16, 64(%rdi,%r10)
    vmovdqa64 %zmm16, 128(%rdi,%r10)
    vmovdqa64 %zmm16, (%rdi,%r11)
    vmovdqa64 %zmm16, 64(%rdi,%r11)
    vmovdqa64 %zmm16, (%rdi,%rcx)
    vmovdqa64 %zmm16, 64(%rdi,%rcx)
    vmovdqa64 %zmm16, 128(%rdi,%rcx)
    RETURN_WATCHED(wherry_watch_sets, set_look_back, set_uncounted)

    .p2align 5
    OTHERS(set_others)
    vpbroadcastb %esi, %zmm16
    movq    %rdi, %rax
    cmpq    $1024, %rdx
    ja      set_1025_on
    cmpl    $255, %edx
    ja      set_256_to_1024
set_to_255:                         /* as move_to_255 */
    cmpq    $4096, %rdi
    jb      set_together_page_0
set_four:
    movl    %edi, %ecx
    xorl    %r9d, %r9d
    movq    %rdx, %r10
    andl    $0xfc0, %ecx
    subq    $64, %r10
    movq    %r10, %r8
    cmovnsq %r9, %r8
    cmovsq  %r9, %r10
    cmpl    $0xfc0, %ecx
    movq    $-1, %rcx
    cmovneq %r9, %r8
    bzhiq   %rdx, %rcx, %rcx
    subl    %r8d, %r9d
    shlxq   %r9, %rcx, %rcx
    addq    %rdi, %r8
    kmovq   %rcx, %k1
    rorxl   $1, %edx, %ecx
    leal    (%rdx,%rdx), %r9d
    andl    $64, %ecx
    andl    %edx, %r9d
    andl    $128, %r9d
    vmovdqu8 %zmm16, (%r8){%k1}
    vmovdqu8 %zmm16, (%r8,%rcx){%k1}
    vmovdqu8 %zmm16, (%r8,%r9){%k1}
    vmovdqu8 %zmm16, (%r8,%r10){%k1}
    RETURN_WATCHED(wherry_watch_sets, set_look_back, set_uncounted)

set_together_page_0:
    testl   %edx, %edx
    jnz     set_four
    ret

    UNCOUNTED(set_uncounted, wherry_watch_sets, %rax, set_look_back, ret)
    UNCOUNTED(set_513_uncounted, wherry_watch_sets, %rax, set_look, jmp set_forward)
    LOOK(set_look_back, wherry_watch_sets, ret)
    OTHERS_BUT_TOGETHER(set_others, wherry_set_choice, wherry_routine_set_sse2, set_looked_at, wherry_routine_set_avx512_ladder)
set_looked_at:
    vpbroadcastb %esi, %zmm16
    movq    %rdi, %rax
    LOOK(set_look, wherry_watch_sets,)  /* esi and zmm16 stay too */
    cmpq    $255, %rdx
    jbe     set_to_255
    cmpq    $1024, %rdx
    jbe     set_256_to_1024
    jmp     set_1025_on

    .p2align 6
set_1025_on:
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx
    jae     set_maybe_by_string
set_not_by_string:
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     wherry_routine_set_avx512
set_forward:
    leaq    -256(%rdi,%rdx), %r8    /* up to 256 bytes are left from here on */
    leaq    -1(%rdi,%rdx), %r9
    andq    $-64, %r9               /* the last line that the destination reaches */
    vmovdqu64 %zmm16, (%rdi)
    andq    $-64, %rdi
    addq    $64, %rdi
    .p2align 4
set_step:
    vmovdqa64 %zmm16, (%rdi)
    vmovdqa64 %zmm16, 64(%rdi)
    vmovdqa64 %zmm16, 128(%rdi)
    vmovdqa64 %zmm16, 192(%rdi)
    addq    $256, %rdi
    cmpq    %r8, %rdi
    jb      set_step
    vmovdqa64 %zmm16, -192(%r9)
    vmovdqa64 %zmm16, -128(%r9)
    vmovdqa64 %zmm16, -64(%r9)
    vmovdqu64 %zmm16, 192(%r8)
    ret

set_maybe_by_string:
    cmpq    wherry_thresholds + SET_REP_RECENT_FROM(%rip), %rdx
    jae     wherry_routine_set_avx512
    RECENT_FIND_SET(wherry_routine_set_avx512)
    jmp     set_not_by_string
    .cfi_endproc
    .size PUBLIC(memset), . - PUBLIC(memset)

#include "dispatch/set_avx2.tmpl.S"

/* void bzero(void *dst rdi, size_t n rsi) */
    .p2align 6
EXPORT(PUBLIC(bzero))
    .cfi_startproc
    movq    %rsi, %rdx
    xorl    %esi, %esi
    TIERS(wherry_set_choice, set_avx2, set_others)
    jmp     set
    .cfi_endproc
    .size PUBLIC(bzero), . - PUBLIC(bzero)
