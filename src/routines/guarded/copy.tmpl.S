/* The fault-tolerant copy, one algorithm for every vector width V = VEC_BYTES: that of vector/move.tmpl.h, with an entry
 * in the fault table for each load and store. From the label TOP on:
 *
 *   size_t (void *dst rdi, const void *src rsi, size_t n rdx, struct wherry_fault *fault rcx), the bytes not copied
 *
 *   n < 16, V < 64    head and tail of 8, 4 or 1 bytes, in integer registers
 *   n <= 64, V = 64   two halves under a mask
 *   to 1024, V = 64   just the blocks that n reaches to 512, and the forward loop (copy_apart.tmpl.S); or two halves and three
 *                     blocks to 255, and sixteen, or four at either end and a loop (copy_together.tmpl.S), which the includer
 *                     includes behind this and chooses by going to AT(together); or as below, from AT(neither) on
 *   16 .. 64, V = 32  four blocks of 16 bytes
 *   V  .. 4V          four blocks
 *   4V .. 8V          eight; for V = 64 sixteen
 *   8V .. 16V         sixteen; not for V = 32
 *   beyond            forward loop; rep movsb; non-temporal loop; chunks, one or more; backward loop, after a look at every page
 *                     (V = 64: that of V = 32)
 *
 * What is exact, and why:
 *
 * - A class of blocks loads all before it stores anything. A load that faults leaves the destination as it was, and the copy
 *   begins anew by rep movsb, whose count is exact to the byte. After a store that faults the stores are made again,
 *   into the stack, and from there rep movsb brings as much as there is room for: the source may be overwritten by then.
 * - The first store goes to the first byte. So it is this one that faults when the first page cannot be written; and
 *   when it is the second page that cannot, no order of the other stores can change a byte of that.
 * - Of four blocks at either end those of the beginning are stored before those of the end are loaded; that is for sides that
 *   are disjoint, which begins anew after any fault.
 * - The loops store in ascending order, a step's loads before its stores or by turns, and go on by rep movsb at the first
 *   byte that has not been stored; so do the blocks of the end behind them.
 * - Chunks go upwards too; copy_large.tmpl.S says why each is exact though it is copied from its end down.
 * - Of sides that overlap, a backward copy stores the end first. Before it, one byte of every page is read, and one written
 *   as it was, from the beginning on, or to 4096 bytes the first and the last, and if one is missing all from the beginning
 *   on: just the bytes before the page that is missing are copied. So overlap costs no exactness. Only what
 *   becomes inaccessible between the look and the copy is worse off: then nothing is said to be copied.
 *
 * The includer defines VEC_BYTES, SYMBOL (the function, which begins right above or elsewhere in this section), TOP (the
 * label of the beginning) and AT(name), which makes labels its own.
 */
#include "../ends.h"
#include "../lines.h"
#include "registers.h"
#include "ahead.h"

#if V == 32
#define LARGE (8 * V)
#else
#define LARGE (16 * V)
#endif
#define SPILL 1024 /* bytes; the largest size whose stores are repeated */
#define TIGHT (4 * V)
/* Where sides overlap so that the end goes first: the look before it makes the width of the vectors matter little, and with
 * V = 64 all lies in one page without it. */
#if V == 64
#define LOOK_FIRST wherry_guarded_copy_avx2_probe
#define INSIDE wherry_guarded_copy_avx2_inside
#else
#define LOOK_FIRST AT(probe)
#define INSIDE AT(inside)
#endif

/* clang-format off */
/* Where registers 0 to 15 may have been used: with V = 64 by the first 64 bytes and the last (ends.h). */
#if V == 64
#define CLEAN_COPY END_CLEAN;
#elif V == 32
#define CLEAN_COPY vzeroupper;
#else
#define CLEAN_COPY
#endif

/* Of four blocks of w bytes the second begins eax bytes behind the first and the third so many before the last, which end at
 * n - eax, r8: w when n > 2w, else 0. */
#define MIDDLE_OF_FOUR(w)            \
    leal    -1(%rdx), %eax;          \
    movl    %edx, %r8d;              \
    shrl    $1, %eax;                \
    andl    $(w), %eax;              \
    subl    %eax, %r8d

/* Room in the stack for the bytes of a class, and behind it what from_spill needs: where they go to, n, the caller's fault. */
#define SPILL_ROOM(to, n)                                 \
    pushq   %rcx;                                         \
    .cfi_adjust_cfa_offset 8;                             \
    pushq   n;                                            \
    .cfi_adjust_cfa_offset 8;                             \
    pushq   to;                                           \
    .cfi_adjust_cfa_offset 8;                             \
    leaq    -SPILL(%rsp), %rsp;                           \
    .cfi_adjust_cfa_offset SPILL

/* On to from_spill. */
#define SPILL_ENDS                                        \
    jmp     AT(from_spill);                               \
    .cfi_adjust_cfa_offset -(SPILL + 24)

/* Makes the stores of a class again into the stack; they use rdi, rdx, rax, r8, r9 and registers with data. */
#define SPILLED(name)                                     \
AT(name##_spill):                                         \
    SPILL_ROOM(%rdi, %rdx);                               \
    movq    %rsp, %rdi;                                   \
    call    AT(name##_stores);                            \
    SPILL_ENDS
/* clang-format on */

#if V == 64
#include "copy_apart.tmpl.S"

/* Where the plain copy goes by neither way of watch.h. */
    .p2align 5
AT(neither):
    cmpq    $LARGE, %rdx
    ja      AT(large)
    cmpl    $64, %edx
    jbe     AT(to_64)
#elif V == 32
TOP:
    cmpq    $16, %rdx               /* ascending, as in copy_avx2 */
    jb      AT(tiny)
    cmpq    $64, %rdx
    ja      AT(above_64)
    MIDDLE_OF_FOUR(16)
    LOAD(AT(redo), vmovdqu (%rsi), %xmm0)
    LOAD(AT(redo), vmovdqu (%rsi,%rax), %xmm1)
    LOAD(AT(redo), vmovdqu -16(%rsi,%r8), %xmm2)
    LOAD(AT(redo), vmovdqu -16(%rsi,%rdx), %xmm3)
AT(half_stores):
    STORE(AT(half_spill), vmovdqu %xmm0, (%rdi))
    STORE(AT(half_spill), vmovdqu %xmm1, (%rdi,%rax))
    STORE(AT(half_spill), vmovdqu %xmm2, -16(%rdi,%r8))
    STORE(AT(half_spill), vmovdqu %xmm3, -16(%rdi,%rdx))
    xorl    %eax, %eax
    ret
    .p2align 6
#else
TOP:
    cmpq    $LARGE, %rdx
    ja      AT(large)
    cmpl    $16, %edx
    jb      AT(tiny)
#endif

AT(four):
#if V == 64
    cmpl    $(4 * V), %edx
    ja      AT(sixteen)
#elif V == 16
    cmpl    $(4 * V), %edx
    ja      AT(eight)
#endif
#if V == 32                         /* more than two */
#define SECOND(side) V(side)
#define THIRD(side) -2 * V(side,%rdx)
#else
    MIDDLE_OF_FOUR(V)
#define SECOND(side) (side,%rax)
#define THIRD(side) -V(side,%r8)
#endif
    LOAD(AT(redo), MOVE (%rsi), R(0))
    LOAD(AT(redo), MOVE SECOND(%rsi), R(1))
    LOAD(AT(redo), MOVE THIRD(%rsi), R(2))
    LOAD(AT(redo), MOVE -V(%rsi,%rdx), R(3))
AT(four_stores):
    STORE(AT(four_spill), MOVE R(0), (%rdi))
    STORE(AT(four_spill), MOVE R(1), SECOND(%rdi))
    STORE(AT(four_spill), MOVE R(2), THIRD(%rdi))
    STORE(AT(four_spill), MOVE R(3), -V(%rdi,%rdx))
    CLEAN_COPY
    xorl    %eax, %eax
    ret

    .p2align 5
#if V == 32
AT(above_64):
    cmpq    $(4 * V), %rdx
    jbe     AT(four)
    cmpq    $LARGE, %rdx
    ja      AT(large)
#endif
#if V < 64
AT(eight):
#if LARGE > 8 * V
    cmpl    $(8 * V), %edx
    ja      AT(sixteen)
#endif
    LOAD(AT(redo), MOVE (%rsi), R(0))
    LOAD(AT(redo), MOVE V(%rsi), R(1))
    LOAD(AT(redo), MOVE 2 * V(%rsi), R(2))
    LOAD(AT(redo), MOVE 3 * V(%rsi), R(3))
    LOAD(AT(redo), MOVE -4 * V(%rsi,%rdx), R(4))
    LOAD(AT(redo), MOVE -3 * V(%rsi,%rdx), R(5))
    LOAD(AT(redo), MOVE -2 * V(%rsi,%rdx), R(6))
    LOAD(AT(redo), MOVE -V(%rsi,%rdx), R(7))
AT(eight_stores):
    STORE(AT(eight_spill), MOVE R(0), (%rdi))
    STORE(AT(eight_spill), MOVE R(1), V(%rdi))
    STORE(AT(eight_spill), MOVE R(2), 2 * V(%rdi))
    STORE(AT(eight_spill), MOVE R(3), 3 * V(%rdi))
    STORE(AT(eight_spill), MOVE R(4), -4 * V(%rdi,%rdx))
    STORE(AT(eight_spill), MOVE R(5), -3 * V(%rdi,%rdx))
    STORE(AT(eight_spill), MOVE R(6), -2 * V(%rdi,%rdx))
    STORE(AT(eight_spill), MOVE R(7), -V(%rdi,%rdx))
    CLEAN_COPY
    xorl    %eax, %eax
    ret
#endif

#if V == 64
#include "copy_sixteen_lines.tmpl.S"
#elif LARGE > 8 * V
    .p2align 5
AT(sixteen):
    movl    $(8 * V), %r10d
    movl    $(10 * V), %r11d
    xorl    %eax, %eax
    xorl    %r8d, %r8d
    xorl    %r9d, %r9d
    cmpl    %r11d, %edx
    cmoval  %r10d, %eax             /* 8V when n > 10V */
    movl    $(12 * V), %r10d
    cmpl    %r10d, %edx
    cmoval  %r11d, %r8d             /* 10V when n > 12V */
    cmpl    $(14 * V), %edx
    cmoval  %r10d, %r9d             /* 12V when n > 14V */
    LOAD(AT(redo), MOVE (%rsi), R(0))
    LOAD(AT(redo), MOVE V(%rsi), R(1))
    LOAD(AT(redo), MOVE 2 * V(%rsi), R(2))
    LOAD(AT(redo), MOVE 3 * V(%rsi), R(3))
    LOAD(AT(redo), MOVE 4 * V(%rsi), R(4))
    LOAD(AT(redo), MOVE 5 * V(%rsi), R(5))
    LOAD(AT(redo), MOVE 6 * V(%rsi), R(6))
    LOAD(AT(redo), MOVE 7 * V(%rsi), R(7))
    LOAD(AT(redo), MOVE (%rsi,%rax), R(8))
    LOAD(AT(redo), MOVE V(%rsi,%rax), R(9))
    LOAD(AT(redo), MOVE (%rsi,%r8), R(10))
    LOAD(AT(redo), MOVE V(%rsi,%r8), R(11))
    LOAD(AT(redo), MOVE (%rsi,%r9), R(12))
    LOAD(AT(redo), MOVE V(%rsi,%r9), R(13))
    LOAD(AT(redo), MOVE -2 * V(%rsi,%rdx), R(14))
    LOAD(AT(redo), MOVE -V(%rsi,%rdx), R(15))
AT(sixteen_stores):
    STORE(AT(sixteen_spill), MOVE R(0), (%rdi))
    STORE(AT(sixteen_spill), MOVE R(1), V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(2), 2 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(3), 3 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(4), 4 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(5), 5 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(6), 6 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(7), 7 * V(%rdi))
    STORE(AT(sixteen_spill), MOVE R(8), (%rdi,%rax))
    STORE(AT(sixteen_spill), MOVE R(9), V(%rdi,%rax))
    STORE(AT(sixteen_spill), MOVE R(10), (%rdi,%r8))
    STORE(AT(sixteen_spill), MOVE R(11), V(%rdi,%r8))
    STORE(AT(sixteen_spill), MOVE R(12), (%rdi,%r9))
    STORE(AT(sixteen_spill), MOVE R(13), V(%rdi,%r9))
    STORE(AT(sixteen_spill), MOVE R(14), -2 * V(%rdi,%rdx))
    STORE(AT(sixteen_spill), MOVE R(15), -V(%rdi,%rdx))
    xorl    %eax, %eax
    ret
    SPILLED(sixteen)
#endif

#if V < 64
    .p2align 6
AT(tiny):
    cmpl    $8, %edx
    jb      AT(below_8)
    LOAD(AT(redo), movq (%rsi), %r8)
    LOAD(AT(redo), movq -8(%rsi,%rdx), %r9)
AT(tiny8_stores):
    STORE(AT(tiny8_spill), movq %r8, (%rdi))
    STORE(AT(tiny8_spill), movq %r9, -8(%rdi,%rdx))
    xorl    %eax, %eax
    ret
AT(below_8):
    cmpl    $4, %edx
    jb      AT(below_4)
    LOAD(AT(redo), movl (%rsi), %r8d)
    LOAD(AT(redo), movl -4(%rsi,%rdx), %r9d)
AT(tiny4_stores):
    STORE(AT(tiny4_spill), movl %r8d, (%rdi))
    STORE(AT(tiny4_spill), movl %r9d, -4(%rdi,%rdx))
    xorl    %eax, %eax
    ret
AT(below_4):
    movl    %edx, %eax
    shrl    $1, %eax
    testl   %edx, %edx
    jz      AT(none)
    LOAD(AT(redo), movzbl (%rsi), %r8d)
    LOAD(AT(redo), movzbl (%rsi,%rax), %r9d)
    LOAD(AT(redo), movzbl -1(%rsi,%rdx), %r10d)
AT(tiny1_stores):
    STORE(AT(tiny1_spill), movb %r8b, (%rdi))
    STORE(AT(tiny1_spill), movb %r9b, (%rdi,%rax))
    STORE(AT(tiny1_spill), movb %r10b, -1(%rdi,%rdx))
    xorl    %eax, %eax
AT(none):
    ret
    SPILLED(tiny8)
    SPILLED(tiny4)
    SPILLED(tiny1)
#else
    SPILLED(masked)
#endif
#if V == 32
    SPILLED(half)
#endif
    SPILLED(four)
#if V < 64
    SPILLED(eight)
#endif

/* The class's bytes lie at rsp, and behind them what SPILL_ROOM keeps. */
AT(from_spill):
    .cfi_adjust_cfa_offset SPILL + 24
    movq    %rsp, %rsi
    movq    SPILL(%rsp), %rdi
    movq    SPILL + 8(%rsp), %rcx
    movq    SPILL + 16(%rsp), %r8
    leaq    (%rdi,%rcx), %rdx
    CAN_FAULT(SYMBOL, FAULT_STRING | FAULT_REPORT, AT(spill_ends), rep movsb)
AT(spill_ends):
    leaq    SPILL + 24(%rsp), %rsp
    .cfi_adjust_cfa_offset -(SPILL + 24)
    jmp     AT(report)

/* Nothing has been stored yet, or both sides are disjoint. */
AT(redo):
    CLEAN_COPY
    movq    %rdi, %rax
    subq    %rsi, %rax
    cmpq    %rdx, %rax              /* bytes that rep movsb stores would be sources of later ones */
    jb      LOOK_FIRST

/* rdx bytes are left from rdi and rsi on, to be copied in ascending order; rcx is the caller's fault. After a fault: where the
 * kernel has named the page that was met, only what lies before it is tried, so that it is not met a second time. */
AT(faulted):
    movq    FAULT_PAGE(%rsp), %r9
    movq    FAULT_WHAT(%rsp), %r10
    movl    %r9d, %r11d
    movq    %rsi, %rax
    andl    $1, %r11d
    cmovnzq %rdi, %rax
    andq    $-4096, %r9
    jz      AT(forward)
    subq    %rax, %r9
    xorl    %eax, %eax
    cmpq    $-4096, %r9             /* where it goes on from is in that page */
    cmovaq  %rax, %r9
    movq    %rcx, %r8
    movq    %rdx, %rcx
    cmpq    %rdx, %r9               /* a page farther back is nothing to go by, and is above, unsigned */
    cmovbq  %r9, %rcx
    addq    %rdi, %rdx
    jmp     AT(string)
AT(forward):
    movq    %rcx, %r8
    movq    %rdx, %rcx
    addq    %rdi, %rdx
AT(string):
    CAN_FAULT(SYMBOL, FAULT_STRING | FAULT_REPORT, AT(report), rep movsb)

/* rdi and rsi are where it stopped, rdx is where the destination ends, r8 the caller's fault. Valgrind counts rcx down
 * before the access that faults, so it is the cursor that tells what is left. */
AT(report):
    movq    %rdx, %rax
    subq    %rdi, %rax
    jz      AT(reported)
    testq   %r8, %r8
    jz      AT(reported)
    testl   %r11d, %r11d
    cmovzq  %rsi, %rdi
    movq    %rdi, FAULT_ADDRESS(%r8)
    movq    %r10, FAULT_SIGNO(%r8)
    movb    %r11b, FAULT_WRITING(%r8)
AT(reported):
    ret

#include "copy_large.tmpl.S"
