/* SPDX-License-Identifier: MIT */
#include "prove/thread_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

#define PAGE_BYTES 4096u
#define TOP_BYTES 16384u /* the structure lies no further below the end of the block */
#define SELF 2u          /* tcbhead_t: words 0 and 2 are its own address */

static bool is_block(uint64_t block, uint64_t bytes, uint64_t guard, const struct mapping *m, uint64_t structure)
{
	return guard && (block | bytes | guard) % PAGE_BYTES == 0 && block >= m->start && block < m->end &&
	       bytes <= m->end - block && structure - block < bytes && structure - block > guard &&
	       bytes - (structure - block) <= TOP_BYTES;
}

/* The words of the control block, to the end of its page: it ends with the block, and the guard of the next stack may
 * follow. Returns how many; 0: it is none. */
static size_t read_structure(uint64_t words[PAGE_BYTES / sizeof(uint64_t)], const struct target_memory *memory,
                             const struct mapping *m, uint64_t structure)
{
	if (m->shared || structure < m->start || structure >= m->end || structure % sizeof words[0])
		return 0;
	uint64_t bytes = PAGE_BYTES - structure % PAGE_BYTES;
	if (bytes <= SELF * sizeof words[0] || target_read(memory, structure, words, bytes, ERR_IGNORED) < 0 ||
	    words[0] != structure || words[SELF] != structure)
		return 0;
	return bytes / sizeof words[0];
}

bool thread_stack_of(struct thread_stack *stack, const struct target_memory *memory, const struct mapping *m,
                     uint64_t structure)
{
	uint64_t words[PAGE_BYTES / sizeof(uint64_t)];
	const size_t count = read_structure(words, memory, m, structure);

	for (size_t i = SELF + 1; i + 2 < count; i++) {
		if (!is_block(words[i], words[i + 1], words[i + 2], m, structure))
			continue;
		*stack = (struct thread_stack){ words[i] + words[i + 2], structure, words[i] + words[i + 1] };
		return true;
	}
	return false;
}

ORDER_BY(compare, struct thread_stack, start);

static struct thread_stack *stack_at(const struct thread_stacks *stacks, uint64_t address)
{
	size_t low = SORTED_UP_TO(stacks->list, stacks->count, end, address);

	return low < stacks->count && stacks->list[low].start <= address ? &stacks->list[low] : NULL;
}

const struct thread_stack *thread_stacks_at(const struct thread_stacks *stacks, uint64_t address)
{
	return stack_at(stacks, address);
}

/* Each block once; where two overlap, something is wrong, and none of them is believed. */
static void sort(struct thread_stacks *stacks)
{
	size_t kept = 0;

	if (stacks->count)
		qsort(stacks->list, stacks->count, sizeof *stacks->list, compare);
	for (size_t i = 0; i < stacks->count; i++) {
		const struct thread_stack *next = &stacks->list[i];
		struct thread_stack *last = kept ? &stacks->list[kept - 1] : NULL;

		if (!last || last->end <= next->start)
			stacks->list[kept++] = *next;
		else if (last->start != next->start || last->end != next->end)
			last->sp = last->start;
	}
	stacks->count = kept;
}

/* The lowest of those on a stack counts, and only if it is the thread's own. */
static void take_lowest(struct thread_stacks *stacks, const struct stack_position *positions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct stack_position *p = &positions[i];
		struct thread_stack *stack = stack_at(stacks, p->sp);
		bool own = stack && p->walked && stack_at(stacks, p->thread_pointer) == stack;

		if (stack && !own)
			stack->sp = stack->start;
		else if (stack && p->sp < stack->sp)
			stack->sp = p->sp;
	}
}

int thread_stacks_find(struct thread_stacks *stacks, const struct stack_position *positions, size_t count,
                       const struct target_memory *memory, const struct maps *maps, struct err *e)
{
	*stacks = (struct thread_stacks){ 0 };
	for (size_t i = 0; i < count; i++) {
		const struct stack_position *p = &positions[i];
		const struct mapping *m = maps_find(maps, p->thread_pointer);
		struct thread_stack stack;

		if (!p->walked || !m || !thread_stack_of(&stack, memory, m, p->thread_pointer) || p->sp < stack.start ||
		    p->sp >= stack.sp)
			continue;
		if (!grow_list(stacks->list, stacks->count)) {
			thread_stacks_free(stacks);
			return err_set(e, ENOMEM, "no memory for stacks of threads");
		}
		stacks->list[stacks->count++] = stack;
	}
	sort(stacks);
	take_lowest(stacks, positions, count);
	return 0;
}

void thread_stacks_free(struct thread_stacks *stacks)
{
	free(stacks->list);
	*stacks = (struct thread_stacks){ 0 };
}
