/* SPDX-License-Identifier: MIT */
#include "python/python_walk.h"

#include "walk/known_stack.h"
#include "python/python_memory.h"

#define UNIT_BYTES 2
#define HIDDEN_MAX 64u           /* frames that do not count, between two that do */
#define CFRAMES_MAX 8u           /* that are looked at */
#define STATE_BYTES 1024u        /* no thread state of 3.11 and 3.12 is larger */
#define STACK_BYTES (256u << 20) /* what is so far below the stack pointer at most may have been stack */

/* The state that the key leads to, 0: none that names this thread. The key and whether there is one are read at once.
 */
static uint64_t state_of_key(const struct python_layout *l, uint64_t thread)
{
	uint64_t word = python_word(l->key_address, 0), key = word >> 32;

	if ((uint32_t)word == 0 || key >= PYTHON_KEYS)
		return 0;
	uint64_t block = python_word(thread + key / PYTHON_BLOCK_KEYS * 8, l->specific_offset);
	if (!python_is_address(block))
		return 0;
	block += key % PYTHON_BLOCK_KEYS * PYTHON_KEY_BYTES;
	uint64_t state = python_word(block, PYTHON_KEY_VALUE);
	if (python_word(block, 0) != python_word(l->key_table + key * PYTHON_KEY_ENTRY, 0))
		return 0;
	return python_is_address(state) && python_word(state, l->frames.state_thread) == thread ? state : 0;
}

/* The state of the thread, 0: none. */
static uint64_t own_state(const struct python_layout *l, uint64_t thread_pointer)
{
	const uint64_t thread = thread_pointer - l->block_below;

	if (python_word(l->finalizing, 0) != 0 || (uint32_t)python_int(thread, l->leaving_offset) & PYTHON_LEAVING)
		return 0;
	uint64_t attached = l->attached_offset ? python_word(thread_pointer + (uint64_t)l->attached_offset, 0) : 0;
	return python_is_address(attached) ? attached : state_of_key(l, thread);
}

static enum python_missing missing_of(const struct python_layout *l, uint64_t state)
{
	if (l->current_state) {
		uint64_t current = python_word(l->current_state, 0);
		return current && current != state ? PYTHON_MISSING_INNER : PYTHON_MISSING_NONE;
	}
	return python_word(state, l->state_interpreter) != l->main_interpreter ? PYTHON_MISSING_OUTER
	                                                                       : PYTHON_MISSING_NONE;
}

/*
 * Is it that of a C function that still runs? longjmp leaves evaluators without a word to the state. What they leave is
 * below the stack pointer, or has been written over by what was called since. One that is whole leads to those of the
 * functions around it, further up the stack, and at last into the state. Only what is certain to be mapped is read.
 */
static bool is_live_cframe(const struct python_frame_layout *f, uint64_t state, uint64_t cframe, uint64_t thread)
{
	const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0), end = known_stack_end(here, thread);

	if (cframe - state < STATE_BYTES) /* the state's own: no evaluator runs with it */
		return true;
	if (here - cframe <= STACK_BYTES)
		return false;
	for (unsigned i = 0; i < CFRAMES_MAX && cframe >= here && cframe < end; i++) {
		/* It follows the current frame in both versions. */
		uint64_t outer = python_word(cframe, f->cframe_frame + 8);

		if (!python_is_address(outer) || (outer - state >= STATE_BYTES && (outer <= cframe || outer >= end)))
			return false;
		cframe = outer;
	}
	return true;
}

/* The current frame; 0: none. False: the state is not as it should be. */
static bool current_frame(const struct python_frame_layout *f, uint64_t state, uint64_t thread, uint64_t *frame)
{
	*frame = python_word(state, f->state_frame);
	if (f->cframe_frame == PYTHON_ABSENT)
		return true;
	if (!python_is_address(*frame) || !is_live_cframe(f, state, *frame, thread))
		return false;
	*frame = python_word(*frame, f->cframe_frame);
	return true;
}

/* Where the code begins, 0: it has no address; and how long it is. False: it is no code object. */
static bool code_bounds(const struct python_layout *l, uint64_t code, uint64_t *start, uint64_t *bytes)
{
	const struct python_frame_layout *f = &l->frames;

	if (!python_is_address(code) || python_word(code, f->object_type) != l->code_type)
		return false;
	if (f->code_units != PYTHON_ABSENT) {
		*start = code + f->code_start;
		*bytes = python_word(code, f->code_units) * UNIT_BYTES;
		return true;
	}
	uint64_t object = python_word(code, f->code_start);
	*start = 0;
	if (!python_is_address(object))
		return false;
	*bytes = python_word(object, f->bytes_size);
	return true;
}

static bool offset_of(const struct python_frame_layout *f, uint64_t frame, uint64_t start, uint64_t bytes,
                      int64_t *offset)
{
	if (f->instruction == PYTHON_LAST_BYTES)
		*offset = python_int(frame, f->frame_instruction);
	else if (f->instruction == PYTHON_LAST_UNITS)
		*offset = (int64_t)python_int(frame, f->frame_instruction) * UNIT_BYTES;
	else
		*offset = (int64_t)(python_word(frame, f->frame_instruction) - start);
	return *offset >= -UNIT_BYTES && *offset < INT32_MAX && *offset < (int64_t)bytes;
}

enum kind { COUNTS, HIDDEN_FRAME, ENTERED_FROM_C, WRONG };

static enum kind frame_at(const struct python_layout *l, uint64_t frame, struct python_walked *out)
{
	const struct python_frame_layout *f = &l->frames;
	uint8_t owner = f->frame_owner != PYTHON_ABSENT ? python_byte(frame, f->frame_owner) : 0;
	uint64_t code = python_word(frame, f->frame_code) & ~(uint64_t)f->executable_tag, start, bytes;
	int64_t offset;

	if (l->frame_type && python_word(frame, f->object_type) != l->frame_type)
		return WRONG;
	if (owner >= f->owner_without_code)
		return ENTERED_FROM_C;
	if (!code_bounds(l, code, &start, &bytes) || !offset_of(f, frame, start, bytes, &offset))
		return WRONG;
	if (f->first_traceable != PYTHON_ABSENT && owner != f->owner_generator &&
	    offset < (int64_t)python_int(code, f->first_traceable) * UNIT_BYTES)
		return HIDDEN_FRAME;
	*out = (struct python_walked){
		.code = code,
		.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		.offset = (int32_t)offset,
		.entry = f->frame_owner == PYTHON_ABSENT,
	};
	return COUNTS;
}

bool python_walk_start(struct python_cursor *c, const struct python_layout *layout, uint64_t thread_pointer)
{
	uint64_t state = own_state(layout, thread_pointer);

	c->layout = layout;
	c->frame = 0;
	c->has_pending = false;
	c->end = PYTHON_WALK_WHOLE;
	c->missing = state ? missing_of(layout, state) : PYTHON_MISSING_NONE;
	if (!state)
		c->end = PYTHON_WALK_NO_THREAD;
	else if (!current_frame(&layout->frames, state, thread_pointer, &c->frame))
		c->end = PYTHON_WALK_LOST;
	return c->end == PYTHON_WALK_WHOLE;
}

void python_walk_give_up(struct python_cursor *c)
{
	if (c->frame)
		c->end = PYTHON_WALK_LOST;
	c->frame = 0;
}

/* What is pending is complete: *out gets it. False: nothing was. */
static bool give_pending(struct python_cursor *c, struct python_walked *out)
{
	bool has = c->has_pending;

	if (has)
		*out = c->pending;
	c->has_pending = false;
	return has;
}

bool python_walk_next(struct python_cursor *c, struct python_walked *out)
{
	const struct python_frame_layout *f = &c->layout->frames;
	uint32_t hidden = 0;
	struct python_walked found;

	while (c->frame) {
		uint64_t frame = c->frame;
		enum kind kind = python_is_address(frame) ? frame_at(c->layout, frame, &found) : WRONG;

		if (kind == WRONG || (kind != COUNTS && ++hidden > HIDDEN_MAX)) {
			c->end = PYTHON_WALK_LOST;
			c->frame = 0;
			break;
		}
		c->frame = python_word(frame, f->frame_previous);
		/* The evaluator was entered for the last frame that counted, or for a hidden one right outside of it.
		 */
		bool entry = kind == ENTERED_FROM_C ||
		             (f->frame_entry != PYTHON_ABSENT && kind != COUNTS && python_byte(frame, f->frame_entry));
		if (entry && c->has_pending)
			c->pending.entry = 1;
		if (kind != COUNTS)
			continue;
		if (f->frame_entry != PYTHON_ABSENT)
			found.entry = python_byte(frame, f->frame_entry) != 0;
		bool has = give_pending(c, out);
		c->pending = found;
		c->has_pending = true;
		if (has)
			return true;
	}
	return give_pending(c, out);
}

enum python_walk_end python_walk(const struct python_layout *layout, uint64_t thread_pointer,
                                 struct python_walked *frames, uint32_t room, uint32_t *count)
{
	struct python_cursor c;
	struct python_walked one;

	*count = 0;
	if (!python_walk_start(&c, layout, thread_pointer))
		return c.end;
	while (python_walk_next(&c, &one)) {
		if (*count == room)
			return PYTHON_WALK_TRUNCATED;
		frames[(*count)++] = one;
	}
	return c.end;
}
