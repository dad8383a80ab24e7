/* Of copy_csum.tmpl.S, V = 64, for CPUs with AVX512_VNNI: two instructions a line where the sums of 64-bit lanes take three.
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
    vpxord  DOT_A, DOT_A, DOT_A
    vpxord  DOT_B, DOT_B, DOT_B
    vpxord  DOT_C, DOT_C, DOT_C
    vpxord  DOT_D, DOT_D, DOT_D
    SIGNED(FIRST)
    leaq    -4 * V(%r11), %rax
    DOT(FIRST, DOT_A)               /* of so many bytes there is a step */
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
    LAST_BYTES(%r9, LAST)
    STORE(AT(dots_stopped), vmovdqu8 LAST, -V(%r11,%r9){%k1})
    TURN_IF_ODD(%r9, LAST)
    SIGNED(LAST)
    addq    %r9, %rdi
    DOT(LAST, DOT_C)

/* All before rdi is copied and counted; r10 becomes how many bytes of whole lines that are, less than 0. */
AT(dots_stopped):
    vpaddd  DOT_B, DOT_A, DOT_A
    vpaddd  DOT_D, DOT_C, DOT_C
    leaq    (%r11,%r9), %r10
    vpaddd  DOT_C, DOT_A, DOT_A
    subq    %rdx, %r10
    vextracti64x4 $1, %zmm16, %ymm20
    andq    $-64, %r10
    vpaddd  %ymm20, %ymm16, %ymm16
    subq    %rdi, %r10
    vextracti64x2 $1, %ymm16, %xmm20
    andq    $-64, %r10
    vpaddd  %xmm20, %xmm16, %xmm16
    shlq    $14, %r10               /* 32 * 32768 for each 64 */
    vpshufd $0xee, %xmm16, %xmm20
    vpaddd  %xmm20, %xmm16, %xmm16
    vpshufd $0x55, %xmm16, %xmm20
    vpaddd  %xmm20, %xmm16, %xmm16
    vmovd   %xmm16, %eax
    movslq  %eax, %rax
    subq    %r10, %rax
    FOLD
#ifdef PLAIN
    leaq    (%r11,%r9), %r10
    subq    %rdx, %r10
    TURN_SUM_IF_ODD(%r10d)
    addl    %ecx, %eax
    adcl    $0, %eax
    ret                             /* so few bytes are the last part */
#else
    jmp     AT(summed)
#endif

    .pushsection .rodata.cst4, "aM", @progbits, 4
    .p2align 2
AT(top_bits):
    .long 0x80008000
AT(ones_of_words):
    .long 0x00010001
    .popsection
