/* SPDX-License-Identifier: MIT */
/*
 * The trampolines: what patched GOT entries hold. One trampoline serves all GOT entries with the same function and the
 * same original.
 *
 *     caller -> GOT entry -> trampoline ------- not sampled -------> original
 *                                |                                      ^
 *                                +-- sampled, or undecided --> hook ----+
 *
 * A call that is not sampled costs one jump more and some ten instructions, and touches two pages of ours: the code of
 * the trampoline and its data (a free also touches the filter). The code has five entrances, one for each kind of
 * function:
 *
 *     TRAMPOLINE_ALLOCATE  subtracts the requested bytes from those until the next sample, in the near thread state
 *                          (payload/thread_state.h); while some are left the call goes to the original
 *     TRAMPOLINE_RELEASE   reads the first counter of the filter (payload/filter.h); if it is 0 the block was not
 *                          sampled, and the call goes to the original
 *     TRAMPOLINE_OTHER     decides nothing
 *     TRAMPOLINE_POOL_ALLOCATE, TRAMPOLINE_POOL_RELEASE
 *                          as the first two, for functions whose first argument is a context (SHAPE_POOL); requests
 *                          that are not of a pool's blocks go to the original
 *
 * What an entrance does not decide goes to trampoline.next: a hook of the payload while the session lasts. An inert
 * trampoline has its original there.
 *
 * The code lies outside of the payload because a program may have copied the address: the copy must stay callable when
 * the payload is gone. So a trampoline touches nothing but this mapping and where its struct trampoline leads, and a
 * thread that is interrupted in the middle of one, for however long, may go on at any time.
 *
 * Of the trampoline of a function with TRAMPOLINE_KEEPS (control.h) only the data is used: its detour decides by itself
 * and jumps to trampoline.next, the hook jumps or calls to trampoline.original, both with rax and r11 of the caller
 * below the stack pointer. The original loads them from there before it goes on.
 *
 * The mapping: TRAMPOLINES_CODE_BYTES of code (from the payload's file at session.trampoline_code_offset);
 * TRAMPOLINES_DATA_BYTES of data (TRAMPOLINES_SHARED_BYTES that all trampolines use, which are the payload's own
 * affair, then struct trampoline[TRAMPOLINE_MAX]); the counters of the filter.
 *
 * The assembler reads this file too.
 */
#ifndef MEMATTACH_TRAMPOLINES_H
#define MEMATTACH_TRAMPOLINES_H

#include "hooks.h"

#define TRAMPOLINE_MAX 256
#define TRAMPOLINE_CODE_BYTES 256
#define TRAMPOLINE_BYTES 16
#define TRAMPOLINES_CODE_BYTES (TRAMPOLINE_MAX * TRAMPOLINE_CODE_BYTES)
#define TRAMPOLINES_SHARED_BYTES 256
#define TRAMPOLINES_DATA_BYTES 8192
#define TRAMPOLINES_BYTES (TRAMPOLINES_CODE_BYTES + TRAMPOLINES_DATA_BYTES) /* without the filter */

/* Entrances, from the start of a trampoline's code. */
#define TRAMPOLINE_ALLOCATE 0
#define TRAMPOLINE_RELEASE 64
#define TRAMPOLINE_OTHER 112
#define TRAMPOLINE_POOL_ALLOCATE 128
#define TRAMPOLINE_POOL_RELEASE 192
#define TRAMPOLINE_BELOW 38 /* no entrance: for a detour that has subtracted, and is below 0 */
#define TRAMPOLINE_ENTRANCE(shape, size) \
	((shape) == SHAPE_FREE ? TRAMPOLINE_RELEASE : \
	 (shape) == SHAPE_ALLOC && (size) == SIZE_ARG0 ? TRAMPOLINE_ALLOCATE : \
	 (shape) == SHAPE_POOL && (size) == SIZE_ARG1 ? TRAMPOLINE_POOL_ALLOCATE : \
	 (shape) == SHAPE_POOL_FREE ? TRAMPOLINE_POOL_RELEASE : TRAMPOLINE_OTHER)

/* What all trampolines use, as far as code outside of the payload does (detours). */
#define TRAMPOLINES_NEAR_OWNER 0
#define TRAMPOLINES_FILTER_MASK 8        /* 4 bytes, which never change */
#define TRAMPOLINES_FILTER_MULTIPLIER 12 /* the same */
#define TRAMPOLINES_NEAR 128             /* the near thread state */
#define THREAD_STATE_REMAINING 8         /* in it: bytes until the next sample */

/* Where the caller's rax and r11 are then, from the stack pointer as it is at the entry of the function. The hook uses
 * the word below, and a push leaves all three alone. */
#define TRAMPOLINE_KEPT_RAX (-16)
#define TRAMPOLINE_KEPT_R11 (-24)

/* The first counter of an address: bits 28 ... of the product with the filter's multiplier, masked. */
#define FILTER_SHIFT 28

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

struct trampoline {
	uint64_t next;     /* (atomic) where the trampoline leads what it does not decide */
	uint64_t original; /* the function of the target that is hooked */
};

/*
 * Where the instructions of a trampoline begin: what the program counter of an interrupted thread may be. Copied
 * function pointers are entrances. (x86-64; trampolines.S holds the same list, made by the assembler.)
 */
#define TRAMPOLINE_INSTRUCTIONS \
	0, 9, 16, 18, 22, 29, 31, 32, 38, 45, 64, 70, 74, 78, 84, 91, 96, 98, 112, 114, 121, \
	128, 132, 138, 140, 149, 156, 158, 165, 167, 173, 180, 192, 198, 202, 206, 212, 219, 224, 226

static inline bool trampoline_instruction_at(uint64_t offset)
{
	static const uint8_t starts[] = { TRAMPOLINE_INSTRUCTIONS };

	for (unsigned i = 0; i < sizeof(starts); i++) {
		if (starts[i] == offset)
			return true;
	}
	return false;
}

/* What a GOT entry holds that is patched to trampoline i; hook: enum hook_id of the function. */
static inline uint64_t trampoline_address(uint64_t trampolines, uint32_t i, uint32_t hook)
{
#define TRAMPOLINE_ENTRANCE_(id, symbol, shape, size, group) TRAMPOLINE_ENTRANCE(shape, size),
	static const uint8_t entrances[] = { HOOK_LIST(TRAMPOLINE_ENTRANCE_) };
#undef TRAMPOLINE_ENTRANCE_

	return trampolines + (uint64_t)i * TRAMPOLINE_CODE_BYTES + entrances[hook];
}

/* Is it the address of trampoline i, whatever function that is for? */
static inline bool trampoline_is(uint64_t trampolines, uint32_t i, uint64_t word)
{
	uint64_t offset = word - trampolines - (uint64_t)i * TRAMPOLINE_CODE_BYTES;

	return offset == TRAMPOLINE_ALLOCATE || offset == TRAMPOLINE_RELEASE || offset == TRAMPOLINE_OTHER ||
	       offset == TRAMPOLINE_POOL_ALLOCATE || offset == TRAMPOLINE_POOL_RELEASE;
}

/* The address of struct trampoline i. */
static inline uint64_t trampoline_data(uint64_t trampolines, uint32_t i)
{
	return trampolines + TRAMPOLINES_CODE_BYTES + TRAMPOLINES_SHARED_BYTES + (uint64_t)i * TRAMPOLINE_BYTES;
}

_Static_assert(sizeof(struct trampoline) == TRAMPOLINE_BYTES, "trampoline");
_Static_assert(TRAMPOLINES_SHARED_BYTES + TRAMPOLINE_MAX * TRAMPOLINE_BYTES <= TRAMPOLINES_DATA_BYTES, "trampolines");
#endif

#endif
