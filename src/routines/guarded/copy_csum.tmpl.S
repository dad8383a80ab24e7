/* The fault-tolerant copy that sums, in one pass, by vectors of V = VEC_BYTES, 16 or 32: fused/copy_csum_sse2.c with an entry
 * in the fault table for each load and store. From the label TOP on:
 *
 *   size_t (void *dst rdi, const void *src rsi, size_t n rdx, uint32_t *sum rcx, struct wherry_fault *fault r8),
 *   the bytes not copied; sum goes on with those that were
 *
 *     |-- first --|                                      a vector at the start: its first `head` bytes count
 *         |  step  |  step  | ... | one | one |          aligned in the destination
 *                                          |-- last --|  a vector that ends at the end: its last `rest` bytes count
 *
 *   8 .. V     words, and the one that ends at the end; with PLAIN to 64 bytes, and below 8 too
 *   beyond     the picture above; the steps by non-temporal stores from copy_stream_any_from on where the destination was
 *              written before (written.h), and with V = 32 and PLAIN in chunks, each from its end down, where loads would
 *              wait for stores: as copy_large.tmpl.S, which says why. It pays in the first-level cache, so beyond a chunk
 *              what was written lately is asked for (recent.h)
 *
 * At the first fault it stops and leaves the rest to copied.h's function, telling it how many bytes from the first on are
 * surely copied and summed; that one has the rest copied by the fault-tolerant copy, which finds out to the byte what can
 * be had. So a fault needs no more here than to forget the step, or the chunk, in which it happened:
 *
 * - The first store goes to the first byte and the others follow in ascending order, so nothing behind what can be written
 *   has changed. What a step has stored before its fault is stored again.
 * - The last block is loaded before anything is stored and counted when all before it is in place.
 *
 * Somebody may change the source meanwhile, and bytes that two blocks share are read twice. What is counted is what dst
 * has in the end: the last block is stored before all others (PLAIN), or it counts whole, and what it has overwritten no
 * longer.
 *
 * So is what this is not for: sides that overlap, more than GUARDED_CSUM_MOST, less than 8 bytes.
 *
 * `all` adds 64-bit lanes and wraps, `high` adds their upper halves, as in fused/csum_vec.h; beyond FORWARD_MOST bytes by
 * means, as csum_steps.h tells, in ascending order and not past the caches.
 *
 * With PLAIN it is the copy that knows of no faults, for V = 32 and buffers apart, from the label TOP on:
 *
 *   uint32_t (void *dst rdi, const void *src rsi, size_t n rdx, uint32_t sum ecx), sum and that of the bytes
 *
 * The includer defines VEC_BYTES, SYMBOL (the function), TOP and AT(name), as of copy.tmpl.S. */
#include "../csum_steps.h"
#include "copied.h"
#include "registers.h"
#include "ahead.h"

#if V == 32 && defined PLAIN
#define IN_CHUNKS
#endif

#include "copy_csum_vec.h"

/* rsi source less destination, r9 rest, r11 where the last block's bytes begin that count; so r11 + r9 is the end */
TOP:
#ifdef PLAIN
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
    cmpq    $V, %rdx
    jbe     AT(short)
    cmpq    $GUARDED_CSUM_MOST, %rdx
    ja      AT(all_is_left)         /* also when 2n has wrapped */
#endif
    leaq    (%rdi,%rdx), %r11
    LOAD(AT(all_is_left), MOVE (%rdi,%rsi), FIRST)
    LOAD(AT(all_is_left), MOVE -V(%r11,%rsi), LAST)
    HEAD
    leal    -1(%r11), %r9d
    andl    $(V - 1), %r9d
    addl    $1, %r9d
#ifdef PLAIN
    STORE(AT(all_is_left), MOVE LAST, -V(%r11))
#else
    cmpq    $(2 * V), %rdx
    ja      AT(more_than_two)
    movl    $V, %r10d               /* two blocks: the first counts whole, the other with what is behind it */
    leal    -V(%rdx), %r9d
AT(more_than_two):
#endif
    STORE(AT(all_is_left), MOVE FIRST, (%rdi))
    subq    %r9, %r11
    BEHIND_HEAD
#ifndef PLAIN
    SAME(FIRST, BEFORE)
    xorl    %edi, %r10d
#endif
    TURN_IF_ODD_PLACE(%r10, FIRST)
    UPPER(FIRST, HIGH)
    FIRST_IS_ALL
    leaq    -4 * V(%r11), %rax      /* in the first page this may be below 0, and no address has its sign set */
    cmpq    %rax, %rdi
    jg      AT(ones)
    cmpq    wherry_thresholds + COPY_STREAM_ANY_FROM(%rip), %rdx
    jae     AT(maybe_stream)
AT(not_past):
    cmpq    $FORWARD_MOST, %rdx
#ifdef IN_CHUNKS
    ja      AT(maybe_chunks)
#else
    ja      AT(upwards)
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
#ifdef PLAIN
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
    leaq    (%r11,%r9), %r10
    subq    %rdx, %r10
    TURN_SUM_IF_ODD_PLACE(%r10)     /* the first byte that was counted as even stands at an odd place */

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
#include "copy_csum_stream.tmpl.S"

#ifdef IN_CHUNKS
#include "copy_csum_chunks.tmpl.S"
#endif
#include "copy_csum_means.tmpl.S"

#ifndef PLAIN
#include "copy_csum_short.tmpl.S"
#endif

    TURNED(FIRST)

    .pushsection .rodata
    .p2align 5
AT(kept):
    .fill   V, 1, 0xff
    .fill   V, 1, 0
    .fill   V, 1, 0xff
#if V == 32
AT(order):
    .byte 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .byte 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .byte 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
    .byte 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#endif
    .popsection
