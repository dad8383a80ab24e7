/* wherry_csum_partial_copy: one comparison and a jump, in assembly since compilers make a jump to a jump of it. The choice is
 * an enum wherry_needs (registry.h; csum.c holds the numbers): 2 for AVX-512, above it with VNNI, 1 for AVX2, and 0 before
 * any constructor has run, which is right. */
#include "routines/asm.h"

    .section .text.wherry_csum_partial_copy, "ax", @progbits
    .globl  wherry_csum_partial_copy
    .type   wherry_csum_partial_copy, @function
    .p2align 4
wherry_csum_partial_copy:
    .cfi_startproc
    _CET_ENDBR
    cmpb    $2, wherry_copy_csum_choice(%rip)
    je      wherry_routine_copy_csum_avx512
    jg      wherry_routine_copy_csum_vnni
    cmpb    $1, wherry_copy_csum_choice(%rip)
    je      wherry_routine_copy_csum_avx2
    jmp     wherry_routine_copy_csum_sse2
    .cfi_endproc
    .size   wherry_csum_partial_copy, . - wherry_csum_partial_copy
