/* SPDX-License-Identifier: MIT */
/*
 * The two stacks that are certain to be mapped from a stack pointer of the running thread up to their end:
 *
 * - The main stack. memattach says where it was when it attached. The kernel lets it grow without holes, and keeps
 *   other mappings MAIN_STACK_GAP away from it: a stack pointer less than that below its known start is on it, and
 *   tells how far it has grown since. Nothing takes pages out of it again.
 * - The stack that the C library made, or was given, for the running thread. Both glibc and musl put the thread control
 *   block (struct pthread) on top of it, and note its lowest address and its size there, guard included. It stays
 *   mapped as long as the thread lives; the guard is at its low end, so what is above a stack pointer in use is no
 *   guard. The words are looked for in the control block of the first threads that come: the sum of the two leads right
 *   after the control block, which nothing else does. They are read anew for each walk: a thread pointer may be that
 *   of a new thread, with a smaller stack.
 *
 * Every other stack (of a coroutine, of another thread, for signals) may be unmapped in part, and is not known here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"

#define CONTROL_BLOCK_MAX 8192u /* from the thread pointer to the end of the stack's mapping */

struct known_stacks {
	uint64_t main_lowest; /* (atomic) a stack pointer from here on is on the main stack */
	uint64_t main_end;    /* 0: unknown */
	uint64_t main_gap;    /* it reaches down to main_lowest + main_gap at least */
	uint64_t noted_at; /* (atomic) where control blocks note lowest address and size, from the thread pointer on; 0:
	                      unknown */
};

extern struct known_stacks known_stacks HIDDEN;

/* gap: MAIN_STACK_GAP or 0. */
void known_stacks_init(uint64_t main_start, uint64_t main_end, uint64_t gap);
/* A thread that was not seen before: looks into its control block, if that is of use. */
void known_stacks_learn(uint64_t thread_pointer);
/* The main stack has grown down to sp. */
void known_stacks_grow(uint64_t sp);

__attribute__((no_sanitize("address", "thread", "undefined"))) static inline bool known_stack_is_noted(
	uint64_t thread_pointer, uint64_t at, uint64_t sp)
{
	const volatile uint64_t *noted = (const volatile uint64_t *)(thread_pointer + at);
	uint64_t lowest = noted[0], bytes = noted[1];

	return lowest <= sp && sp < thread_pointer && lowest + bytes - thread_pointer - 1 < CONTROL_BLOCK_MAX;
}

/* Where the known stack that holds sp, in use, ends; 0: it is on another one. */
static inline uint64_t known_stack_end(uint64_t sp, uint64_t thread_pointer)
{
	uint64_t lowest = __atomic_load_n(&known_stacks.main_lowest, __ATOMIC_RELAXED), at;

	if (sp - lowest < known_stacks.main_end - lowest) {
		if (UNLIKELY(sp - lowest < known_stacks.main_gap))
			known_stacks_grow(sp);
		return known_stacks.main_end;
	}
	at = __atomic_load_n(&known_stacks.noted_at, __ATOMIC_RELAXED);
	return at && known_stack_is_noted(thread_pointer, at, sp) ? thread_pointer : 0;
}

/* known_stack_end() of the thread comes soon. */
static inline void known_stack_prefetch(uint64_t thread_pointer)
{
	__builtin_prefetch((const void *)(thread_pointer + __atomic_load_n(&known_stacks.noted_at, __ATOMIC_RELAXED)));
}
