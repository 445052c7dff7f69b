/* SPDX-License-Identifier: MIT */
/*
 * Position-independent; struct hold_data follows the last byte. At a program's entry x0 and the stack have a meaning,
 * at that of main x0 to x2: these and x8 are kept. Four words are pushed, in this order, which hold_stub_leave() knows.
 * x16 may be changed on the way to a function (AAPCS64 6.1.1), and BTI accepts a jump by it at a landing pad.
 */
#include "arch/hold_stub.h"

#define SYS_nanosleep 101
#define SYS_getppid 173

	.section .rodata
	.balign 16
	.globl hold_code, hold_code_end
	.hidden hold_code, hold_code_end
	.type hold_code, @object
hold_code:
	hint	#34			/* bti c */
	stp	x0, x1, [sp, #-32]!
	stp	x2, x8, [sp, #16]
.Llook:
	adr	x16, hold_code_end
	ldr	w0, [x16, #HD_GO]
	cbnz	w0, .Lgo_on
	mov	x8, #SYS_getppid
	svc	#0
	ldr	w1, [x16, #HD_PARENT]
	cmp	w0, w1
	b.ne	.Lgo_on
	add	x0, x16, #HD_PAUSE
	mov	x1, #0
	mov	x8, #SYS_nanosleep
	svc	#0
	b	.Llook
.Lgo_on:
	ldr	x16, [x16, #HD_ENTRY]
	ldp	x2, x8, [sp, #16]
	ldp	x0, x1, [sp], #32
	br	x16
	.balign 8
hold_code_end:
	.size hold_code, . - hold_code
	.section .note.GNU-stack, "", @progbits
