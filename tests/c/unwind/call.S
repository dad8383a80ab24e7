/* unwind_call(fn, a, b, c): calls fn(a, b, c) in single steps, with known values in every register that a caller is given
 * back. The unwinder must find those values, this stack pointer and this return address again from each instruction of
 * the callee. */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif
	.text
	.globl	unwind_call, unwind_returned, unwind_call_end
	.type	unwind_call, @function
	.p2align 4
unwind_call:
	.cfi_startproc
	_CET_ENDBR
	.irp	register, rbx, rbp, r12, r13, r14, r15
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endr
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	%rsp, unwind_stack(%rip)
	movq	%rdi, %r11
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	unwind_fourth(%rip), %rcx	/* of those that have a fourth argument, and a fifth */
	xorl	%r8d, %r8d
	movabsq	$0x1111111111111103, %rbx
	movabsq	$0x1111111111111106, %rbp
	movabsq	$0x111111111111110c, %r12
	movabsq	$0x111111111111110d, %r13
	movabsq	$0x111111111111110e, %r14
	movabsq	$0x111111111111110f, %r15
	pushfq
	.cfi_adjust_cfa_offset 8
	orq	$0x100, (%rsp)			/* the trap flag: SIGTRAP after each instruction */
	popfq
	.cfi_adjust_cfa_offset -8
	call	*%r11
unwind_returned:
	pushfq
	.cfi_adjust_cfa_offset 8
	andq	$~0x100, (%rsp)
	popfq
	.cfi_adjust_cfa_offset -8
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp	register, r15, r14, r13, r12, rbp, rbx
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endr
	ret
unwind_call_end:
	.cfi_endproc
	.size	unwind_call, . - unwind_call

/* Two that a debugger would lose its way in. */
	.globl	unwind_wrong_frame, unwind_wrong_register, unwind_wrong_none
	.type	unwind_wrong_frame, @function
unwind_wrong_frame:				/* pushes, and does not say so */
	.cfi_startproc
	_CET_ENDBR
	pushq	%rdi
	popq	%rax
	ret
	.cfi_endproc
	.size	unwind_wrong_frame, . - unwind_wrong_frame
	.type	unwind_wrong_register, @function
unwind_wrong_register:				/* does not say where it keeps a register */
	.cfi_startproc
	_CET_ENDBR
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rbx
	movq	%rbx, %rax
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	unwind_wrong_register, . - unwind_wrong_register
	.type	unwind_wrong_none, @function
unwind_wrong_none:				/* has no unwind information at all */
	_CET_ENDBR
	movq	%rdi, %rax
	ret
	.size	unwind_wrong_none, . - unwind_wrong_none
	.section .note.GNU-stack, "", @progbits
