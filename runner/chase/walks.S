/* Walks along cycles of pointers; walks.h. In assembly, since the chains have to stay in registers whatever the compiler is
 * told: one that is kept on the stack takes a store and a load more. Twelve are as many as there are registers for
 * beside the counter, the places and the stack. */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .text

        .macro  keep register
        pushq   %\register
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \register, 0
        .endm

        .macro  give_back register
        popq    %\register
        .cfi_adjust_cfa_offset -8
        .cfi_restore \register
        .endm

/* void symbol(void **places, uint64_t turns), by as many chains as registers are named: none of rdi, rsi. */
        .macro  WALK symbol, chains:vararg
        .globl  \symbol
        .hidden \symbol
        .type   \symbol, @function
        .p2align 6
\symbol:
        .cfi_startproc
        _CET_ENDBR
        .irp    register, rbx, rbp, r12, r13, r14
        keep    \register
        .endr
        .set    place, 0
        .irp    chain, \chains
        movq    place(%rdi), %\chain
        .set    place, place + 8
        .endr
        .p2align 6
.Lturn_of_\symbol:
        .rept   16
        .irp    chain, \chains
        movq    (%\chain), %\chain
        .endr
        .endr
        decq    %rsi
        jnz     .Lturn_of_\symbol
        .set    place, 0
        .irp    chain, \chains
        movq    %\chain, place(%rdi)
        .set    place, place + 8
        .endr
        .irp    register, r14, r13, r12, rbp, rbx
        give_back \register
        .endr
        ret
        .cfi_endproc
        .size   \symbol, . - \symbol
        .endm

        WALK    walk_1, rax
        WALK    walk_2, rax, rcx
        WALK    walk_4, rax, rcx, rdx, rbx
        WALK    walk_8, rax, rcx, rdx, rbx, rbp, r8, r9, r10
        WALK    walk_12, rax, rcx, rdx, rbx, rbp, r8, r9, r10, r11, r12, r13, r14

        .section .note.GNU-stack, "", @progbits
