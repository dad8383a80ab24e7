/* The public functions.
 *
 * Each begins with one comparison of wherry_choice (dispatch.h): the tier of the AVX2 and the baseline are one jump
 * away, and AVX-512, where a whole block costs no more than a byte, goes on right here, so that nothing at all stands between
 * a caller and the smallest copies. What is not small and not the plain forward loop the routine of the registry does.
 * The blocks
 * are those of routines/vector/move.tmpl.h and set.tmpl.h, which say why; verification and measurement call both.
 *
 * wherry_choice is zero-initialised data and zero is the baseline, so a call that comes before this object's
 * constructors, or before its relocations, is right.
 *
 * Only zmm16 to zmm31 and k1 are used: they need no vzeroupper. The drop-in assembles this file again with names of its
 * own for PUBLIC().
 */
#include "routines/asm.h"
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

/* One comparison, three answers that are not taken: choices are 0, 1, 2 and 4, and 4 - 1 alone has even parity. */
#define TIERS(baseline, avx2, ladder)          \
    cmpb    $1, wherry_choice(%rip);           \
    je      avx2;                              \
    jb      baseline;                          \
    jp      ladder
/* clang-format on */

    .text
    .p2align 6
/* void *memcpy(void *dst rdi, const void *src rsi, size_t n rdx); memmove is the same function. */
EXPORT(PUBLIC(memmove))
EXPORT(PUBLIC(memcpy))
    .cfi_startproc
    TIERS(wherry_routine_move_sse2, wherry_routine_move_avx2, wherry_routine_move_avx512_ladder)
    movq    %rdi, %rax

/* rax is what to return. */
move:
    cmpq    $64, %rdx
    ja      move_65_to_256
    leal    63(%rdi), %ecx
    leal    63(%rsi), %r8d
    xorl    %edi, %ecx
    xorl    %esi, %r8d
    orl     %r8d, %ecx
    testb   $0x10, %ch              /* bit 12: does a whole block cross into another page? */
    jnz     move_0_to_64_at_page_end
    movq    $-1, %rcx
    bzhiq   %rdx, %rcx, %rcx
    kmovq   %rcx, %k1
    vmovdqu8 (%rsi), %zmm16{%k1}{z}
    vmovdqu8 %zmm16, (%rdi){%k1}
    ret

    .p2align 5
move_65_to_256:
    cmpq    $1024, %rdx             /* before the others, whose code they shall not touch */
    ja      move_1025_on
    cmpq    $256, %rdx
    ja      move_257_on
    leal    -1(%rdx), %ecx          /* 64 .. 255 */
    movl    %ecx, %r8d
    shrl    $1, %ecx
    leal    (%r8,%r8), %r9d
    andl    $64, %ecx               /* 64 when n > 128 */
    andl    %r9d, %r8d
    andl    $128, %r8d              /* 128 when n > 192 */
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 (%rsi,%rcx), %zmm17
    vmovdqu64 (%rsi,%r8), %zmm18
    vmovdqu64 -64(%rsi,%rdx), %zmm19
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, (%rdi,%rcx)
    vmovdqu64 %zmm18, (%rdi,%r8)
    vmovdqu64 %zmm19, -64(%rdi,%rdx)
    ret

    .p2align 5
move_257_on:
    cmpq    $512, %rdx
    ja      move_513_to_1024
    xorl    %ecx, %ecx
    movl    $256, %r8d
    cmpl    $384, %edx
    cmoval  %r8d, %ecx
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 64(%rsi), %zmm17
    vmovdqu64 128(%rsi), %zmm18
    vmovdqu64 192(%rsi), %zmm19
    vmovdqu64 (%rsi,%rcx), %zmm20
    vmovdqu64 64(%rsi,%rcx), %zmm21
    vmovdqu64 -128(%rsi,%rdx), %zmm22
    vmovdqu64 -64(%rsi,%rdx), %zmm23
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, 64(%rdi)
    vmovdqu64 %zmm18, 128(%rdi)
    vmovdqu64 %zmm19, 192(%rdi)
    vmovdqu64 %zmm20, (%rdi,%rcx)
    vmovdqu64 %zmm21, 64(%rdi,%rcx)
    vmovdqu64 %zmm22, -128(%rdi,%rdx)
    vmovdqu64 %zmm23, -64(%rdi,%rdx)
    ret

    .p2align 5
move_513_to_1024:
    movl    $512, %r10d
    movl    $640, %r11d
    xorl    %ecx, %ecx
    xorl    %r8d, %r8d
    xorl    %r9d, %r9d
    cmpl    %r11d, %edx
    cmoval  %r10d, %ecx
    movl    $768, %r10d
    cmpl    %r10d, %edx
    cmoval  %r11d, %r8d
    cmpl    $896, %edx
    cmoval  %r10d, %r9d
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 64(%rsi), %zmm17
    vmovdqu64 128(%rsi), %zmm18
    vmovdqu64 192(%rsi), %zmm19
    vmovdqu64 256(%rsi), %zmm20
    vmovdqu64 320(%rsi), %zmm21
    vmovdqu64 384(%rsi), %zmm22
    vmovdqu64 448(%rsi), %zmm23
    vmovdqu64 (%rsi,%rcx), %zmm24
    vmovdqu64 64(%rsi,%rcx), %zmm25
    vmovdqu64 (%rsi,%r8), %zmm26
    vmovdqu64 64(%rsi,%r8), %zmm27
    vmovdqu64 (%rsi,%r9), %zmm28
    vmovdqu64 64(%rsi,%r9), %zmm29
    vmovdqu64 -128(%rsi,%rdx), %zmm30
    vmovdqu64 -64(%rsi,%rdx), %zmm31
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm17, 64(%rdi)
    vmovdqu64 %zmm18, 128(%rdi)
    vmovdqu64 %zmm19, 192(%rdi)
    vmovdqu64 %zmm20, 256(%rdi)
    vmovdqu64 %zmm21, 320(%rdi)
    vmovdqu64 %zmm22, 384(%rdi)
    vmovdqu64 %zmm23, 448(%rdi)
    vmovdqu64 %zmm24, (%rdi,%rcx)
    vmovdqu64 %zmm25, 64(%rdi,%rcx)
    vmovdqu64 %zmm26, (%rdi,%r8)
    vmovdqu64 %zmm27, 64(%rdi,%r8)
    vmovdqu64 %zmm28, (%rdi,%r9)
    vmovdqu64 %zmm29, 64(%rdi,%r9)
    vmovdqu64 %zmm30, -128(%rdi,%rdx)
    vmovdqu64 %zmm31, -64(%rdi,%rdx)
    ret

/* The forward loop of large.tmpl.h. Whatever it is not for goes to the routine. */
    .p2align 6
move_1025_on:
    movq    %rdi, %rcx
    subq    %rsi, %rcx
    cmpq    %rdx, %rcx              /* the destination begins inside the source */
    jb      move_by_routine
    cmpq    wherry_thresholds + COPY_REP_FROM(%rip), %rdx
    jae     move_by_routine
    cmpq    wherry_thresholds + COPY_STREAM_FROM(%rip), %rdx
    jae     move_by_routine
    andl    $(ALIAS_BYTES - 1), %ecx
    subl    $1, %ecx
    cmpl    $ALIAS_SPAN, %ecx
    jb      move_by_routine
    vmovdqu64 (%rsi), %zmm16
    vmovdqu64 -256(%rsi,%rdx), %zmm17
    vmovdqu64 -192(%rsi,%rdx), %zmm18
    vmovdqu64 -128(%rsi,%rdx), %zmm19
    vmovdqu64 -64(%rsi,%rdx), %zmm20
    leaq    -256(%rdi,%rdx), %r8    /* up to 256 bytes are left from here on */
    movq    %rdi, %r9
    movl    %edi, %ecx
    andl    $63, %ecx
    subq    $64, %rcx               /* less the distance to the next line of the destination, 1 to 64 */
    subq    %rcx, %rdi
    subq    %rcx, %rsi
    .p2align 4
move_step:
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
    cmpq    %r8, %rdi
    jb      move_step
    vmovdqu64 %zmm17, (%r8)
    vmovdqu64 %zmm18, 64(%r8)
    vmovdqu64 %zmm19, 128(%r8)
    vmovdqu64 %zmm20, 192(%r8)
    vmovdqu64 %zmm16, (%r9)
    ret

move_by_routine:
    cmpq    %rdi, %rax              /* mempcpy wants another result than the routine gives */
    je      wherry_routine_move_avx512
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    wherry_routine_move_avx512
    popq    %rax
    .cfi_adjust_cfa_offset -8
    ret

/* The block that ends where the buffer ends is as good, under a mask of the upper bits, unless it begins in the page
 * before: still without a branch on the size. */
    .p2align 5
move_0_to_64_at_page_end:
    leal    -64(%rdi,%rdx), %ecx
    leal    -64(%rsi,%rdx), %r8d
    xorl    %edi, %ecx
    xorl    %esi, %r8d
    orl     %r8d, %ecx
    testb   $0x10, %ch
    jnz     move_0_to_64_between_pages
    movq    $-1, %rcx
    movl    %edx, %r8d
    negl    %r8d                    /* 64 - n, modulo 64 */
    bzhiq   %rdx, %rcx, %rcx
    shlxq   %r8, %rcx, %rcx
    kmovq   %rcx, %k1
    vmovdqu8 -64(%rsi,%rdx), %zmm16{%k1}{z}
    vmovdqu8 %zmm16, -64(%rdi,%rdx){%k1}
    ret

/* Head and tail of the largest power of two <= n; both are loaded before either is stored. */
move_0_to_64_between_pages:
    cmpl    $16, %edx
    jae     move_16_to_64_between_pages
    cmpl    $4, %edx
    jae     move_4_to_15_between_pages
    testl   %edx, %edx
    jz      move_done
    movl    %edx, %r10d
    shrl    $1, %r10d
    movzbl  (%rsi), %ecx
    movzbl  (%rsi,%r10), %r8d
    movzbl  -1(%rsi,%rdx), %r9d
    movb    %cl, (%rdi)
    movb    %r8b, (%rdi,%r10)
    movb    %r9b, -1(%rdi,%rdx)
move_done:
    ret
move_4_to_15_between_pages:
    cmpl    $8, %edx
    jae     move_8_to_15_between_pages
    movl    (%rsi), %ecx
    movl    -4(%rsi,%rdx), %r8d
    movl    %ecx, (%rdi)
    movl    %r8d, -4(%rdi,%rdx)
    ret
move_8_to_15_between_pages:
    movq    (%rsi), %rcx
    movq    -8(%rsi,%rdx), %r8
    movq    %rcx, (%rdi)
    movq    %r8, -8(%rdi,%rdx)
    ret
move_16_to_64_between_pages:
    cmpl    $32, %edx
    jae     move_32_to_64_between_pages
    vmovdqu64 (%rsi), %xmm16
    vmovdqu64 -16(%rsi,%rdx), %xmm17
    vmovdqu64 %xmm16, (%rdi)
    vmovdqu64 %xmm17, -16(%rdi,%rdx)
    ret
move_32_to_64_between_pages:
    vmovdqu64 (%rsi), %ymm16
    vmovdqu64 -32(%rsi,%rdx), %ymm17
    vmovdqu64 %ymm16, (%rdi)
    vmovdqu64 %ymm17, -32(%rdi,%rdx)
    ret
    .cfi_endproc
    .size PUBLIC(memcpy), . - PUBLIC(memcpy)
    .size PUBLIC(memmove), . - PUBLIC(memmove)

/* void bcopy(const void *src rdi, void *dst rsi, size_t n rdx) */
    .p2align 6
EXPORT(PUBLIC(bcopy))
    .cfi_startproc
    xchgq   %rdi, %rsi
    TIERS(wherry_routine_move_sse2, wherry_routine_move_avx2, wherry_routine_move_avx512_ladder)
    movq    %rdi, %rax
    jmp     move
    .cfi_endproc
    .size PUBLIC(bcopy), . - PUBLIC(bcopy)

/* void *mempcpy(void *dst rdi, const void *src rsi, size_t n rdx), returns dst + n */
    .p2align 6
EXPORT(PUBLIC(mempcpy))
    .cfi_startproc
    TIERS(mempcpy_baseline, mempcpy_avx2, mempcpy_ladder)
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
    THEN_END(mempcpy_baseline, wherry_routine_move_sse2)
    THEN_END(mempcpy_avx2, wherry_routine_move_avx2)
    THEN_END(mempcpy_ladder, wherry_routine_move_avx512_ladder)
    .cfi_endproc
    .size PUBLIC(mempcpy), . - PUBLIC(mempcpy)

/* void *memset(void *dst rdi, int c esi, size_t n rdx) */
    .p2align 6
EXPORT(PUBLIC(memset))
    .cfi_startproc
    TIERS(wherry_routine_set_sse2, wherry_routine_set_avx2, wherry_routine_set_avx512_ladder)
set:
    vpbroadcastb %esi, %zmm16
    movq    %rdi, %rax
    cmpq    $64, %rdx
    ja      set_65_to_256
    leal    63(%rdi), %ecx
    xorl    %edi, %ecx
    testb   $0x10, %ch              /* bit 12: does a whole block cross into another page? */
    jnz     set_0_to_64_at_page_end
    movq    $-1, %rcx
    bzhiq   %rdx, %rcx, %rcx
    kmovq   %rcx, %k1
    vmovdqu8 %zmm16, (%rdi){%k1}
    ret

    .p2align 5
set_65_to_256:
    cmpq    $1024, %rdx             /* before the others, whose code they shall not touch */
    ja      set_1025_on
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
    cmpq    $512, %rdx
    ja      set_513_to_1024
    xorl    %ecx, %ecx
    movl    $256, %r8d
    cmpl    $384, %edx
    cmoval  %r8d, %ecx
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, 64(%rdi)
    vmovdqu64 %zmm16, 128(%rdi)
    vmovdqu64 %zmm16, 192(%rdi)
    vmovdqu64 %zmm16, (%rdi,%rcx)
    vmovdqu64 %zmm16, 64(%rdi,%rcx)
    vmovdqu64 %zmm16, -128(%rdi,%rdx)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    ret

    .p2align 5
set_513_to_1024:
    movl    $512, %r10d
    movl    $640, %r11d
    xorl    %ecx, %ecx
    xorl    %r8d, %r8d
    xorl    %r9d, %r9d
    cmpl    %r11d, %edx
    cmoval  %r10d, %ecx
    movl    $768, %r10d
    cmpl    %r10d, %edx
    cmoval  %r11d, %r8d
    cmpl    $896, %edx
    cmoval  %r10d, %r9d
    vmovdqu64 %zmm16, (%rdi)
    vmovdqu64 %zmm16, 64(%rdi)
    vmovdqu64 %zmm16, 128(%rdi)
    vmovdqu64 %zmm16, 192(%rdi)
    vmovdqu64 %zmm16, 256(%rdi)
    vmovdqu64 %zmm16, 320(%rdi)
    vmovdqu64 %zmm16, 384(%rdi)
    vmovdqu64 %zmm16, 448(%rdi)
    vmovdqu64 %zmm16, (%rdi,%rcx)
    vmovdqu64 %zmm16, 64(%rdi,%rcx)
    vmovdqu64 %zmm16, (%rdi,%r8)
    vmovdqu64 %zmm16, 64(%rdi,%r8)
    vmovdqu64 %zmm16, (%rdi,%r9)
    vmovdqu64 %zmm16, 64(%rdi,%r9)
    vmovdqu64 %zmm16, -128(%rdi,%rdx)
    vmovdqu64 %zmm16, -64(%rdi,%rdx)
    ret

    .p2align 6
set_1025_on:
    cmpq    wherry_thresholds + SET_REP_FROM(%rip), %rdx
    jae     wherry_routine_set_avx512
    cmpq    wherry_thresholds + SET_STREAM_FROM(%rip), %rdx
    jae     wherry_routine_set_avx512
    leaq    -256(%rdi,%rdx), %r8    /* up to 256 bytes are left from here on */
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
    vmovdqu64 %zmm16, (%r8)
    vmovdqu64 %zmm16, 64(%r8)
    vmovdqu64 %zmm16, 128(%r8)
    vmovdqu64 %zmm16, 192(%r8)
    ret

    .p2align 5
set_0_to_64_at_page_end:
    leal    -64(%rdi,%rdx), %ecx
    xorl    %edi, %ecx
    testb   $0x10, %ch
    jnz     set_0_to_64_between_pages
    movq    $-1, %rcx
    movl    %edx, %r8d
    negl    %r8d                    /* 64 - n, modulo 64 */
    bzhiq   %rdx, %rcx, %rcx
    shlxq   %r8, %rcx, %rcx
    kmovq   %rcx, %k1
    vmovdqu8 %zmm16, -64(%rdi,%rdx){%k1}
    ret

set_0_to_64_between_pages:
    vmovq   %xmm16, %rcx
    cmpl    $16, %edx
    jae     set_16_to_64_between_pages
    cmpl    $4, %edx
    jae     set_4_to_15_between_pages
    testl   %edx, %edx
    jz      set_done
    movb    %cl, (%rdi)
    movb    %cl, -1(%rdi,%rdx)
    shrl    $1, %edx
    movb    %cl, (%rdi,%rdx)
set_done:
    ret
set_4_to_15_between_pages:
    cmpl    $8, %edx
    jae     set_8_to_15_between_pages
    movl    %ecx, (%rdi)
    movl    %ecx, -4(%rdi,%rdx)
    ret
set_8_to_15_between_pages:
    movq    %rcx, (%rdi)
    movq    %rcx, -8(%rdi,%rdx)
    ret
set_16_to_64_between_pages:
    cmpl    $32, %edx
    jae     set_32_to_64_between_pages
    vmovdqu64 %xmm16, (%rdi)
    vmovdqu64 %xmm16, -16(%rdi,%rdx)
    ret
set_32_to_64_between_pages:
    vmovdqu64 %ymm16, (%rdi)
    vmovdqu64 %ymm16, -32(%rdi,%rdx)
    ret
    .cfi_endproc
    .size PUBLIC(memset), . - PUBLIC(memset)

/* void bzero(void *dst rdi, size_t n rsi) */
    .p2align 6
EXPORT(PUBLIC(bzero))
    .cfi_startproc
    movq    %rsi, %rdx
    xorl    %esi, %esi
    TIERS(wherry_routine_set_sse2, wherry_routine_set_avx2, wherry_routine_set_avx512_ladder)
    jmp     set
    .cfi_endproc
    .size PUBLIC(bzero), . - PUBLIC(bzero)
