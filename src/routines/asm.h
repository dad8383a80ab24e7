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

#endif
