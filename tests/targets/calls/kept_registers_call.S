/* SPDX-License-Identifier: MIT */
/*
 * void call_X(const struct registers *in, struct registers *out, void *callee): fills all registers that a called
 * function may change from *in, calls, and stores them to *out. Offsets: struct registers in kept_registers.c.
 */
	.text

	.macro general op, base, way
	.set	at, 2112
	.irp	name, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
	.if	\way
	\op	%\name, at(\base)
	.else
	\op	at(\base), %\name
	.endif
	.set	at, at + 8
	.endr
	.endm

	.macro call_function name, op, reg, masks, numbers:vararg
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.irp	saved, rbx, r12, r13
	push	%\saved
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \saved, 0
	.endr
	mov	%rdi, %rbx
	mov	%rsi, %r12
	mov	%rdx, %r13
	.irp	n, \numbers
	\op	(64 * \n)(%rbx), %\reg\n
	.endr
	.if	\masks
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	(2048 + 8 * \n)(%rbx), %k\n
	.endr
	.endif
	general	mov, %rbx, 0
	call	*%r13
	general	mov, %r12, 1
	.irp	n, \numbers
	\op	%\reg\n, (64 * \n)(%r12)
	.endr
	.if	\masks
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%k\n, (2048 + 8 * \n)(%r12)
	.endr
	.endif
	.irp	saved, r13, r12, rbx
	pop	%\saved
	.cfi_adjust_cfa_offset -8
	.cfi_restore \saved
	.endr
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	call_function call_sse, movdqu, xmm, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	call_function call_avx, vmovdqu, ymm, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	call_function call_avx512, vmovdqu64, zmm, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, \
		18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

	.section .note.GNU-stack, "", @progbits
