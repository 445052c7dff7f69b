/* SPDX-License-Identifier: MIT */
/*
 * void spin_X(const struct state *in, struct state *out, uint64_t spins): loads all registers from *in, spins, stores
 * them to *out. rdi in, rsi out, rdx spins left; rax and rcx are scratch. Offsets: struct state in vectors.c.
 */
	.text

	.macro vector_load op, reg, numbers:vararg
	.irp	n, \numbers
	\op	(64 * \n)(%rdi), %\reg\n
	.endr
	.endm
	.macro vector_store op, reg, numbers:vararg
	.irp	n, \numbers
	\op	%\reg\n, (64 * \n)(%rsi)
	.endr
	.endm
	.macro mask_load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	(2048 + 8 * \n)(%rdi), %k\n
	.endr
	.endm
	.macro mask_store
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%k\n, (2048 + 8 * \n)(%rsi)
	.endr
	.endm

	.macro general_load
	movq	(2112 + 0)(%rdi), %rbx
	movq	(2112 + 8)(%rdi), %rbp
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	movq	(2128 + 8 * (\n - 8))(%rdi), %r\n
	.endr
	.endm
	.macro general_store
	movq	%rbx, (2112 + 0)(%rsi)
	movq	%rbp, (2112 + 8)(%rsi)
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	movq	%r\n, (2128 + 8 * (\n - 8))(%rsi)
	.endr
	.endm

	/* A leaf function may keep data in the 128 bytes below rsp (System V ABI, 3.2.2); the lowest word is free. */
	.macro red_zone_copy from_base, from, to_base, to
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
	movq	(\from + 8 * \n)(\from_base), %rax
	movq	%rax, (\to + 8 * \n)(\to_base)
	.endr
	.endm

	.macro spin_function name, op, reg, masks, numbers:vararg
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.irp	reg_, rbx, rbp, r12, r13, r14, r15
	pushq	%\reg_
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg_, 0
	.endr
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	ldmxcsr	2312(%rdi)
	fldcw	2320(%rdi)
	vector_load \op, \reg, \numbers
	.if	\masks
	mask_load
	.endif
	red_zone_copy %rdi, 2192, %rsp, -120
	general_load
1:	decq	%rdx
	jnz	1b
	general_store
	red_zone_copy %rsp, -120, %rsi, 2192
	.if	\masks
	mask_store
	.endif
	vector_store \op, \reg, \numbers
	stmxcsr	2312(%rsi)
	fnstcw	2320(%rsi)
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp	reg_, r15, r14, r13, r12, rbp, rbx
	popq	%\reg_
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg_
	.endr
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	spin_function spin_sse, movdqa, xmm, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	spin_function spin_avx, vmovdqa, ymm, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	spin_function spin_avx512, vmovdqa64, zmm, 1, \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

	.section .note.GNU-stack,"",@progbits
