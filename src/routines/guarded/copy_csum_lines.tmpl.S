/* The copy that sums, in one pass by 64-byte vectors: what copy_csum.tmpl.S is for narrower ones, with the same functions
 * from the label TOP on, without PLAIN and with it, and by the same rules where something faults. What differs:
 *
 *     |-- first --|                                      a vector at the start: counted to where a line begins
 *         |  step  |  step  | ... | one | one |          lines
 *                                          |-- last --|  a vector that ends at the end: from where the last line begins on
 *                                                        it counts, and is stored, under a mask
 *
 * To 64 bytes it is one block under a mask of n bits. The steps go past the caches, or in chunks, as there.
 *
 * Lines of the source where the destination lies in one page and the plan says that loads across lines take longer than
 * stores (sum_source_page), else of the destination. A place counts from there by the slant: what the source is ahead of
 * the destination, or nothing. No branch, since packets end anywhere in their pages.
 *
 * Around the loop masks are shifted out of ones in memory, and the last vector turns by a byte under a mask, since sizes are
 * as often odd as even; but places hardly ever are odd, and whoever has such has many, so for these there is a branch.
 * With PLAIN the rest is in copy_csum_ahead.tmpl.S.
 *
 * With DOTS, from DOTS_FROM to DOTS_MOST bytes by dot products, as copy_csum_dots.tmpl.S tells; without PLAIN only when
 * COMPARE_DOTS, an instruction that the includer defines, finds equal.
 *
 *   rdi  the next byte of the destination      r8   where the destination begins, with the slant
 *   rsi  source less destination               r9   the destination's end
 *   rdx  n                                     r11  where the last line begins
 *   k2   what counts of the last vector        k3   all ones where it turns by a byte
 *   rcx  the sum, without PLAIN in memory      xmm31  without PLAIN where a fault is told */
#include "copied.h"
#include "registers.h"
#include "ahead.h"

#define DOTS_FROM 640 /* below it they save no more than it takes to set them up */
#define DOTS_MOST NEAR_MOST

#include "copy_csum_vec.h"

#ifdef PLAIN
#define LEFT 40 /* below the stack pointer: bytes behind a part, behind what chunks keep there */
#endif

TOP:
    cmpq    $V, %rdx
    jbe     AT(short)
#ifdef PLAIN
    cmpq    $GUARDED_CSUM_MOST, %rdx
    jae     AT(parts)
AT(part):
#endif
    leaq    V(%rsi), %r11
    subq    %rdi, %rsi
#ifndef PLAIN
    leaq    -1(%rdx,%rdx), %r9
    leaq    -1(%rsi,%rdx), %rax     /* they overlap when this lies from 0 to 2n - 2 */
    cmpq    %r9, %rax
    jb      AT(all_is_left)
    cmpq    $GUARDED_CSUM_MOST, %rdx
    ja      AT(all_is_left)         /* also when 2n has wrapped */
#endif
    leaq    (%rdi,%rdx), %r9
    LOAD(AT(all_is_left), MOVE (%rdi,%rsi), FIRST)
    LOAD(AT(all_is_left), MOVE -V(%r9,%rsi), LAST)
    movl    %edi, %eax
    andq    $-V, %r11
    orl     wherry_thresholds + SUM_SOURCE_PAGE(%rip), %eax
    subq    %rsi, %r11
#ifndef PLAIN
    vmovq   %r8, %xmm31
#endif
    STORE(AT(all_is_left), MOVE FIRST, (%rdi))
    movq    %rdi, %r8
    addq    $V, %rdi
    xorl    %r10d, %r10d
    andq    $-V, %rdi
    addl    %edx, %eax              /* carries where the destination goes on in the next page */
    cmovncq %r11, %rdi
    cmovncq %rsi, %r10              /* the slant */
    addq    %r10, %r8
    leaq    -1(%r9,%r10), %r11
    shrxq   %r8, AT(all_bits)(%rip), %rax
    kmovq   %rax, %k1
    movl    %r11d, %eax
    andq    $-V, %r11
    notl    %eax
    subq    %r10, %r11
    shlxq   %rax, AT(all_bits)(%rip), %r10
    andl    $1, %eax                /* 1 where the end is odd, so that the last vector's words lie across words */
    kmovq   %r10, %k2
    negl    %eax
    kmovw   %eax, %k3
    vmovdqu8 FIRST, FIRST{%k1}{z}
    testb   $1, %r8b
    jnz     AT(turn_first)
AT(first_turned):
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
#ifdef PLAIN
#include "copy_csum_ahead.tmpl.S"

/* An even number, so the sums go on from part to part. */
AT(parts):
    movq    %rdx, %rax
    movl    $GUARDED_CSUM_MOST, %edx
    subq    %rdx, %rax
    movq    %rax, -LEFT(%rsp)
    jmp     AT(part)
AT(next_part):
    movq    -LEFT(%rsp), %rdx
    movq    %r9, %rdi
    addq    %rdi, %rsi
    movl    %eax, %ecx
    jmp     TOP
#else
    UPPER(FIRST, HIGH)
    leaq    -4 * V(%r11), %rax      /* in the first page this may be below 0, and no address has its sign set */
    cmpq    $FORWARD_MOST, %rdx
    ja      AT(longer)
AT(upwards):
    cmpq    %rax, %rdi
    jg      AT(ones)
    .p2align 6
AT(step):
    STEP(AT(stopped), MOVE, %rdi, 0, V, 2 * V, 3 * V)
    addq    $(4 * V), %rdi
    cmpq    %rax, %rdi
    jbe     AT(step)
AT(ones):
    cmpq    %r11, %rdi
    jae     AT(last)
    .p2align 5
AT(one):
    LOAD(AT(stopped), MOVE (%rdi,%rsi), R(5))
    STORE(AT(stopped), MOVE R(5), (%rdi))
    ADD_ONE(R(5), R(6))
    addq    $V, %rdi
    cmpq    %r11, %rdi
    jb      AT(one)
AT(last):
    vmovdqu8 LAST, LAST{%k2}{z}
    STORE(AT(stopped), vmovdqu8 LAST, -V(%r9){%k2})
    vprold  $8, LAST, LAST{%k3}
    ADD_ONE(LAST, T)
    movq    %r9, %rdi

/* All before rdi is copied and counted. */
AT(stopped):
    TOTAL
#ifdef DOTS
AT(summed):
#endif
    testb   $1, %r8b
    jnz     AT(turn_sum)
AT(sum_turned):
    addl    (%rcx), %eax
    adcl    $0, %eax
    movl    %eax, (%rcx)
    cmpq    %r9, %rdi
    jne     AT(some_is_left)
    xorl    %eax, %eax
    ret

AT(some_is_left):
    vmovq   %xmm31, %r8
    movq    %r9, %r10
    subq    %rdx, %r10
    movq    %rdi, %r9
    subq    %r10, %r9
    movq    %r10, %rdi
    addq    %rdi, %rsi
    jmp     wherry_guarded_csum_rest

AT(all_is_left):
    addq    %rdi, %rsi
AT(nothing_done):
    xorl    %r9d, %r9d
    jmp     wherry_guarded_csum_rest
#endif

AT(turn_first):
    vprold  $8, FIRST, FIRST
    jmp     AT(first_turned)
#ifndef PLAIN
AT(turn_sum):
    roll    $8, %eax
    jmp     AT(sum_turned)
#endif

    .p2align 4
AT(longer):
    cmpq    wherry_thresholds + COPY_STREAM_ANY_FROM(%rip), %rdx
    jb      AT(not_past)
    testb   $(V - 1), %dil
    jnz     AT(not_past)            /* lines of the source, so it is short */
#include "copy_csum_stream.tmpl.S"

AT(not_past):
#include "copy_csum_chunks.tmpl.S"
#if defined DOTS && !defined PLAIN
#include "copy_csum_dots.tmpl.S"
#endif

    .p2align 4
AT(short):
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

    .pushsection .rodata.cst8, "aM", @progbits, 8
    .p2align 3
AT(all_bits):
    .quad   -1
    .popsection
