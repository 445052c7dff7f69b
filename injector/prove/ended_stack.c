/* SPDX-License-Identifier: MIT */
#include "prove/ended_stack.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define AROUND_BYTES (64u << 10) /* above an address: what a thread leaves is near the top of its stack */
#define TOP_BYTES 16384u         /* of the mapping, where the structure is looked for */
#define ALIGNMENT 64u            /* of the structure, at least */
#define SELF_OFFSET 0x10         /* tcbhead_t.self, which is part of the ABI between ld.so and libc; tcb is at 0 */
#define LIST_BYTES 16u           /* struct pthread.list: next, prev; before its tid */

struct top {
	uint64_t start; /* address of the first word */
	size_t count;
	uint64_t words[TOP_BYTES / sizeof(uint64_t)];
};

static uint64_t word_at(const struct top *top, uint64_t address)
{
	return top->words[(address - top->start) / sizeof(uint64_t)];
}

/* The last structure that points to itself, 0 none. */
static uint64_t find_structure(const struct top *top)
{
	const uint64_t end = top->start + top->count * sizeof top->words[0];

	for (uint64_t at = end - ALIGNMENT; at >= top->start; at -= ALIGNMENT)
		if (word_at(top, at) == at && word_at(top, at + SELF_OFFSET) == at)
			return at;
	return 0;
}

/* Its neighbours on the list point back. */
static bool is_listed(const struct target_memory *memory, uint64_t list)
{
	uint64_t next, previous, back, forth;

	return target_read_u64(memory, list, &next, ERR_IGNORED) == 0 &&
	       target_read_u64(memory, list + sizeof next, &previous, ERR_IGNORED) == 0 &&
	       target_read_u64(memory, next + sizeof next, &back, ERR_IGNORED) == 0 &&
	       target_read_u64(memory, previous, &forth, ERR_IGNORED) == 0 && back == list && forth == list;
}

/* Three words of it next to each other, stackblock, stackblock_size and guardsize, are the mapping and its guard. */
static bool names_the_block(const struct top *top, uint64_t structure, const struct mapping *guard,
                            const struct mapping *m)
{
	const uint64_t end = top->start + top->count * sizeof top->words[0];

	for (uint64_t at = structure; end - at >= 3 * sizeof(uint64_t); at += sizeof(uint64_t)) {
		uint64_t block = word_at(top, at), bytes = word_at(top, at + 8), guard_bytes = word_at(top, at + 16);
		if (guard_bytes && block >= guard->start && block < m->start && m->start - block == guard_bytes &&
		    m->end - block == bytes)
			return true;
	}
	return false;
}

/* Has the thread ended that the structure is of? */
static bool has_ended(const struct target_memory *memory, uint64_t structure, uint32_t tid_offset)
{
	int32_t tid;

	return target_read(memory, structure + tid_offset, &tid, sizeof tid, ERR_IGNORED) == 0 && tid <= 0 &&
	       is_listed(memory, structure + tid_offset - LIST_BYTES);
}

uint64_t ended_stack_end(const struct target_memory *memory, uint32_t tid_offset, const struct maps *maps,
                         const struct mapping *m)
{
	const struct mapping *guard = m > maps->list ? m - 1 : NULL;
	struct top top = { .count = sizeof top.words / sizeof top.words[0] };

	if (tid_offset <= SELF_OFFSET + LIST_BYTES || !guard || guard->end != m->start || guard->prot != PROT_NONE ||
	    m->shared || m->end - m->start < TOP_BYTES)
		return 0;
	top.start = m->end - TOP_BYTES;
	if (target_read(memory, top.start, top.words, sizeof top.words, ERR_IGNORED) < 0)
		return 0;
	uint64_t structure = find_structure(&top);
	if (!structure || !has_ended(memory, structure, tid_offset) || !names_the_block(&top, structure, guard, m))
		return 0;
	return structure;
}

/* The next structure that points to itself, from the address on; 0 none. The guard of the next stack ends the search.
 */
static uint64_t next_structure(const struct target_memory *memory, const struct mapping *m, uint64_t address)
{
	uint64_t words[PAGE_BYTES / sizeof(uint64_t)], at = (address + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);

	for (uint64_t page = at & ~(uint64_t)(PAGE_BYTES - 1);
	     page < m->end && page - address + PAGE_BYTES < AROUND_BYTES; page += PAGE_BYTES) {
		if (target_read(memory, page, words, sizeof words, ERR_IGNORED) < 0)
			return 0;
		for (; at < page + PAGE_BYTES; at += ALIGNMENT)
			if (words[(at - page) / 8] == at && words[(at - page + SELF_OFFSET) / 8] == at)
				return at;
	}
	return 0;
}

bool ended_stack_around(struct thread_stack *stack, const struct target_memory *memory, uint32_t tid_offset,
                        const struct mapping *m, uint64_t address)
{
	uint64_t structure = tid_offset > SELF_OFFSET + LIST_BYTES && !m->shared ? next_structure(memory, m, address)
	                                                                         : 0;

	if (structure && thread_stack_of(stack, memory, m, structure) && address >= stack->start &&
	    has_ended(memory, structure, tid_offset))
		return true;
	*stack = (struct thread_stack){ 0 };
	return false;
}
