/* The fault-tolerant copy that sums, in one pass, for every vector width V = VEC_BYTES: fused/copy_csum.tmpl.h with an
 * entry in the fault table for each load and store. From ENTRY(SYMBOL) on:
 *
 *   struct copied (void *dst rdi, const void *src rsi, size_t n rdx, uint32_t sum ecx), as copied.h has it
 *
 *     |-- first --|                                      a vector at the start: its first `head` bytes count
 *         |  step  |  step  | ... | one | one |          aligned in the destination
 *                                          |-- last --|  a vector that ends at the end: its last `rest` bytes count
 *
 *   n <= 64, V = 64   one block under a mask of n bits
 *   8 .. V, V < 64    words, and the one that ends at the end
 *   beyond            the picture above; the steps by non-temporal stores from copy_stream_from on
 *
 * It ends at the first fault and returns how many bytes from the first on are surely copied and summed, and their sum. The
 * caller has the rest copied by the fault-tolerant copy, which finds out to the byte what can be had. So a fault needs no
 * more here than to forget the step in which it happened:
 *
 * - The first store goes to the first byte and the others follow in ascending order, so nothing behind what can be written
 *   has changed. What a step has stored before its fault is stored again.
 * - The last block is loaded before anything is stored and counted when all before it is in place.
 *
 * `all` adds 64-bit lanes and wraps, `high` adds their upper halves, as in fused/csum_vec.h. The sides do not overlap. */
#include "registers.h"

#define ALL R(0)
#define HIGH R(1)
#define FIRST R(2)
#define LAST R(3)
#define T R(4)

/* clang-format off */
#if V == 16
#define ADD(from, to) paddq from, to
#define UPPER(from, to) movdqa from, to; psrlq $32, to
#else
#define ADD(from, to) vpaddq from, to, to
#define UPPER(from, to) vpsrlq $32, from, to
#endif

#define ADD_ONE(v, t)                                       \
    UPPER(v, t);                                            \
    ADD(v, ALL);                                            \
    ADD(t, HIGH)

/* Four vectors, whose stores are spread among the additions: one after the other they wait for each other. Nothing is
 * added to the sums before the last of them; one addition of each waits for the step before. */
#define STEP(lost, move)                                    \
    LOAD(lost, MOVE (%rsi), R(5));                          \
    LOAD(lost, MOVE V(%rsi), R(6));                         \
    LOAD(lost, MOVE 2 * V(%rsi), R(7));                     \
    LOAD(lost, MOVE 3 * V(%rsi), R(8));                     \
    addq    $(4 * V), %rsi;                                 \
    STORE(lost, move R(5), (%rdi));                         \
    UPPER(R(5), R(9));                                      \
    UPPER(R(6), R(10));                                     \
    ADD(R(6), R(5));                                        \
    STORE(lost, move R(6), V(%rdi));                        \
    UPPER(R(7), R(11));                                     \
    UPPER(R(8), R(12));                                     \
    ADD(R(10), R(9));                                       \
    STORE(lost, move R(7), 2 * V(%rdi));                    \
    ADD(R(8), R(7));                                        \
    ADD(R(12), R(11));                                      \
    ADD(R(7), R(5));                                        \
    STORE(lost, move R(8), 3 * V(%rdi));                    \
    addq    $(4 * V), %rdi;                                 \
    ADD(R(11), R(9));                                       \
    ADD(R(5), ALL);                                         \
    ADD(R(9), HIGH)

/* v keeps its first n bytes (1 to V), or its last ones; and every 32-bit lane turns by a byte when n is odd. They use
 * eax, T, R(5) and k1. */
#if V == 64
#define FIRST_BYTES(n, v)                                   \
    movq    $-1, %rax;                                      \
    bzhiq   n, %rax, %rax;                                  \
    kmovq   %rax, %k1;                                      \
    vmovdqu8 v, v{%k1}{z}
#define LAST_BYTES(n, v)                                    \
    movq    $-1, %rax;                                      \
    negq    n;                                              \
    shlxq   n, %rax, %rax;                                  \
    negq    n;                                              \
    kmovq   %rax, %k1;                                      \
    vmovdqu8 v, v{%k1}{z}
#define TURN(v)                                             \
    vpbroadcastd %eax, T;                                   \
    vprolvd T, v, v
#elif V == 32
#define SPREAD(byte)                                        \
    vmovd   byte, %xmm4;                                    \
    vpbroadcastb %xmm4, T
#define FIRST_BYTES(n, v)                                   \
    movl    n##d, %eax;                                     \
    SPREAD(%eax);                                           \
    vpcmpgtb AT(places)(%rip), T, T;                        \
    vpand   T, v, v
#define LAST_BYTES(n, v)                                    \
    movl    $(V - 1), %eax;                                 \
    subl    n##d, %eax;                                     \
    SPREAD(%eax);                                           \
    vmovdqa AT(places)(%rip), R(5);                         \
    vpcmpgtb T, R(5), R(5);                                 \
    vpand   R(5), v, v
#define TURN(v)                                             \
    vmovd   %eax, %xmm4;                                    \
    vpslld  %xmm4, v, R(5);                                 \
    negl    %eax;                                           \
    addl    $32, %eax;                                      \
    vmovd   %eax, %xmm4;                                    \
    vpsrld  %xmm4, v, v;                                    \
    vpor    R(5), v, v
#else
#define SPREAD(byte)                                        \
    movd    byte, T;                                        \
    punpcklbw T, T;                                         \
    pshuflw $0, T, T;                                       \
    pshufd  $0, T, T
#define FIRST_BYTES(n, v)                                   \
    movl    n##d, %eax;                                     \
    SPREAD(%eax);                                           \
    pcmpgtb AT(places)(%rip), T;                            \
    pand    T, v
#define LAST_BYTES(n, v)                                    \
    movl    $(V - 1), %eax;                                 \
    subl    n##d, %eax;                                     \
    SPREAD(%eax);                                           \
    movdqa  AT(places)(%rip), R(5);                         \
    pcmpgtb T, R(5);                                        \
    pand    R(5), v
#define TURN(v)                                             \
    movd    %eax, T;                                        \
    movdqa  v, R(5);                                        \
    pslld   T, R(5);                                        \
    negl    %eax;                                           \
    addl    $32, %eax;                                      \
    movd    %eax, T;                                        \
    psrld   T, v;                                           \
    por     R(5), v
#endif
#define TURN_IF_ODD(n, v)                                   \
    movl    n##d, %eax;                                     \
    andl    $1, %eax;                                       \
    shll    $3, %eax;                                       \
    TURN(v)
/* clang-format on */

/* r8 the destination's first byte, r9 rest, r10 head, r11 where the last block's bytes begin that count */
ENTRY(SYMBOL)
    movq    %rdi, %r8
    cmpq    $V, %rdx
    jbe     AT(short)
    movl    %edi, %eax
    andl    $(V - 1), %eax
    movl    $V, %r10d
    subl    %eax, %r10d
    leaq    -1(%rdx), %r9
    subq    %r10, %r9
    andl    $(V - 1), %r9d
    addl    $1, %r9d
    leaq    (%rdi,%rdx), %r11
    subq    %r9, %r11
    LOAD(AT(nothing), MOVE (%rsi), FIRST)
    LOAD(AT(nothing), MOVE -V(%rsi,%rdx), LAST)
    STORE(AT(nothing), MOVE FIRST, (%rdi))
    addq    %r10, %rdi
    addq    %r10, %rsi
    FIRST_BYTES(%r10, FIRST)
    TURN_IF_ODD(%r10, FIRST)
    UPPER(FIRST, HIGH)
#if V == 16
    movdqa  FIRST, ALL
#elif V == 32
    vmovdqa FIRST, ALL
#else
    vmovdqa64 FIRST, ALL
#endif
    leaq    -4 * V(%r11), %rax
    cmpq    %rax, %rdi
    ja      AT(ones)
    cmpq    wherry_thresholds + COPY_STREAM_FROM(%rip), %rdx
    jae     AT(stream)
    .p2align 5
AT(step):
    STEP(AT(stopped), MOVE)
    cmpq    %rax, %rdi
    jbe     AT(step)
AT(ones):
    cmpq    %r11, %rdi
    jae     AT(last)
AT(one):
    LOAD(AT(stopped), MOVE (%rsi), R(5))
    addq    $V, %rsi
    STORE(AT(stopped), MOVE R(5), (%rdi))
    ADD_ONE(R(5), R(6))
    addq    $V, %rdi
    cmpq    %r11, %rdi
    jb      AT(one)
AT(last):
    STORE(AT(stopped), MOVE LAST, -V(%r8,%rdx))
    LAST_BYTES(%r9, LAST)
    TURN_IF_ODD(%r9, LAST)
    ADD_ONE(LAST, T)
    addq    %r9, %rdi

/* All before rdi is copied and counted. */
AT(stopped):
#if V == 16
    movdqa  HIGH, T
    psllq   $32, T
    psubq   T, ALL
    paddq   HIGH, ALL
    pshufd  $0xee, ALL, T
    paddq   T, ALL
    movq    ALL, %rax
#elif V == 32
    vpsllq  $32, HIGH, T
    vpsubq  T, ALL, ALL
    vpaddq  HIGH, ALL, ALL
    vextracti128 $1, ALL, %xmm4
    vpaddq  %xmm4, %xmm0, %xmm0
    vpshufd $0xee, %xmm0, %xmm4
    vpaddq  %xmm4, %xmm0, %xmm0
    vmovq   %xmm0, %rax
    vzeroupper
#else
    vpsllq  $32, HIGH, T
    vpsubq  T, ALL, ALL
    vpaddq  HIGH, ALL, ALL
    vextracti64x4 $1, ALL, %ymm20
    vpaddq  %ymm20, %ymm16, %ymm16
    vextracti64x2 $1, %ymm16, %xmm20
    vpaddq  %xmm20, %xmm16, %xmm16
    vpshufd $0xee, %xmm16, %xmm20
    vpaddq  %xmm20, %xmm16, %xmm16
    vmovq   %xmm16, %rax
#endif
    movq    %rax, %rdx
    shrq    $32, %rdx
    addl    %eax, %edx
    adcl    $0, %edx
    movl    %ecx, %esi
    movl    %r10d, %ecx
    andl    $1, %ecx
    shll    $3, %ecx
    roll    %cl, %edx               /* the first byte that was counted as even stands at an odd place */
    addl    %esi, %edx
    adcl    $0, %edx
    movq    %rdi, %rax
    subq    %r8, %rax
    ret

AT(stream):
    STEP(AT(streamed), MOVE_NT)
    cmpq    %rax, %rdi
    jbe     AT(stream)
    sfence
    jmp     AT(ones)
AT(streamed):
    sfence
    jmp     AT(stopped)

AT(nothing):
    CLEAN
AT(none):
    xorl    %eax, %eax
    movl    %ecx, %edx
    ret

    .p2align 4
AT(short):
#if V == 64
    testl   %edx, %edx
    jz      AT(none)
    movl    %edi, %eax
    orl     %esi, %eax
    leaq    -64(%rdx), %r10
    andl    $0xfc0, %eax
    xorl    %r9d, %r9d
    cmpl    $0xfc0, %eax            /* as in public.S: the block here, or the one that ends where the buffer ends */
    movq    $-1, %rax
    cmovneq %r9, %r10
    bzhiq   %rdx, %rax, %rax
    subl    %r10d, %r9d
    shlxq   %r9, %rax, %rax
    kmovq   %rax, %k1
    LOAD(AT(nothing), vmovdqu8 (%rsi,%r10), ALL{%k1}{z})
    STORE(AT(nothing), vmovdqu8 ALL, (%rdi,%r10){%k1})
    UPPER(ALL, HIGH)
    addq    %rdx, %rdi
    jmp     AT(stopped)             /* r10: an odd block turns the sum */
#else
    cmpl    $8, %edx
    jb      AT(none)                /* as fast by the copy and a sum */
    leal    -1(%rdx), %r9d
    andl    $7, %r9d
    addl    $1, %r9d
    leaq    (%rdi,%rdx), %r11
    subq    %r9, %r11
    movl    %ecx, %eax
    LOAD(AT(nothing), movq -8(%rsi,%rdx), %r10)
    cmpq    %r11, %rdi
    jae     AT(last_word)
AT(word):
    LOAD(AT(words), movq (%rsi), %rcx)
    addq    $8, %rsi
    STORE(AT(words), movq %rcx, (%rdi))
    addq    %rcx, %rax
    adcq    $0, %rax
    addq    $8, %rdi
    cmpq    %r11, %rdi
    jb      AT(word)
AT(last_word):
    STORE(AT(words), movq %r10, -8(%r8,%rdx))
    movl    %r9d, %ecx
    shll    $3, %ecx
    negl    %ecx
    shrq    %cl, %r10
    addq    %r10, %rax
    adcq    $0, %rax
    addq    %r9, %rdi
AT(words):
    movq    %rax, %rdx
    shrq    $32, %rdx
    addl    %eax, %edx
    adcl    $0, %edx
    movq    %rdi, %rax
    subq    %r8, %rax
    ret
#endif
END(SYMBOL)

#if V < 64
    .section .rodata.cst32, "aM", @progbits, 32
    .p2align 5
AT(places):
    .byte 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .byte 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#endif
