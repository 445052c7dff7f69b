/* SPDX-License-Identifier: MIT */
#include "python/python_frames.h"

#include "python/code_record.h"
#include "python/known_code.h"
#include "payload.h"
#include "tables/stack_hash.h"

static uint64_t add_frame(uint64_t hash, uint64_t code, const struct python_walked *frame)
{
	return stack_hash_add(hash, code + ((uint64_t)(uint32_t)frame->offset << 1 | frame->entry));
}

/* The hash of the frame's code. */
static uint64_t code_of(const struct python_layout *layout, const struct python_walked *frame, uint64_t generation)
{
	struct code_object code;
	uint64_t known;

	if (generation && known_code_find(generation, frame->code, &known))
		return known;
	code_object_read(&code, layout, frame);
	if (generation)
		known_code_keep(generation, frame->code, code.hash);
	return code.hash;
}

#define MISSING (DUMP_STACK_PYTHON_INNER | DUMP_STACK_PYTHON_OUTER)

static uint32_t missing_flag(const struct python_cursor *c)
{
	return c->missing == PYTHON_MISSING_INNER   ? DUMP_STACK_PYTHON_INNER
	       : c->missing == PYTHON_MISSING_OUTER ? DUMP_STACK_PYTHON_OUTER
	                                            : 0;
}

/* What the frames of the walk add to dump_stack.flags. */
static uint32_t flags_of(const struct python_cursor *c, uint32_t count, bool more, uint32_t missing)
{
	uint32_t reason = more ? DUMP_STACK_PYTHON_DEEP : c->end == PYTHON_WALK_LOST ? DUMP_STACK_PYTHON_TRUNCATED : 0;

	return reason | DUMP_STACK_PYTHON_FLAGS(count) | (count ? missing : 0);
}

void python_frames_add(uint64_t thread_pointer, struct unwind_result *walked)
{
	uint64_t hash = walked->hash, generation;
	struct python_walked frame;
	struct python_cursor c;
	uint32_t count = 0;
	bool more = false;

	if (!python_walk_start(&c, &payload.python, thread_pointer) && c.end == PYTHON_WALK_NO_THREAD)
		return;
	if (walked->signal_frames)
		python_walk_give_up(&c);
	generation = known_code_generation();
	while (python_walk_next(&c, &frame) && !(more = count == DUMP_PYTHON_FRAMES_MAX)) {
		hash = add_frame(hash, code_of(c.layout, &frame, generation), &frame);
		count++;
	}
	uint32_t flags = flags_of(&c, count, more, missing_flag(&c));
	if (!flags)
		return;
	walked->flags |= flags;
	walked->hash = stack_hash_end(hash, count, flags);
}

bool python_frames_store(uint64_t thread_pointer, uint64_t native, const struct unwind_result *walked, uint64_t *python)
{
	uint32_t wanted = DUMP_STACK_PYTHON_COUNT(walked->flags), count = 0, reference, flags;
	struct python_walked frame;
	struct python_cursor c;
	struct code_object code;
	bool more = false;

	python_walk_start(&c, &payload.python, thread_pointer);
	while (python_walk_next(&c, &frame) && !(more = count == wanted)) {
		code_object_read(&code, c.layout, &frame);
		if (!code_record_store(&code, c.layout, &reference))
			return false;
		native = add_frame(native, code.hash, &frame);
		python[count++] = DUMP_PYTHON_FRAME(reference, frame.entry, frame.offset);
	}
	/* Which state has the lock may have changed since the first walk. */
	flags = flags_of(&c, count, more, walked->flags & MISSING);
	return stack_hash_end(native, count, flags) == walked->hash;
}
