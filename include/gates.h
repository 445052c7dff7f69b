/* SPDX-License-Identifier: MIT */
/*
 * The gates: what patched slots hold. One gate serves all slots with the same function and the same original.
 *
 * A gate is GATE_CODE_BYTES of code outside the payload, so that a copied function pointer stays callable after the
 * payload is gone, and a struct gate that says where it leads: while the session lives, gate.entry is a hook of the
 * payload; an inert gate has gate.entry == gate.original. The code has three entrances, one for each kind of function:
 *
 *     GATE_ALLOCATE   charges the requested bytes to the near slot (payload/thread_slot.h); a call that is not sampled
 *                     goes to the original from here
 *     GATE_RELEASE    asks the first counter of the filter (payload/filter.h); nearly all blocks that were not sampled
 *                     go to the original from here
 *     GATE_OTHER      leads to gate.entry, as do the other two with what they cannot decide
 *
 * So most calls see one jump between the caller and the original, and two pages of ours beside the filter: the gate's
 * code, and its data.
 *
 * Mapping: GATES_CODE_BYTES of code (from the payload's file at session.gate_code_offset), then GATES_DATA_BYTES of
 * data: GATES_SHARED_BYTES that all gates use, which are the payload's own affair, and struct gate[GATE_MAX]; then the
 * counters of the filter. Gates touch nothing but this mapping and where their struct gate leads: whoever is
 * interrupted in the middle of one, for however long, may go on when the payload is gone.
 *
 * The assembler reads this file too.
 */
#ifndef MEMATTACH_GATES_H
#define MEMATTACH_GATES_H

#include "hooks.h"

#define GATE_MAX 256
#define GATE_CODE_BYTES 128
#define GATE_BYTES 16
#define GATES_CODE_BYTES (GATE_MAX * GATE_CODE_BYTES)
#define GATES_SHARED_BYTES 256
#define GATES_DATA_BYTES 8192
#define GATES_BYTES (GATES_CODE_BYTES + GATES_DATA_BYTES) /* without the filter */

/* Entrances, from the start of a gate's code. */
#define GATE_ALLOCATE 0
#define GATE_RELEASE 64
#define GATE_OTHER 112
#define GATE_ENTRANCE(shape, size) \
	((shape) == SHAPE_FREE ? GATE_RELEASE : \
	 (shape) == SHAPE_ALLOC && (size) == SIZE_ARG0 ? GATE_ALLOCATE : GATE_OTHER)

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

struct gate {
	uint64_t entry;    /* (atomic) where the gate leads what it does not decide */
	uint64_t original; /* the function of the target that is hooked */
};

/*
 * Where the instructions of a gate begin: what the program counter of an interrupted thread may be. Copied function
 * pointers are entrances. (x86-64; gates.S holds the same list, made by the assembler.)
 */
#define GATE_INSTRUCTIONS \
	0, 9, 16, 18, 22, 29, 31, 32, 38, 45, 64, 71, 75, 81, 88, 93, 95, 96, 112, 114, 121

static inline bool gate_instruction_at(uint64_t offset)
{
	static const uint8_t starts[] = { GATE_INSTRUCTIONS };

	for (unsigned i = 0; i < sizeof(starts); i++) {
		if (starts[i] == offset)
			return true;
	}
	return false;
}

/* What a slot of the function with that enum hook_id holds that is patched to gate i of those at gates. */
static inline uint64_t gate_address(uint64_t gates, uint32_t i, uint32_t hook)
{
#define GATE_ENTRANCE_(id, symbol, shape, size, group) GATE_ENTRANCE(shape, size),
	static const uint8_t entrances[] = { HOOK_LIST(GATE_ENTRANCE_) };
#undef GATE_ENTRANCE_

	return gates + (uint64_t)i * GATE_CODE_BYTES + entrances[hook];
}

/* Is it the address of gate i, whatever function that is for? */
static inline bool gate_is(uint64_t gates, uint32_t i, uint64_t word)
{
	uint64_t offset = word - gates - (uint64_t)i * GATE_CODE_BYTES;

	return offset == GATE_ALLOCATE || offset == GATE_RELEASE || offset == GATE_OTHER;
}

/* The address of struct gate i. */
static inline uint64_t gate_data(uint64_t gates, uint32_t i)
{
	return gates + GATES_CODE_BYTES + GATES_SHARED_BYTES + (uint64_t)i * GATE_BYTES;
}

_Static_assert(sizeof(struct gate) == GATE_BYTES, "gate");
_Static_assert(GATES_SHARED_BYTES + GATE_MAX * GATE_BYTES <= GATES_DATA_BYTES, "gates");
#endif

#endif
