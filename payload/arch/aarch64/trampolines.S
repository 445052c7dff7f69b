/* SPDX-License-Identifier: MIT */
/*
 * The code of the trampolines (include/trampolines.h): some pages, mapped a second time by CONTROL_START with their
 * data after them. All addresses are relative, so that copy works at its own place; this one is never run.
 *
 * On entry the registers and the stack are the caller's; x9 to x17, which a call may change (AAPCS64 6.1.1), are used.
 * What the trampoline does not decide goes to trampoline.next with x17 = struct trampoline, and x9 = the near thread
 * state if that has been charged and is below 0, else 0 (hooks.S). Each entrance is a landing pad (BTI).
 *
 * - allocate: if the near thread state is this thread's, the size is subtracted, 0 counting as 1; below 0 the call is
 *   sampled.
 * - release: the first counter of the filter tells for most blocks that they were not sampled.
 * - pool: the same with the size and the block in the second argument. One comparison dismisses sizes of 0 and above
 *   POOL_MAX.
 */
#include "trampolines.h"
#include "hook_call.h"

#define SHARED trampoline_code + TRAMPOLINES_CODE_BYTES
#define FILTER trampoline_code + TRAMPOLINES_BYTES
#define TRAMPOLINE SHARED + TRAMPOLINES_SHARED_BYTES + TRAMPOLINE_BYTES * trampoline_number

	/* The assembler ends with an error if this place is not \offset from the start of the trampoline. */
	.macro	is_at offset
8:	.org	9b + \offset
	.org	8b
	.endm

	.macro	landing_pad
	hint	#34			/* bti c */
	.endm

	.macro	original
	ldr	x16, TRAMPOLINE + 8
	br	x16
	.endm

	/* x11 = the near thread state, to \far if it is another thread's */
	.macro	near far
	mrs	x10, tpidr_el0
	ldr	x9, SHARED + TRAMPOLINES_NEAR_OWNER
	cmp	x9, x10
	b.ne	\far
	adr	x11, SHARED + TRAMPOLINES_NEAR
	.endm

	.macro	charge size
	ldr	x10, [x11, #THREAD_STATE_REMAINING]
	subs	x10, x10, \size
	str	x10, [x11, #THREAD_STATE_REMAINING]
	.endm

	.macro	release block, maybe
	ldr	w9, SHARED + TRAMPOLINES_FILTER_MULTIPLIER
	mul	x9, x9, \block
	lsr	x9, x9, #FILTER_SHIFT
	ldr	w10, SHARED + TRAMPOLINES_FILTER_MASK
	and	w9, w9, w10
	adr	x10, FILTER
	ldrb	w9, [x10, x9]
	cbnz	w9, \maybe
	original
	.endm

	.section .text.trampolines, "ax", @progbits
	.globl	trampoline_code
	.hidden	trampoline_code
	.p2align 12
	.type	trampoline_code, @object
trampoline_code:
	.set	trampoline_number, 0
	.rept	TRAMPOLINE_MAX

	.p2align 8, 0
9:	is_at	TRAMPOLINE_ALLOCATE
	landing_pad
	near	2f
	cmp	x0, #1
	csinc	x12, x0, xzr, hs
	charge	x12
	b.mi	1f
	original
1:	is_at	TRAMPOLINE_BELOW
	mov	x9, x11
	b	3f

	is_at	TRAMPOLINE_RELEASE
	landing_pad
	release	x0, 2f

	is_at	TRAMPOLINE_OTHER
	landing_pad
2:	mov	x9, #0
3:	adr	x17, TRAMPOLINE
	ldr	x16, [x17]
	br	x16

	is_at	TRAMPOLINE_POOL_ALLOCATE
	landing_pad
	sub	x9, x1, #1
	cmp	x9, #(POOL_MAX - 1)
	b.hi	4f
	near	2b
	charge	x1
	b.mi	5f
4:	original
5:	mov	x9, x11
	b	3b

	is_at	TRAMPOLINE_POOL_RELEASE
	landing_pad
	release	x1, 2b

	.set	trampoline_number, trampoline_number + 1
	.endr
	.p2align 12, 0
	.size	trampoline_code, . - trampoline_code

	.section .note.GNU-stack, "", @progbits
