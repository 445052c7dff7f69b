/* SPDX-License-Identifier: MIT */
/*
 * void spin_X(const struct state *in, struct state *out, uint64_t spins): loads all registers from *in, spins, stores
 * them to *out. x0 in, x1 out, x2 spins left; x9 to x11 are scratch. Offsets: struct state in vectors_of_aarch64.c.
 */
	.text
	.altmacro

	.macro	each_vector way, base
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	\way	\base, \n
	.endr
	.endm
	.macro	neon_load base, n
	ldr	q\n, [\base, #(16 * \n)]
	.endm
	.macro	neon_store base, n
	str	q\n, [\base, #(16 * \n)]
	.endm
	.macro	sve_load base, n
	ldr	z\n, [\base, #\n, mul vl]
	.endm
	.macro	sve_store base, n
	str	z\n, [\base, #\n, mul vl]
	.endm
	.macro	each_predicate instruction, base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\instruction	p\n, [\base, #\n, mul vl]
	.endr
	.endm
	.macro	general instruction, base
	mov	x11, #8736
	add	x11, \base, x11
	\instruction	x19, x20, [x11]
	\instruction	x21, x22, [x11, #16]
	\instruction	x23, x24, [x11, #32]
	\instruction	x25, x26, [x11, #48]
	\instruction	x27, x28, [x11, #64]
	.endm

	.macro	spin_function name, sve
	.globl	\name
	.type	\name, %function
\name:
	.cfi_startproc
	stp	x29, x30, [sp, #-176]!
	.cfi_def_cfa_offset 176
	.cfi_offset 29, -176
	.cfi_offset 30, -168
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x10, fpcr
	str	x10, [sp, #160]
	mov	x11, #8816
	add	x11, x0, x11
	ldp	x9, x10, [x11]
	msr	fpcr, x9
	msr	fpsr, x10
	.if	\sve
	each_vector sve_load, x0
	mov	x11, #8704
	add	x11, x0, x11
	ldr	p0, [x11]
	wrffr	p0.b
	mov	x11, #8192
	add	x11, x0, x11
	each_predicate ldr, x11
	.else
	each_vector neon_load, x0
	.endif
	general ldp, x0
1:	subs	x2, x2, #1
	b.ne	1b
	general stp, x1
	.if	\sve
	each_vector sve_store, x1
	mov	x11, #8192
	add	x11, x1, x11
	each_predicate str, x11
	rdffr	p0.b
	mov	x11, #8704
	add	x11, x1, x11
	str	p0, [x11]
	.else
	each_vector neon_store, x1
	.endif
	mrs	x9, fpcr
	mrs	x10, fpsr
	mov	x11, #8816
	add	x11, x1, x11
	stp	x9, x10, [x11]
	ldr	x10, [sp, #160]
	msr	fpcr, x10
	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x27, x28, [sp, #80]
	ldp	x25, x26, [sp, #64]
	ldp	x23, x24, [sp, #48]
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #176
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	spin_function spin_neon, 0
	.arch	armv8.2-a+sve
	spin_function spin_sve, 1

	.section .note.GNU-stack, "", %progbits
