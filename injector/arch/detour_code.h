/* SPDX-License-Identifier: MIT */
/*
 * The code of a detour (struct detour_area of control.h), but for the copy of the displaced instructions at
 * detour_code_copy_at(). Pure: made from numbers, written by the caller.
 *
 * What the trampoline's entrance would decide (trampolines.h) the detour decides itself, in the same instructions, and
 * goes on in the copy right behind: two jumps less for a call that is not sampled, none of them through memory. What is
 * left goes to the trampoline: a call that is sampled to where that has been charged, one of CPython's pool to its own
 * entrance, all else to TRAMPOLINE_OTHER. As
 * a trampoline, it changes nothing but rax, r10 and flags, and touches nothing but the mapping of the trampolines.
 *
 * A detour that keeps registers (TRAMPOLINE_KEEPS) changes nothing but flags when it gets to the copy. It puts rax and
 * r11, which it uses, below the stack pointer, which it does not move: signal handlers leave 128 bytes there alone.
 * What it does not decide goes to trampoline.next, past the trampoline's code, which would change r10. Whoever comes
 * back to the function, from a hook or from an inert trampoline, comes to DETOUR_KEEPING_RESUME, where both are loaded
 * again.
 *
 * What the function's first instruction has done before the jump (entry_code.h) is undone at detour_code_enter_at(),
 * where the jump leads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "arch/instruction.h"

struct detour_code {
	uint32_t hook;                /* enum hook_id */
	bool decides;                 /* false: all calls go to the trampoline */
	bool keeps;                   /* TRAMPOLINE_KEEPS */
	struct instruction_undo undo; /* before all else */
	uint64_t trampoline;          /* the trampoline's code */
	uint64_t data;                /* ... and its struct trampoline */
	uint64_t shared;              /* what all trampolines use */
	uint64_t filter;              /* the counters, a multiple of */
	uint32_t filter_mask;         /* ... one more than this */
	uint32_t filter_multiplier;
};

/* Where the copy of the displaced instructions comes, and what the trampoline has as its original. */
static inline unsigned detour_code_copy_at(bool keeps)
{
	return keeps ? DETOUR_KEEPING_COPY : DETOUR_COPY;
}

static inline unsigned detour_code_original_at(bool keeps)
{
	return keeps ? DETOUR_KEEPING_RESUME : DETOUR_COPY;
}

/* Where the jump at the entry leads. */
unsigned detour_code_enter_at(bool keeps, const struct instruction_undo *undo);

void detour_code_make(uint8_t code[DETOUR_BYTES], const struct detour_code *d);
