/* The fault-tolerant copy that sums, in one pass, for every vector width V = VEC_BYTES: fused/copy_csum_sse2.c with an
 * entry in the fault table for each load and store. From the label TOP on:
 *
 *   size_t (void *dst rdi, const void *src rsi, size_t n rdx, uint32_t *sum rcx, struct wherry_fault *fault r8),
 *   the bytes not copied; sum goes on with those that were
 *
 *     |-- first --|                                      a vector at the start: its first `head` bytes count
 *         |  step  |  step  | ... | one | one |          aligned in the destination
 *                                          |-- last --|  a vector that ends at the end: its last `rest` bytes count
 *
 *   n <= 64, V = 64   one block under a mask of n bits
 *   8 .. V, V < 64    words, and the one that ends at the end; with PLAIN to 64 bytes, and below 8 too
 *   beyond            the picture above; the steps by non-temporal stores from copy_stream_from on where the destination
 *                     was written before (written.h), and with V = 64, or 32 and PLAIN, in chunks, each from its end
 *                     down, where loads would wait for stores: as copy_large.tmpl.S, which says why.
 *                     It pays in the first-level cache, so beyond a chunk what was written lately is asked for (recent.h)
 *
 * At the first fault it stops and leaves the rest to copied.h's function, telling it how many bytes from the first on are
 * surely copied and summed; that one has the rest copied by the fault-tolerant copy, which finds out to the byte what can
 * be had. So a fault needs no more here than to forget the step, or the chunk, in which it happened:
 *
 * - The first store goes to the first byte and the others follow in ascending order, so nothing behind what can be written
 *   has changed. What a step has stored before its fault is stored again.
 * - The last block is loaded before anything is stored and counted when all before it is in place.
 *
 * Somebody may change the source meanwhile, and bytes that two blocks share are read twice. What is counted is what dst has in
 * the end: of the last block only the bytes that count are stored (V = 64), or it is stored before all others (PLAIN,
 * V = 32), or it counts whole, and what it has overwritten no longer.
 *
 * So is what this is not for: sides that overlap, more than GUARDED_CSUM_MOST, less than 8 bytes with V < 64.
 *
 * `all` adds 64-bit lanes and wraps, `high` adds their upper halves, as in fused/csum_vec.h; with V < 64
 * beyond FORWARD_MOST bytes by means, as csum_steps.h tells, in ascending order and not past the caches.
 *
 * With DOTS, V = 64, from DOTS_FROM to DOTS_MOST bytes by dot products, as copy_csum_dots.tmpl.S tells; without PLAIN only
 * when COMPARE_DOTS, an instruction that the includer defines, finds equal.
 *
 * With PLAIN it is the copy that knows of no faults, for V = 64 and 32 and buffers apart, from the label TOP on:
 *
 *   uint32_t (void *dst rdi, const void *src rsi, size_t n rdx, uint32_t sum ecx), sum and that of the bytes
 *
 * The includer defines VEC_BYTES, SYMBOL (the function), TOP and AT(name), as of copy.tmpl.S. */
#include "../csum_steps.h"
#include "copied.h"
#include "registers.h"

#ifdef PLAIN
#undef LOAD
#undef STORE
#define LOAD(resume, ...) __VA_ARGS__
#define STORE(resume, ...) __VA_ARGS__
#endif

#if V == 64 || V == 32 && defined PLAIN
#define IN_CHUNKS
#endif
#define CHUNK 4096
#define FORWARD_MOST 2048 /* to here a loop upwards is as fast, whatever the distance; and means save no more than they
                           * take in the end */
#define NEAR_MOST 24576   /* two of these fill the first-level cache; outside it a loop upwards is faster again */
#define DOTS_FROM 640     /* below it they save no more than it takes to set them up */
#define DOTS_MOST NEAR_MOST

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

/* rsi source less destination, r9 rest, r11 where the last block's bytes begin that count; so r11 + r9 is the end */
TOP:
#if V == 64
    cmpq    $V, %rdx
    jbe     AT(short)
#elif defined PLAIN
    cmpq    $64, %rdx
    ja      AT(long)
#include "copy_csum_words.tmpl.S"
    .p2align 6
AT(long):
#endif
#ifdef PLAIN
    xorl    %r8d, %r8d              /* behind what the sums hold at a time */
    cmpq    $GUARDED_CSUM_MOST, %rdx
    ja      AT(parts)
AT(part):
    subq    %rdi, %rsi
#else
    subq    %rdi, %rsi
    leaq    -1(%rdx,%rdx), %r9
    leaq    -1(%rsi,%rdx), %rax     /* they overlap when this lies from 0 to 2n - 2 */
    cmpq    %r9, %rax
    jb      AT(all_is_left)
#if V < 64
    cmpq    $V, %rdx
    jbe     AT(short)
#endif
    cmpq    $GUARDED_CSUM_MOST, %rdx
    ja      AT(all_is_left)         /* also when 2n has wrapped */
#endif
    leaq    (%rdi,%rdx), %r11
    LOAD(AT(all_is_left), MOVE (%rdi,%rsi), FIRST)
    LOAD(AT(all_is_left), MOVE -V(%r11,%rsi), LAST)
    movl    %edi, %eax
    andl    $(V - 1), %eax
    movl    $V, %r10d
    subl    %eax, %r10d             /* head */
    leal    -1(%r11), %r9d
    andl    $(V - 1), %r9d
    addl    $1, %r9d
#if V < 64 && defined PLAIN
    STORE(AT(all_is_left), MOVE LAST, -V(%r11))
#elif V < 64
    cmpq    $(2 * V), %rdx
    ja      AT(more_than_two)
    movl    $V, %r10d               /* two blocks: the first counts whole, the other with what is behind it */
    leal    -V(%rdx), %r9d
AT(more_than_two):
#endif
    STORE(AT(all_is_left), MOVE FIRST, (%rdi))
    addq    %r10, %rdi
    subq    %r9, %r11
    FIRST_BYTES(%r10, FIRST)
#if V < 64 && !defined PLAIN
    SAME(FIRST, BEFORE)
    movl    %edi, %eax
    xorl    %r10d, %eax
    TURN_BY_ODD(FIRST)
#else
    TURN_IF_ODD(%r10, FIRST)
#endif
#ifdef DOTS
    leaq    -DOTS_FROM(%rdx), %rax
    cmpq    $(DOTS_MOST - DOTS_FROM), %rax
#ifdef PLAIN
    ja      AT(no_dots)
#include "copy_csum_dots.tmpl.S"
#else
    jbe     AT(dots)
#endif
AT(no_dots):
#endif
    UPPER(FIRST, HIGH)
    SAME(FIRST, ALL)
    leaq    -4 * V(%r11), %rax
    cmpq    %rax, %rdi
    ja      AT(ones)
    cmpq    wherry_thresholds + COPY_STREAM_FROM(%rip), %rdx
    jae     AT(maybe_stream)
AT(not_past):
    cmpq    $FORWARD_MOST, %rdx
#ifdef IN_CHUNKS
    ja      AT(maybe_chunks)
#else
    ja      AT(upwards)
#endif
#if V == 64
AT(upwards):
#endif
    .p2align 6
AT(step):
    STEP(AT(stopped), MOVE, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    cmpq    %rax, %rdi
    jbe     AT(step)
    KEEP_BEFORE(R(8))
AT(ones):
    cmpq    %r11, %rdi
    jae     AT(last)
    .p2align 5
AT(one):
    LOAD(AT(stopped), MOVE (%rdi,%rsi), R(5))
    STORE(AT(stopped), MOVE R(5), (%rdi))
    KEEP_BEFORE(R(5))
    ADD_ONE(R(5), R(6))
    addq    $V, %rdi
    cmpq    %r11, %rdi
    jb      AT(one)
AT(last):
#if V == 64
    LAST_BYTES(%r9, LAST)
    STORE(AT(stopped), vmovdqu8 LAST, -V(%r11,%r9){%k1})
    TURN_IF_ODD(%r9, LAST)
#elif defined PLAIN
    LAST_BYTES(%r9, LAST)
    TURN_IF_ODD(%r9, LAST)
#else
    STORE(AT(stopped), MOVE LAST, -V(%r11,%r9))
    movl    $V, %r10d
    subl    %r9d, %r10d             /* bytes stored before that this has overwritten: it counts whole, they do not */
    LAST_BYTES(%r10, BEFORE)
    TURN_IF_ODD(%r11, BEFORE)
    SUBTRACT(BEFORE, ALL)
    UPPER(BEFORE, T)
    SUBTRACT(T, HIGH)
    leaq    (%r11,%r9), %r10
    TURN_IF_ODD(%r10, LAST)
#endif
    ADD_ONE(LAST, T)
    addq    %r9, %rdi

/* All before rdi is copied and counted. */
AT(stopped):
    TOTAL
#if defined DOTS && !defined PLAIN
AT(summed):
#endif
    leaq    (%r11,%r9), %r10
    subq    %rdx, %r10
    TURN_SUM_IF_ODD(%r10d)          /* the first byte that was counted as even stands at an odd place */

#ifdef PLAIN
    addl    %ecx, %eax
    adcl    $0, %eax
    testq   %r8, %r8
    jnz     AT(next_part)
    ret

/* An even number, so the sums go on from part to part. */
AT(parts):
    leaq    -GUARDED_CSUM_MOST(%rdx), %r8
    movl    $GUARDED_CSUM_MOST, %edx
    jmp     AT(part)
AT(next_part):
    leaq    (%r10,%rdx), %rdi
    addq    %rdi, %rsi
    movq    %r8, %rdx
    movl    %eax, %ecx
    jmp     TOP
#else
    addl    (%rcx), %eax
    adcl    $0, %eax
    movl    %eax, (%rcx)
    subq    %r10, %rdi
    cmpq    %rdx, %rdi
    jne     AT(some_is_left)
    xorl    %eax, %eax
    ret

AT(some_is_left):
    movq    %rdi, %r9
    movq    %r10, %rdi
    addq    %rdi, %rsi
    jmp     wherry_guarded_csum_rest

AT(all_is_left):
    addq    %rdi, %rsi
AT(nothing_done):
    CLEAN
    xorl    %r9d, %r9d
    jmp     wherry_guarded_csum_rest

#endif

AT(maybe_stream):
#ifdef PLAIN
    COPIED_BEFORE(%r11, %rsi)
    cmpl    $WRITTEN_SURELY, %eax
#else
    movq    %rsi, %r10
    movq    %r11, %rax
    call    wherry_guarded_summed_before
#endif
    leaq    -4 * V(%r11), %rax
    jne     AT(not_past)
AT(stream):
    STEP(AT(streamed), MOVE_NT, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    cmpq    %rax, %rdi
    jbe     AT(stream)
    KEEP_BEFORE(R(8))
    sfence
    jmp     AT(ones)
#ifndef PLAIN
AT(streamed):
    sfence
    jmp     AT(stopped)
#endif

#ifdef IN_CHUNKS
#include "copy_csum_chunks.tmpl.S"
#endif
#if defined DOTS && !defined PLAIN
#include "copy_csum_dots.tmpl.S"
#endif
#if V < 64
#include "copy_csum_means.tmpl.S"
#endif

#if V == 64 || !defined PLAIN
    .p2align 4
AT(short):
#endif
#if V == 64
    testl   %edx, %edx
    jz      AT(none)
    movl    %edi, %eax
    orl     %esi, %eax
    leaq    -64(%rdx), %r11
    andl    $0xfc0, %eax
    xorl    %r9d, %r9d
    cmpl    $0xfc0, %eax            /* as in public.S: the block here, or the one that ends where the buffer ends */
    movq    $-1, %rax
    cmovneq %r9, %r11
    bzhiq   %rdx, %rax, %rax
    subl    %r11d, %r9d
    shlxq   %r9, %rax, %rax
    kmovq   %rax, %k1
    LOAD(AT(nothing_done), vmovdqu8 (%rsi,%r11), ALL{%k1}{z})
    STORE(AT(nothing_done), vmovdqu8 ALL, (%rdi,%r11){%k1})
    UPPER(ALL, HIGH)
    TOTAL
    TURN_SUM_IF_ODD(%r11d)
#ifdef PLAIN
    addl    %ecx, %eax
    adcl    $0, %eax
    ret
AT(none):
    movl    %ecx, %eax
    ret
#else
    addl    (%rcx), %eax
    adcl    $0, %eax
    movl    %eax, (%rcx)
AT(none):
    xorl    %eax, %eax
    ret
#endif
#elif !defined PLAIN
    cmpl    $8, %edx
    jb      AT(all_is_left)
    leal    -1(%rdx), %r9d
    andl    $7, %r9d
    addl    $1, %r9d
    leaq    (%rdi,%rdx), %r11
    LOAD(AT(all_is_left), movq -8(%r11,%rsi), %xmm0)
    subq    %r9, %r11
    xorl    %eax, %eax
    cmpq    %r11, %rdi
    jae     AT(last_word)
AT(word):
    LOAD(AT(words), movq (%rdi,%rsi), %r10)
    STORE(AT(words), movq %r10, (%rdi))
    addq    %r10, %rax
    adcq    $0, %rax
    addq    $8, %rdi
    cmpq    %r11, %rdi
    jb      AT(word)
AT(last_word):
    movq    %r10, %xmm2             /* what it shares with the word before stays as that one was read */
    leal    (,%r9,8), %r10d
    movd    %r10d, %xmm1
    negl    %r10d
    addl    $64, %r10d
    psrlq   %xmm1, %xmm2
    movd    %r10d, %xmm1
    psrlq   %xmm1, %xmm0
    movdqa  %xmm0, %xmm3
    psllq   %xmm1, %xmm3
    por     %xmm3, %xmm2
    STORE(AT(words), movq %xmm2, -8(%r11,%r9))
    movq    %xmm0, %r10
    addq    %r10, %rax
    adcq    $0, %rax
    addq    %r9, %rdi
AT(words):
    FOLD
    leaq    (%r11,%r9), %r10
    subq    %rdx, %r10
    addl    (%rcx), %eax
    adcl    $0, %eax
    movl    %eax, (%rcx)
    subq    %r10, %rdi
    cmpq    %rdx, %rdi
    jne     AT(some_is_left)
    xorl    %eax, %eax
    ret
#endif

#if V < 64
    .pushsection .rodata.cst32, "aM", @progbits, 32
    .p2align 5
AT(places):
    .byte 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .byte 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    .popsection
#endif
