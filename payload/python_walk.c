/* SPDX-License-Identifier: MIT */
#include "python_walk.h"

#define LOWEST 0x10000u             /* below it nothing is mapped (vm.mmap_min_addr) */
#define HIGHEST 0x00007ffffffff000u /* user addresses end here */
#define UNIT_BYTES 2
#define HIDDEN_MAX 64u /* frames that do not count, between two that do */

static bool is_address(uint64_t address)
{
	return address % 8 == 0 && address >= LOWEST && address < HIGHEST;
}

static uint64_t word(uint64_t address, uint32_t offset)
{
	return *(const volatile uint64_t *)(uintptr_t)(address + offset);
}

static int32_t int_at(uint64_t address, uint32_t offset)
{
	return *(const volatile int32_t *)(uintptr_t)(address + offset);
}

static uint8_t byte_at(uint64_t address, uint32_t offset)
{
	return *(const volatile uint8_t *)(uintptr_t)(address + offset);
}

/* The state of the thread, 0: none. */
static uint64_t own_state(const struct python_layout *l, uint64_t thread_pointer)
{
	uint32_t key = (uint32_t)int_at(l->key_address, 4);

	if (word(l->finalizing, 0) != 0 || int_at(l->key_address, 0) == 0 || key >= PYTHON_KEYS)
		return 0;
	uint64_t block = word(thread_pointer, l->specific_offset + key / PYTHON_BLOCK_KEYS * 8);
	if (!is_address(block))
		return 0;
	block += key % PYTHON_BLOCK_KEYS * PYTHON_KEY_BYTES;
	uint64_t state = word(block, PYTHON_KEY_VALUE);
	if (word(block, 0) != l->key_sequence)
		return 0;
	return is_address(state) && word(state, l->frames.state_thread) == thread_pointer ? state : 0;
}

/* The current frame; 0: none. False: the state is not as it should be. */
static bool current_frame(const struct python_frame_layout *f, uint64_t state, uint64_t *frame)
{
	*frame = word(state, f->state_frame);
	if (f->cframe_frame == PYTHON_ABSENT)
		return true;
	if (!is_address(*frame))
		return false;
	*frame = word(*frame, f->cframe_frame);
	return true;
}

/* Where the code begins, 0: it has no address; and how long it is. False: it is no code object. */
static bool code_bounds(const struct python_layout *l, uint64_t code, uint64_t *start, uint64_t *bytes)
{
	const struct python_frame_layout *f = &l->frames;

	if (!is_address(code) || word(code, f->object_type) != l->code_type)
		return false;
	if (f->code_units != PYTHON_ABSENT) {
		*start = code + f->code_start;
		*bytes = word(code, f->code_units) * UNIT_BYTES;
		return true;
	}
	uint64_t object = word(code, f->code_start);
	*start = 0;
	if (!is_address(object))
		return false;
	*bytes = word(object, f->bytes_size);
	return true;
}

static bool offset_of(const struct python_frame_layout *f, uint64_t frame, uint64_t start, uint64_t bytes,
                      int64_t *offset)
{
	if (f->instruction == PYTHON_LAST_BYTES)
		*offset = int_at(frame, f->frame_instruction);
	else if (f->instruction == PYTHON_LAST_UNITS)
		*offset = (int64_t)int_at(frame, f->frame_instruction) * UNIT_BYTES;
	else
		*offset = (int64_t)(word(frame, f->frame_instruction) - start);
	return *offset >= -UNIT_BYTES && *offset < INT32_MAX && *offset < (int64_t)bytes;
}

enum kind { COUNTS, HIDDEN_FRAME, ENTERED_FROM_C, WRONG };

static enum kind frame_at(const struct python_layout *l, uint64_t frame, struct python_walked *out)
{
	const struct python_frame_layout *f = &l->frames;
	uint8_t owner = f->frame_owner != PYTHON_ABSENT ? byte_at(frame, f->frame_owner) : 0;
	uint64_t code = word(frame, f->frame_code) & ~(uint64_t)f->executable_tag, start, bytes;
	int64_t offset;

	if (l->frame_type && word(frame, f->object_type) != l->frame_type)
		return WRONG;
	if (owner >= f->owner_without_code)
		return ENTERED_FROM_C;
	if (!code_bounds(l, code, &start, &bytes) || !offset_of(f, frame, start, bytes, &offset))
		return WRONG;
	if (f->first_traceable != PYTHON_ABSENT && owner != f->owner_generator &&
	    offset < (int64_t)int_at(code, f->first_traceable) * UNIT_BYTES)
		return HIDDEN_FRAME;
	*out = (struct python_walked){ code, (int32_t)offset, f->frame_owner == PYTHON_ABSENT };
	return COUNTS;
}

enum python_walk_end python_walk(const struct python_layout *layout, uint64_t thread_pointer,
                                 struct python_walked *frames, uint32_t room, uint32_t *count)
{
	const struct python_frame_layout *f = &layout->frames;
	uint64_t state = own_state(layout, thread_pointer), frame;
	uint32_t hidden = 0, n = 0;
	struct python_walked found;

	*count = 0;
	if (!state)
		return PYTHON_WALK_NO_THREAD;
	if (!current_frame(f, state, &frame))
		return PYTHON_WALK_LOST;
	for (; frame; frame = word(frame, f->frame_previous)) {
		enum kind kind = is_address(frame) ? frame_at(layout, frame, &found) : WRONG;

		if (kind == WRONG || (kind != COUNTS && ++hidden > HIDDEN_MAX))
			return PYTHON_WALK_LOST;
		/* The evaluator was entered for the last frame that counted, or for a hidden one right outside of it.
		 */
		bool entry = kind == ENTERED_FROM_C ||
		             (f->frame_entry != PYTHON_ABSENT && kind != COUNTS && byte_at(frame, f->frame_entry));
		if (entry && n)
			frames[n - 1].entry = 1;
		if (kind != COUNTS)
			continue;
		if (n == room)
			return PYTHON_WALK_TRUNCATED;
		if (f->frame_entry != PYTHON_ABSENT)
			found.entry = byte_at(frame, f->frame_entry) != 0;
		frames[n++] = found;
		*count = n;
		hidden = 0;
	}
	return PYTHON_WALK_WHOLE;
}
