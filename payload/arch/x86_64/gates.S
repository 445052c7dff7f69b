/* SPDX-License-Identifier: MIT */
/*
 * The code of the gates (include/gates.h): some pages, mapped a second time by CONTROL_START with their data behind
 * them. All addresses are relative, so that copy works at its own place; this one is never run.
 *
 * On entry the registers and the stack are the caller's. rax, r10 and r11 may be changed before the original is
 * reached. What the gate does not decide goes to gate.entry with r11 = struct gate, and rax = the near slot if it has
 * been charged and is below 0, or 0 (hooks.S).
 *
 * - allocate: a comparison tells whether the near slot is this thread's; two instructions charge it, and a distance
 * below 0 means that the call is
 *   sampled. (The comparison with 1 leaves the carry of a 0 to the subtraction: 0 bytes count as 1.)
 * - release: the first counter of the filter tells for most blocks that they were not sampled.
 *
 * Each jump stays within 32 bytes (a nop sees to it): Skylake and its descendants do not cache decoded branches that
 * touch a boundary of 32 bytes.
 */
#include "gates.h"
#include "hook_call.h"

#define SHARED gate_code + GATES_CODE_BYTES
#define FILTER gate_code + GATES_BYTES
#define GATE SHARED + GATES_SHARED_BYTES + GATE_BYTES * gate_number

	/* One instruction, and for gate 0 a label by which the list at the end knows where it begins. */
	.macro	at number, instruction:vararg
	.if	gate_number == 0
.Lgate_\number:
	.endif
	\instruction
	.endm

	.section .text.gates, "ax", @progbits
	.globl	gate_code
	.hidden	gate_code
	.p2align 12
	.type	gate_code, @object
gate_code:
	.set	gate_number, 0
	.rept	GATE_MAX

	.p2align 7, 0xcc
	at	0, mov %fs:0, %r10
	at	1, cmp %r10, SHARED + GATES_NEAR_OWNER(%rip)
	at	2, jne 2f
	at	3, cmp $1, %rdi
	at	4, sbb %rdi, SHARED + GATES_NEAR + THREAD_SLOT_REMAINING(%rip)
	at	5, js 1f
	at	6, nop
	at	7, jmp *GATE + 8(%rip)
1:	at	8, lea SHARED + GATES_NEAR(%rip), %rax
	at	9, jmp 3f

	.p2align 6, 0xcc
	at	10, imul $FILTER_MULTIPLIER, %rdi, %rax
	at	11, shr $FILTER_SHIFT, %rax
	at	12, and SHARED + GATES_FILTER_MASK(%rip), %eax
	at	13, lea FILTER(%rip), %r10
	at	14, cmpb $0, (%r10, %rax)
	at	15, jne 2f
	at	16, nop
	at	17, jmp *GATE + 8(%rip)

	.p2align 4, 0xcc
2:	at	18, xor %eax, %eax
3:	at	19, lea GATE(%rip), %r11
	at	20, jmp *(%r11)

	.set	gate_number, gate_number + 1
	.endr
	.p2align 12, 0xcc
	.size	gate_code, . - gate_code

	.section .rodata
	.globl	gate_instructions, gate_instruction_count
	.hidden	gate_instructions, gate_instruction_count
	.type	gate_instructions, @object
gate_instructions:
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
	.byte	.Lgate_\number - gate_code
	.endr
.Lgate_instructions_end:
	.size	gate_instructions, . - gate_instructions
	.p2align 2
	.type	gate_instruction_count, @object
gate_instruction_count:
	.long	.Lgate_instructions_end - gate_instructions
	.size	gate_instruction_count, . - gate_instruction_count

	.section .note.GNU-stack, "", @progbits
