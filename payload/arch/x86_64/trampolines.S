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

	/* One instruction, and for trampoline 0 a label by which the list at the end knows where it begins. */
	.macro	at number, instruction:vararg
	.if	trampoline_number == 0
.Ltrampoline_\number:
	.endif
	\instruction
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
	at	0, mov %fs:0, %r10
	at	1, cmp %r10, SHARED + TRAMPOLINES_NEAR_OWNER(%rip)
	at	2, jne 2f
	at	3, cmp $1, %rdi
	at	4, sbb %rdi, SHARED + TRAMPOLINES_NEAR + THREAD_STATE_REMAINING(%rip)
	at	5, js 1f
	at	6, nop
	at	7, jmp *TRAMPOLINE + 8(%rip)
1:	at	8, lea SHARED + TRAMPOLINES_NEAR(%rip), %rax
	at	9, jmp 3f

	.p2align 6, 0xcc
	at	10, mov SHARED + TRAMPOLINES_FILTER_MULTIPLIER(%rip), %eax
	at	11, imul %rdi, %rax
	at	12, shr $FILTER_SHIFT, %rax
	at	13, and SHARED + TRAMPOLINES_FILTER_MASK(%rip), %eax
	at	14, lea FILTER(%rip), %r10
	at	15, cmpb $0, (%r10, %rax)
	at	16, jne 2f
	at	17, jmp *TRAMPOLINE + 8(%rip)

	.p2align 4, 0xcc
2:	at	18, xor %eax, %eax
3:	at	19, lea TRAMPOLINE(%rip), %r11
	at	20, jmp *(%r11)

	.p2align 6, 0xcc
	at	21, lea -1(%rsi), %rax
	at	22, cmp $(POOL_MAX - 1), %rax
	at	23, ja 4f
	at	24, mov %fs:0, %r10
	at	25, cmp %r10, SHARED + TRAMPOLINES_NEAR_OWNER(%rip)
	at	26, jne 2b
	at	27, sub %rsi, SHARED + TRAMPOLINES_NEAR + THREAD_STATE_REMAINING(%rip)
	at	28, js 5f
4:	at	29, jmp *TRAMPOLINE + 8(%rip)
5:	at	30, lea SHARED + TRAMPOLINES_NEAR(%rip), %rax
	at	31, jmp 3b

	.p2align 6, 0xcc
	at	32, mov SHARED + TRAMPOLINES_FILTER_MULTIPLIER(%rip), %eax
	at	33, imul %rsi, %rax
	at	34, shr $FILTER_SHIFT, %rax
	at	35, and SHARED + TRAMPOLINES_FILTER_MASK(%rip), %eax
	at	36, lea FILTER(%rip), %r10
	at	37, cmpb $0, (%r10, %rax)
	at	38, jne 2b
	at	39, jmp *TRAMPOLINE + 8(%rip)

	.set	trampoline_number, trampoline_number + 1
	.endr
	.p2align 12, 0xcc
	.size	trampoline_code, . - trampoline_code

	.macro	list_instruction number
	.byte	.Ltrampoline_\number - trampoline_code
	.endm

	.section .rodata
	.globl	trampoline_instructions, trampoline_instruction_count
	.hidden	trampoline_instructions, trampoline_instruction_count
	.type	trampoline_instructions, @object
trampoline_instructions:
	.altmacro
	.set	number, 0
	.rept	40
	list_instruction %number
	.set	number, number + 1
	.endr
	.noaltmacro
.Ltrampoline_instructions_end:
	.size	trampoline_instructions, . - trampoline_instructions
	.p2align 2
	.type	trampoline_instruction_count, @object
trampoline_instruction_count:
	.long	.Ltrampoline_instructions_end - trampoline_instructions
	.size	trampoline_instruction_count, . - trampoline_instruction_count

	.section .note.GNU-stack, "", @progbits
