/* Of copy_csum.tmpl.S and copy_csum_lines.tmpl.S: their vectors, and what is done with them in every width V. */
#ifndef WHERRY_COPY_CSUM_VEC_H
#define WHERRY_COPY_CSUM_VEC_H

#ifdef PLAIN
#undef LOAD
#undef STORE
#define LOAD(resume, ...) __VA_ARGS__
#define STORE(resume, ...) __VA_ARGS__
#endif

/* To FORWARD_MOST bytes a loop upwards is as fast, whatever the distance, and means save no more than they take in the
 * end. Two of NEAR_MOST fill the first-level cache; outside it a loop upwards is faster again. */
#define CHUNK 4096
#define FORWARD_MOST 2048
#define NEAR_MOST 24576

#define ALL R(0)
#define HIGH R(1)
#if V == 64 || V == 32 && defined PLAIN
#define FIRST ALL
#else
#define FIRST R(2)
#endif
#if V == 64
#define SUMMED_END % r9
#else
#define SUMMED_END % r11 /* where the last block begins, which is near enough */
#endif
#define LAST R(3)
#define T R(4)
#define BEFORE R(13) /* without PLAIN: the vector before the last block's bytes that count, as it was stored */

/* clang-format off */
#if V == 16
#define ADD(from, to) paddq from, to
#define SUBTRACT(from, to) psubq from, to
#define UPPER(from, to) movdqa from, to; psrlq $32, to
#else
#define ADD(from, to) vpaddq from, to, to
#define SUBTRACT(from, to) vpsubq from, to, to
#define UPPER(from, to) vpsrlq $32, from, to
#endif

#define ADD_ONE(v, t)                                       \
    UPPER(v, t);                                            \
    ADD(v, ALL);                                            \
    ADD(t, HIGH)

#if V == 64
#define SAME(from, to) vmovdqa64 from, to
#elif V == 32
#define SAME(from, to) vmovdqa from, to
#else
#define SAME(from, to) movdqa from, to
#endif

/* Four vectors at `at`, in the order of their offsets a to d. One cursor serves both sides, since rsi is how far apart they
 * are. The stores are spread among the additions: one after the other they wait for each other. Nothing is added to the
 * sums before the last of them; one addition of each waits for the step before. */
#define STEP(lost, move, at, a, b, c, d)                    \
    LOAD(lost, MOVE a(at,%rsi), R(5));                      \
    LOAD(lost, MOVE b(at,%rsi), R(6));                      \
    LOAD(lost, MOVE c(at,%rsi), R(7));                      \
    LOAD(lost, MOVE d(at,%rsi), R(8));                      \
    STORE(lost, move R(5), a(at));                          \
    UPPER(R(5), R(9));                                      \
    UPPER(R(6), R(10));                                     \
    ADD(R(6), R(5));                                        \
    STORE(lost, move R(6), b(at));                          \
    UPPER(R(7), R(11));                                     \
    UPPER(R(8), R(12));                                     \
    ADD(R(10), R(9));                                       \
    STORE(lost, move R(7), c(at));                          \
    ADD(R(8), R(7));                                        \
    ADD(R(12), R(11));                                      \
    ADD(R(7), R(5));                                        \
    STORE(lost, move R(8), d(at));                          \
    ADD(R(11), R(9));                                       \
    ADD(R(5), ALL);                                         \
    ADD(R(9), HIGH)

/* All lanes of both sums together, in eax. Uses T and r10. */
#if V == 16
#define TOTAL                                               \
    movdqa  HIGH, T;                                        \
    psllq   $32, T;                                         \
    psubq   T, ALL;                                         \
    paddq   HIGH, ALL;                                      \
    pshufd  $0xee, ALL, T;                                  \
    paddq   T, ALL;                                         \
    movq    ALL, %rax;                                      \
    FOLD
#elif V == 32
#define TOTAL                                               \
    vpsllq  $32, HIGH, T;                                   \
    vpsubq  T, ALL, ALL;                                    \
    vpaddq  HIGH, ALL, ALL;                                 \
    vextracti128 $1, ALL, %xmm4;                            \
    vpaddq  %xmm4, %xmm0, %xmm0;                            \
    vpshufd $0xee, %xmm0, %xmm4;                            \
    vpaddq  %xmm4, %xmm0, %xmm0;                            \
    vmovq   %xmm0, %rax;                                    \
    vzeroupper;                                             \
    FOLD
#else
#define LANES                                               \
    vpsllq  $32, HIGH, T;                                   \
    vpsubq  T, ALL, ALL;                                    \
    vpaddq  HIGH, ALL, ALL;                                 \
    vextracti64x4 $1, ALL, %ymm20;                          \
    vpaddq  %ymm20, %ymm16, %ymm16;                         \
    vextracti64x2 $1, %ymm16, %xmm20;                       \
    vpaddq  %xmm20, %xmm16, %xmm16;                         \
    vmovq   %xmm16, %rax;                                   \
    vpextrq $1, %xmm16, %r10;                               \
    addq    %r10, %rax
#define TOTAL                                               \
    LANES;                                                  \
    FOLD
#endif
#define FOLD                                                \
    movq    %rax, %r10;                                     \
    shrq    $32, %r10;                                      \
    addl    %r10d, %eax;                                    \
    adcl    $0, %eax

/* The sum of the same bytes, each one place further on, when number is odd. Uses r9. */
#define TURN_SUM_IF_ODD(number)                             \
    movl    %eax, %r9d;                                     \
    roll    $8, %r9d;                                       \
    testl   $1, number;                                     \
    cmovnzl %r9d, %eax

/* v keeps its first n bytes (1 to V), or its last ones; and every word of it, or every two, turns by a byte when n is
 * odd. They use rax, r10, T, R(5) and k1. */
#if V == 32
#define AND(at, v) vpand at, v, v
#else
#define AND(at, v)                                          \
    movdqu  at, T;                                          \
    pand    T, v
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
#define FIRST_BYTES(n, v)                                   \
    leaq    V + AT(kept)(%rip), %rax;                       \
    subq    n, %rax;                                        \
    AND((%rax), v)
#define LAST_BYTES(n, v)                                    \
    leaq    V + AT(kept)(%rip), %rax;                       \
    AND((%rax,n), v)
#if V == 32
/* By the order of its bytes. Without a branch, since sizes are as often odd as even; but places hardly ever are odd, and
 * whoever has such has many, so for these there is one, and what it goes to lies out of the way. */
#define TURN_IF_ODD(n, v)                                   \
    movl    n##d, %eax;                                     \
    leaq    AT(order)(%rip), %r10;                          \
    andl    $1, %eax;                                       \
    shll    $5, %eax;                                       \
    vpshufb (%r10,%rax), v, v
#define TURN_IF_ODD_PLACE(n, v)                             \
    testb   $1, n##b;                                       \
    jnz     AT(turn_vector);                                \
AT(vector_turned):
#define TURN_SUM_IF_ODD_PLACE(n)                            \
    testb   $1, n##b;                                       \
    jnz     AT(turn_sum);                                   \
AT(sum_turned):
#define TURNED(v)                                           \
AT(turn_vector):                                            \
    vpshufb 32 + AT(order)(%rip), v, v;                     \
    jmp     AT(vector_turned);                              \
AT(turn_sum):                                               \
    roll    $8, %eax;                                       \
    jmp     AT(sum_turned)
#else
#define TURN_IF_ODD(n, v)                                   \
    movl    n##d, %eax;                                     \
    andl    $1, %eax;                                       \
    shll    $3, %eax;                                       \
    TURN(v)
#define TURN_IF_ODD_PLACE(n, v) TURN_IF_ODD(n, v)
#define TURN_SUM_IF_ODD_PLACE(n) TURN_SUM_IF_ODD(n##d)
#define TURNED(v)
#endif
/* FIRST keeps its first bytes, r10 many, and rdi goes on behind them. In the plain pass of AVX2 r10 is instead how far it
 * begins behind a vector boundary, which tells the mask's place and the parity as well, three instructions sooner. */
#if V == 32 && defined PLAIN
#define HEAD                                                \
    movl    %edi, %r10d;                                    \
    andl    $(V - 1), %r10d
#define BEHIND_HEAD                                         \
    orq     $(V - 1), %rdi;                                 \
    leaq    AT(kept)(%rip), %rax;                           \
    addq    $1, %rdi;                                       \
    AND((%rax,%r10), FIRST)
#define FIRST_IS_ALL
#else
#define HEAD                                                \
    movl    %edi, %eax;                                     \
    andl    $(V - 1), %eax;                                 \
    movl    $V, %r10d;                                      \
    subl    %eax, %r10d
#define BEHIND_HEAD                                         \
    addq    %r10, %rdi;                                     \
    FIRST_BYTES(%r10, FIRST)
#define FIRST_IS_ALL SAME(FIRST, ALL)
#endif
#if V < 64 && !defined PLAIN
#define KEEP_BEFORE(v) SAME(v, BEFORE)
#else
#define KEEP_BEFORE(v)
#endif
/* clang-format on */

#endif
