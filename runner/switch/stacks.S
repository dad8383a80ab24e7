/* A switch from one stack to another. %rdi: where the state goes; %rsi: where it comes from. The integer registers are
 * those that a called function must keep. */
#include "routines/asm.h"

#define TOP 0
#define AREA 8
#define KEPT 16
/* In an XSAVE area: which parts it holds, which have a place in it (bit 63: side by side). */
#define XSTATE_BV 512
#define XCOMP_BV 520

.section .bss.stack_mask, "aw", @nobits
.globl stack_mask
.hidden stack_mask
.p2align 3
stack_mask:
    .zero 8
    .size stack_mask, 8
    .type stack_mask, @object

.macro leave_stack
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, TOP(%rdi)
.endm

.macro enter_stack
    movq TOP(%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret
.endm

/* %edx:%eax: everything. */
.macro everything
    movl stack_mask(%rip), %eax
    movl 4+stack_mask(%rip), %edx
.endm

/* No unwinder gets through a switch: no frame information is given between its two stacks. */
ENTRY(stack_never)
    leave_stack
    enter_stack
END(stack_never)

ENTRY(stack_fxsave)
    leave_stack
    movq AREA(%rdi), %r8
    movq AREA(%rsi), %r9
    fxsave64 (%r8)
    fxrstor64 (%r9)
    enter_stack
END(stack_fxsave)

ENTRY(stack_xsave)
    leave_stack
    movq AREA(%rdi), %r8
    movq AREA(%rsi), %r9
    everything
    xsave64 (%r8)
    xrstor64 (%r9)
    enter_stack
END(stack_xsave)

ENTRY(stack_xsavec)
    leave_stack
    movq AREA(%rdi), %r8
    movq AREA(%rsi), %r9
    everything
    xsavec64 (%r8)
    xrstor64 (%r9)
    enter_stack
END(stack_xsavec)

ENTRY(stack_xsaveopt)
    leave_stack
    movq AREA(%rdi), %r8
    movq AREA(%rsi), %r9
    everything
    xsaveopt64 (%r8)
    xrstor64 (%r9)
    enter_stack
END(stack_xsaveopt)

/* Only what is not as after reset; with nothing in use on both sides, nothing at all. */
ENTRY(stack_in_use)
    leave_stack
    movq AREA(%rdi), %r8
    movq AREA(%rsi), %r9
    movl $1, %ecx
    xgetbv
    andl stack_mask(%rip), %eax
    andl 4+stack_mask(%rip), %edx
    movl %eax, KEPT(%rdi)
    movl %edx, KEPT+4(%rdi)
    movq KEPT(%rdi), %rcx
    testq %rcx, %rcx
    jz .Lnothing_to_save
    xsavec64 (%r8)
    jmp .Lrestore
.Lnothing_to_save:
    cmpq $0, KEPT(%rsi)
    je .Lentered_as_is
.Lrestore:
    cmpq $0, KEPT(%rsi)
    jne .Larea_holds_it
    /* Nothing was saved there: an area that says so takes everything back to what it is after reset. */
    movq $0, XSTATE_BV(%r9)
    movabsq $1 << 63, %rax
    movq %rax, XCOMP_BV(%r9)
.Larea_holds_it:
    everything
    xrstor64 (%r9)
.Lentered_as_is:
    enter_stack
END(stack_in_use)
