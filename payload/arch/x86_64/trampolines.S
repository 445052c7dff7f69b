/* SPDX-License-Identifier: MIT */
/*
 * The code of the trampolines (include/trampolines.h): some pages, mapped a second time by CONTROL_START with their
 * data after them. All addresses are relative, so that copy works at its own place; this one is never run.
 *
 * On entry the registers and the stack are the caller's. rax, r10 and r11 may be changed before the original is
 * reached. What the trampoline does not decide goes to trampoline.next with r11 = struct trampoline, and rax = the near
 * thread state if that has been charged and is below 0, else 0 (hooks.S).
 *
 * - allocate: if the near thread state is this thread's, two instructions subtract the size; below 0 the call is
 *   sampled. (The comparison with 1 leaves the carry of a 0 to the subtraction: 0 bytes count as 1.)
 * - release: the first counter of the filter tells for most blocks that they were not sampled.
 * - pool: the same with the size and the block in the second argument. One comparison dismisses sizes of 0 and above
 *   POOL_MAX.
 *
 * Each jump stays within 32 bytes (a nop sees to it): Skylake and its descendants do not cache decoded branches that
 * touch a boundary of 32 bytes.
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

	.section .text.trampolines, "ax", @progbits
	.globl	trampoline_code
	.hidden	trampoline_code
	.p2align 12
	.type	trampoline_code, @object
trampoline_code:
	.set	trampoline_number, 0
	.rept	TRAMPOLINE_MAX

	.p2align 8, 0xcc
9:	is_at	TRAMPOLINE_ALLOCATE
	mov	%fs:0, %r10
	cmp	%r10, SHARED + TRAMPOLINES_NEAR_OWNER(%rip)
	jne	2f
	cmp	$1, %rdi
	sbb	%rdi, SHARED + TRAMPOLINES_NEAR + THREAD_STATE_REMAINING(%rip)
	js	1f
	nop
	jmp	*TRAMPOLINE + 8(%rip)
1:	is_at	TRAMPOLINE_BELOW
	lea	SHARED + TRAMPOLINES_NEAR(%rip), %rax
	jmp	3f

	.p2align 6, 0xcc
	is_at	TRAMPOLINE_RELEASE
	mov	SHARED + TRAMPOLINES_FILTER_MULTIPLIER(%rip), %eax
	imul	%rdi, %rax
	shr	$FILTER_SHIFT, %rax
	and	SHARED + TRAMPOLINES_FILTER_MASK(%rip), %eax
	lea	FILTER(%rip), %r10
	cmpb	$0, (%r10, %rax)
	jne	2f
	jmp	*TRAMPOLINE + 8(%rip)

	.p2align 4, 0xcc
2:	is_at	TRAMPOLINE_OTHER
	xor	%eax, %eax
3:	lea	TRAMPOLINE(%rip), %r11
	jmp	*(%r11)

	.p2align 6, 0xcc
	is_at	TRAMPOLINE_POOL_ALLOCATE
	lea	-1(%rsi), %rax
	cmp	$(POOL_MAX - 1), %rax
	ja	4f
	mov	%fs:0, %r10
	cmp	%r10, SHARED + TRAMPOLINES_NEAR_OWNER(%rip)
	jne	2b
	sub	%rsi, SHARED + TRAMPOLINES_NEAR + THREAD_STATE_REMAINING(%rip)
	js	5f
4:	jmp	*TRAMPOLINE + 8(%rip)
5:	lea	SHARED + TRAMPOLINES_NEAR(%rip), %rax
	jmp	3b

	.p2align 6, 0xcc
	is_at	TRAMPOLINE_POOL_RELEASE
	mov	SHARED + TRAMPOLINES_FILTER_MULTIPLIER(%rip), %eax
	imul	%rsi, %rax
	shr	$FILTER_SHIFT, %rax
	and	SHARED + TRAMPOLINES_FILTER_MASK(%rip), %eax
	lea	FILTER(%rip), %r10
	cmpb	$0, (%r10, %rax)
	jne	2b
	jmp	*TRAMPOLINE + 8(%rip)

	.set	trampoline_number, trampoline_number + 1
	.endr
	.p2align 12, 0xcc
	.size	trampoline_code, . - trampoline_code

	.section .note.GNU-stack, "", @progbits
