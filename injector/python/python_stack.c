/* SPDX-License-Identifier: MIT */
#include "python/python_stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"

#define CODES 256u /* code objects that are remembered during a walk; a power of two */
#define FRAME_BYTES 128u
#define OWNERS_OF_311 2 /* the highest owner where no frame is without code */

/* ---- thread states ---- */

struct states {
	struct python_state *list;
	size_t count;
};

static int add_state(struct states *s, struct python_view *v, const struct python_state *state, struct err *e)
{
	if (s->count == PYTHON_STATES_MAX)
		return err_set(e, EINVAL, "it has more than %u thread states", PYTHON_STATES_MAX);
	int rc = budget_take(v->memory.budget, sizeof *state, e);
	if (rc)
		return rc;
	if (!grow_list(s->list, s->count))
		return err_set(e, ENOMEM, "no memory for thread states");
	s->list[s->count++] = *state;
	return 0;
}

/* The state at an address, whose list came from another one (0: from the interpreter). */
static int read_state(struct python_view *v, struct python_state *state, uint64_t interpreter, uint64_t from,
                      uint64_t *next, struct err *e)
{
	const struct python_release *r = v->release;
	uint64_t owner, previous;
	const struct target_piece pieces[] = {
		{ state->address + r->state_interpreter, 8, &owner },
		{ state->address + r->state_previous, 8, &previous },
		{ state->address + r->state_next, 8, next },
		{ state->address + r->frames.state_thread, 8, &state->thread },
		{ state->address + (r->state_native != PYTHON_ABSENT ? r->state_native : r->frames.state_thread), 8,
		  &state->native },
	};

	int rc = target_read_batch(&v->memory, pieces, sizeof pieces / sizeof pieces[0], e);
	if (rc)
		return rc;
	if (owner != interpreter || previous != from)
		return err_set(e, EINVAL, "the thread state at 0x%" PRIx64 " is not one of its interpreter's list",
		               state->address);
	if (r->state_native == PYTHON_ABSENT)
		state->native = 0;
	return 0;
}

static int read_states_of(struct states *s, struct python_view *v, uint64_t interpreter, int64_t id, struct err *e)
{
	uint64_t address, from = 0;

	int rc = target_read_u64(&v->memory, interpreter + v->release->interpreter_threads, &address, e);
	while (rc == 0 && address) {
		struct python_state state = { .address = address, .interpreter = id };
		uint64_t next = 0;

		rc = read_state(v, &state, interpreter, from, &next, e);
		rc = rc ?: add_state(s, v, &state, e);
		from = address;
		address = next;
	}
	return rc;
}

static int read_interpreters(struct states *s, struct python_view *v, struct err *e)
{
	const struct python_release *r = v->release;
	uint64_t interpreter, main_one, id, count = 0;
	bool seen = false;

	int rc = target_read_u64(&v->memory, v->runtime + r->runtime_interpreters, &interpreter, e);
	rc = rc ?: target_read_u64(&v->memory, v->runtime + r->runtime_main, &main_one, e);
	for (; rc == 0 && interpreter; count++) {
		if (count == PYTHON_INTERPRETERS_MAX)
			return err_set(e, EINVAL, "it has more than %u interpreters", PYTHON_INTERPRETERS_MAX);
		seen |= interpreter == main_one;
		rc = target_read_u64(&v->memory, interpreter + r->interpreter_id, &id, e);
		rc = rc ?: read_states_of(s, v, interpreter, (int64_t)id, e);
		rc = rc ?: target_read_u64(&v->memory, interpreter + r->interpreter_next, &interpreter, e);
	}
	if (rc == 0 && count && !seen)
		return err_set(e, EINVAL, "its main interpreter is not one of its interpreters");
	return rc;
}

int python_states_read(struct python_view *v, struct python_state **list, size_t *count, struct err *e)
{
	struct states s = { 0 };

	int rc = read_interpreters(&s, v, e);
	if (rc) {
		free(s.list);
		return rc;
	}
	*list = s.list;
	*count = s.count;
	return 0;
}

/* ---- frames ---- */

struct walk {
	struct python_view *v;
	struct python_code codes[CODES]; /* by address */
};

/* Recursion meets the same code again and again. */
static int code_at(struct walk *w, uint64_t address, const struct python_code **code, struct err *e)
{
	struct python_code *known = &w->codes[(address >> 4) * 0x9e3779b97f4a7c15u >> 56];
	int rc = known->address == address ? 0 : python_code_read(w->v, address, known, e);

	if (rc)
		known->address = 0;
	*code = known;
	return rc;
}

static int offset_in(const struct walk *w, const uint8_t *words, const struct python_code *code, int64_t *offset,
                     struct err *e)
{
	const struct python_frame_layout *l = &w->v->release->frames;
	int32_t last;
	uint64_t at;

	memcpy(&last, words + l->frame_instruction, sizeof last);
	memcpy(&at, words + l->frame_instruction, sizeof at);
	if (l->instruction == PYTHON_LAST_BYTES)
		*offset = last;
	else if (l->instruction == PYTHON_LAST_UNITS)
		*offset = (int64_t)last * 2;
	else
		*offset = (int64_t)(at - code->start);
	if (*offset < -2 || *offset >= (int64_t)code->bytes || (*offset > 0 && *offset % 2))
		return err_set(e, EINVAL, "a frame's instruction is not in its code at 0x%" PRIx64, code->address);
	return 0;
}

/* From the words of a frame; *counts: it is one of Python code that has begun. */
static int frame_from(struct walk *w, const uint8_t *words, struct python_frame *frame, bool *counts, struct err *e)
{
	const struct python_frame_layout *l = &w->v->release->frames;
	uint8_t owner = l->frame_owner != PYTHON_ABSENT ? words[l->frame_owner] : 0;
	const struct python_code *code;
	uint64_t address;

	*counts = false;
	memcpy(&address, words + l->frame_code, sizeof address);
	address &= ~(uint64_t)l->executable_tag;
	if (owner > l->owner_without_code + 1 || (owner > OWNERS_OF_311 && l->owner_without_code == UINT8_MAX))
		return err_set(e, EINVAL, "a frame has an owner that no frame has");
	if (owner >= l->owner_without_code && l->instruction == PYTHON_CURRENT)
		return python_object_check(w->v, address, PYTHON_NONE, e);
	int rc = code_at(w, address, &code, e);
	if (rc || owner >= l->owner_without_code)
		return rc;
	frame->code = *code;
	*counts = true;
	rc = offset_in(w, words, code, &frame->offset, e);
	if (rc == 0 && l->first_traceable != PYTHON_ABSENT && owner != l->owner_generator)
		*counts = frame->offset >= 2 * (int64_t)code->first_traceable;
	return rc;
}

/* The frame that runs, 0 none. */
static int current_frame(struct python_view *v, uint64_t state, uint64_t *frame, struct err *e)
{
	const struct python_frame_layout *l = &v->release->frames;

	int rc = target_read_u64(&v->memory, state + l->state_frame, frame, e);
	if (rc == 0 && l->cframe_frame != PYTHON_ABSENT)
		rc = *frame ? target_read_u64(&v->memory, *frame + l->cframe_frame, frame, e)
		            : err_set(e, EINVAL, "the thread state at 0x%" PRIx64 " leads to no frame", state);
	return rc;
}

static int walk_from(struct walk *w, uint64_t address, python_frame_fn fn, void *context, bool *truncated,
                     struct err *e)
{
	struct python_view *v = w->v;
	const struct python_frame_layout *l = &v->release->frames;
	uint64_t mark = 0; /* a frame further in, for chains that return: Brent's algorithm */
	uint8_t words[FRAME_BYTES];
	uint32_t bytes = l->frame_instruction + 8;
	int rc = 0;

	if (l->frame_owner != PYTHON_ABSENT && l->frame_owner >= bytes)
		bytes = l->frame_owner + 1;
	*truncated = false;
	for (uint32_t depth = 0, turn = 1; address && rc == 0; depth++) {
		struct python_frame frame = { .address = address };
		bool counts;

		if (depth == PYTHON_DEPTH_MAX) {
			*truncated = true;
			break;
		}
		if (address == mark)
			return err_set(e, EINVAL, "the chain of frames returns to 0x%" PRIx64, address);
		if (depth == turn) {
			mark = address;
			turn *= 2;
		}
		rc = target_read(&v->memory, address, words, bytes, e);
		if (rc == 0 && l->instruction <= PYTHON_LAST_UNITS)
			rc = python_object_check(v, address, PYTHON_FRAME, e);
		rc = rc ?: frame_from(w, words, &frame, &counts, e);
		if (rc == 0 && counts)
			rc = fn(context, &frame, e);
		memcpy(&address, words + l->frame_previous, sizeof address);
	}
	return rc;
}

int python_stack_walk(struct python_view *v, uint64_t state, python_frame_fn fn, void *context, bool *truncated,
                      struct err *e)
{
	AUTO_FREE struct walk *w = calloc(1, sizeof *w);
	uint64_t address;

	if (!w)
		return err_set(e, ENOMEM, "no memory for a walk");
	w->v = v;
	int rc = current_frame(v, state, &address, e);
	return rc ?: walk_from(w, address, fn, context, truncated, e);
}
