/* SPDX-License-Identifier: MIT */
#include "cli/doctor_python.h"

#include <inttypes.h>

#include "base/plural.h"
#include "cli/doctor_fact.h"
#include "python/python_proof.h"
#include "touch/python/python_session.h"

static void tell_version(const struct python_runtime *r, const char *name)
{
	const struct python_version *v = &r->version;

	doctor_fact(name, "CPython%s%s%s%s in %s%s", v->minor ? " " : "", v->text,
	            v->free_threaded ? ", a free-threaded build," : "", v->debug ? ", a debug build," : "",
	            r->module->is_main ? "the program " : "", elf_module_name(r->module));
}

static void tell_proof(const struct python_proof *p)
{
	if (!p->frames_proved) {
		doctor_fact("", "  Python frames cannot be read: %s", p->frames_why);
		return;
	}
	doctor_fact("",
	            "  Python frames can be read: %" PRIu64
	            " frame%s of %zu thread%s in %u interpreter%s were as expected",
	            p->frames, plural(p->frames), p->thread_count - p->moved, plural(p->thread_count - p->moved),
	            p->interpreters, plural(p->interpreters));
	if (p->moved)
		doctor_fact("", "  %u more thread%s changed under each look", p->moved, plural(p->moved));
	if (p->key_proved)
		doctor_fact("", "  a thread finds its own frames: so it was for %u thread%s", p->own, plural(p->own));
	else
		doctor_fact("", "  a thread cannot find its own frames: %s", p->key_why);
	if (p->key_proved && p->attached_why[0])
		doctor_fact("", "  which interpreter it runs it cannot tell: %s", p->attached_why);
	else if (p->key_proved && p->attached)
		doctor_fact("", "  it can tell which interpreter it runs: so it was for %u thread%s", p->attached,
		            plural(p->attached));
	else if (p->key_proved)
		doctor_fact("", "  it can tell which interpreter it runs; none ran one now");
}

static void tell_thread(const struct python_thread *t)
{
	char name[64];

	if (t->tid)
		snprintf(name, sizeof name, "%sthread %d", t->owned ? "" : "made by ", t->tid);
	else
		snprintf(name, sizeof name, "thread at 0x%" PRIx64, t->state.thread);
	if (t->moved)
		doctor_fact("", "  %s, interpreter %" PRId64 ": it changed under each look", name,
		            t->state.interpreter);
	else
		doctor_fact("", "  %s, interpreter %" PRId64 ", %u frame%s%s", name, t->state.interpreter, t->frames,
		            plural(t->frames), t->truncated ? " and more" : "");
	for (uint32_t i = 0; i < t->place_count; i++) {
		const struct shown_frame *f = &t->places[i];

		if (f->line == PYTHON_NO_LINE)
			doctor_fact("", "    %s (%s)", f->function, f->file);
		else
			doctor_fact("", "    %s (%s:%d)", f->function, f->file, f->line);
	}
	if (t->frames > t->place_count)
		doctor_fact("", "    and %u more", t->frames - t->place_count);
}

/* What an attach would do, found by the functions that it uses. proved: of one of the interpreters. */
static void tell_session(struct session *s, bool proved)
{
	if (s->payload.base) {
		doctor_fact(
			"",
			"  the words that an attach would patch can be told once the earlier session's are put back");
		return;
	}
	python_session_find(s);
	if (s->python.awaited.module)
		doctor_fact("", "  a session looks again at CPython in %s until they can be recorded",
		            elf_module_name(s->python.awaited.runtime.module));
	const struct python_code_end *end = &s->python.code_end;
	const unsigned words = s->python.functions.word_count;
	if (proved || words)
		doctor_fact_lines("", "  ", s->python.notes);
	doctor_fact_lines("", "  ", s->python.unseen);
	doctor_fact_lines("", "  ", s->python.objects);
	if (s->python.hooked_module)
		doctor_fact("",
		            "  four functions of its allocator would be hooked, and %u words that lead to them patched",
		            words);
	if (end->hooked)
		doctor_fact("", "  the function of PyCode_Type.tp_dealloc would be hooked: the code objects that end "
		                "are counted");
	else if (end->why[0])
		doctor_fact(
			"",
			"  the function of PyCode_Type.tp_dealloc would be left alone, so each sample takes longer: %s",
			end->why);
}

/* True: its frames can be recorded, but for what a session says. */
static bool tell_runtime(const struct session *s, const struct python_runtime *r, const char *name)
{
	struct python_proof p;

	tell_version(r, name);
	python_proof_make(&p, r, &s->view.modules, &s->view.maps, &s->memory, PYTHON_LOOKS);
	tell_proof(&p);
	for (size_t i = 0; i < p.thread_count && s->options.verbose && p.frames_proved; i++)
		tell_thread(&p.threads[i]);
	python_proof_done(&p);
	return p.frames_proved && p.key_proved;
}

void doctor_python(struct session *s)
{
	struct python_runtime list[PYTHON_RUNTIMES_MAX];
	struct budget budget;
	uint32_t count = 0;
	bool proved = false;
	struct err e;

	budget_start(&budget, PYTHON_FIND_BYTES, PYTHON_FIND_WORK);
	const struct target_memory memory = target_memory_charged(&s->memory, &budget);
	if (python_find(list, &count, &s->view.modules, &s->view.maps, &memory, &e) < 0) {
		doctor_fact("python", "not searched: %s", e.text);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		proved |= tell_runtime(s, &list[i], i ? "" : "python");
	if (count)
		tell_session(s, proved);
}
