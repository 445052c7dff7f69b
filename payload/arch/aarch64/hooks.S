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
 * reached. What a hook decides is as on x86-64 (payload/hook_call.h and hook.c have the common parts). The common frame
 * has CFI, and is a frame record (AAPCS64 6.4.6): "the stack pointer at entry" is where it has the return address.
 *
 * Each hook is there a second time, for functions whose callers may keep values in registers (TRAMPOLINE_KEEPS). x9 has
 * no meaning on entry there: nothing has been decided. The original gets every register but x16 and x17 as the caller
 * left it, the caller every one as the original left it: no caller has anything in those two over a call, since code
 * between it and the function may change them (AAPCS64 6.1.1). What a hook uses it first puts into KEEP_ROOM, where a
 * frame record can follow (nothing below the stack pointer outlives a signal here). That the flags change is all a
 * caller could notice; and that vector registers of SVE are cut to 128 bits in a sampled call.
 */
#include "control.h"
#include "hooks.h"
#include "hook_call.h"

#define STATE x9
#define TRAMPOLINE x17

#define KEEP_ROOM 64 /* x9 to x14, then place for a frame record */

/* struct hook_kept, from the struct hook_call before it. */
	.struct	HOOK_CALL_BYTES
HOOK_KEPT_X:	.skip	20 * 8		/* x0 to x18 */
HOOK_KEPT_Q:	.skip	32 * 16
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

	/* \register = a word of the payload's data */
	.macro	load register, name
	adrp	x16, \name
	ldr	\register, [x16, :lo12:\name]
	.endm

	.macro	keep_room
	stp	x9, x10, [sp, #-KEEP_ROOM]!
	.cfi_def_cfa_offset KEEP_ROOM
	stp	x11, x12, [sp, #16]
	stp	x13, x14, [sp, #32]
	.endm

	/* To the original, no frame made. */
	.macro	pass_on keeps
	.if	\keeps
	.cfi_remember_state
	ldp	x13, x14, [sp, #32]
	ldp	x11, x12, [sp, #16]
	ldp	x9, x10, [sp], #KEEP_ROOM
	.cfi_def_cfa_offset 0
	.endif
	ldr	x16, [TRAMPOLINE, #8]
	br	x16
	.if	\keeps
	.cfi_restore_state
	.endif
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

	/* On only if x13 may be the size of a pool's block. */
	.macro	pass_large original
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

	/* Does its trampoline decide? */
#define DECIDED(shape, size) ((shape == SHAPE_ALLOC && size == SIZE_ARG0) || (shape == SHAPE_POOL && size == SIZE_ARG1))

	/* One of the two hooks of function \id; \enter is where it leaves its fast path. */
	.macro	hook id, shape, size, keeps, enter
	.text
	.p2align 5
	.type	hook_\id, %function
hook_\id:
	.cfi_startproc
	hint	#34			/* bti c */
	.if	\keeps
	keep_room
	.endif
	.if	!\keeps && DECIDED(\shape, \size)
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
	.elseif	\shape == SHAPE_POOL && \size == SIZE_ARG1
	mov	x13, x1
	pass_large .Loriginal_\id
	.elseif	\shape == SHAPE_POOL
	product	x1, x2, .Loriginal_\id
	pass_large .Loriginal_\id
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
	pass_on	\keeps
	.if	CHARGES(\shape)
.Lprobe_\id:
	probe_states .Lfound_\id
	b	.Lslow_\id
	.endif
	.if	\keeps && OUTER(\shape)	/* hook_call_slow() does all of it */
	.cfi_remember_state
	.cfi_def_cfa_offset 0
hook_outer_\id:
	hint	#34
	keep_room
	.cfi_restore_state
	.endif
	.if	\shape != SHAPE_COUNT
.Luncharged_\id:
	mov	STATE, #0
.Lslow_\id:
	mov	w11, #hook_number
	b	\enter
	.endif
	.cfi_endproc
	.size	hook_\id, . - hook_\id

	.if	!OUTER(\shape)
	.set	hook_outer_\id, hook_\id
	.elseif	!\keeps
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

	/* The call as it was made: struct hook_call at the stack pointer. Changes x10 and x12. */
	.macro	save_call
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
	.endm

	/* Stores or loads all registers of struct hook_kept but x0; \call points to the struct hook_call before it. */
	.macro	kept store, call
	.irp	number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18
	\store	x\number, [\call, #HOOK_KEPT_X + 8 * \number]
	.endr
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\store	q\number, [\call, #HOOK_KEPT_Q + 16 * \number]
	.endr
	.irp	number, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	\store	q\number, [\call, #HOOK_KEPT_Q + 16 * \number]
	.endr
	.endm

	.text
/* w11 = id, STATE = charged thread state or 0: saves the call and lets hook_call_slow() make it. */
	.p2align 4
	.type	hook_enter, %function
hook_enter:
	.cfi_startproc
	load	w10, payload_switch
	cbnz	w10, 1f
	pass_on	0
1:
	frame_open HOOK_CALL_BYTES
	save_call
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
	pass_on	0
	.cfi_endproc
	.size	hook_enter, . - hook_enter

/* The same with TRAMPOLINE_KEEPS: on entry the stack is as after keep_room. */
	.p2align 4
	.type	hook_enter_keeping, %function
hook_enter_keeping:
	.cfi_startproc
	.cfi_def_cfa_offset KEEP_ROOM
	load	w10, payload_switch
	cbnz	w10, 1f
	pass_on	1
1:
	stp	x29, x30, [sp, #KEEP_ROOM - 16]
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	add	x29, sp, #KEEP_ROOM - 16
	.cfi_def_cfa 29, 16
	sub	sp, sp, #HOOK_CALL_BYTES + HOOK_KEPT_BYTES
	save_call
	mov	x10, #1
	str	wzr, [sp, #HOOK_CALL_AGAIN]
	str	w10, [sp, #HOOK_CALL_KEEPS]
	ldp	x9, x10, [x29, #16 - KEEP_ROOM]
	ldp	x11, x12, [x29, #32 - KEEP_ROOM]
	ldp	x13, x14, [x29, #48 - KEEP_ROOM]
	str	x0, [sp, #HOOK_KEPT_X]
	kept	str, sp
	mov	x0, sp
	bl	hook_call_slow
	str	xzr, [sp, #HOOK_CALL_LIVE]
	kept	ldr, sp
	frame_close
	ret
	.cfi_endproc
	.size	hook_enter_keeping, . - hook_enter_keeping

/*
 * x0 = struct hook_call, struct hook_kept behind it: calls the original with those registers, and puts there what it
 * leaves in them. Returns what it returns.
 */
	.globl	hook_call_keeping
	.hidden	hook_call_keeping
	.p2align 4
	.type	hook_call_keeping, %function
hook_call_keeping:
	.cfi_startproc
	frame_open 80
	str	x19, [sp, #64]
	.cfi_offset 19, -32
	stp	d8, d9, [sp]		/* a function keeps the lower halves of these */
	stp	d10, d11, [sp, #16]
	stp	d12, d13, [sp, #32]
	stp	d14, d15, [sp, #48]
	.cfi_offset 72, -96
	.cfi_offset 73, -88
	.cfi_offset 74, -80
	.cfi_offset 75, -72
	.cfi_offset 76, -64
	.cfi_offset 77, -56
	.cfi_offset 78, -48
	.cfi_offset 79, -40
	mov	x19, x0
	kept	ldr, x19
	ldr	x0, [x19, #HOOK_KEPT_X]
	ldr	TRAMPOLINE, [x19, #HOOK_CALL_TRAMPOLINE]
	ldr	x16, [TRAMPOLINE, #8]
	blr	x16
	str	x0, [x19, #HOOK_KEPT_X]
	kept	str, x19
	ldp	d8, d9, [sp]
	ldp	d10, d11, [sp, #16]
	ldp	d12, d13, [sp, #32]
	ldp	d14, d15, [sp, #48]
	.irp	number, 72, 73, 74, 75, 76, 77, 78, 79
	.cfi_restore \number
	.endr
	ldr	x19, [sp, #64]
	.cfi_restore 19
	frame_close
	ret
	.cfi_endproc
	.size	hook_call_keeping, . - hook_call_keeping

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

	table	hook_keep_offsets
#define HOOK_KEEP_OFFSET(id, symbol, shape, size, group) .long hook_keep_##id - hook_keep_offsets ;
	HOOK_LIST(HOOK_KEEP_OFFSET)
	.size	hook_keep_offsets, . - hook_keep_offsets

	table	hook_outer_keep_offsets
#define HOOK_OUTER_KEEP_OFFSET(id, symbol, shape, size, group) .long hook_outer_keep_##id - hook_outer_keep_offsets ;
	HOOK_LIST(HOOK_OUTER_KEEP_OFFSET)
	.size	hook_outer_keep_offsets, . - hook_outer_keep_offsets

	.section .note.GNU-stack, "", @progbits
