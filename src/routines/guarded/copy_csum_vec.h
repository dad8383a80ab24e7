/* Of copy_csum.tmpl.S: its vectors, and what is done with them in every width V. */
#ifndef WHERRY_COPY_CSUM_VEC_H
#define WHERRY_COPY_CSUM_VEC_H

#define ALL R(0)
#define HIGH R(1)
#define FIRST R(2)
#define LAST R(3)
#define T R(4)
#define BEFORE R(13) /* V < 64, not PLAIN: the vector before the last block's bytes that count, as it was stored */

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
#define TOTAL                                               \
    vpsllq  $32, HIGH, T;                                   \
    vpsubq  T, ALL, ALL;                                    \
    vpaddq  HIGH, ALL, ALL;                                 \
    vextracti64x4 $1, ALL, %ymm20;                          \
    vpaddq  %ymm20, %ymm16, %ymm16;                         \
    vextracti64x2 $1, %ymm16, %xmm20;                       \
    vpaddq  %xmm20, %xmm16, %xmm16;                         \
    vpshufd $0xee, %xmm16, %xmm20;                          \
    vpaddq  %xmm20, %xmm16, %xmm16;                         \
    vmovq   %xmm16, %rax;                                   \
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
    TURN_BY_ODD(v)
#define TURN_BY_ODD(v)                                      \
    andl    $1, %eax;                                       \
    shll    $3, %eax;                                       \
    TURN(v)
#if V < 64 && !defined PLAIN
#define KEEP_BEFORE(v) SAME(v, BEFORE)
#else
#define KEEP_BEFORE(v)
#endif
/* clang-format on */

#endif
