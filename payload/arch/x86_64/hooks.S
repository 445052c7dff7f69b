/* SPDX-License-Identifier: MIT */
/*
 * The hooks: where a trampoline sends what it does not decide (include/trampolines.h). One entry for each function of
 * HOOK_LIST, made from the function's shape and from where its size is.
 *
 *     trampoline -> entry --- some bytes left, or filter 0 ---------> original     (jmp *8(%r11))
 *                     |                                                  ^
 *                     +-- sampled, or may have been --> hook_call_slow() -----+         (hook.c, one common frame)
 *
 * - An allocation subtracts the requested bytes (0 counts as 1) from the bytes until the next sample, thread.remaining;
 *   if that is below 0, it is sampled. The trampoline does this itself for functions that take nothing but a size, in
 *   the thread that owns the near thread state. So here come the other threads, which find their state by a hash of the
 *   thread pointer, and functions with other shapes.
 * - A free reads the second counter of the filter; the trampoline has read the first.
 * - Of mappings only a new one of anonymous memory is decided here: the others may be about any range (map_hook.h).
 * - SHAPE_COUNT adds 1 to a number (known_code.h), and never leaves this path.
 *
 * On entry r11 is the address of the struct trampoline; rax is the near thread state if the trampoline has subtracted
 * and is below 0, else 0; everything else is the caller's. Only rax, r10 and r11 may be changed before the original is
 * reached. The common frame has CFI, so that C++ exceptions and debuggers pass through it.
 *
 * Each hook is there a second time, for functions whose callers may keep values in registers (TRAMPOLINE_KEEPS): there
 * the original gets every register as the caller left it, and the caller gets every register as the original left it.
 * What the detour and the hook use is put below the stack pointer, where signal handlers leave it alone, until there
 * is a frame (struct hook_kept). That the flags change is all a caller could notice. Callee-saved registers are not
 * the caller's in a sampled call while the original runs: it may keep them, not read them.
 *
 * In a forked child thread states, filter and switch are wiped: its allocations find no thread state, or use up its
 * copy of the near one, come to the switch, which is off, and go on.
 */
#include "control.h"
#include "hooks.h"
#include "hook_call.h"

#define ORIGINAL *8(%r11)
#define KEPT_R10 (TRAMPOLINE_KEPT_SECOND - 8) /* from the stack pointer at entry */

/* struct hook_kept, from the struct hook_call before it. */
	.struct	HOOK_CALL_BYTES
HOOK_KEPT_XMM:	.skip	16 * 16
HOOK_KEPT_RAX:	.skip	8
HOOK_KEPT_RCX:	.skip	8
HOOK_KEPT_RDX:	.skip	8
HOOK_KEPT_RSI:	.skip	8
HOOK_KEPT_RDI:	.skip	8
HOOK_KEPT_R8:	.skip	8
HOOK_KEPT_R9:	.skip	8
HOOK_KEPT_R10:	.skip	8
HOOK_KEPT_R11:	.skip	8
	.balign	16
HOOK_KEPT_END:
	.set	HOOK_KEPT_BYTES, HOOK_KEPT_END - HOOK_CALL_BYTES

/* The frame of outer_enter. */
	.struct	0
OUTER_STATE:	.skip	8
OUTER_LIVE:	.skip	8
OUTER_BYTES:
	.text

	.hidden	hook_call_slow, trampolines_shared, thread_states_address
	.hidden	filter_counters, filter_mask, filter_multiplier
	.hidden	payload_switch, code_deallocations

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
	mov	filter_multiplier(%rip), %r10d
	imul	\block, %r10
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

	/* May the function pass on to others, so that its calls need a mark? */
#define OUTER(shape) (shape == SHAPE_ALLOC || shape == SHAPE_OUT || shape == SHAPE_REALLOC || \
	shape == SHAPE_RESIZE || shape == SHAPE_POOL_REALLOC)

	/* Does it ask for bytes, which are subtracted in a thread state here? Of mremap map_hook.c does it. */
#define CHARGES(shape) (shape != SHAPE_FREE && shape != SHAPE_UNMAP && shape != SHAPE_POOL_FREE && \
	shape != SHAPE_COUNT && shape != SHAPE_REMAP)

	/* To the original, no thread state taken and no frame made. */
	.macro	pass_on keeps
	.if	\keeps
	mov	KEPT_R10(%rsp), %r10
	.endif
	jmp	ORIGINAL
	.endm

	/* One of the two hooks of function \id; \enter is where it leaves its fast path. */
	.macro	hook id, shape, size, keeps, enter
	.text
	.p2align 5
	.type	hook_\id, @function
hook_\id:
	.cfi_startproc
	.if	\keeps
	mov	%r10, KEPT_R10(%rsp)
	.endif
	.if	(\shape == SHAPE_ALLOC && \size == SIZE_ARG0) || (\shape == SHAPE_POOL && \size == SIZE_ARG1)
	test	%rax, %rax		/* TRAMPOLINE_ALLOCATE, TRAMPOLINE_POOL_ALLOCATE */
	jnz	.Lslow_\id
	mov	%fs:0, %r10
	.elseif	\shape == SHAPE_FREE
	test_filter %rdi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_FREE
	test_filter %rsi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_UNMAP || \shape == SHAPE_REMAP	/* of any part of a mapping */
	jmp	.Luncharged_\id
	.elseif	\shape == SHAPE_COUNT
	lock incq code_deallocations(%rip)
	.else
	.if	\shape == SHAPE_MAP
	mov	%ecx, %eax
	and	$0x30, %eax
	cmp	$0x20, %eax		/* MAP_ANONYMOUS, and not MAP_FIXED */
	jne	.Luncharged_\id
	.endif
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE
	test_filter %rdi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_REALLOC
	test_filter %rsi, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL
	pass_large %rsi, %rdx, .Loriginal_\id
	.endif
	near_state .Lfound_\id, .Lfar_\id
	.endif
	.if	CHARGES(\shape)
	find_state .Lprobe_\id
.Lfound_\id:
	charge_size \size, THREAD_STATE_REMAINING(%rax), .Loriginal_\id
	js	.Lslow_\id
	.endif
.Loriginal_\id:
	pass_on	\keeps
	.cfi_endproc
	.size	hook_\id, . - hook_\id

	.subsection 1
	.cfi_startproc
	.if	CHARGES(\shape)
.Lprobe_\id:
	probe_states .Lfound_\id
	jmp	.Lslow_\id
	.endif
	.if	\keeps && OUTER(\shape)	/* hook_call_slow() does all of it */
hook_outer_\id:
	mov	%r10, KEPT_R10(%rsp)
	.endif
	.if	\shape != SHAPE_COUNT
.Luncharged_\id:
	xor	%eax, %eax
.Lslow_\id:
	mov	$hook_number, %r10d
	jmp	\enter
	.endif
	.cfi_endproc
	.previous

	.if	!OUTER(\shape)
	.set	hook_outer_\id, hook_\id
	.elseif	!\keeps
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
	.endif

	.set	hook_number, hook_number + 1
	.endm

	/* A frame of \bytes and what lies above struct hook_call in it. */
	.macro	frame_open bytes
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$\bytes, %rsp
	and	$-16, %rsp
	.endm

	.macro	frame_close
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	.endm

	/* The call as it was made: struct hook_call at the stack pointer. Changes rcx and rdi. */
	.macro	save_call keeps
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
	movq	$0, HOOK_CALL_AGAIN(%rsp)	/* and HOOK_CALL_KEEPS */
	.if	\keeps
	movl	$1, HOOK_CALL_KEEPS(%rsp)
	.endif
	.endm

	/* All registers of struct hook_kept but rax, r10, r11; \kept points to the struct hook_call before it. */
	.macro	kept_store kept
	mov	%rcx, HOOK_KEPT_RCX(\kept)
	mov	%rdx, HOOK_KEPT_RDX(\kept)
	mov	%rsi, HOOK_KEPT_RSI(\kept)
	mov	%rdi, HOOK_KEPT_RDI(\kept)
	mov	%r8, HOOK_KEPT_R8(\kept)
	mov	%r9, HOOK_KEPT_R9(\kept)
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movaps	%xmm\number, HOOK_KEPT_XMM + 16 * \number(\kept)
	.endr
	.endm

	/* Those, \kept itself last. */
	.macro	kept_load kept
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movaps	HOOK_KEPT_XMM + 16 * \number(\kept), %xmm\number
	.endr
	mov	HOOK_KEPT_RCX(\kept), %rcx
	mov	HOOK_KEPT_RDX(\kept), %rdx
	mov	HOOK_KEPT_RSI(\kept), %rsi
	mov	HOOK_KEPT_RDI(\kept), %rdi
	mov	HOOK_KEPT_R8(\kept), %r8
	mov	HOOK_KEPT_R9(\kept), %r9
	.endm

	.text
/* r10d = id, rax = charged thread state or 0, r11 = trampoline: saves the call and lets hook_call_slow() make it. */
	.p2align 4
	.type	hook_enter, @function
hook_enter:
	.cfi_startproc
	cmpl	$0, payload_switch(%rip)
	jne	1f
	jmp	ORIGINAL
1:
	frame_open HOOK_CALL_BYTES
	save_call 0
	mov	%rsp, %rdi
	call	hook_call_slow
	andq	$0, HOOK_CALL_LIVE(%rsp)
	cmpl	$0, HOOK_CALL_AGAIN(%rsp)
	jne	2f
	.cfi_remember_state
	frame_close
	ret
2:	.cfi_restore_state
	mov	HOOK_CALL_ARGUMENTS + 0(%rsp), %rdi
	mov	HOOK_CALL_ARGUMENTS + 8(%rsp), %rsi
	mov	HOOK_CALL_ARGUMENTS + 16(%rsp), %rdx
	mov	HOOK_CALL_ARGUMENTS + 24(%rsp), %rcx
	mov	HOOK_CALL_ARGUMENTS + 32(%rsp), %r8
	mov	HOOK_CALL_ARGUMENTS + 40(%rsp), %r9
	mov	HOOK_CALL_TRAMPOLINE(%rsp), %r11
	frame_close
	jmp	ORIGINAL
	.cfi_endproc
	.size	hook_enter, . - hook_enter

/* The same where registers are kept: they are in the frame while hook_call_slow() works. */
	.p2align 4
	.type	hook_enter_keeping, @function
hook_enter_keeping:
	.cfi_startproc
	cmpl	$0, payload_switch(%rip)
	jne	1f
	pass_on	1
1:
	/* What is kept below the stack pointer comes to lie at the upper end of the frame. */
	frame_open HOOK_CALL_BYTES + HOOK_KEPT_BYTES + 32
	kept_store %rsp
	save_call 1
	mov	TRAMPOLINE_KEPT_FIRST + 8(%rbp), %rcx
	mov	%rcx, HOOK_KEPT_RAX(%rsp)
	mov	TRAMPOLINE_KEPT_SECOND + 8(%rbp), %rcx
	mov	%rcx, HOOK_KEPT_R11(%rsp)
	mov	KEPT_R10 + 8(%rbp), %rcx
	mov	%rcx, HOOK_KEPT_R10(%rsp)
	mov	%rsp, %rdi
	call	hook_call_slow
	andq	$0, HOOK_CALL_LIVE(%rsp)
	mov	HOOK_KEPT_R11(%rsp), %r11
	mov	HOOK_KEPT_R10(%rsp), %r10
	kept_load %rsp
	frame_close
	ret
	.cfi_endproc
	.size	hook_enter_keeping, . - hook_enter_keeping

/*
 * rdi = struct hook_call, struct hook_kept behind it: calls the original with those registers, and puts there what it
 * leaves in them. Returns what it returns.
 */
	.globl	hook_call_keeping
	.hidden	hook_call_keeping
	.p2align 4
	.type	hook_call_keeping, @function
hook_call_keeping:
	.cfi_startproc
	frame_open 16
	mov	%rbx, (%rsp)
	.cfi_offset %rbx, -32
	mov	%rdi, %rbx
	/* The call puts the return address below the stack pointer, and these are counted from there. */
	mov	HOOK_KEPT_RAX(%rbx), %rax
	mov	%rax, TRAMPOLINE_KEPT_FIRST - 8(%rsp)
	mov	HOOK_KEPT_R11(%rbx), %rax
	mov	%rax, TRAMPOLINE_KEPT_SECOND - 8(%rsp)
	mov	HOOK_KEPT_R10(%rbx), %r10
	kept_load %rbx
	mov	HOOK_CALL_TRAMPOLINE(%rbx), %r11
	call	ORIGINAL
	kept_store %rbx
	mov	%rax, HOOK_KEPT_RAX(%rbx)
	mov	%r10, HOOK_KEPT_R10(%rbx)
	mov	%r11, HOOK_KEPT_R11(%rbx)
	mov	(%rsp), %rbx
	.cfi_restore %rbx
	frame_close
	ret
	.cfi_endproc
	.size	hook_call_keeping, . - hook_call_keeping

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

	.set	hook_number, 0
#define HOOK_ENTRY(id, symbol, shape, size, group) hook id, shape, size, 0, hook_enter ;
	HOOK_LIST(HOOK_ENTRY)

	.set	hook_number, 0
#define HOOK_KEEP_ENTRY(id, symbol, shape, size, group) \
	hook keep_##id, shape, size, 1, hook_enter_keeping ;
	HOOK_LIST(HOOK_KEEP_ENTRY)

/*
 * Distances from each table to the entries, by id: no relocation is needed. "outer" is for functions that pass on to
 * others (TRAMPOLINE_OUTER; a free needs no mark), "keep" for those with TRAMPOLINE_KEEPS.
 */
	.macro	table name
	.section .rodata
	.globl	\name
	.hidden	\name
	.p2align 2
	.type	\name, @object
\name:
	.endm

	table	hook_offsets
#define HOOK_OFFSET(id, symbol, shape, size, group) .long hook_##id - hook_offsets ;
	HOOK_LIST(HOOK_OFFSET)
	.size	hook_offsets, . - hook_offsets

	table	hook_outer_offsets
#define HOOK_OUTER_OFFSET(id, symbol, shape, size, group) .long hook_outer_##id - hook_outer_offsets ;
	HOOK_LIST(HOOK_OUTER_OFFSET)
	.size	hook_outer_offsets, . - hook_outer_offsets

	table	hook_keep_offsets
#define HOOK_KEEP_OFFSET(id, symbol, shape, size, group) .long hook_keep_##id - hook_keep_offsets ;
	HOOK_LIST(HOOK_KEEP_OFFSET)
	.size	hook_keep_offsets, . - hook_keep_offsets

	table	hook_outer_keep_offsets
#define HOOK_OUTER_KEEP_OFFSET(id, symbol, shape, size, group) .long hook_outer_keep_##id - hook_outer_keep_offsets ;
	HOOK_LIST(HOOK_OUTER_KEEP_OFFSET)
	.size	hook_outer_keep_offsets, . - hook_outer_keep_offsets

	.section .note.GNU-stack, "", @progbits
