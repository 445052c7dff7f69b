/* SPDX-License-Identifier: MIT */
#include "java/java_proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/compiled_frame.h"
#include "base/cleanup.h"
#include "host/clocks.h"
#include "process/task.h"

#define PAUSE_NS 1000000 /* after the first look, twice as long after each further one */
#define PAUSES_MAX 64u   /* of one proof */
#define CHECKED 1024u    /* methods that are remembered as right, a power of two */
#define POINTS_OF_CODE 4u
#define CODES_LEAST 8u     /* one of so many must have a method: only those of unloaded classes have none */
#define DESCRIBED_PART 16u /* … and have debug information: what C2 makes of methods that call nothing has none */
#define ENTRY_BYTES 256u   /* of compiled code: its frame is made there, in some code further inside */

struct prover {
	struct java_proof *p;
	struct budget budget;
	unsigned looks, pauses;
	uint64_t last_id, last_code;         /* compile_id, and of which code */
	uint32_t files, own_files;           /* of frames; those that have their class's name */
	uint32_t described;                  /* pieces of code that have debug information */
	uint32_t framed, made;               /* pieces of code that have a frame; those that make one of that size */
	struct java_method checked[CHECKED]; /* by address */
};

/* False: there were enough. */
static bool wait_a_moment(struct prover *pr, unsigned look)
{
	if (look + 1 >= pr->looks || pr->pauses == PAUSES_MAX)
		return false;
	pr->pauses++;
	clock_pause(PAUSE_NS << look);
	return true;
}

static bool is_of_objects(int rc)
{
	return rc == -EINVAL || rc == -EFAULT || rc == -ENAMETOOLONG;
}

/* The same few methods are met again and again. */
static int method_check(struct prover *pr, const struct java_point *point, struct java_method *m, struct err *e)
{
	struct java_method *known = &pr->checked[(point->method >> 3) * 0x9e3779b97f4a7c15u >> 54];

	if (known->address == point->method &&
	    (point->bci == 0 || point->bci == -1 || (uint32_t)point->bci < known->code_bytes)) {
		*m = *known;
		return 0;
	}
	int rc = java_method_read(&pr->p->view, point->method, point->bci, m, e);
	if (rc == 0)
		*known = *m;
	return rc;
}

/* ---- compiled code ---- */

static int prove_pc(struct prover *pr, const struct java_code *code, uint64_t pc, struct err *e)
{
	struct java_point points[JAVA_INLINED_MAX];
	struct java_method m;
	uint32_t count;

	int rc = java_points_read(&pr->p->view, code, pc, points, &count, e);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = method_check(pr, &points[i], &m, e);
		pr->p->points += rc == 0;
	}
	return rc;
}

/* What tells it from other code, and where it keeps the pc that it was left at. */
static int prove_head(struct prover *pr, const struct java_code *code, struct err *e)
{
	struct java_view *v = &pr->p->view;
	uint64_t id, original, handler;

	int rc = java_field_read(&v->memory, code->address, &v->s.compiled_id, &id, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &v->s.compiled_original, &original, e);
	rc = rc ?: java_code_handler(v, code, &handler, e);
	if (rc)
		return rc;
	if (id == 0 || (id == pr->last_id && code->address != pr->last_code) || original + 8 > code->frame_bytes ||
	    handler < code->start || handler >= code->end)
		return err_set(e, EINVAL, "the code at 0x%" PRIx64 " has no likely head", code->address);
	pr->last_id = id;
	pr->last_code = code->address;
	return 0;
}

/* Do its first instructions make a frame as large as it is said to be? */
static int prove_frame(struct prover *pr, const struct java_code *code, struct err *e)
{
	uint8_t bytes[ENTRY_BYTES];
	const uint64_t count = code->end - code->start < sizeof bytes ? code->end - code->start : sizeof bytes;

	if (code->frame_bytes <= 16)
		return 0;
	int rc = target_read(&pr->p->view.memory, code->start, bytes, count, e);
	pr->framed += rc == 0;
	pr->made += rc == 0 && compiled_frame_made(bytes, count, code->frame_bytes);
	return rc;
}

/* One of an unloaded class has no method any more. */
static int prove_code_once(struct prover *pr, const struct java_code *code, struct err *e)
{
	struct java_view *v = &pr->p->view;
	struct java_point own = { .bci = -1 };
	struct java_method m;
	uint64_t pc;

	int rc = java_field_read(&v->memory, code->address, &v->s.compiled_method, &own.method, e);
	if (rc || !own.method)
		return rc;
	rc = method_check(pr, &own, &m, e);
	rc = rc ?: prove_head(pr, code, e);
	rc = rc ?: prove_frame(pr, code, e);
	for (uint32_t n = 0; rc == 0 && n < POINTS_OF_CODE; n++) {
		rc = java_code_debug_pc(v, code, n, &pc, e);
		if (rc == -ENOENT)
			return 0;
		rc = rc ?: prove_pc(pr, code, pc, e);
	}
	return rc;
}

/* Is another piece of code there by now, or one that has lost its method? */
static bool code_changed(struct prover *pr, const struct java_code *code, uint64_t id, uint64_t method)
{
	struct java_view *v = &pr->p->view;
	uint64_t id_now, method_now;

	return java_field_read(&v->memory, code->address, &v->s.compiled_id, &id_now, ERR_IGNORED) ||
	       java_field_read(&v->memory, code->address, &v->s.compiled_method, &method_now, ERR_IGNORED) ||
	       id_now != id || method_now != method;
}

static int prove_code(struct prover *pr, const struct java_code *code, struct err *e)
{
	struct java_view *v = &pr->p->view;
	const uint64_t points = pr->p->points;
	uint64_t id, method;

	int rc = java_field_read(&v->memory, code->address, &v->s.compiled_id, &id, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &v->s.compiled_method, &method, e);
	for (unsigned look = 0; rc == 0; look++) {
		rc = prove_code_once(pr, code, e);
		if (!is_of_objects(rc) || code_changed(pr, code, id, method))
			break;
		if (!wait_a_moment(pr, look))
			return rc;
		rc = 0;
	}
	pr->p->codes += rc == 0 && method;
	pr->described += rc == 0 && pr->p->points > points;
	return is_of_objects(rc) ? 0 : rc;
}

/* A heap changes while it is gone through: what a block holds may not be described, and where the chain of blocks
 * breaks, it is left. */
static int prove_heap(struct prover *pr, const struct java_heap *heap, uint32_t *seen, struct err *e)
{
	uint64_t at = heap->low;
	int rc = 0;

	for (uint32_t count = 0; rc == 0 && count < JAVA_CODES_MAX;) {
		struct java_code code;
		const uint64_t before = at;
		bool used;

		rc = java_code_next(&pr->p->view, heap, &at, &code, &used, e);
		if (is_of_objects(rc) && at > before) {
			rc = 0;
			continue;
		}
		if (rc == 0 && used && code.kind == JAVA_CODE_BARRIER)
			java_inside_barrier(&pr->p->view, &code);
		if (rc == 0 && used && code.kind == JAVA_CODE_COMPILED) {
			rc = prove_code(pr, &code, e);
			count++;
			++*seen;
			if (rc)
				return rc;
		}
	}
	return rc == -ENOENT || is_of_objects(rc) ? 0 : rc;
}

static int prove_heaps(struct prover *pr, struct err *e)
{
	struct java_view *v = &pr->p->view;
	uint32_t count = 0;

	int rc = java_heaps_read(v, e);
	for (uint32_t i = 0; rc == 0 && i < v->heap_count; i++)
		rc = prove_heap(pr, &v->heaps[i], &count, e);
	if (rc == 0 && count >= CODES_LEAST && pr->p->codes == 0)
		rc = err_set(e, EINVAL, "no compiled code has a Method");
	if (rc == 0 && pr->p->codes >= CODES_LEAST && pr->described * DESCRIBED_PART < pr->p->codes)
		rc = err_set(e, EINVAL, "compiled code has hardly any debug information");
	if (rc == 0 && pr->framed >= CODES_LEAST && 2 * pr->made < pr->framed)
		rc = err_set(e, EINVAL, "compiled code does not make the frames that it is said to have");
	return rc;
}

/* ---- one thread ---- */

struct look {
	struct prover *pr;
	struct java_stack *stack;
};

static void forget_places(struct java_stack *s)
{
	shown_frames_free(&s->places, &s->place_count);
	s->frames = 0;
}

/* "java.util.Map$Entry.get" is of "Map.java". */
static bool is_own_file(const struct java_place *place)
{
	const char *const dot = strrchr(place->function, '.');
	const char *name = dot;
	char file[JAVA_FILE_TEXT];

	while (name && name > place->function && name[-1] != '.')
		name--;
	if (!dot)
		return false;
	snprintf(file, sizeof file, "%.*s.java", (int)strcspn(name, "$."), name);
	return !strcmp(file, place->file);
}

static int on_frame(void *context, const struct java_frame *frame, struct err *e)
{
	const struct look *l = context;
	struct java_method m;
	struct java_place place;

	int rc = method_check(l->pr, &frame->point, &m, e);
	rc = rc ?: java_method_place(&l->pr->p->view, &m, frame->point.bci, &place, e);
	if (rc)
		return rc;
	l->stack->frames++;
	l->pr->files += place.file[0] != '\0';
	l->pr->own_files += is_own_file(&place);
	const struct shown_frame shown = { place.function, place.file, place.line, m.native };
	return l->stack->place_count < JAVA_PLACES_MAX
	               ? shown_frames_add(&l->stack->places, &l->stack->place_count, &shown, &l->pr->budget, e)
	               : 0;
}

static bool same_anchor(const struct java_anchor *a, const struct java_anchor *b)
{
	return a->sp == b->sp && a->pc == b->pc && a->fp == b->fp;
}

/* *moved: the thread went on meanwhile, and what was seen says nothing. */
static int look_once(struct prover *pr, struct java_stack *s, bool *moved, struct err *e)
{
	struct java_view *v = &pr->p->view;
	struct look l = { pr, s };
	struct java_anchor before, after;

	*moved = false;
	int rc = java_anchor_read(v, &s->thread, &before, e);
	if (rc)
		return rc;
	s->running = before.sp == 0;
	if (s->running)
		return 0;
	if (s->thread.tid <= 0)
		return err_set(e, EINVAL, "a thread that has frames has no number");
	rc = java_stack_walk(v, &s->thread, &before, on_frame, &l, &s->end, e);
	*moved = java_anchor_read(v, &s->thread, &after, ERR_IGNORED) || !same_anchor(&before, &after);
	return rc;
}

static bool is_listed(struct prover *pr, const struct java_thread *t)
{
	AUTO_FREE struct java_thread *list = NULL;
	size_t count = 0;

	if (java_threads_read(&pr->p->view, &list, &count, ERR_IGNORED))
		return true;
	for (size_t i = 0; i < count; i++)
		if (list[i].address == t->address && list[i].tid == t->tid)
			return true;
	return false;
}

/* 0: walked, or it moves, which is noted. -EINVAL, -EFAULT: it is not laid out so. */
static int prove_stack(struct prover *pr, struct java_stack *s, struct err *e)
{
	struct err first = { 0 };
	const uint64_t memory = pr->budget.memory;
	bool moved, rested = true;

	for (unsigned look = 0;; look++) {
		int rc = look_once(pr, s, &moved, e);
		if (rc == 0 && !moved)
			return 0;
		forget_places(s);
		pr->budget.memory = memory;
		if (rc && !is_of_objects(rc))
			return rc;
		if (look == 0)
			first = *e;
		rested &= rc && !moved && !strcmp(first.text, e->text);
		if (wait_a_moment(pr, look))
			continue;
		if (rested && is_listed(pr, &s->thread))
			return rc;
		s->moved = true;
		return 0;
	}
}

/* ---- all ---- */

static int list_threads(struct prover *pr, struct err *e)
{
	AUTO_FREE struct java_thread *threads = NULL;
	struct java_proof *p = pr->p;
	size_t count = 0;
	int rc;

	for (unsigned look = 0;; look++) {
		rc = java_threads_read(&p->view, &threads, &count, e);
		if (!is_of_objects(rc) || !wait_a_moment(pr, look))
			break;
	}
	if (rc)
		return rc;
	p->stacks = calloc(count + 1, sizeof *p->stacks); /* at most JAVA_THREADS_MAX */
	if (!p->stacks)
		return err_set(e, ENOMEM, "no memory for threads");
	p->stack_count = count;
	for (size_t i = 0; i < count; i++)
		p->stacks[i].thread = threads[i];
	return 0;
}

/* Some thread has the number that the kernel knows it by, in the process's own namespace: they come and go. */
static int prove_numbers(struct prover *pr, struct err *e)
{
	const struct target_memory *tm = &pr->p->view.memory;
	AUTO_FREE int32_t *numbers = calloc(pr->p->stack_count + 1, sizeof *numbers);

	if (!numbers)
		return err_set(e, ENOMEM, "no memory for the numbers of threads");
	for (size_t i = 0; i < pr->p->stack_count; i++)
		numbers[i] = pr->p->stacks[i].thread.tid;
	return task_has_inner(tm->process ? tm->process : tm->pid, numbers, pr->p->stack_count)
	               ? 0
	               : err_set(e, EINVAL, "none of its threads has a number that the process's have");
}

static int prove_stacks(struct prover *pr, struct err *e)
{
	struct java_proof *p = pr->p;

	int rc = list_threads(pr, e);
	rc = rc ?: prove_numbers(pr, e);
	for (size_t i = 0; i < p->stack_count && rc == 0; i++) {
		struct java_stack *s = &p->stacks[i];
		rc = prove_stack(pr, s, e);
		p->frames += s->frames;
		p->running += s->running && !s->moved;
		p->moved += s->moved;
		p->walked += s->frames > 0;
	}
	if (rc == 0 && p->frames == 0)
		rc = err_set(e, EINVAL, "no thread rests outside of Java code now, by which it could be proved");
	if (rc == 0 && pr->files && !pr->own_files)
		rc = err_set(e, EINVAL, "no class is of a file that has its name");
	return rc;
}

static int prove_all(struct prover *pr, struct err *e)
{
	int rc = prove_heaps(pr, e);

	rc = rc ?: prove_stacks(pr, e);
	rc = rc ?: java_inside_layout(&pr->p->layout, &pr->p->view, e);
	return rc ?: budget_check(&pr->budget, e);
}

static void prove_within(struct java_proof *p, const struct java_runtime *r, const struct java_structures *s,
                         const struct maps *maps, const struct target_memory *tm, unsigned looks)
{
	AUTO_FREE struct prover *pr = calloc(1, sizeof *pr);
	struct err e = { 0 };
	int rc = 0;

	*p = (struct java_proof){ 0 };
	if (!pr) {
		snprintf(p->why, sizeof p->why, "no memory for the proof");
		return;
	}
	pr->p = p;
	pr->looks = looks;
	budget_start(&pr->budget, JAVA_PROOF_BYTES, JAVA_PROOF_WORK);
	p->view = (struct java_view){ .maps = maps, .memory = target_memory_charged(tm, &pr->budget) };
	if (s)
		p->view.s = *s;
	else
		rc = java_structures_read(&p->view.s, r->module, &p->view.memory, &e);
	rc = rc ?: prove_all(pr, &e);
	p->proved = rc == 0;
	if (rc)
		snprintf(p->why, sizeof p->why, "%s", e.text);
	p->view.memory.budget = NULL;
	p->view.maps = NULL;
}

void java_proof_make(struct java_proof *p, const struct java_runtime *r, const struct maps *maps,
                     const struct target_memory *tm, unsigned looks)
{
	const char *refusal = java_machine_refusal(r->machine);

	if (!refusal) {
		prove_within(p, r, NULL, maps, tm, looks);
		return;
	}
	*p = (struct java_proof){ 0 };
	snprintf(p->why, sizeof p->why, "%s", refusal);
}

void java_proof_make_with(struct java_proof *p, const struct java_structures *s, const struct maps *maps,
                          const struct target_memory *tm, unsigned looks)
{
	prove_within(p, NULL, s, maps, tm, looks);
}

void java_proof_done(struct java_proof *p)
{
	for (size_t i = 0; i < p->stack_count; i++)
		forget_places(&p->stacks[i]);
	free(p->stacks);
	p->stacks = NULL;
	p->stack_count = 0;
}
