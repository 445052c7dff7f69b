/* SPDX-License-Identifier: MIT */
#include "census/reach/stack_in_use.h"

#include <signal.h>
#include <string.h>

#include "census/reach/reach_roots.h"

#define RED_ZONE 128u
#define STACK_TOP_BYTES (64u << 10) /* above the thread pointer of a thread, in its stack: struct pthread */
#define PTHREAD_BYTES 2304u         /* of it */
#define INNER_STACK_LEAST 2048u     /* MINSIGSTKSZ */
#define STACK_FLAGS (SS_ONSTACK | SS_DISABLE | 1u << 31 /* SS_AUTODISARM */)

/*
 * Is a mapping behind a guard all of the stack of a thread, as its struct pthread says (stackblock, stackblock_size)?
 * Where the stack has no guard of its own the kernel shows it as one with whatever is below it.
 */
static bool is_whole_stack(struct census_memory *memory, const struct mapping *m, uint64_t tp)
{
	uint64_t words[PTHREAD_BYTES / 8];
	const size_t bytes = m->end - tp < sizeof words ? (size_t)(m->end - tp) : sizeof words;

	if (!census_memory_read(memory, tp, words, bytes))
		return false;
	for (size_t i = 0; i + 1 < bytes / sizeof *words; i++) {
		const uint64_t end = words[i] + words[i + 1];
		if (words[i] >= m[-1].start && words[i] <= m->start && end > tp && end <= m->end)
			return true;
	}
	return false;
}

/* Is this a stack_t of a stack that has sp, and begins within the mapping? */
static bool is_inner_stack(const uint64_t words[3], const struct mapping *m, uint64_t sp)
{
	return words[0] > m->start && words[0] <= sp && words[2] >= INNER_STACK_LEAST && words[2] > sp - words[0] &&
	       words[2] <= m->end - words[0] && ((uint32_t)words[1] & ~STACK_FLAGS) == 0;
}

/*
 * Does a handler of signals run on an array of its thread's stack? What it has interrupted is then below its stack
 * pointer. The kernel writes a stack_t into its frame.
 */
static bool is_on_inner_stack(struct census_memory *memory, const struct mapping *m, uint64_t sp)
{
	uint64_t words[2 + CENSUS_PAGE / 8] = { 0 }; /* the last two of the page before */

	for (uint64_t page = sp - sp % CENSUS_PAGE; page < m->end; page += CENSUS_PAGE) {
		if (!resident_pages_hold(memory->pages, page, page + CENSUS_PAGE))
			memset(words, 0, sizeof words);
		else if (!census_memory_read(memory, page, words + 2, CENSUS_PAGE))
			return true;
		for (size_t i = 0; i < CENSUS_PAGE / 8; i++)
			if (is_inner_stack(words + i, m, sp))
				return true;
		memcpy(words, words + CENSUS_PAGE / 8, 2 * sizeof *words);
	}
	return false;
}

uint64_t stack_in_use_from(const struct reach_thread *threads, size_t count, struct census_memory *memory,
                           const struct maps *maps, const struct mapping *m)
{
	const bool first = !strcmp(m->path, "[stack]");
	uint64_t start = m->end;

	if (!reach_root_may_be_stack(maps, m))
		return m->start;
	for (size_t i = 0; i < count; i++) {
		const struct reach_thread *t = &threads[i];
		const bool here = t->sp >= m->start && t->sp < m->end;
		const bool own = here &&
		                 (first || (t->tp > t->sp && t->tp < m->end && m->end - t->tp <= STACK_TOP_BYTES &&
		                            is_whole_stack(memory, m, t->tp)));
		if (here && (!own || is_on_inner_stack(memory, m, t->sp)))
			return m->start;
		if (own && t->sp - RED_ZONE < start)
			start = t->sp - RED_ZONE > m->start ? t->sp - RED_ZONE : m->start;
	}
	return start == m->end ? m->start : start - start % CENSUS_PAGE;
}
