/* csum_vnni: the sum of csum_avx512's aligned lines, with masked ends, by the dot product of words. Two instructions a line,
 * which is as many as this kind of CPU executes while it loads one: vpdpwssd adds both words of a 32-bit lane to it, but
 * takes them as signed, so each is made less by 32768 first, which exchanges its top bit. In the end each line is given
 * back what that comes to. All is counted modulo 2^32, and a part is so long that its sum stays below.
 *
 *   uint32_t (const void *p rdi, size_t n rsi, uint32_t sum edx)
 *
 * vpdpwssd takes four cycles and up to two begin in each: eight accumulators are just enough, and twelve, where there is
 * time to bring them together, leave room for one that begins late. The order matters: in turns, an exclusive or and a dot
 * product take a tenth longer than two and two (Zen 4; docs/checksums.md).
 *
 *   rsi what is left behind this part
 *   r8  the next line
 *   eax bytes of whole lines from there on
 *   r11d what all lines are given back
 */
#include "../asm.h"
#include "../csum_short.h"

#define PART 131072 /* bytes; 65536 words of 65535 are less than 2^32 */
#define TWELVE_FROM 8192 /* bytes of whole lines; below, twelve accumulators gain nothing (Zen 5) */
#define TOP_BITS %zmm30
#define ONES %zmm31
/* clang-format off */
#define SIGNED(line, to) vpxord line, TOP_BITS, to
#define DOT(words, to) vpdpwssd ONES, words, to
#define TWO(at, a, b)                          \
    SIGNED(at(%r8), %zmm24);                   \
    SIGNED(at + 64(%r8), %zmm25);              \
    DOT(%zmm24, a);                            \
    DOT(%zmm25, b)
#define ZERO(v) vpxord v, v, v
#define HALVES_ADDED(extract, half, whole)     \
    extract $1, whole, half##17;               \
    vpaddd  half##17, half##16, half##16
/* clang-format on */

ENTRY(wherry_routine_csum_vnni)
    cmpq    $CSUM_SHORT, %rsi
    jbe     .Lshort
.Lnext:
    leaq    -1(%rdi,%rsi), %rax
    cmpq    $PART, %rsi
    ja      .Lfirst_part
    xorl    %esi, %esi
.Lpart:
    movq    %rdi, %r8
    movq    $-1, %r9
    andq    $-64, %r8
    movl    %eax, %ecx
    shlxq   %rdi, %r9, %r10
    notl    %ecx
    andq    $-64, %rax
    shrxq   %rcx, %r9, %r9
    kmovq   %r10, %k1
    kmovq   %r9, %k2
    vpbroadcastd .Ltop_bits(%rip), TOP_BITS
    vmovdqu8 (%r8), %zmm24{%k1}{z}
    vmovdqu8 (%rax), %zmm25{%k2}{z}
    subq    %r8, %rax
    vpbroadcastd .Lones_of_words(%rip), ONES
    addq    $64, %r8
    SIGNED(%zmm24, %zmm24)
    SIGNED(%zmm25, %zmm25)
    leal    64(%rax), %r11d
    vpmaddwd ONES, %zmm24, %zmm16   /* the dot product that adds to nothing */
    vpmaddwd ONES, %zmm25, %zmm17
    shll    $14, %r11d              /* 32 * 32768 for each 64 */
    ZERO(%zmm18)
    ZERO(%zmm19)
    subl    $64, %eax
    cmpl    $1024, %eax
    jb      .Lfew                   /* where four accumulators need not be brought together with four more */
    movl    %eax, %ecx
    ZERO(%zmm20)
    shrl    $9, %ecx
    ZERO(%zmm21)
    ZERO(%zmm22)
    ZERO(%zmm23)
    cmpl    $TWELVE_FROM, %eax
    jae     .Lmany
    .p2align 6
.Leight:
    TWO(0, %zmm16, %zmm17)
    TWO(128, %zmm18, %zmm19)
    TWO(256, %zmm20, %zmm21)
    TWO(384, %zmm22, %zmm23)
    addq    $512, %r8
    decl    %ecx
    jnz     .Leight
.Leight_together:
    vpaddd  %zmm20, %zmm16, %zmm16
    vpaddd  %zmm21, %zmm17, %zmm17
    vpaddd  %zmm22, %zmm18, %zmm18
    vpaddd  %zmm23, %zmm19, %zmm19
    andl    $511, %eax
.Lfew:
    subl    $256, %eax
    jb      .Lbelow_four
.Lfour:
    TWO(0, %zmm16, %zmm17)
    TWO(128, %zmm18, %zmm19)
    addq    $256, %r8
    subl    $256, %eax
    jae     .Lfour
.Lbelow_four:
    testb   $128, %al
    jz      .Lbelow_two
    TWO(0, %zmm16, %zmm17)
    subq    $-128, %r8
.Lbelow_two:
    testb   $64, %al
    jz      .Ltogether
    SIGNED((%r8), %zmm24)
    DOT(%zmm24, %zmm18)
.Ltogether:
    vpaddd  %zmm17, %zmm16, %zmm16
    vpaddd  %zmm19, %zmm18, %zmm18
    vpaddd  %zmm18, %zmm16, %zmm16
    HALVES_ADDED(vextracti64x4, %ymm, %zmm16)
    HALVES_ADDED(vextracti64x2, %xmm, %ymm16)
    vmovq   %xmm16, %rax
    vpextrq $1, %xmm16, %r9
    movl    %edi, %ecx
    leal    (%rax,%r9), %r10d
    shrq    $32, %rax
    shrq    $32, %r9
    addl    %r10d, %r11d
    addl    %r9d, %eax
    andl    $1, %ecx
    addl    %r11d, %eax
    shll    $3, %ecx
    roll    %cl, %eax               /* lines begin at an even place */
    addl    %edx, %eax
    adcl    $0, %eax
    testq   %rsi, %rsi
    jnz     .Lnext_part
    ret

.Lmany:
    subl    $768, %eax
    ZERO(%zmm26)
    ZERO(%zmm27)
    ZERO(%zmm28)
    ZERO(%zmm29)
    .p2align 6
.Ltwelve:
    TWO(0, %zmm16, %zmm17)
    TWO(128, %zmm18, %zmm19)
    TWO(256, %zmm20, %zmm21)
    TWO(384, %zmm22, %zmm23)
    TWO(512, %zmm26, %zmm27)
    TWO(640, %zmm28, %zmm29)
    addq    $768, %r8
    subl    $768, %eax
    jae     .Ltwelve
    addl    $768, %eax
    vpaddd  %zmm26, %zmm16, %zmm16
    vpaddd  %zmm27, %zmm17, %zmm17
    vpaddd  %zmm28, %zmm18, %zmm18
    vpaddd  %zmm29, %zmm19, %zmm19
    movl    $1, %ecx
    cmpl    $512, %eax
    jae     .Leight
    jmp     .Leight_together

/* An even number of bytes, so sums go on from part to part. */
.Lfirst_part:
    leaq    PART - 1(%rdi), %rax
    subq    $PART, %rsi
    jmp     .Lpart
.Lnext_part:
    movl    %eax, %edx
    addq    $PART, %rdi
    cmpq    $CSUM_SHORT, %rsi
    ja      .Lnext

/* As csum_short, which is not called since a routine needs nothing outside: the upper part of the last word, and before it eight words, four, two and one. */
.Lshort:
    movl    %edx, %eax
    cmpl    $8, %esi
    jb      .Lbelow_8
    movq    -8(%rdi,%rsi), %rdx
    leal    (,%rsi,8), %ecx
    decl    %esi
    negl    %ecx
    shrq    %cl, %rdx
    testb   $64, %sil
    jz      .Lbelow_64
    addq    (%rdi), %rdx
    adcq    8(%rdi), %rdx
    adcq    16(%rdi), %rdx
    adcq    24(%rdi), %rdx
    adcq    32(%rdi), %rdx
    adcq    40(%rdi), %rdx
    adcq    48(%rdi), %rdx
    adcq    56(%rdi), %rdx
    adcq    $0, %rdx
    addq    $64, %rdi
.Lbelow_64:
    testb   $32, %sil
    jz      .Lbelow_32
    addq    (%rdi), %rdx
    adcq    8(%rdi), %rdx
    adcq    16(%rdi), %rdx
    adcq    24(%rdi), %rdx
    adcq    $0, %rdx
    addq    $32, %rdi
.Lbelow_32:
    testb   $16, %sil
    jz      .Lbelow_16
    addq    (%rdi), %rdx
    adcq    8(%rdi), %rdx
    adcq    $0, %rdx
    addq    $16, %rdi
.Lbelow_16:
    testb   $8, %sil
    jz      .Lfolded
    addq    (%rdi), %rdx
    adcq    $0, %rdx
.Lfolded:
    addq    %rdx, %rax
    adcq    $0, %rax
    movq    %rax, %rdx
    shrq    $32, %rdx
    addl    %edx, %eax
    adcl    $0, %eax
    ret

/* Each at an even place, so it counts there as it would at the beginning. */
.Lbelow_8:
    testb   $4, %sil
    jz      .Lbelow_4
    movl    (%rdi), %edx
    addq    %rdx, %rax
    addq    $4, %rdi
.Lbelow_4:
    xorl    %edx, %edx
    testb   $2, %sil
    jz      .Lbelow_2
    movzwl  (%rdi), %edx
    addq    %rdx, %rax
    addq    $2, %rdi
    xorl    %edx, %edx
.Lbelow_2:
    testb   $1, %sil
    jz      .Lfolded
    movzbl  (%rdi), %edx
    jmp     .Lfolded
END(wherry_routine_csum_vnni)

    .section .rodata.cst4, "aM", @progbits, 4
    .p2align 2
.Ltop_bits:
    .long 0x80008000
.Lones_of_words:
    .long 0x00010001
