/* SPDX-License-Identifier: MIT */
/* void call_below_long_frames(void (*function)(void)) */
	.text
	.globl	call_below_long_frames
	.type	call_below_long_frames, @function
call_below_long_frames:
	.cfi_startproc
	.rept	1900000
	.cfi_remember_state
	.endr
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	*%rdi
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	call_below_long_frames, . - call_below_long_frames
	.section .note.GNU-stack, "", @progbits
