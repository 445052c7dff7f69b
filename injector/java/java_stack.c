/* SPDX-License-Identifier: MIT */
#include "java/java_stack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "arch/java_frame.h"
#include "arch/registers.h"
#include "base/grow.h"

#define STACK_BYTES_MAX (8ull << 30)
#define GUESS_BYTES_MAX (1u << 20) /* of a frame that is passed by its frame pointer */
#define BYTECODE_MAX 65536u        /* bytes of a method */

/* ---- threads ---- */

static int thread_read(struct java_view *v, uint64_t address, struct java_thread *t, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t native, tid = 0, bytes = 0;

	*t = (struct java_thread){ .address = address };
	int rc = java_field_read(&v->memory, address, &s->thread_native, &native, e);
	if (rc == 0 && native)
		rc = java_field_read(&v->memory, native, &s->native_id, &tid, e);
	rc = rc ?: java_field_read(&v->memory, address, &s->thread_stack_base, &t->stack_end, e);
	rc = rc ?: java_field_read(&v->memory, address, &s->thread_stack_bytes, &bytes, e);
	if (rc == 0 && (tid > INT32_MAX || bytes > STACK_BYTES_MAX || bytes > t->stack_end))
		rc = err_set(e, EINVAL, "there is no JavaThread at 0x%" PRIx64, address);
	t->tid = (int32_t)tid;
	t->stack = t->stack_end - bytes;
	return rc;
}

/* Where the next JavaThread is said: in a list, from JDK 12 on, or in the one before. */
struct thread_cursor {
	uint64_t address; /* of a word of the list; of a JavaThread, 0 behind the last */
	uint64_t left;    /* of the list */
	bool linked;
};

static int cursor_begin(struct java_view *v, struct thread_cursor *c, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t all;

	*c = (struct thread_cursor){ .linked = !s->threads.bytes };
	if (c->linked)
		return java_field_read(&v->memory, 0, &s->first_thread, &c->address, e);
	int rc = java_field_read(&v->memory, 0, &s->threads, &all, e);
	rc = rc ?: java_field_read(&v->memory, all, &s->threads_length, &c->left, e);
	return rc ?: java_field_read(&v->memory, all, &s->threads_data, &c->address, e);
}

/* *thread: 0 behind the last. */
static int cursor_next(struct java_view *v, struct thread_cursor *c, uint64_t *thread, struct err *e)
{
	*thread = c->linked ? c->address : 0;
	if (c->linked)
		return *thread ? java_field_read(&v->memory, *thread, &v->s.thread_next, &c->address, e) : 0;
	if (!c->left)
		return 0;
	c->left--;
	c->address += sizeof *thread;
	int rc = target_read_u64(&v->memory, c->address - sizeof *thread, thread, e);
	return rc == 0 && !*thread ? err_set(e, EINVAL, "its list of threads has none in it") : rc;
}

int java_threads_read(struct java_view *v, struct java_thread **list, size_t *count, struct err *e)
{
	struct java_thread *threads = NULL;
	struct thread_cursor c;
	uint64_t address;
	size_t n = 0;

	int rc = cursor_begin(v, &c, e);
	while (rc == 0 && (rc = cursor_next(v, &c, &address, e)) == 0 && address) {
		if (n == JAVA_THREADS_MAX)
			rc = err_set(e, EINVAL, "it has more than %u threads", JAVA_THREADS_MAX);
		rc = rc ?: budget_take(v->memory.budget, sizeof *threads, e);
		if (rc == 0 && !grow_list(threads, n))
			rc = err_set(e, ENOMEM, "no memory for the threads");
		rc = rc ?: thread_read(v, address, &threads[n], e);
		n++;
	}
	if (rc) {
		free(threads);
		return rc;
	}
	*list = threads;
	*count = n;
	return 0;
}

static int anchor_at(struct java_view *v, uint64_t address, struct java_anchor *a, struct err *e)
{
	const struct java_structures *s = &v->s;

	int rc = java_field_read(&v->memory, address, &s->anchor_sp, &a->sp, e);
	rc = rc ?: java_field_read(&v->memory, address, &s->anchor_pc, &a->pc, e);
	return rc ?: java_field_read(&v->memory, address, &s->anchor_fp, &a->fp, e);
}

int java_anchor_read(struct java_view *v, const struct java_thread *t, struct java_anchor *anchor, struct err *e)
{
	return anchor_at(v, t->address + v->s.thread_anchor.at, anchor, e);
}

/* ---- frames ---- */

struct walk {
	struct java_view *v;
	const struct java_thread *thread;
	java_frame_fn fn;
	void *context;
	struct java_walk_end *end;
	uint64_t pc, sp, fp; /* of the frame that is next */
	uint32_t depth;
	bool done;
	struct java_point points[JAVA_INLINED_MAX];
};

static int lost(const struct walk *w, const char *why, struct err *e)
{
	return err_set(e, EINVAL, "the walk of thread %d is lost at 0x%" PRIx64 ": %s", w->thread->tid, w->pc, why);
}

static bool on_stack(const struct walk *w, uint64_t address, uint64_t bytes)
{
	return address >= w->sp && address < w->thread->stack_end && bytes <= w->thread->stack_end - address &&
	       address % 8 == 0;
}

/* A word of the frame. */
static int word(struct walk *w, uint64_t address, uint64_t *value, struct err *e)
{
	return target_read_u64(&w->v->memory, address, value, e);
}

static int give(struct walk *w, const struct java_frame *frame, struct err *e)
{
	if (w->depth++ < JAVA_DEPTH_MAX)
		return w->fn(w->context, frame, e);
	w->end->truncated = w->done = true;
	return 0;
}

/* To the caller, from a frame whose saved frame pointer and return address are at that place. */
static int leave(struct walk *w, uint64_t link, uint64_t sp, struct err *e)
{
	uint64_t fp, pc;

	if (!on_stack(w, link, 16) || sp <= w->sp || sp > w->thread->stack_end)
		return lost(w, "its caller is not on the stack", e);
	int rc = word(w, link, &fp, e);
	rc = rc ?: word(w, link + 8, &pc, e);
	if (rc)
		return rc;
	w->pc = code_address(pc);
	w->sp = sp;
	w->fp = fp;
	return 0;
}

/* The bytecode index that an address stands for is -1 where it is none of the method's: java_method_read() tells. */
static int interpreted(struct walk *w, struct err *e)
{
	const struct java_structures *s = &w->v->s;
	struct java_frame frame = { .kind = JAVA_CODE_INTERPRETER };
	const uint64_t lowest = w->fp + 8ull * JAVA_BYTECODE;
	uint64_t sender, bytecode, constant;

	if (!on_stack(w, lowest, 8ull * -JAVA_BYTECODE + 16) || w->fp - w->sp > GUESS_BYTES_MAX)
		return lost(w, "there is no frame of the interpreter", e);
	int rc = word(w, w->fp + 8ull * JAVA_SENDER_SP, &sender, e);
	rc = rc ?: word(w, w->fp + 8ull * JAVA_METHOD, &frame.point.method, e);
	rc = rc ?: word(w, lowest, &bytecode, e);
	rc = rc ?: java_field_read(&w->v->memory, frame.point.method, &s->method_const, &constant, e);
	if (rc)
		return rc;
	uint64_t index = bytecode - (constant + s->bytes.const_method);
	frame.point.bci = bytecode && index < BYTECODE_MAX ? (int32_t)index : -1;
	if (JAVA_SENDER_MAY_BE_BELOW && sender <= w->fp)
		sender = w->fp + 16;
	rc = give(w, &frame, e);
	return rc ?: leave(w, w->fp, sender, e);
}

static int give_points(struct walk *w, const struct java_code *code, uint64_t pc, struct err *e)
{
	uint32_t count;

	int rc = java_points_read(w->v, code, pc, w->points, &count, e);
	if (rc == 0 && count == 0)
		rc = lost(w, "the code has no debug information there", e);
	for (uint32_t i = 0; rc == 0 && i < count && !w->done; i++) {
		const struct java_frame frame = { w->points[i], code->kind, i + 1 < count };
		rc = give(w, &frame, e);
	}
	return rc;
}

static int compiled(struct walk *w, const struct java_code *code, struct err *e)
{
	struct java_frame frame = { .kind = code->kind, .point.bci = -1 };
	uint64_t pc = w->pc;
	int rc;

	if (code->frame_bytes < 16 || !on_stack(w, w->sp, code->frame_bytes))
		return lost(w, "the frame of compiled code is not on the stack", e);
	if (code->kind == JAVA_CODE_NATIVE) {
		rc = java_field_read(&w->v->memory, code->address, &w->v->s.compiled_method, &frame.point.method, e);
		rc = rc ?: give(w, &frame, e);
	} else {
		rc = java_code_original_pc(w->v, code, w->sp, &pc, e);
		rc = rc ?: give_points(w, code, pc, e);
	}
	return rc ?: leave(w, w->sp + code->frame_bytes - 16, w->sp + code->frame_bytes, e);
}

static int stub(struct walk *w, const struct java_code *code, struct err *e)
{
	if (code->frame_bytes < 16)
		return lost(w, "a stub has no frame", e);
	return leave(w, w->sp + code->frame_bytes - 16, w->sp + code->frame_bytes, e);
}

static int begin(struct walk *w, const struct java_anchor *a, struct err *e)
{
	w->sp = a->sp;
	w->fp = a->fp;
	w->pc = a->pc;
	if (!on_stack(w, a->sp, 8) || a->sp - 8 < w->thread->stack)
		return lost(w, "the anchor is not on the stack", e);
	int rc = a->pc ? 0 : word(w, a->sp - 8, &w->pc, e);
	w->pc = code_address(w->pc);
	return rc;
}

/* Native code has called Java code here: on with what it had left, or the end. */
static int entry(struct walk *w, struct err *e)
{
	const uint64_t at = w->fp + (uint64_t)(8 * (int64_t)w->v->s.entry_wrapper), before = w->sp;
	struct java_anchor anchor;
	uint64_t wrapper;

	if (!on_stack(w, at, 8))
		return lost(w, "a call of Java code has no frame", e);
	int rc = word(w, at, &wrapper, e);
	if (rc == 0 && !on_stack(w, wrapper, 8))
		rc = lost(w, "a call of Java code has no wrapper", e);
	rc = rc ?: anchor_at(w->v, wrapper + w->v->s.wrapper_anchor.at, &anchor, e);
	if (rc)
		return rc;
	w->done = anchor.sp == 0;
	if (!w->done && anchor.sp <= before)
		return lost(w, "an anchor leads inwards", e);
	return w->done ? 0 : begin(w, &anchor, e);
}

static int step(struct walk *w, struct err *e)
{
	struct java_code code;

	if (w->pc == w->v->call_stub_return)
		return entry(w, e);
	int rc = java_code_at(w->v, w->pc, &code, e);
	if (rc == -ENOENT)
		rc = lost(w, "no Java code is there", e);
	if (rc)
		return rc;
	switch (code.kind) {
	case JAVA_CODE_INTERPRETER: return interpreted(w, e);
	case JAVA_CODE_COMPILED:
	case JAVA_CODE_NATIVE: return compiled(w, &code, e);
	case JAVA_CODE_BARRIER: w->end->on_heap = w->done = true; return 0;
	default: return stub(w, &code, e);
	}
}

int java_stack_walk(struct java_view *v, const struct java_thread *t, const struct java_anchor *anchor,
                    java_frame_fn fn, void *context, struct java_walk_end *end, struct err *e)
{
	struct walk w = { .v = v, .thread = t, .fn = fn, .context = context, .end = end };

	*end = (struct java_walk_end){ 0 };
	int rc = begin(&w, anchor, e);
	while (rc == 0 && !w.done)
		rc = step(&w, e);
	return rc;
}
