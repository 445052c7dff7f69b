/* SPDX-License-Identifier: MIT */
#include "python/python_proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/clocks.h"

#define PAUSE_NS 1000000 /* after the first look, twice as long after each further one */
#define PAUSES_MAX 64u   /* of one proof, so that thousands of busy threads take no longer than a few */

struct prover {
	struct python_proof *p;
	const struct maps *maps;
	struct python_view view;
	struct budget budget;
	int64_t attached_offset;
	uint64_t main_interpreter;
	unsigned looks, pauses;
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

/* ---- one thread ---- */

struct look {
	struct prover *pr;
	struct python_thread *t;
};

static void forget_places(struct python_thread *t)
{
	shown_frames_free(&t->places, &t->place_count);
	t->frames = 0;
}

static int on_frame(void *context, const struct python_frame *frame, struct err *e)
{
	struct look *l = context;
	struct python_place place;

	int rc = python_code_place(&l->pr->view, &frame->code, frame->offset, &place, e);
	if (rc)
		return rc;
	l->t->frames++;
	const struct shown_frame shown = { .function = place.function, .file = place.file, .line = place.line };
	return l->t->place_count < PYTHON_PLACES_MAX
	               ? shown_frames_add(&l->t->places, &l->t->place_count, &shown, &l->pr->budget, e)
	               : 0;
}

static bool is_listed(struct prover *pr, uint64_t state)
{
	AUTO_FREE struct python_state *list = NULL;
	size_t count = 0;

	if (python_states_read(&pr->view, &list, &count, ERR_IGNORED))
		return true;
	for (size_t i = 0; i < count; i++)
		if (list[i].address == state)
			return true;
	return false;
}

/*
 * Has its thread ended, and left the state behind? After pthread_exit below Python frames, or without
 * PyGILState_Release, nobody frees it, and what it leads to on the thread's stack is gone.
 */
static bool is_left_behind(struct prover *pr, const struct python_state *state)
{
	struct python_specific s;

	if (python_specific_find(&s, pr->view.modules, pr->maps, &pr->view.memory, ERR_IGNORED))
		return false;
	if (!python_specific_is_thread(&pr->view, &s, state->thread))
		return budget_check(pr->view.memory.budget, ERR_IGNORED) == 0;
	int32_t tid = python_specific_tid(&pr->view, &s, state->thread);
	return tid <= 0 || (state->native && tid != (int32_t)state->native);
}

/* 0: walked, or it moves, which is noted. -EINVAL, -EFAULT: it is not laid out so. */
static int prove_thread(struct prover *pr, struct python_thread *t, struct err *e)
{
	struct look l = { pr, t };
	struct err first = { 0 };
	uint64_t memory = pr->budget.memory;
	bool same = true;

	for (unsigned look = 0;; look++) {
		int rc = python_stack_walk(&pr->view, t->state.address, on_frame, &l, &t->truncated, e);
		if (rc == 0)
			return 0;
		forget_places(t);
		pr->budget.memory = memory;
		if (!python_is_of_objects(rc))
			return rc;
		if (look == 0)
			first = *e;
		same &= !strcmp(first.text, e->text);
		if (wait_a_moment(pr, look))
			continue;
		if (same && is_listed(pr, t->state.address) && !is_left_behind(pr, &t->state))
			return rc;
		t->moved = true;
		return 0;
	}
}

/* ---- all threads ---- */

static int list_threads(struct prover *pr, struct err *e)
{
	AUTO_FREE struct python_state *states = NULL;
	struct python_proof *p = pr->p;
	size_t count = 0;
	int rc;

	for (unsigned look = 0;; look++) {
		rc = python_states_read(&pr->view, &states, &count, e);
		if (!python_is_of_objects(rc) || !wait_a_moment(pr, look))
			break;
	}
	p->idle = rc == 0 && count == 0;
	if (p->idle)
		rc = err_set(e, EINVAL, "it has no thread: it is not started, or is ending");
	if (rc)
		return rc;
	p->threads = calloc(count, sizeof *p->threads); /* at most PYTHON_STATES_MAX */
	if (!p->threads)
		return err_set(e, ENOMEM, "no memory for threads");
	p->thread_count = count;
	for (size_t i = 0; i < count; i++) {
		p->threads[i].state = states[i];
		p->threads[i].tid = (int32_t)states[i].native;
		p->interpreters += i == 0 || states[i].interpreter != states[i - 1].interpreter;
	}
	return 0;
}

static int prove_frames(struct prover *pr, struct err *e)
{
	struct python_proof *p = pr->p;

	int rc = list_threads(pr, e);
	for (size_t i = 0; i < p->thread_count && rc == 0; i++) {
		rc = prove_thread(pr, &p->threads[i], e);
		p->frames += p->threads[i].frames;
		p->moved += p->threads[i].moved;
	}
	if (rc == 0 && p->frames == 0) {
		p->idle = true;
		rc = err_set(e, EINVAL, "no thread %s now, by which it could be proved",
		             p->moved ? "rests in Python code" : "runs Python code");
	}
	return rc;
}

/* ---- the own state of a thread ---- */

static struct python_thread *state_at(const struct python_proof *p, uint64_t address)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].state.address == address)
			return &p->threads[i];
	return NULL;
}

/* What the key of a state's thread leads to. NULL: nothing, or the thread has ended and its memory is somebody else's.
 */
static int owned_state(struct prover *pr, const struct python_specific *s, const struct python_thread *t,
                       struct python_thread **owned, struct err *e)
{
	uint64_t own = 0;

	for (unsigned look = 0;; look++) {
		int rc = python_specific_value(&pr->view, s, t->state.thread, &own, e);
		*owned = rc == 0 && own ? state_at(pr->p, own) : NULL;
		if (python_is_of_objects(rc) || (rc == 0 && (own == 0 || *owned)))
			return 0;
		if (rc)
			return rc;
		if (!wait_a_moment(pr, look))
			break;
		if (!is_listed(pr, t->state.address) || is_listed(pr, own))
			return 0;
	}
	return err_set(e, EINVAL,
	               "the key of the thread at 0x%" PRIx64 " leads to 0x%" PRIx64 ", which is no thread state",
	               t->state.thread, own);
}

static bool may_work_with(const struct prover *pr, const struct python_thread *t, uint64_t thread)
{
	return pr->view.release->minor == PYTHON_ATTACHED_SINCE || t->state.thread == thread;
}

/* The state that a state's thread works with; NULL: none, or the thread has ended. */
static int attached_state(struct prover *pr, const struct python_specific *s, const struct python_thread *t,
                          struct python_thread **attached, struct err *e)
{
	const uint64_t thread = t->state.thread;
	uint64_t address = 0;

	for (unsigned look = 0;; look++) {
		int rc = python_attached_value(&pr->view, s, pr->attached_offset, thread, &address, e);
		*attached = rc == 0 && address ? state_at(pr->p, address) : NULL;
		if (python_is_of_objects(rc))
			return 0;
		if (rc || !address || (*attached && may_work_with(pr, *attached, thread)))
			return rc;
		if (!*attached && (is_listed(pr, address) || !is_listed(pr, t->state.address)))
			return 0;
		if (!wait_a_moment(pr, look))
			break;
	}
	*attached = NULL;
	return err_set(e, EINVAL,
	               "the thread at 0x%" PRIx64 " would work with 0x%" PRIx64 ", which is no state of its own",
	               thread, address);
}

/* Of all threads; 0 in pr->attached_offset: it is not known. */
static void prove_attached(struct prover *pr, const struct maps *maps, const struct python_specific *s)
{
	struct python_proof *p = pr->p;
	struct err e;

	int rc = python_attached_find(&pr->attached_offset, &pr->view, p->runtime.module, maps, s, &e);
	for (size_t i = 0; i < p->thread_count && rc == 0; i++) {
		struct python_thread *t = &p->threads[i], *attached = NULL;
		int32_t tid = python_specific_tid(&pr->view, s, t->state.thread);

		rc = python_specific_is_thread(&pr->view, s, t->state.thread) ? attached_state(pr, s, t, &attached, &e)
		                                                              : 0;
		if (!attached)
			continue;
		p->attached += !attached->attached;
		attached->attached = attached->owned = true;
		attached->tid = tid ? tid : attached->tid;
	}
	if (rc == 0)
		return;
	pr->attached_offset = 0;
	p->attached = 0;
	snprintf(p->attached_why, sizeof p->attached_why, "%s", e.text);
}

static int prove_key(struct prover *pr, const struct maps *maps, struct python_specific *s, struct err *e)
{
	struct python_proof *p = pr->p;

	int rc = python_specific_find(s, pr->view.modules, maps, &pr->view.memory, e);
	for (size_t i = 0; i < p->thread_count && rc == 0; i++) {
		struct python_thread *t = &p->threads[i], *owned = NULL;

		rc = owned_state(pr, s, t, &owned, e);
		int32_t tid = rc == 0 ? python_specific_tid(&pr->view, s, t->state.thread) : 0;
		if (t->tid == 0)
			t->tid = tid;
		if (owned) {
			owned->owned = true;
			owned->tid = tid ? tid : owned->tid; /* not the thread that it names, if that is another */
		}
		p->own += owned == t;
	}
	if (rc == 0 && p->own == 0)
		rc = err_set(e, EINVAL, "no thread's key leads to its state");
	if (rc == 0)
		prove_attached(pr, maps, s);
	return rc;
}

static void fill_in_layout(const struct prover *pr, const struct python_specific *s)
{
	const struct python_version *v = &pr->p->runtime.version;
	const struct python_release *r = pr->view.release;
	bool has_current = r->runtime_current != PYTHON_ABSENT;

	pr->p->layout = (struct python_layout){
		.version = 3u << 24 | v->minor << 16 | (v->patch < 0 ? 0xffu : (uint32_t)v->patch) << 8 | 0xf0,
		.specific_offset = s->offset,
		.leaving_offset = s->leaving_offset,
		.key_address = pr->view.runtime + r->runtime_key,
		.key_table = s->key_table,
		.finalizing = pr->view.runtime + r->runtime_finalizing,
		.code_type = pr->view.types[PYTHON_CODE],
		.frame_type = pr->view.types[PYTHON_FRAME],
		.string_type = pr->view.types[PYTHON_STR],
		.bytes_type = pr->view.types[PYTHON_BYTES],
		.frames = r->frames,
		.code = python_release_code(r),
		.state_interpreter = r->state_interpreter,
		.attached_offset = pr->attached_offset,
		.current_state = has_current ? pr->view.runtime + r->runtime_current : 0,
		.main_interpreter = has_current ? 0 : pr->main_interpreter,
		.block_below = s->block_below,
	};
}

/* ---- the whole ---- */

/* The self-description says what the headers say. */
static int check_self(const struct prover *pr, struct err *e)
{
	const struct python_self_word *words = pr->view.release->self;
	uint64_t value;

	for (unsigned i = 0; i < PYTHON_SELF_WORDS && words[i].at; i++) {
		int rc = target_read_u64(&pr->view.memory, pr->view.runtime + words[i].at, &value, e);
		if (rc)
			return rc;
		if (value != words[i].value)
			return err_set(
				e, EINVAL,
				"it describes itself otherwise than releases of its version are laid out (%" PRIu64
				" in place of %u at byte %u)",
				value, words[i].value, words[i].at);
	}
	return 0;
}

void python_proof_make(struct python_proof *p, const struct python_runtime *runtime, const struct modules *modules,
                       const struct maps *maps, const struct target_memory *tm, unsigned looks)
{
	const char *refusal = python_version_refusal(&runtime->version);
	struct prover pr = { .p = p, .maps = maps, .looks = looks };
	struct python_specific specific;
	struct err e = { 0 };

	*p = (struct python_proof){ .runtime = *runtime };
	if (refusal) {
		snprintf(p->frames_why, sizeof p->frames_why, "%s", refusal);
		return;
	}
	budget_start(&pr.budget, PYTHON_PROOF_BYTES, PYTHON_PROOF_WORK);
	pr.view = (struct python_view){
		.modules = modules,
		.memory = target_memory_charged(tm, &pr.budget),
		.release = python_release_find(runtime->version.minor),
		.runtime = runtime->address,
	};
	int rc = check_self(&pr, &e);
	rc = rc ?: prove_frames(&pr, &e);
	p->frames_proved = rc == 0;
	if (rc) {
		snprintf(p->frames_why, sizeof p->frames_why, "%s",
		         rc == -E2BIG ? "it has too much to look at" : e.text);
		return;
	}
	rc = target_read_u64(&pr.view.memory, pr.view.runtime + pr.view.release->runtime_main, &pr.main_interpreter,
	                     &e);
	p->key_proved = rc == 0 && prove_key(&pr, maps, &specific, &e) == 0;
	if (p->key_proved)
		fill_in_layout(&pr, &specific);
	else
		snprintf(p->key_why, sizeof p->key_why, "%s", e.text);
}

void python_proof_done(struct python_proof *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		forget_places(&p->threads[i]);
	free(p->threads);
	p->threads = NULL;
	p->thread_count = 0;
}
