/* SPDX-License-Identifier: MIT */
/*
 * The entries of the hooks: one for each function of HOOK_LIST, made from its shape and from where its size stands.
 *
 * On entry r11 holds the address of the struct gate, the argument registers hold the call's arguments, and the stack is
 * the caller's; rax is the near slot, if the gate has charged it with the call and that is below 0 now, or 0. Only rax,
 * r10 and r11 may be changed before the original is reached by `jmp *8(%r11)`.
 *
 * An allocation takes the requested bytes (0 counts as 1) from slot.remaining of its thread; what is below 0 then is
 * sampled. Most programs allocate mostly in one thread, and on a processor that overlaps what it can each instruction
 * here counts: so the first thread that comes gets the near slot, at a fixed place, and only the others look theirs up
 * by a hash of the thread pointer. For the functions that take nothing but a size the gate itself charges it (gates.S),
 * so here come the other threads only. A free asks the filter whether its address may have been sampled; the gate has
 * asked the first of two counters, which is enough for most. Everything else is hook_slow()'s (hook.c), reached through
 * one common frame whose CFI lets C++ exceptions and debuggers pass.
 *
 * A forked child finds slots, filter and switch wiped: its allocations fail to find a slot, or exhaust its copy of the
 * near slot, meet the switch and go on.
 */
#include "control.h"
#include "hooks.h"
#include "hook_call.h"

#define ORIGINAL *8(%r11)

	.hidden	hook_slow, gates_shared, thread_slots_address, filter_counters, filter_mask, payload_switch

/*
 * rax = slot of the thread with thread pointer r10, or to \missing. The address of the slot must be known early: the
 * loads of the allocator behind it wait for the address of the store in `charge` (measured: a multiplication here costs
 * 1.5 ns).
 */
	.macro	find_slot missing
	mov	%r10, %rax
	shr	$THREAD_SLOT_FOLD, %rax
	xor	%r10, %rax
	and	$((THREAD_SLOT_COUNT - 1) << THREAD_SLOT_SHIFT), %eax
	shr	$(THREAD_SLOT_SHIFT - THREAD_SLOT_BYTES_LOG2), %eax
	add	thread_slots_address(%rip), %rax
	cmp	%r10, THREAD_SLOT_OWNER(%rax)
	jne	\missing
	.endm

/* The cold half of find_slot. */
	.macro	probe_slots found
	.rept	THREAD_SLOT_PROBES - 1
	add	$THREAD_SLOT_BYTES, %rax
	cmp	%r10, THREAD_SLOT_OWNER(%rax)
	je	\found
	.endr
	xor	%eax, %eax
	.endm

/* To \maybe if the filter knows arguments like argument 0. */
	.macro	test_filter maybe, other
	imul	$FILTER_MULTIPLIER, %rdi, %r10
	mov	%r10, %rax
	shr	$FILTER_SHIFT, %rax
	and	filter_mask(%rip), %eax
	add	filter_counters(%rip), %rax
	cmpb	$0, (%rax)
	je	\other
	shr	$FILTER_SECOND_SHIFT, %r10
	and	$(FILTER_LINE_BYTES - 1), %r10d
	xor	%r10, %rax
	cmpb	$0, (%rax)
	jne	\maybe
\other:
	.endm

/*
 * remaining -= max(\size, 1): the comparison leaves the carry of a 0 to the subtraction. Below 0 the call is sampled.
 * The sign is asked, not the borrow: should a thread never come to see that (its signal handler has left by
 * siglongjmp), its next call does. A request of 2^63 bytes or more, which no allocator grants, may pass.
 */
	.macro	charge size, remaining
	cmp	$1, \size
	sbb	\size, \remaining
	.endm

	.macro	charge_product first, second, remaining, overflow
	mov	\first, %r10
	imul	\second, %r10
	jo	\overflow
	charge	%r10, \remaining
	.endm

	.macro	charge_size size, remaining, overflow
	.if	\size == SIZE_ARG0
	charge	%rdi, \remaining
	.elseif	\size == SIZE_ARG1
	charge	%rsi, \remaining
	.elseif	\size == SIZE_ARG2
	charge	%rdx, \remaining
	.elseif	\size == SIZE_ARG0_X_ARG1
	charge_product %rdi, %rsi, \remaining, \overflow
	.elseif	\size == SIZE_ARG1_X_ARG2
	charge_product %rsi, %rdx, \remaining, \overflow
	.else
	.error	"a shape that allocates needs a size"
	.endif
	.endm

	.set	hook_number, 0

	.macro	hook id, shape, size
	.text
	.p2align 5
	.type	hook_\id, @function
hook_\id:
	.cfi_startproc
	.if	\shape == SHAPE_ALLOC && \size == SIZE_ARG0	/* GATE_ALLOCATE */
	test	%rax, %rax
	jnz	.Lslow_\id
	mov	%fs:0, %r10
	.elseif	\shape == SHAPE_FREE || \shape == SHAPE_UNMAP
	test_filter .Luncharged_\id, .Lunknown_\id
	.else
	.if	\shape == SHAPE_MAP
	test	$0x20, %cl		/* MAP_ANONYMOUS */
	jz	.Loriginal_\id
	.endif
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE || \shape == SHAPE_REMAP
	test_filter .Luncharged_\id, .Lunknown_\id
	.endif
	mov	%fs:0, %r10
	mov	gates_shared(%rip), %rax
	cmp	%r10, GATES_NEAR_OWNER(%rax)
	jne	.Lfar_\id
	add	$GATES_NEAR, %rax
	jmp	.Lfound_\id
.Lfar_\id:
	.endif
	.if	\shape != SHAPE_FREE && \shape != SHAPE_UNMAP
	find_slot .Lprobe_\id
.Lfound_\id:
	charge_size \size, THREAD_SLOT_REMAINING(%rax), .Loriginal_\id
	js	.Lslow_\id
	.endif
.Loriginal_\id:
	jmp	ORIGINAL
	.cfi_endproc
	.size	hook_\id, . - hook_\id

	.subsection 1
	.cfi_startproc
	.if	\shape != SHAPE_FREE && \shape != SHAPE_UNMAP
.Lprobe_\id:
	probe_slots .Lfound_\id
	jmp	.Lslow_\id
	.endif
	.if	\shape != SHAPE_ALLOC && \shape != SHAPE_OUT && \shape != SHAPE_MAP
.Luncharged_\id:
	xor	%eax, %eax
	.endif
.Lslow_\id:
	mov	$hook_number, %r10d
	jmp	hook_enter
	.cfi_endproc
	.previous

	.set	hook_number, hook_number + 1
	.endm

	.text
/* r10d = id, rax = charged slot or 0, r11 = gate: saves the call and lets hook_slow() make it. */
	.p2align 4
	.type	hook_enter, @function
hook_enter:
	.cfi_startproc
	cmpl	$0, payload_switch(%rip)
	jne	1f
	jmp	ORIGINAL
1:
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$HOOK_CALL_BYTES, %rsp
	and	$-16, %rsp
	mov	%rdi, HOOK_CALL_ARGUMENTS + 0(%rsp)
	mov	%rsi, HOOK_CALL_ARGUMENTS + 8(%rsp)
	mov	%rdx, HOOK_CALL_ARGUMENTS + 16(%rsp)
	mov	%rcx, HOOK_CALL_ARGUMENTS + 24(%rsp)
	mov	%r8, HOOK_CALL_ARGUMENTS + 32(%rsp)
	mov	%r9, HOOK_CALL_ARGUMENTS + 40(%rsp)
	mov	%r11, HOOK_CALL_GATE(%rsp)
	mov	%rax, HOOK_CALL_SLOT(%rsp)
	mov	(%rbp), %rcx
	mov	%rcx, HOOK_CALL_FP(%rsp)
	lea	8(%rbp), %rcx
	mov	%rcx, HOOK_CALL_SP(%rsp)
	mov	%r10d, HOOK_CALL_HOOK(%rsp)
	movabs	$HOOK_LIVE_MAGIC, %rcx
	lea	HOOK_CALL_LIVE(%rsp), %rdi
	xor	%rdi, %rcx
	mov	%rcx, (%rdi)
	mov	%rsp, %rdi
	call	hook_slow
	andq	$0, HOOK_CALL_LIVE(%rsp)
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	hook_enter, . - hook_enter

#define HOOK_ENTRY(id, symbol, shape, size, group) hook id, shape, size ;
	HOOK_LIST(HOOK_ENTRY)

/* Distances from the table to the entries, by id: no relocation is needed. */
	.section .rodata
	.globl	hook_offsets
	.hidden	hook_offsets
	.p2align 2
	.type	hook_offsets, @object
hook_offsets:
#define HOOK_OFFSET(id, symbol, shape, size, group) .long hook_##id - hook_offsets ;
	HOOK_LIST(HOOK_OFFSET)
	.size	hook_offsets, . - hook_offsets

	.section .note.GNU-stack, "", @progbits
