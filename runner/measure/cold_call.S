/* Two functions that time one call each, from a front end that has fetched nothing of it yet.
 *
 * A fence would not do: while it waits, the front end runs ahead and brings in the code that is to be found missing.
 * iretq to the next line is the one instruction that a program may use everywhere after which the CPU fetches anew. The
 * line it goes to holds the call and the second reading of the counter, so that nothing but the routine has to be brought;
 * the first reading comes before it, or its own latency would hide the fetching. */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

        .text

/* Goes on at the next line, with the flags, stack and segments of now. Changes rax and rcx. */
.macro fetch_anew
        movq    %rsp, %rcx
        movl    %ss, %eax
        pushq   %rax
        pushq   %rcx
        pushfq
        movl    %cs, %eax
        pushq   %rax
        leaq    .Lanew\@(%rip), %rax
        pushq   %rax
        iretq
        .p2align 6
.Lanew\@:
.endm

/* rax = counter; rdx is lost. */
.macro join
        shlq    $32, %rdx
        orq     %rdx, %rax
.endm

/* uint64_t cold_time_call(loop_fn *fn, void *dst, const void *src, size_t n): ticks from the first fetch to the end of
 * the last instruction. */
        .globl  cold_time_call
        .hidden cold_time_call
        .type   cold_time_call, @function
        .p2align 6
cold_time_call:
        .cfi_startproc
        _CET_ENDBR
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        movq    %rdi, %r12
        movq    %rcx, %r13
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        rdtsc
        join
        movq    %rax, %rbx
        fetch_anew
        movq    %r13, %rdx
        call    *%r12
        rdtscp
        join
        subq    %rbx, %rax
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc
        .size   cold_time_call, . - cold_time_call

/* uint64_t cold_time_nothing(void): the same without the call. */
        .globl  cold_time_nothing
        .hidden cold_time_nothing
        .type   cold_time_nothing, @function
        .p2align 6
cold_time_nothing:
        .cfi_startproc
        _CET_ENDBR
        rdtsc
        join
        movq    %rax, %rdi
        fetch_anew
        rdtscp
        join
        subq    %rdi, %rax
        ret
        .cfi_endproc
        .size   cold_time_nothing, . - cold_time_nothing

        .section .note.GNU-stack, "", @progbits
