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
 *     TRAMPOLINE_RELEASE   reads the first counter of the filter (payload/tables/filter.h); if it is 0 the block
 *                          was not sampled, and the call goes to the original
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
 * and jumps to trampoline.next, the hook jumps or calls to trampoline.original. Below the stack pointer is then what
 * the caller had in the two registers that the detour uses; the original loads them from there before it goes on.
 *
 * The mapping: TRAMPOLINES_CODE_BYTES of code (from the payload's file at session.trampoline_code_offset);
 * TRAMPOLINES_DATA_BYTES of data (TRAMPOLINES_SHARED_BYTES that all trampolines use, which are the payload's own
 * affair, then struct trampoline[TRAMPOLINE_MAX]); the counters of the filter.
 *
 * The assembler reads this file too.
 */
#pragma once

#include "arch/hook_code.h"
#include "hooks.h"

#define TRAMPOLINE_MAX 256
#define TRAMPOLINE_BYTES 16
#define TRAMPOLINES_CODE_BYTES (TRAMPOLINE_MAX * TRAMPOLINE_CODE_BYTES)
#define TRAMPOLINES_SHARED_BYTES 256
#define TRAMPOLINES_DATA_BYTES 8192
#define TRAMPOLINES_BYTES (TRAMPOLINES_CODE_BYTES + TRAMPOLINES_DATA_BYTES) /* without the filter */

/* Where the code of a function with this shape is entered. */
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

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

struct trampoline {
	uint64_t next;     /* (atomic) where the trampoline leads what it does not decide */
	uint64_t original; /* the function of the target that is hooked */
};

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
