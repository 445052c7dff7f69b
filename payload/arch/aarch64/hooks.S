/* SPDX-License-Identifier: MIT */
/*
 * The hooks: where a trampoline sends what it does not decide (include/trampolines.h). One entry for each function of
 * HOOK_LIST, made from the function's shape and from where its size is.
 *
 *     trampoline -> entry --- some bytes left, or filter 0 ---------> original     (trampoline.original)
 *                     |                                                  ^
 *                     +-- sampled, or may have been --> hook_call_slow() -----+         (hook.c, one common frame)
 *
 * On entry x17 is the address of the struct trampoline; x9 is the near thread state if the trampoline has subtracted
 * and is below 0, else 0; everything else is the caller's. Only x9 to x17 and flags are changed before the original is
 * reached. What a hook decides is as on x86-64 (payload/hook_call.h and hook.c have the common parts); hooks that keep
 * registers are not there (HOOKS_KEEP). The common frame has CFI, and is a frame record (AAPCS64 6.4.6): "the stack
 * pointer at entry" is where it has the return address.
 */
#include "control.h"
#include "hooks.h"
#include "hook_call.h"

#define STATE x9
#define TRAMPOLINE x17

/* The frame of outer_enter. */
	.struct	0
OUTER_STATE:	.skip	8
OUTER_LIVE:	.skip	8
OUTER_BYTES:
	.text

	.hidden	hook_call_slow, trampolines_shared, thread_states_address
	.hidden	filter_counters, filter_mask, filter_multiplier
	.hidden	payload_switch, code_deallocations

	/* \register = a word of the payload's data */
	.macro	load register, name
	adrp	x16, \name
	ldr	\register, [x16, :lo12:\name]
	.endm

	.macro	pass_on
	ldr	x16, [TRAMPOLINE, #8]
	br	x16
	.endm

	/* x10 = thread pointer; STATE = the near thread state, and to \found, if it is this thread's, else to \far. */
	.macro	near_state found, far
	mrs	x10, tpidr_el0
	load	STATE, trampolines_shared
	ldr	x11, [STATE, #TRAMPOLINES_NEAR_OWNER]
	cmp	x10, x11
	b.ne	\far
	add	STATE, STATE, #TRAMPOLINES_NEAR
	b	\found
\far:
	.endm

	/* STATE = state of the thread with thread pointer x10, or to \missing. */
	.macro	find_state missing
	lsr	STATE, x10, #THREAD_STATE_FOLD
	eor	STATE, STATE, x10
	and	STATE, STATE, #((THREAD_STATE_COUNT - 1) << THREAD_STATE_SHIFT)
	lsr	STATE, STATE, #(THREAD_STATE_SHIFT - THREAD_STATE_BYTES_LOG2)
	load	x11, thread_states_address
	add	STATE, STATE, x11
	ldr	x11, [STATE, #THREAD_STATE_OWNER]
	cmp	x11, x10
	b.ne	\missing
	.endm

	/* The cold half of find_state. */
	.macro	probe_states found
	.rept	THREAD_STATE_PROBES - 1
	add	STATE, STATE, #THREAD_STATE_BYTES
	ldr	x11, [STATE, #THREAD_STATE_OWNER]
	cmp	x11, x10
	b.eq	\found
	.endr
	mov	STATE, #0
	.endm

	/* To \maybe if the filter knows blocks like this one. */
	.macro	test_filter block, maybe, other
	load	w11, filter_multiplier
	mul	x11, x11, \block
	lsr	x10, x11, #FILTER_SHIFT
	load	w12, filter_mask
	and	w10, w10, w12
	load	x12, filter_counters
	add	x10, x10, x12
	ldrb	w12, [x10]
	cbz	w12, \other
	ubfx	x11, x11, #FILTER_SECOND_SHIFT, #6
	eor	x10, x10, x11
	ldrb	w12, [x10]
	cbnz	w12, \maybe
\other:
	.endm

	/* remaining -= max(\size, 1), and the sign of what is left */
	.macro	charge size
	cmp	\size, #1
	csinc	x11, \size, xzr, hs
	ldr	x12, [STATE, #THREAD_STATE_REMAINING]
	subs	x12, x12, x11
	str	x12, [STATE, #THREAD_STATE_REMAINING]
	.endm

	/* x13 = the product, or to \overflow if it is no size */
	.macro	product first, second, overflow
	mul	x13, \first, \second
	smulh	x14, \first, \second
	cmp	x14, x13, asr #63
	b.ne	\overflow
	.endm

	.macro	charge_size size, overflow
	.if	\size == SIZE_ARG0
	charge	x0
	.elseif	\size == SIZE_ARG1
	charge	x1
	.elseif	\size == SIZE_ARG2
	charge	x2
	.elseif	\size == SIZE_ARG0_X_ARG1
	product	x0, x1, \overflow
	charge	x13
	.elseif	\size == SIZE_ARG1_X_ARG2
	product	x1, x2, \overflow
	charge	x13
	.else
	.error	"a shape that allocates needs a size"
	.endif
	.endm

	/* On only if the product may be the size of a pool's block. */
	.macro	pass_large first, second, original
	product	\first, \second, \original
	sub	x13, x13, #1
	cmp	x13, #(POOL_MAX - 1)
	b.hi	\original
	.endm

	/* One more, in one piece: who is handed what is freed after it sees it (known_code.h). */
	.macro	count_up
	adrp	x10, code_deallocations
	add	x10, x10, :lo12:code_deallocations
7:	ldxr	x11, [x10]
	add	x11, x11, #1
	stxr	w12, x11, [x10]
	cbnz	w12, 7b
	.endm

	/* May the function pass on to others, so that its calls need a mark? */
#define OUTER(shape) (shape == SHAPE_ALLOC || shape == SHAPE_OUT || shape == SHAPE_REALLOC || \
	shape == SHAPE_RESIZE || shape == SHAPE_POOL_REALLOC)

	/* Does it ask for bytes, which are subtracted in a thread state here? Of mremap map_hook.c does it. */
#define CHARGES(shape) (shape != SHAPE_FREE && shape != SHAPE_UNMAP && shape != SHAPE_POOL_FREE && \
	shape != SHAPE_COUNT && shape != SHAPE_REMAP)

	.macro	hook id, shape, size
	.text
	.p2align 5
	.type	hook_\id, %function
hook_\id:
	.cfi_startproc
	hint	#34			/* bti c */
	.if	(\shape == SHAPE_ALLOC && \size == SIZE_ARG0) || (\shape == SHAPE_POOL && \size == SIZE_ARG1)
	cbnz	STATE, .Lslow_\id	/* TRAMPOLINE_ALLOCATE, TRAMPOLINE_POOL_ALLOCATE */
	mrs	x10, tpidr_el0
	.elseif	\shape == SHAPE_FREE
	test_filter x0, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_FREE
	test_filter x1, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_UNMAP || \shape == SHAPE_REMAP	/* of any part of a mapping */
	b	.Luncharged_\id
	.elseif	\shape == SHAPE_COUNT
	count_up
	.else
	.if	\shape == SHAPE_MAP
	and	w10, w3, #0x30
	cmp	w10, #0x20		/* MAP_ANONYMOUS, and not MAP_FIXED */
	b.ne	.Luncharged_\id
	.endif
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE
	test_filter x0, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL_REALLOC
	test_filter x1, .Luncharged_\id, .Lunknown_\id
	.elseif	\shape == SHAPE_POOL
	pass_large x1, x2, .Loriginal_\id
	.endif
	near_state .Lfound_\id, .Lfar_\id
	.endif
	.if	CHARGES(\shape)
	find_state .Lprobe_\id
.Lfound_\id:
	charge_size \size, .Loriginal_\id
	b.mi	.Lslow_\id
	.endif
.Loriginal_\id:
	pass_on
	.if	CHARGES(\shape)
.Lprobe_\id:
	probe_states .Lfound_\id
	b	.Lslow_\id
	.endif
	.if	\shape != SHAPE_COUNT
.Luncharged_\id:
	mov	STATE, #0
.Lslow_\id:
	mov	w11, #hook_number
	b	hook_enter
	.endif
	.cfi_endproc
	.size	hook_\id, . - hook_\id

	.if	!OUTER(\shape)
	.set	hook_outer_\id, hook_\id
	.else
	.p2align 5
	.type	hook_outer_\id, %function
hook_outer_\id:
	.cfi_startproc
	hint	#34
	.if	\shape == SHAPE_REALLOC || \shape == SHAPE_RESIZE
	test_filter x0, .Luncharged_\id, .Louter_unknown_\id
	.elseif	\shape == SHAPE_POOL_REALLOC
	test_filter x1, .Luncharged_\id, .Louter_unknown_\id
	.endif
	near_state .Louter_found_\id, .Louter_far_\id
	find_state .Luncharged_\id
.Louter_found_\id:
	charge_size \size, .Loriginal_\id
	b.mi	.Lslow_\id
	b	outer_enter
	.cfi_endproc
	.size	hook_outer_\id, . - hook_outer_\id
	.endif

	.set	hook_number, hook_number + 1
	.endm

	.macro	frame_open bytes
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov	x29, sp
	.cfi_def_cfa_register 29
	sub	sp, sp, #\bytes
	.endm

	.macro	frame_close
	mov	sp, x29
	.cfi_def_cfa_register 31
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	.endm

	/* The word at sp + \place says that the hook lives. */
	.macro	live place
	ldr	x10, =HOOK_LIVE_MAGIC
	add	x12, sp, #\place
	eor	x10, x10, x12
	str	x10, [x12]
	.endm

	.text
/* w11 = id, STATE = charged thread state or 0: saves the call and lets hook_call_slow() make it. */
	.p2align 4
	.type	hook_enter, %function
hook_enter:
	.cfi_startproc
	load	w10, payload_switch
	cbnz	w10, 1f
	pass_on
1:
	frame_open HOOK_CALL_BYTES
	stp	x0, x1, [sp, #HOOK_CALL_ARGUMENTS]
	stp	x2, x3, [sp, #HOOK_CALL_ARGUMENTS + 16]
	stp	x4, x5, [sp, #HOOK_CALL_ARGUMENTS + 32]
	str	TRAMPOLINE, [sp, #HOOK_CALL_TRAMPOLINE]
	str	STATE, [sp, #HOOK_CALL_STATE]
	ldr	x10, [x29]
	str	x10, [sp, #HOOK_CALL_FP]
	add	x10, x29, #8
	str	x10, [sp, #HOOK_CALL_SP]
	str	w11, [sp, #HOOK_CALL_HOOK]
	live	HOOK_CALL_LIVE
	str	xzr, [sp, #HOOK_CALL_AGAIN]	/* and HOOK_CALL_KEEPS */
	mov	x0, sp
	bl	hook_call_slow
	str	xzr, [sp, #HOOK_CALL_LIVE]
	ldr	w10, [sp, #HOOK_CALL_AGAIN]
	cbnz	w10, 2f
	.cfi_remember_state
	frame_close
	ret
2:	.cfi_restore_state
	ldp	x0, x1, [sp, #HOOK_CALL_ARGUMENTS]
	ldp	x2, x3, [sp, #HOOK_CALL_ARGUMENTS + 16]
	ldp	x4, x5, [sp, #HOOK_CALL_ARGUMENTS + 32]
	ldr	TRAMPOLINE, [sp, #HOOK_CALL_TRAMPOLINE]
	frame_close
	pass_on
	.cfi_endproc
	.size	hook_enter, . - hook_enter

/*
 * STATE = thread state, charged and not below 0, of a function that passes on to others: makes the call with a mark in
 * the thread state. The state may be another thread's when it returns. If an exception passes, the mark stays (hook.c).
 */
	.p2align 4
	.type	outer_enter, %function
outer_enter:
	.cfi_startproc
	frame_open OUTER_BYTES
	str	STATE, [sp, #OUTER_STATE]
	ldr	x10, [x29, #8]
	str	x10, [STATE, #THREAD_STATE_OUTER_RETURN]
	add	x10, x29, #8
	str	x10, [STATE, #THREAD_STATE_OUTER_SP]
	live	OUTER_LIVE
	ldr	x16, [TRAMPOLINE, #8]
	blr	x16
	str	xzr, [sp, #OUTER_LIVE]
	ldr	x10, [sp, #OUTER_STATE]
	mrs	x11, tpidr_el0
	ldr	x12, [x10, #THREAD_STATE_OWNER]
	cmp	x11, x12
	b.ne	1f
	str	xzr, [x10, #THREAD_STATE_OUTER_SP]
1:
	frame_close
	ret
	.cfi_endproc
	.size	outer_enter, . - outer_enter
	.ltorg

	.set	hook_number, 0
#define HOOK_ENTRY(id, symbol, shape, size, group) hook id, shape, size ;
	HOOK_LIST(HOOK_ENTRY)

/* Distances from each table to the entries, by id: no relocation is needed. "outer" is for functions that pass on to
 * others (TRAMPOLINE_OUTER; a free needs no mark). */
	.macro	table name
	.section .rodata
	.globl	\name
	.hidden	\name
	.p2align 2
	.type	\name, %object
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

	.section .note.GNU-stack, "", @progbits
