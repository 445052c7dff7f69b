/* SPDX-License-Identifier: MIT */
/*
 * The hooks: where a trampoline sends what it does not decide (include/trampolines.h). One entry for each function of
 * HOOK_LIST, made from the function's shape and from where its size is.
 *
 *     trampoline -> entry --- some bytes left, or filter 0 ---------> original     (jmp *8(%r11))
 *                     |                                                  ^
 *                     +-- sampled, or may have been --> hook_slow() -----+         (hook.c, one common frame)
 *
 * - An allocation subtracts the requested bytes (0 counts as 1) from the bytes until the next sample, thread.remaining;
 *   if that is below 0, it is sampled. The trampoline does this itself for functions that take nothing but a size, in
 *   the thread that owns the near thread state. So here come the other threads, which find their state by a hash of the
 *   thread pointer, and functions with other shapes.
 * - A free reads the second counter of the filter; the trampoline has read the first.
 *
 * On entry r11 is the address of the struct trampoline; rax is the near thread state if the trampoline has subtracted
 * and is below 0, else 0; everything else is the caller's. Only rax, r10 and r11 may be changed before the original is
 * reached. The common frame has CFI, so that C++ exceptions and debuggers pass through it.
 *
 * In a forked child thread states, filter and switch are wiped: its allocations find no thread state, or use up its
 * copy of the near one, come to the switch, which is off, and go on.
 */
#include "control.h"
#include "hooks.h"
#include "hook_call.h"

#define ORIGINAL *8(%r11)

	.hidden	hook_slow, trampolines_shared, thread_states_address, filter_counters, filter_mask, payload_switch

/*
 * rax = state of the thread with thread pointer r10, or to \missing. Its address must be known early: the loads of the
 * allocator wait for the address of the store in `charge_size` (measured: a multiplication here costs 1.5 ns).
 */
	.macro	find_state missing
	mov	%r10, %rax
	shr	$THREAD_STATE_FOLD, %rax
	xor	%r10, %rax
	and	$((THREAD_STATE_COUNT - 1) << THREAD_STATE_SHIFT), %eax
	shr	$(THREAD_STATE_SHIFT - THREAD_STATE_BYTES_LOG2), %eax
	add	thread_states_address(%rip), %rax
	cmp	%r10, THREAD_STATE_OWNER(%rax)
	jne	\missing
	.endm

/* rax = the near thread state, and to \found, if it is this thread's; else on at \far, with r10 = thread pointer. */
	.macro	near_state found, far
	mov	%fs:0, %r10
	mov	trampolines_shared(%rip), %rax
	cmp	%r10, TRAMPOLINES_NEAR_OWNER(%rax)
	jne	\far
	add	$TRAMPOLINES_NEAR, %rax
	jmp	\found
\far:
	.endm

/* The cold half of find_state. */
	.macro	probe_states found
	.rept	THREAD_STATE_PROBES - 1
	add	$THREAD_STATE_BYTES, %rax
	cmp	%r10, THREAD_STATE_OWNER(%rax)
	je	\found
	.endr
	xor	%eax, %eax
	.endm

/* To \maybe if the filter knows blocks like this one. */
	.macro	test_filter block, maybe, other
	imul	$FILTER_MULTIPLIER, \block, %r10
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

/* On only if the product may be the size of a pool's block. */
	.macro	pass_large first, second, original
	mov	\first, %r10
	imul	\second, %r10
	jo	\original
	lea	-1(%r10), %rax
	cmp	$(POOL_MAX - 1), %rax
	ja	\original
	.endm

	.set	hook_number, 0

	.macro	hook id, shape, size
	.text
	.p2align 5
	.type	hook_\id, @function
hook_\id:
	.cfi_startproc
	.if	(\shape == SHAPE_ALLOC && \size == SIZE_ARG0) || (\shape == SHAPE_POOL && \size == SIZE_ARG1)
	test	%rax, %rax		/* TRAMPOLINE_ALLOCATE, TRAMPOLINE_POOL_ALLOCATE */
	jnz	.Lslow_\id
	mov	%fs:0, %r10
	.elseif	\shape == SHAPE_FREE || \shape == SHAPE_UNMAP
	test_filter %rdi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_FREE
	test_filter %rsi, .Luncharged_\id, .Lunknown_\id
	.else
	.if	\shape == SHAPE_MAP
	test	$0x20, %cl		/* MAP_ANONYMOUS */
	jz	.Loriginal_\id
	.endif
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE || \shape == SHAPE_REMAP
	test_filter %rdi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_REALLOC
	test_filter %rsi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL
	pass_large %rsi, %rdx, .Loriginal_\id
	.endif
	near_state .Lfound_\id, .Lfar_\id
	.endif
	.if	\shape != SHAPE_FREE && \shape != SHAPE_UNMAP && \shape != SHAPE_POOL_FREE
	find_state .Lprobe_\id
.Lfound_\id:
	charge_size \size, THREAD_STATE_REMAINING(%rax), .Loriginal_\id
	js	.Lslow_\id
	.endif
.Loriginal_\id:
	jmp	ORIGINAL
	.cfi_endproc
	.size	hook_\id, . - hook_\id

	.subsection 1
	.cfi_startproc
	.if	\shape != SHAPE_FREE && \shape != SHAPE_UNMAP && \shape != SHAPE_POOL_FREE
.Lprobe_\id:
	probe_states .Lfound_\id
	jmp	.Lslow_\id
	.endif
.Luncharged_\id:
	xor	%eax, %eax
.Lslow_\id:
	mov	$hook_number, %r10d
	jmp	hook_enter
	.cfi_endproc
	.previous

	.if	\shape == SHAPE_ALLOC || \shape == SHAPE_OUT || \shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE || \
		\shape == SHAPE_POOL_REALLOC
	.p2align 5
	.type	hook_outer_\id, @function
hook_outer_\id:
	.cfi_startproc
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE
	test_filter %rdi, .Luncharged_\id, .Louter_unknown_\id
	.elseif	\shape == SHAPE_POOL_REALLOC
	test_filter %rsi, .Luncharged_\id, .Louter_unknown_\id
	.endif
	near_state .Louter_found_\id, .Louter_far_\id
	find_state .Luncharged_\id
.Louter_found_\id:
	charge_size \size, THREAD_STATE_REMAINING(%rax), .Loriginal_\id
	js	.Lslow_\id
	jmp	outer_enter
	.cfi_endproc
	.size	hook_outer_\id, . - hook_outer_\id
	.else
	.set	hook_outer_\id, hook_\id
	.endif

	.set	hook_number, hook_number + 1
	.endm

	.text
/* r10d = id, rax = charged thread state or 0, r11 = trampoline: saves the call and lets hook_slow() make it. */
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
	mov	%r11, HOOK_CALL_TRAMPOLINE(%rsp)
	mov	%rax, HOOK_CALL_STATE(%rsp)
	mov	(%rbp), %rcx
	mov	%rcx, HOOK_CALL_FP(%rsp)
	lea	8(%rbp), %rcx
	mov	%rcx, HOOK_CALL_SP(%rsp)
	mov	%r10d, HOOK_CALL_HOOK(%rsp)
	movabs	$HOOK_LIVE_MAGIC, %rcx
	lea	HOOK_CALL_LIVE(%rsp), %rdi
	xor	%rdi, %rcx
	mov	%rcx, (%rdi)
	movl	$0, HOOK_CALL_AGAIN(%rsp)
	mov	%rsp, %rdi
	call	hook_slow
	andq	$0, HOOK_CALL_LIVE(%rsp)
	cmpl	$0, HOOK_CALL_AGAIN(%rsp)
	jne	2f
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
2:	.cfi_restore_state
	mov	HOOK_CALL_ARGUMENTS + 0(%rsp), %rdi
	mov	HOOK_CALL_ARGUMENTS + 8(%rsp), %rsi
	mov	HOOK_CALL_ARGUMENTS + 16(%rsp), %rdx
	mov	HOOK_CALL_ARGUMENTS + 24(%rsp), %rcx
	mov	HOOK_CALL_ARGUMENTS + 32(%rsp), %r8
	mov	HOOK_CALL_ARGUMENTS + 40(%rsp), %r9
	mov	HOOK_CALL_TRAMPOLINE(%rsp), %r11
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp	ORIGINAL
	.cfi_endproc
	.size	hook_enter, . - hook_enter

/*
 * rax = thread state, charged and not below 0, r11 = trampoline of a function that passes on to others: makes the call
 * with a mark in the thread state. The state may be another thread's when it returns. If an exception passes, the mark
 * stays (hook.c).
 */
	.p2align 4
	.type	outer_enter, @function
outer_enter:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$OUTER_BYTES, %rsp
	mov	%rax, OUTER_STATE(%rsp)
	mov	8(%rbp), %r10
	mov	%r10, THREAD_STATE_OUTER_RETURN(%rax)
	lea	8(%rbp), %r10
	mov	%r10, THREAD_STATE_OUTER_SP(%rax)
	movabs	$HOOK_LIVE_MAGIC, %r10
	lea	OUTER_LIVE(%rsp), %rax
	xor	%rax, %r10
	mov	%r10, (%rax)
	call	ORIGINAL
	andq	$0, OUTER_LIVE(%rsp)
	mov	OUTER_STATE(%rsp), %r10
	mov	%fs:0, %r11
	cmp	%r11, THREAD_STATE_OWNER(%r10)
	jne	1f
	movq	$0, THREAD_STATE_OUTER_SP(%r10)
1:
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	outer_enter, . - outer_enter

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

/* The same for functions that pass on to others (TRAMPOLINE_OUTER). A free needs no mark. */
	.globl	hook_outer_offsets
	.hidden	hook_outer_offsets
	.p2align 2
	.type	hook_outer_offsets, @object
hook_outer_offsets:
#define HOOK_OUTER_OFFSET(id, symbol, shape, size, group) .long hook_outer_##id - hook_outer_offsets ;
	HOOK_LIST(HOOK_OUTER_OFFSET)
	.size	hook_outer_offsets, . - hook_outer_offsets

	.section .note.GNU-stack, "", @progbits
