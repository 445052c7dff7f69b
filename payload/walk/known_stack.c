/* SPDX-License-Identifier: MIT */
/* The stacks that are certain to be mapped, see known_stack.h. */
#include "walk/known_stack.h"

#include "arch/machine.h"

#define STACK_BYTES_LEAST 8192u

struct known_stacks known_stacks;

void known_stacks_init(uint64_t main_start, uint64_t main_end, uint64_t gap)
{
	bool known = main_start && main_start < main_end && gap < main_start;

	known_stacks = (struct known_stacks){ 0 };
	if (known)
		known_stacks =
			(struct known_stacks){ .main_lowest = main_start - gap, .main_end = main_end, .main_gap = gap };
}

void known_stacks_grow(uint64_t sp)
{
	uint64_t now = __atomic_load_n(&known_stacks.main_lowest, __ATOMIC_RELAXED);
	uint64_t lowest = (sp & ~(uint64_t)(PAGE_BYTES - 1)) - known_stacks.main_gap;

	while (lowest < now && !__atomic_compare_exchange_n(&known_stacks.main_lowest, &now, lowest, 1,
	                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Whole pages, as both libraries map them. */
static bool may_be_noted(uint64_t lowest, uint64_t bytes, uint64_t thread_pointer)
{
	return (lowest | bytes) % PAGE_BYTES == 0 && lowest && lowest < thread_pointer && bytes >= STACK_BYTES_LEAST &&
	       lowest + bytes - thread_pointer - 1 < CONTROL_BLOCK_MAX;
}

/*
 * Only in the page of the thread pointer, or of the word below it: that is a part of the control block, or what ends
 * the mapping of a thread's stack. Of the main thread nothing is noted.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) void known_stacks_learn(uint64_t thread_pointer)
{
	const uint64_t page = (thread_pointer - ARCH_CONTROL_BELOW) & ~(uint64_t)(PAGE_BYTES - 1);
	const uint64_t first = ARCH_CONTROL_BELOW ? page : thread_pointer + 8;
	const uint64_t end = ARCH_CONTROL_BELOW ? thread_pointer : page + PAGE_BYTES;

	if (thread_pointer % 8 || __atomic_load_n(&known_stacks.noted_at, __ATOMIC_RELAXED))
		return;
	for (uint64_t at = first; at + 16 <= end; at += 8) {
		const volatile uint64_t *words = (const volatile uint64_t *)at;

		if (may_be_noted(words[0], words[1], thread_pointer)) {
			__atomic_store_n(&known_stacks.noted_at, at - thread_pointer, __ATOMIC_RELAXED);
			return;
		}
	}
}
