/* SPDX-License-Identifier: MIT */
/*
 * Parts of the hooks, for hook_parts.c: gates of two instructions, and what may stand between gate and original. The
 * code is that of payload/arch/x86_64/hooks.S where it is the same; what never happens here is a trap.
 */
	.data
	.p2align 12
	.globl	parts_gate_malloc, parts_gate_free, parts_slots, parts_owner
parts_gate_malloc:	.quad 0, 0
parts_gate_free:	.quad 0, 0
parts_slots:	.quad 0
	.p2align 7
nobody:	.quad 0, 0
	.p2align 12
parts_owner:	.quad 0
parts_remaining:	.quad 0x7fffffffffffffff
	.p2align 12
	.bss
	.p2align 12
filter:	.skip 1 << 16

	.macro	variant name
	.p2align 6
	.globl	\name
\name:
	.endm

	.macro	find_slot
	mov	%fs:0, %r10
	find_slot_of_r10
	.endm

	.macro	find_slot_of_r10
	mov	%r10, %rax
	shr	$12, %rax
	xor	%r10, %rax
	and	$(4095 << 12), %eax
	shr	$5, %eax
	add	parts_slots(%rip), %rax
	cmp	%r10, (%rax)
	jne	trap
	.endm

	.macro	charge remaining
	cmp	$1, %rdi
	sbb	%rdi, \remaining
	jb	trap
	.endm

	.macro	charge_near slot
	mov	%fs:0, %r10
	cmp	%r10, \slot(%rip)
	jne	1f
	charge	\slot + 8(%rip)
	jmp	*8(%r11)
1:	find_slot_of_r10
	charge	8(%rax)
	jmp	*8(%r11)
	.endm

	.macro	test_filter
	imul	$0x1E3779B9, %rdi, %rax
	shr	$28, %rax
	and	$0xffff, %eax
	lea	filter(%rip), %r10
	cmpb	$0, (%r10,%rax)
	jne	trap
	.endm

	.macro	find_owned
	mov	%fs:0, %rax
	cmp	%rax, parts_owner(%rip)
	jne	trap
	.endm

	.section .text.parts_gates, "ax", @progbits
	.p2align 12
variant	parts_gated_malloc
	lea	parts_gate_malloc(%rip), %r11
	jmp	*(%r11)
variant	parts_gated_free
	lea	parts_gate_free(%rip), %r11
	jmp	*(%r11)
variant	parts_direct_malloc
	lea	parts_gate_malloc(%rip), %r11
	jmp	parts_malloc
variant	parts_direct_free
	lea	parts_gate_free(%rip), %r11
	jmp	parts_free
variant	parts_inside_malloc
	find_slot
	charge	8(%rax)
	jmp	*parts_gate_malloc + 8(%rip)
variant	parts_inside_free
	test_filter
	jmp	*parts_gate_free + 8(%rip)
variant	parts_owned_malloc
	find_owned
	charge	parts_remaining(%rip)
	jmp	*parts_gate_malloc + 8(%rip)
	.p2align 12

	.text
trap:	ud2
variant	parts_empty
	jmp	*8(%r11)
variant	parts_malloc
	find_slot
	charge	8(%rax)
	jmp	*8(%r11)
variant	parts_free
	test_filter
	jmp	*8(%r11)
variant	parts_near
	charge_near parts_owner
variant	parts_near_of_another
	charge_near nobody
variant	parts_find_only
	find_slot
	jmp	*8(%r11)
variant	parts_fixed_word
	charge	parts_remaining(%rip)
	jmp	*8(%r11)
variant	parts_additions
	.rept	12
	lea	1(%r10), %r10
	.endr
	jmp	*8(%r11)

	.section .note.GNU-stack, "", @progbits
