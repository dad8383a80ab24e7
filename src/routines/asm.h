/* Marks for routines written in assembly: entry, end, CET and the notes that keep the stack non-executable.
 * Each routine has a section of its own, so that a link with --gc-sections keeps only what is used. */
#ifndef WHERRY_ASM_H
#define WHERRY_ASM_H

#ifdef __CET__
#include <cet.h> /* the compiler's: _CET_ENDBR and the .note.gnu.property that says IBT and SHSTK are honoured */
#else
#define _CET_ENDBR /* built with -fcf-protection=none */
#endif

/* clang-format off */
#define ENTRY(symbol)                          \
    .section .text.symbol, "ax", @progbits;    \
    .globl symbol;                             \
    .hidden symbol;                            \
    .type symbol, @function;                   \
    .p2align 6;                                \
symbol:                                        \
    .cfi_startproc;                            \
    _CET_ENDBR

#define END(symbol)                            \
    .cfi_endproc;                              \
    .size symbol, . - symbol

.section .note.GNU-stack, "", @progbits
/* clang-format on */

/* clang-format off */
/* Goes to label where so many bytes from `at` on, 32 or 64, might reach into another page. Loses temp, of 32 bits. */
#define AT_PAGE_END(at, bytes, temp, label)                  \
    leal    bytes(at), temp;                                 \
    testl   $(0x1000 - bytes), temp;                         \
    jz      label
/* The same of 32 bytes that n32, n below 4096, cuts: from 32 bytes on nothing is cut, so the branch is never taken. */
#define CUT_AT_PAGE_END(at, n32, temp, label)                \
    leal    32(at), temp;                                    \
    orl     n32, temp;                                       \
    testl   $0xfe0, temp;                                    \
    jz      label

/* Of the blocks to 255 bytes, copied. The first 64 bytes are two halves under one mask, k1: at 0, and r10 bytes further, which
 * is n - 32 but 32 at most and 0 at least, so that a byte of either is had at once from 32 bytes on. The others are first,
 * r8 and n - 64 bytes behind r11, the source, and r9, the destination: 64, n - 128 and n - 64, or below 128 bytes the last
 * three times. Below 64 bytes they go from 128 bytes at anything to the line of the stack below the one that rsp is in, which
 * lies in the 128 bytes that are a function's own; a line, since blocks across two pages take long. One comparison for two
 * places: each instruction counts, since what limits is how many of them the processor takes in a cycle (docs/performance.md).
 * first32: of first. */
#define PLACES_TO_COPY(first, first32, anything)             \
    movq    %rsp, %r9;                                       \
    leaq    -64(%rdx), %r10;                                 \
    andq    $-64, %r9;                                       \
    leaq    -128(%rdx), %r8;                                 \
    leaq    anything + 64(%rip), %r11;                       \
    movl    $64, first32;                                    \
    subq    %rdx, %r9;                                       \
    cmpl    first32, %edx;                                   \
    cmovaeq %rdi, %r9;                                       \
    cmovaeq %rsi, %r11;                                      \
    testb   %dl, %dl;                                        \
    cmovnsq %r10, first;                                     \
    cmovnsq %r10, %r8;                                       \
    orq     $-1, %r10;                                       \
    bzhiq   %rdx, %r10, %r10;                                \
    kmovd   %r10d, %k1;                                      \
    shrq    $32, %r10;                                       \
    popcntl %r10d, %r10d

/* The same of a set, which has nothing to load: the second half is r11 bytes further, the others first, r9 and r10 bytes
 * behind r8. */
#define PLACES_TO_SET(first, first32)                        \
    orq     $-1, %r11;                                       \
    movq    %rsp, %r8;                                       \
    bzhiq   %rdx, %r11, %r11;                                \
    leaq    -64(%rdx), %r10;                                 \
    andq    $-64, %r8;                                       \
    kmovd   %r11d, %k1;                                      \
    subq    %rdx, %r8;                                       \
    movl    $64, first32;                                    \
    shrq    $32, %r11;                                       \
    cmpl    first32, %edx;                                   \
    cmovaeq %rdi, %r8;                                       \
    popcntl %r11d, %r11d;                                    \
    leaq    -128(%rdx), %r9;                                 \
    testb   %dl, %dl;                                        \
    cmovnsq %r10, first;                                     \
    cmovnsq %r10, %r9
/* clang-format on */

#endif
