/* verify_trampoline(fn, a, b, c, regs): calls fn(a, b, c, regs->fourth) with known values in every register that a callee must give
 * back, garbage in those it may use, and two canaries above its return address; then notes what came back and repairs
 * everything, so that the verifier survives a routine that lost its registers or its stack pointer.
 * The frame is found again through thread-local storage, the only thing a wrong routine leaves us for certain.
 */
	.text
	.globl	verify_trampoline
	.globl	verify_returned
	.hidden	verify_has_avx512
	.type	verify_trampoline, @function
	.p2align 4
verify_trampoline:
	endbr64
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%r8				/* regs, at 16(frame) */
	movabsq	$0x5ca1ab1e0ddba11a, %rax
	pushq	%rax
	pushq	%rax				/* frame: two canaries */
	movq	%rsp, %fs:verify_frame@tpoff
	movq	%rdi, %r11
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movzwl	70(%r8), %eax
	movq	88(%r8), %rcx			/* regs->fourth */
	movabsq	$0xb0b0b0b0b0b0b0b1, %rbx
	movabsq	$0xb0b0b0b0b0b0b0b2, %rbp
	movabsq	$0xb0b0b0b0b0b0b0b3, %r12
	movabsq	$0xb0b0b0b0b0b0b0b4, %r13
	movabsq	$0xb0b0b0b0b0b0b0b5, %r14
	movabsq	$0xb0b0b0b0b0b0b0b6, %r15
	movabsq	$0xdeadbeefcafef00d, %r9
	movq	%r9, %r10
	movq	%r9, %r8
	.irp	which, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	(%rsp), %xmm\which
	.endr
	cmpb	$0, verify_has_avx512(%rip)
	je	3f
	.irp	which, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vpbroadcastq	%r9, %zmm\which
	.endr
	.irp	which, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%r9, %k\which
	.endr
3:
	testl	%eax, %eax
	movq	%r9, %rax
	jz	1f
	pushfq
	orq	$0x100, (%rsp)			/* the trap flag: SIGTRAP after each instruction */
	popfq
1:	call	*%r11
verify_returned:
	movq	%fs:verify_frame@tpoff, %rcx
	movq	16(%rcx), %rdx
	movq	%rbx, 0(%rdx)
	movq	%rbp, 8(%rdx)
	movq	%r12, 16(%rdx)
	movq	%r13, 24(%rdx)
	movq	%r14, 32(%rdx)
	movq	%r15, 40(%rdx)
	subq	%rcx, %rsp
	movq	%rsp, 48(%rdx)
	movq	%rcx, %rsp
	movq	0(%rsp), %r8
	movq	%r8, 72(%rdx)
	movq	8(%rsp), %r8
	movq	%r8, 80(%rdx)
	pushfq
	popq	56(%rdx)
	cld
	testl	$0x40000, 56(%rdx)		/* alignment checks, under which few of our own accesses work */
	jz	2f
	pushfq
	andq	$~0x40000, (%rsp)
	popfq
2:	stmxcsr	64(%rdx)
	fnstcw	68(%rdx)
	addq	$24, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size	verify_trampoline, . - verify_trampoline
	.section .note.GNU-stack, "", @progbits
