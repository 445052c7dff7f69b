/* SPDX-License-Identifier: MIT */
/*
 * The code of the gates (include/control.h): one page, mapped a second time by CONTROL_START with a page of struct gate behind
 * it. All addresses are relative, so that copy works at its own place; this one is never run.
 */
#define GATE_PAGE_BYTES 4096
#define GATE_CODE_BYTES 16
#define GATE_MAX 256

	.section .text.gates, "ax", @progbits
	.globl	gate_code
	.hidden	gate_code
	.p2align 12
	.type	gate_code, @object
gate_code:
	.set	gate_number, 0
	.rept	GATE_MAX
	.p2align 4, 0xcc
	lea	gate_code + GATE_PAGE_BYTES + GATE_CODE_BYTES * gate_number(%rip), %r11
	jmp	*(%r11)
	.set	gate_number, gate_number + 1
	.endr
	.p2align 12, 0xcc
	.size	gate_code, . - gate_code

	.section .note.GNU-stack, "", @progbits
