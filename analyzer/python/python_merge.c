/* SPDX-License-Identifier: MIT */
#include "python/python_merge.h"

bool python_is_evaluator(const struct dump_header *h, uint64_t frame)
{
	uint64_t call = DUMP_FRAME_ADDRESS(frame) - 1;

	if (frame & DUMP_JAVA_MARK(h->features))
		return false;
	for (unsigned i = 0; i < DUMP_EVALUATORS; i++)
		if (call - h->evaluators[i].start < h->evaluators[i].bytes)
			return true;
	return false;
}

static void put(struct merged_stack *merged, uint64_t word, bool python)
{
	merged->frames[merged->count++] = (struct merged_frame){ word, python };
}

/* Both lists while they are taken. */
struct merging {
	const uint64_t *python;
	uint32_t python_count, taken;
	struct merged_stack *merged;
};

static void put_group(struct merging *m)
{
	bool ended = false;

	while (m->taken < m->python_count && !ended) {
		uint64_t word = m->python[m->taken++];
		put(m->merged, word, true);
		ended = DUMP_PYTHON_ENTRY(word);
	}
}

static uint32_t count_groups(const uint64_t *python, uint32_t count)
{
	uint32_t groups = 0;

	for (uint32_t i = 0; i < count; i++)
		groups += DUMP_PYTHON_ENTRY(python[i]) || i + 1 == count;
	return groups;
}

static uint32_t count_evaluators(const struct dump_header *h, const uint64_t *frames, uint32_t count)
{
	uint32_t evaluators = 0;

	for (uint32_t i = 0; i < count; i++)
		evaluators += python_is_evaluator(h, frames[i]);
	return evaluators;
}

void python_merge(const struct dump_header *h, const struct dump_stack_copy *copy, uint32_t first, bool coroutines,
                  struct merged_stack *merged)
{
	struct merging m = { dump_python_frames(copy), dump_python_count(copy), 0, merged };
	const uint32_t native_count = copy->stack.frame_count, flags = copy->stack.flags;
	uint32_t groups = count_groups(m.python, m.python_count);
	uint32_t evaluators = count_evaluators(h, copy->frames + first, native_count - first);
	bool native_whole = !(flags & (DUMP_STACK_TRUNCATED | DUMP_STACK_DEEP));
	bool python_whole = !(flags & (DUMP_STACK_PYTHON_TRUNCATED | DUMP_STACK_PYTHON_DEEP));
	/* Of another interpreter. */
	bool inner_missing = python_whole && flags & DUMP_STACK_PYTHON_INNER && evaluators > groups;
	/* The same, or of other coroutines. */
	bool outer_missing = python_whole && !inner_missing && evaluators > groups &&
	                     (flags & DUMP_STACK_PYTHON_OUTER || (coroutines && evaluators > groups + 1));
	bool from_outermost = python_whole && !outer_missing && (native_whole || evaluators > groups);
	/* Of the evaluator, innermost: native frames without a group, and groups that the first one has in excess. */
	uint32_t bare = from_outermost && evaluators > groups ? evaluators - groups : 0;
	uint32_t excess = from_outermost && evaluators && groups > evaluators ? groups - evaluators : 0;

	merged->count = 0;
	merged->ends_early = outer_missing;
	merged->fits = !outer_missing && !inner_missing && (!python_whole || evaluators <= groups + 1) &&
	               (!native_whole || groups <= evaluators);
	for (uint32_t i = first; i < native_count; i++) {
		uint64_t frame = copy->frames[i];
		if (!python_is_evaluator(h, frame) || bare || m.taken == m.python_count) {
			bare -= bare && python_is_evaluator(h, frame);
			put(merged, frame, false);
			continue;
		}
		for (; excess; excess--)
			put_group(&m);
		put_group(&m);
	}
	while (m.taken < m.python_count)
		put_group(&m);
}
