/* SPDX-License-Identifier: MIT */
/*
 * Position-independent; struct hold_data follows the last byte. At a program's entry %rdx and the stack have a meaning
 * (psABI 3.4.1), at that of main %rdi, %rsi and %rdx: these are kept. Three words are pushed, in this order, which
 * hold_stub_leave() knows.
 */
#include "arch/hold_stub.h"

#define SYS_nanosleep 35
#define SYS_getppid 110

	.section .rodata
	.balign 16
	.globl hold_code, hold_code_end
	.hidden hold_code, hold_code_end
	.type hold_code, @object
hold_code:
	push	%rdi
	push	%rsi
	push	%rdx
.Llook:
	cmpl	$0, hold_code_end+HD_GO(%rip)
	jne	.Lgo_on
	mov	$SYS_getppid, %eax
	syscall
	cmp	hold_code_end+HD_PARENT(%rip), %eax
	jne	.Lgo_on
	lea	hold_code_end+HD_PAUSE(%rip), %rdi
	xor	%esi, %esi
	mov	$SYS_nanosleep, %eax
	syscall
	jmp	.Llook
.Lgo_on:
	pop	%rdx
	pop	%rsi
	pop	%rdi
	jmp	*hold_code_end+HD_ENTRY(%rip)
	.balign 8
hold_code_end:
	.size hold_code, . - hold_code
	.section .note.GNU-stack, "", @progbits
