/* Of copy_csum_lines.tmpl.S, for CPUs with AVX512_VNNI: two instructions a line where the sums of 64-bit lanes take three.
 * vpdpwssd adds both words of a 32-bit lane to it, but takes them as signed; so the top bit of each is exchanged first,
 * which makes it less by 32768, and in the end each line's 32 words are given that back. The first bytes and the last
 * count as lines of their own, with zeroes where the others are. No 32-bit lane overflows, nor do all of them together.
 * Always upwards: for CPUs that lose more by the other order than by loads that wait for stores 4 KiB apart. */
/* clang-format off */
#define TOP_BITS R(13)
#define ONES R(14)
#define DOT_A R(0)
#define DOT_B R(1)
#define DOT_C R(9)
#define DOT_D R(10)
#define SIGNED(v) vpxord TOP_BITS, v, v
#define DOT(v, to) vpdpwssd ONES, v, to
/* clang-format on */

AT(dots):
#ifndef PLAIN
    COMPARE_DOTS
    jne     AT(no_dots)
#endif
    cmpq    wherry_thresholds + COPY_STREAM_ANY_FROM(%rip), %rdx
    jae     AT(no_dots)
    vpbroadcastd AT(top_bits)(%rip), TOP_BITS
    vpbroadcastd AT(ones_of_words)(%rip), ONES
    vpxord  DOT_B, DOT_B, DOT_B
    vpxord  DOT_C, DOT_C, DOT_C
    vpxord  DOT_D, DOT_D, DOT_D
    SIGNED(FIRST)
    leaq    -4 * V(%r11), %rax      /* of so many bytes there is a step */
    vpmaddwd ONES, FIRST, DOT_A     /* the dot product that adds to nothing */
    .p2align 6
AT(dot_step):
    LOAD(AT(dots_stopped), MOVE (%rdi,%rsi), R(5))
    LOAD(AT(dots_stopped), MOVE V(%rdi,%rsi), R(6))
    LOAD(AT(dots_stopped), MOVE 2 * V(%rdi,%rsi), R(7))
    LOAD(AT(dots_stopped), MOVE 3 * V(%rdi,%rsi), R(8))
    STORE(AT(dots_stopped), MOVE R(5), (%rdi))
    SIGNED(R(5))
    STORE(AT(dots_stopped), MOVE R(6), V(%rdi))
    SIGNED(R(6))
    STORE(AT(dots_stopped), MOVE R(7), 2 * V(%rdi))
    SIGNED(R(7))
    STORE(AT(dots_stopped), MOVE R(8), 3 * V(%rdi))
    SIGNED(R(8))
    addq    $(4 * V), %rdi
    DOT(R(5), DOT_A)                /* as in STEP, nothing is added before the last store */
    DOT(R(6), DOT_B)
    DOT(R(7), DOT_C)
    DOT(R(8), DOT_D)
    cmpq    %rax, %rdi
    jbe     AT(dot_step)
    cmpq    %r11, %rdi
    jae     AT(dots_last)
    .p2align 5
AT(dot_one):
    LOAD(AT(dots_stopped), MOVE (%rdi,%rsi), R(5))
    STORE(AT(dots_stopped), MOVE R(5), (%rdi))
    SIGNED(R(5))
    addq    $V, %rdi
    DOT(R(5), DOT_B)
    cmpq    %r11, %rdi
    jb      AT(dot_one)
AT(dots_last):
    vmovdqu8 LAST, LAST{%k2}{z}
    STORE(AT(dots_stopped), vmovdqu8 LAST, -V(%r9){%k2})
    vprold  $8, LAST, LAST{%k3}
    movq    %r9, %rdi
    SIGNED(LAST)
    DOT(LAST, DOT_C)

/* All before rdi is copied and counted; r10 becomes how many bytes of whole lines that are, less than 0. */
AT(dots_stopped):
    vpaddd  DOT_B, DOT_A, DOT_A
    vpaddd  DOT_D, DOT_C, DOT_C
    movl    %r8d, %r10d
    vpaddd  DOT_C, DOT_A, DOT_A
    andl    $(V - 1), %r10d
    vextracti64x4 $1, %zmm16, %ymm20
    negq    %r10
    vpaddd  %ymm20, %ymm16, %ymm16
    addq    %r9, %r10
    vextracti64x2 $1, %ymm16, %xmm20
    subq    %rdi, %r10
    vpaddd  %xmm20, %xmm16, %xmm16
    subq    %rdx, %r10
    vpshufd $0xee, %xmm16, %xmm20
    andq    $-V, %r10
    vpaddd  %xmm20, %xmm16, %xmm16
    vpshufd $0x55, %xmm16, %xmm20
    shlq    $14, %r10               /* 32 * 32768 for each 64 */
    vpaddd  %xmm20, %xmm16, %xmm16
    vmovd   %xmm16, %eax
    movslq  %eax, %rax
    subq    %r10, %rax
#ifdef PLAIN
    movl    %ecx, %ecx
    jmp     AT(counted)
#else
    FOLD
    jmp     AT(summed)
#endif

    .pushsection .rodata.cst4, "aM", @progbits, 4
    .p2align 2
AT(top_bits):
    .long 0x80008000
AT(ones_of_words):
    .long 0x00010001
    .popsection
