/* Test routines of which something is known beforehand, by which the method is shown to be right; known.h.
 *
 * known_copy is a template: known.c puts copies of it into pages of their own. known_chain is that copy and then a chain
 * of multiplications, each of which waits for the one before. Fences keep the copy out of the chain and the chain out of
 * the next call, so that its time is added and nothing of it is hidden: mfence waits until the copy's stores have left,
 * lfence until all before it is done. */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .text

/* void *known_copy(void *dst, const void *src, size_t n): vectors of 16 bytes, the last ones back from the end. It may lie
 * anywhere, since it refers to nothing outside. */
        .globl  known_copy
        .hidden known_copy
        .type   known_copy, @function
        .p2align 6
known_copy:
        .cfi_startproc
        _CET_ENDBR
        movq    %rdi, %rax
        cmpq    $16, %rdx
        jb      .Lto_15
        cmpq    $64, %rdx
        ja      .Lfrom_65
        movups  (%rsi), %xmm0
        movups  -16(%rsi,%rdx), %xmm1
        cmpq    $32, %rdx
        jbe     .Lends
        movups  16(%rsi), %xmm2
        movups  -32(%rsi,%rdx), %xmm3
        movups  %xmm2, 16(%rdi)
        movups  %xmm3, -32(%rdi,%rdx)
.Lends:
        movups  %xmm0, (%rdi)
        movups  %xmm1, -16(%rdi,%rdx)
        ret
.Lfrom_65:
        leaq    -64(%rdx), %rcx
        xorl    %edx, %edx
        .p2align 5
.Lloop:
        movups  (%rsi,%rdx), %xmm0
        movups  16(%rsi,%rdx), %xmm1
        movups  32(%rsi,%rdx), %xmm2
        movups  48(%rsi,%rdx), %xmm3
        movups  %xmm0, (%rdi,%rdx)
        movups  %xmm1, 16(%rdi,%rdx)
        movups  %xmm2, 32(%rdi,%rdx)
        movups  %xmm3, 48(%rdi,%rdx)
        addq    $64, %rdx
        cmpq    %rcx, %rdx
        jb      .Lloop
        movups  (%rsi,%rcx), %xmm0
        movups  16(%rsi,%rcx), %xmm1
        movups  32(%rsi,%rcx), %xmm2
        movups  48(%rsi,%rcx), %xmm3
        movups  %xmm0, (%rdi,%rcx)
        movups  %xmm1, 16(%rdi,%rcx)
        movups  %xmm2, 32(%rdi,%rcx)
        movups  %xmm3, 48(%rdi,%rcx)
        ret
.Lto_15:
        cmpl    $8, %edx
        jae     .Lfrom_8
        cmpl    $4, %edx
        jae     .Lfrom_4
        testl   %edx, %edx
        je      .Lnone
        movq    %rdx, %rcx
        shrq    %rcx
        movzbl  (%rsi), %r8d
        movzbl  (%rsi,%rcx), %r9d
        movzbl  -1(%rsi,%rdx), %r10d
        movb    %r8b, (%rdi)
        movb    %r9b, (%rdi,%rcx)
        movb    %r10b, -1(%rdi,%rdx)
.Lnone:
        ret
.Lfrom_8:
        movq    (%rsi), %r8
        movq    -8(%rsi,%rdx), %r9
        movq    %r8, (%rdi)
        movq    %r9, -8(%rdi,%rdx)
        ret
.Lfrom_4:
        movl    (%rsi), %r8d
        movl    -4(%rsi,%rdx), %r9d
        movl    %r8d, (%rdi)
        movl    %r9d, -4(%rdi,%rdx)
        ret
        .cfi_endproc
        .size   known_copy, . - known_copy
        .globl  known_copy_end
        .hidden known_copy_end
known_copy_end:

/* The place in the chain at which known_chain enters it: as many links are made as lie between there and the end. */
        .globl  known_chain
        .hidden known_chain
        .type   known_chain, @function
        .p2align 6
known_chain:
        .cfi_startproc
        _CET_ENDBR
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    known_copy
        mfence
        lfence
        movl    $1, %ecx
        movl    $1, %edx
        notrack jmp *known_entry(%rip)
        .p2align 6
        .rept   4096
        imulq   %rcx, %rdx
        .endr
        .globl  known_chain_end
        .hidden known_chain_end
known_chain_end:
        lfence
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   known_chain, . - known_chain

/* void known_long_run(uint64_t turns): 64 links a turn and nothing else, between fences. */
        .globl  known_long_run
        .hidden known_long_run
        .type   known_long_run, @function
        .p2align 6
known_long_run:
        .cfi_startproc
        _CET_ENDBR
        movl    $1, %ecx
        movl    $1, %edx
        lfence
        .p2align 6
.Lturn:
        .rept   64
        imulq   %rcx, %rdx
        .endr
        decq    %rdi
        jnz     .Lturn
        lfence
        ret
        .cfi_endproc
        .size   known_long_run, . - known_long_run

        .section .note.GNU-stack, "", @progbits
