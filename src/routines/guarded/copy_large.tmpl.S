/* The fault-tolerant copy of more than LARGE bytes: the second part of copy.tmpl.S.
 *
 *   n beyond the address space                              a look at every page: one must be missing
 *   the destination begins inside the source                a look at the pages, then the backward loop (copy_backward.tmpl.S)
 *   V = 64, not close, n >= copy_ymm_from                   the function for V = 32, from here on
 *   disjoint, n in the rep window, and below copy_rep_recent_from a destination that was not written lately, above
 *   addresses that suit it                                  rep movsb
 *   disjoint, n >= copy_stream_from                         forward loop with non-temporal stores
 *   (these two not to new memory, from WRITTEN_FROM on: written.h; the latter below copy_stream_recent_from, and with
 *   V < 64, only where large calls have not touched the destination lately: touched.h)
 *   disjoint, V > 16, to CHUNK bytes                        one chunk, from its end down where loads would wait for stores
 *                                                           4 KiB apart, without a branch on that
 *   disjoint, V > 16, loads would wait for such stores      chunks in ascending order, each from its end down
 *   V = 32, backward_ahead 0, n >= HALVES_FROM              the same loop, but loads by halves
 *   else                                                    forward loop; with V = 16, and V = 32 below ALIAS_FROM, even
 *                                                           where loads wait, since it is as fast
 *
 * Chunks need no look at every page, which takes up to a tenth of the time. One lies on two pages at most, on either side,
 * also the last with what follows it. Its first block is copied before the others, so that the first pages are there; then
 * comes the block at its end. When one of these four faults nothing behind that first block has been stored, and all goes
 * on by rep movsb from the chunk's beginning. What goes away later is counted right, but bytes of the chunk behind it may
 * have been stored.
 */
#define CHUNK (4096 - 4 * V)

/* clang-format off */
/* What the thresholds say, if anything but the loop. */
#if V == 64
#define STREAM_FROM COPY_STREAM_ANY_FROM
#else
#define STREAM_FROM COPY_STREAM_FROM
#endif
#define BY_PLAN                                             \
    cmpq    wherry_thresholds + COPY_REP_FROM(%rip), %rdx;   \
    jae     AT(maybe_by_rep);                               \
AT(not_by_rep):                                             \
    cmpq    wherry_thresholds + STREAM_FROM(%rip), %rdx;     \
    jae     AT(maybe_stream);                               \
AT(by_loop):

/* Both cursors back or on; -128 takes three bytes less than 128. */
#define MOVE_ON(bytes)               \
    subq    $-(bytes), %rdi;         \
    subq    $-(bytes), %rsi

/* The bytes before where the loop begins: at a line, so that what its steps store of one line follows each other, and is
 * joined. */
#define LOOP_AT 64
#if V == 64
#define LOAD_HEAD LOAD_FIRST(AT(redo))
#define STORE_HEAD STORE_FIRST(AT(redo))
#elif V == 32
#define LOAD_HEAD                           \
    LOAD(AT(redo), MOVE (%rsi), R(0));      \
    LOAD(AT(redo), MOVE 32(%rsi), R(5))
#define STORE_HEAD                          \
    STORE(AT(redo), MOVE R(0), (%rdi));     \
    STORE(AT(redo), MOVE R(5), 32(%rdi))
#else
#define LOAD_HEAD                           \
    LOAD(AT(redo), MOVE (%rsi), R(0));      \
    LOAD(AT(redo), MOVE 16(%rsi), R(5));    \
    LOAD(AT(redo), MOVE 32(%rsi), R(6));    \
    LOAD(AT(redo), MOVE 48(%rsi), R(7))
#define STORE_HEAD                          \
    STORE(AT(redo), MOVE R(0), (%rdi));     \
    STORE(AT(redo), MOVE R(5), 16(%rdi));   \
    STORE(AT(redo), MOVE R(6), 32(%rdi));   \
    STORE(AT(redo), MOVE R(7), 48(%rdi))
#endif
/* clang-format on */

    .p2align 6
#if V == 32
    .globl  wherry_guarded_copy_avx2_large /* where AVX-512 goes on by the shorter vectors */
    .hidden wherry_guarded_copy_avx2_large
wherry_guarded_copy_avx2_large:
#endif
AT(large):
    movq    %rdi, %rax
    subq    %rsi, %rax
    leaq    TIGHT - 1(%rax), %r8
    leaq    TIGHT - 1(%rdx), %r9
    cmpq    %r9, %r8
    jb      AT(close)
#if V > 32
    cmpq    wherry_thresholds + COPY_LOOP_BELOW(%rip), %rdx
#elif V == 32
    cmpq    wherry_thresholds + COPY_YMM_BELOW(%rip), %rdx
#else
    cmpq    wherry_thresholds + COPY_XMM_BELOW(%rip), %rdx
#endif
    jae     AT(by_plan)             /* also where sums of an address and n would wrap */

/* clang-format off */
/* r11 where up to 4V are left; END_BLOCK(k) k vectors before the last boundary that the destination reaches, END_SOURCE(k) its
 * source; and the head. With V = 64 the boundaries are the source's below copy_loop_below, as in copy_avx512, and else
 * below copy_forward_below nothing more is asked. */
#define END_BLOCK(k) -k * V(%r8)
#define END_SOURCE(k) -k * V(%r10)
#define LAST_BOUNDARY                                       \
    leaq    -1(%rdi,%rdx), %r8;                             \
    andq    $-V, %r8;                                       \
    movq    %r8, %r10;                                      \
    subq    %rdi, %r10;                                     \
    addq    %rsi, %r10;
#define LOAD_TAIL(lost, ...)                                \
    LOAD(lost, MOVE END_SOURCE(3), R(1));                   \
    LOAD(lost, MOVE END_SOURCE(2), R(2));                   \
    LOAD(lost, MOVE END_SOURCE(1), R(3));                   \
    LOAD_END(lost, __VA_ARGS__)
/* The last vector, which ends where the buffer does. Its later half is stored first: where that can be, the other can. */
#if V == 64
#define LOAD_END(lost, ...)                                 \
    LOAD(lost, END_MOVE -64(__VA_ARGS__), LAST_0);          \
    LOAD(lost, END_MOVE -32(__VA_ARGS__), LAST_32)
#define STORE_END(lost)                                     \
    STORE(lost, END_MOVE LAST_32, 224(%r11));               \
    STORE(lost, END_MOVE LAST_0, 192(%r11))
#else
#define LOAD_END(lost, ...) LOAD(lost, MOVE -V(__VA_ARGS__), R(4))
#define STORE_END(lost) STORE(lost, MOVE R(4), 3 * V(%r11))
#endif
#define STORE_HEAD_AND_END STORE_HEAD_AND_END_AT(%edi)
#define STORE_HEAD_AND_END_AT(side)                         \
    leaq    -4 * V(%rdi,%rdx), %r11;                        \
    movl    side, %eax;                                     \
    STORE_HEAD;                                             \
    addq    %rsi, %rdx;             /* the end of the source */ \
    andl    $(LOOP_AT - 1), %eax;                           \
    subq    $LOOP_AT, %rax;         /* less the distance to there */ \
    subq    %rax, %rdi;                                     \
    subq    %rax, %rsi
/* To the first line of the destination. */
#define LOOP_BEGINS                                         \
    LOAD_HEAD;                                              \
    leaq    -4 * V(%rdi,%rdx), %r11;                        \
    movq    %rdi, %rax;                                     \
    STORE_HEAD;                                             \
    addq    %rsi, %rdx;             /* the end of the source */ \
    orq     $(LOOP_AT - 1), %rdi;                           \
    subq    %rax, %rsi;                                     \
    addq    $1, %rdi;                                       \
    addq    %rdi, %rsi
/* A step, of V < 64: loads first, then stores, both additions behind the first of them, as in copy_avx2; or by turns, which
 * takes 0.8 of the time where both sides lie alike, and longer where loads wait for stores (Zen 5). */
#define STORE_STEP                                          \
    STORE(AT(step_0), MOVE R(5), (%rdi));                   \
    MOVE_ON(4 * V);                                         \
    STORE(AT(ahead_3), MOVE R(6), -3 * V(%rdi));            \
    STORE(AT(ahead_2), MOVE R(7), -2 * V(%rdi));            \
    STORE(AT(ahead_1), MOVE R(8), -V(%rdi))
#define LOOP_STEP                                           \
    LOAD(AT(step_0), MOVE (%rsi), R(5));                    \
    LOAD(AT(step_0), MOVE V(%rsi), R(6));                   \
    LOAD(AT(step_0), MOVE 2 * V(%rsi), R(7));               \
    LOAD(AT(step_0), MOVE 3 * V(%rsi), R(8));               \
    STORE_STEP
#define LOOP_STEP_BY_TURNS                                  \
    LOAD(AT(step_0), MOVE (%rsi), R(5));                    \
    STORE(AT(step_0), MOVE R(5), (%rdi));                   \
    LOAD(AT(done_1), MOVE V(%rsi), R(6));                   \
    STORE(AT(done_1), MOVE R(6), V(%rdi));                  \
    LOAD(AT(done_2), MOVE 2 * V(%rsi), R(7));               \
    STORE(AT(done_2), MOVE R(7), 2 * V(%rdi));              \
    LOAD(AT(done_3), MOVE 3 * V(%rsi), R(8));               \
    STORE(AT(done_3), MOVE R(8), 3 * V(%rdi));              \
    MOVE_ON(4 * V)
/* As in public.S. */
#define LOAD_HALVES(at, x, y)                               \
    LOAD(AT(step_0), vmovdqu at(%rsi), x);                  \
    LOAD(AT(step_0), vinserti128 $1, at + 16(%rsi), y, y)
/* With the tail loaded, for what goes on at the end. */
#define CHUNKS_BEGIN                                        \
    LAST_BOUNDARY                                           \
    LOAD_HEAD;                                              \
    LOAD_TAIL(AT(redo), %rsi,%rdx);                         \
    STORE_HEAD_AND_END
/* clang-format on */

/* In ascending order to the last load: what lies in memory is fetched in that order. */
#if V == 64
    LOAD_HEAD
    leaq    -1(%rsi,%rdx), %r10
    andq    $-V, %r10
    movq    %r10, %r8
    subq    %rsi, %r8
    addq    %rdi, %r8
    STORE_HEAD_AND_END_AT(%esi)
#else
AT(loop):                           /* as little before it as can be, since its end is found out after that when guessed wrong */
    LOOP_BEGINS
#endif
#if V < 64
    .p2align 6
#else
    .p2align 4
#endif
AT(step):
#if V == 16
    LOOP_STEP_BY_TURNS
#elif V == 32
    LOOP_STEP
#else
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    LOAD(AT(step_0), MOVE V(%rsi), R(6))
    LOAD(AT(step_0), MOVE 2 * V(%rsi), R(7))
    LOAD(AT(step_0), MOVE 3 * V(%rsi), R(8))
    addq    $(4 * V), %rsi
    STORE(AT(stored_0), MOVE R(5), (%rdi))
    STORE(AT(stored_1), MOVE R(6), V(%rdi))
    STORE(AT(stored_2), MOVE R(7), 2 * V(%rdi))
    STORE(AT(stored_3), MOVE R(8), 3 * V(%rdi))
    addq    $(4 * V), %rdi
#endif
    cmpq    %r11, %rdi
    jb      AT(step)
AT(last):
#if V < 64
    leaq    4 * V - 1(%r11), %r8    /* the last byte, so the last boundary that the destination reaches */
    andq    $-V, %r8
    movq    %r8, %r10
    subq    %rdi, %r10
    addq    %rsi, %r10
#endif
    LOAD_TAIL(AT(step_0), %rdx)
    STORE(AT(step_0), MOVE R(1), END_BLOCK(3))
    STORE(AT(tail_1), MOVE R(2), END_BLOCK(2))
    STORE(AT(tail_2), MOVE R(3), END_BLOCK(1))
    STORE_END(AT(tail_3))
    CLEAN_COPY
    xorl    %eax, %eax
    ret

#if V < 64
/* Both cursors are on this many vectors too far. */
AT(ahead_3):
    MOVE_ON(-V)
AT(ahead_2):
    MOVE_ON(-V)
AT(ahead_1):
    MOVE_ON(-V)
    jmp     AT(step_0)
/* So many vectors of the step have been copied. */
AT(done_3):
    MOVE_ON(V)
AT(done_2):
    MOVE_ON(V)
AT(done_1):
    MOVE_ON(V)
    jmp     AT(step_0)
#endif

#if V > 32
AT(by_plan):
    cmpq    wherry_thresholds + COPY_FORWARD_BELOW(%rip), %rdx
    jb      AT(loop)
    cmpq    wherry_thresholds + COPY_YMM_FROM(%rip), %rdx
    jae     wherry_guarded_copy_avx2_large
    BY_PLAN
#else
AT(by_plan):
#if V == 16
    testq   %rdx, %rdx              /* sums of an address and n would wrap */
    js      LOOK_FIRST
#endif
    BY_PLAN
#if V == 16
    LOOP_BEGINS
    .p2align 6
    .nops   32                      /* half of the loop in either line of code: 49 ns for 4096 bytes, in one line to 53 */
AT(longer_step):
    LOOP_STEP
    cmpq    %r11, %rdi
    jb      AT(longer_step)
    jmp     AT(last)
#else
    cmpq    $ALIAS_FROM, %rdx
    jb      AT(loop)
#endif
#endif
#if V > 16
    testq   %rdx, %rdx              /* sums of an address and n would wrap */
    js      LOOK_FIRST
    cmpl    $0, wherry_thresholds + COPY_BACKWARD_AHEAD(%rip)
#if V == 32
    je      AT(only_forward)
#else
    je      AT(loop)
#endif
    movl    %eax, %r9d
    andl    $(ALIAS_BYTES - 1), %r9d
    subl    $1, %r9d
#if V == 32
    cmpq    $CHUNK, %rdx
    jbe     AT(maybe_one_chunk)
AT(not_one_chunk):
#endif
    cmpl    wherry_thresholds + COPY_BACKWARD_AHEAD(%rip), %r9d
    jb      AT(maybe_chunks)
#if V > 32
AT(loop):
    LOAD_HEAD
    LAST_BOUNDARY
    STORE_HEAD_AND_END
#if WHERRY_EDGE_BRANCH
    movl    %edi, %eax
    subl    %esi, %eax
    andl    $63, %eax
    rorl    $2, %eax
    decl    %eax
    cmpl    $15, %eax
    jae     AT(step)

/* The sides a multiple of 4 bytes apart, but not of 64: as move_joined of copy_avx512. The line at r9 of the source holds
 * what the line at rdi begins with. */
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    xorl    $15, %eax
    movq    %rsi, %r9
    vpbroadcastd %eax, R(0)
    orq     $63, %r9
    vpaddd  AT(numbers)(%rip), R(0), R(0)
    incq    %r9
    STORE(AT(step_0), MOVE R(5), (%rdi))
    MOVE_ON(64)
    .p2align 5
AT(joined):
    LOAD(AT(step_0), vmovdqa64 (%r9), R(5))
    LOAD(AT(step_0), vmovdqa64 64(%r9), R(6))
    LOAD(AT(step_0), vmovdqa64 128(%r9), R(7))
    LOAD(AT(step_0), vmovdqa64 192(%r9), R(8))
    LOAD(AT(step_0), vmovdqa64 256(%r9), R(9))
    addq    $256, %r9
    prefetchw 64(%rdi)
    prefetchw 128(%rdi)
    prefetchw 192(%rdi)
    prefetchw 256(%rdi)
    vpermt2d R(6), R(0), R(5)
    vpermt2d R(7), R(0), R(6)
    vpermt2d R(8), R(0), R(7)
    vpermt2d R(9), R(0), R(8)
    addq    $256, %rsi
    STORE(AT(stored_0), MOVE R(5), (%rdi))
    STORE(AT(stored_1), MOVE R(6), 64(%rdi))
    STORE(AT(stored_2), MOVE R(7), 128(%rdi))
    STORE(AT(stored_3), MOVE R(8), 192(%rdi))
    addq    $256, %rdi
    leaq    64(%rdi), %rax
    cmpq    %r11, %rax
    jbe     AT(joined)
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    STORE(AT(step_0), MOVE R(5), (%rdi))
    MOVE_ON(64)
    jmp     AT(last)
#else
    jmp     AT(step)
#endif
#else
    LOOP_BEGINS                     /* no load waits: the destination is not that little ahead */
    .p2align 6
AT(longer_step):
    LOOP_STEP_BY_TURNS
    cmpq    %r11, %rdi
    jb      AT(longer_step)
    jmp     AT(last)

AT(only_forward):
    cmpq    $HALVES_FROM, %rdx
    jb      AT(loop)
    LOOP_BEGINS
    .p2align 6
AT(step_by_halves):
    LOAD_HALVES(0, %xmm5, R(5))
    LOAD_HALVES(32, %xmm6, R(6))
    LOAD_HALVES(64, %xmm7, R(7))
    LOAD_HALVES(96, %xmm8, R(8))
    STORE_STEP
    cmpq    %r11, %rdi
    jb      AT(step_by_halves)
    jmp     AT(last)
#endif
#endif

/* Everything before the store that faulted has been stored; of its source nothing has been overwritten. */
AT(tail_1):
    leaq    END_BLOCK(2), %rax
    jmp     AT(tail)
AT(tail_2):
    leaq    END_BLOCK(1), %rax
    jmp     AT(tail)
AT(tail_3):
    leaq    END_BLOCK(0), %rax
AT(tail):
    subq    %rdi, %rax
    jbe     AT(step_0)
    addq    %rax, %rdi
    addq    %rax, %rsi
    jmp     AT(step_0)
AT(stored_3):
    MOVE_ON(V)
AT(stored_2):
    MOVE_ON(V)
AT(stored_1):
    MOVE_ON(V)
AT(stored_0):
    subq    $(4 * V), %rsi
AT(step_0):
    leaq    4 * V(%r11), %rdx
    subq    %rdi, %rdx
    CLEAN_COPY
    jmp     AT(faulted)

/* Nothing has faulted; less than a step is left. */
AT(rest):
    leaq    4 * V(%r11), %rdx
    subq    %rdi, %rdx
    CLEAN_COPY
    jmp     AT(forward)

/* The destination begins inside the source; or the source begins less than TIGHT bytes behind the destination, where a block at
 * the first byte would overwrite what the loop has yet to load: then blocks from the first byte on, unaligned. */
AT(close):
    cmpq    %rdx, %rax
    jb      INSIDE
    testq   %rdx, %rdx
    js      LOOK_FIRST
AT(tight):
    leaq    -4 * V(%rdi,%rdx), %r11
AT(tight_step):
    LOAD(AT(step_0), MOVE (%rsi), R(5))
    LOAD(AT(step_0), MOVE V(%rsi), R(6))
    LOAD(AT(step_0), MOVE 2 * V(%rsi), R(7))
    LOAD(AT(step_0), MOVE 3 * V(%rsi), R(8))
    addq    $(4 * V), %rsi
    STORE(AT(stored_0), MOVE R(5), (%rdi))
    STORE(AT(stored_1), MOVE R(6), V(%rdi))
    STORE(AT(stored_2), MOVE R(7), 2 * V(%rdi))
    STORE(AT(stored_3), MOVE R(8), 3 * V(%rdi))
    addq    $(4 * V), %rdi
    cmpq    %r11, %rdi
    jbe     AT(tight_step)
    jmp     AT(rest)

#include "copy_far.tmpl.S"
#if V > 16
#include "copy_chunks.tmpl.S"
#endif

#if V < 64
#include "copy_backward.tmpl.S"
#endif
