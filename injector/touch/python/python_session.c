/* SPDX-License-Identifier: MIT */
#include "touch/patches/late_layout.h"
#include "touch/python/python_session.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "host/clocks.h"
#include "entry/evaluator_code.h"
#include "touch/python/python_code.h"
#include "touch/python/python_hooks.h"
#include "process/live_thread.h"
#include "python/python_proof.h"
#include "session/record.h"
#include "host/say.h"

#define THIRD_SINCE 13u            /* CPython contains mimalloc */
#define PROOF_NS 1000000000ull     /* no further proof is begun after that */
#define PAUSE_SHARE 8u             /* between two looks at one that is awaited: of the time since the attach, */
#define PAUSE_MIN_NS 1000000ull    /* but no less */
#define PAUSE_LOOKS 50u            /* and no less than so many times what the last look took */
#define PAUSE_MAX_NS 1000000000ull /* and no more */
#define SAY_NS 1000000000ull       /* it is said then that it is awaited */
#define FAILING_NS 5000000000ull   /* it is not what it seems to be */

/* A process that is busy may change under each look: then another moment is tried. One that has not begun with Python
 * is awaited in the session. */
static void prove(struct python_proof *p, const struct session *s, const struct python_runtime *r)
{
	const uint64_t until_ns = clock_monotonic_ns() + PROOF_NS;

	python_proof_make(p, r, &s->view.modules, &s->view.maps, &s->memory, PYTHON_LOOKS);
	while (!p->key_proved && !(p->idle && !p->thread_count) && !python_version_refusal(&r->version) &&
	       clock_monotonic_ns() < until_ns) {
		python_proof_done(p);
		python_proof_make(p, r, &s->view.modules, &s->view.maps, &s->memory, PYTHON_LOOKS);
	}
}

static const char *refusal_of(const struct python_proof *p)
{
	return !p->frames_proved ? p->frames_why : !p->key_proved ? p->key_why : NULL;
}

static void __attribute__((format(printf, 2, 3))) add_line(char **lines, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_add_line(lines, format, ap);
	va_end(ap);
}

static void pass_over(struct session *s, const struct python_runtime *r, const char *why)
{
	add_line(&s->python.notes, "the Python frames of CPython%s%s in %s are not recorded: %s",
	         r->version.text[0] ? " " : "", r->version.text, elf_module_name(r->module), why);
	if (s->options.python_objects == PYTHON_OBJECTS_ON && !r->version.free_threaded)
		add_line(&s->python.notes,
		         "its objects of up to 512 bytes are not recorded either, since nothing of it is proved");
}

/* That a program itself contains mimalloc its messages show already (plan.h). */
static void note_third(struct session *s, const struct python_runtime *r, const struct target_memory *memory)
{
	struct python_allocators a;

	if (r->module->is_main || r->version.free_threaded || (r->version.minor && r->version.minor < THIRD_SINCE) ||
	    entry_hooks_are_in(&s->hooks, r->module))
		return;
	python_allocators_find(&a, r->module, memory, &s->view.maps);
	if (!a.no_third)
		add_line(&s->python.unseen,
		         "CPython%s%s in %s contains mimalloc, and its table of allocators does not show that this is "
		         "not used: what it allocates by that is not seen",
		         r->version.text[0] ? " " : "", r->version.text, elf_module_name(r->module));
}

/* They need no proof of how frames are laid out: the table of allocators has its own. */
static void take_objects(struct session *s, const struct python_runtime *r, const struct target_memory *memory)
{
	char text[PYTHON_HOOKS_TEXT];

	if (r->version.free_threaded) {
		add_line(&s->python.unseen,
		         "objects of Python of any size are not recorded: a free-threaded build takes them from an "
		         "allocator of its own");
		return;
	}
	if (s->python.objects || s->python.hooked_module)
		return;
	if (python_hooks_plan(s, r->module, memory, text))
		s->python.objects = strdup(text);
	else
		add_line(&s->python.notes, "%s", text);
}

static void take(struct session *s, const struct python_runtime *r, const struct python_proof *p)
{
	s->python.layout = p->layout;
	s->python.runtime = r->address;
	if (p->interpreters > 1 && p->attached_why[0])
		add_line(&s->python.notes,
		         "Python frames of the subinterpreters of CPython %s in %s may be missing: %s", r->version.text,
		         elf_module_name(r->module), p->attached_why);
	add_line(&s->python.details, "CPython %s in %s: its frames are recorded", r->version.text,
	         elf_module_name(r->module));
}

/* It is looked at again during the session (python_session_await). */
static void await(struct session *s, const struct python_runtime *r, const char *why)
{
	struct python_awaited *a = &s->python.awaited;

	if (a->module) {
		pass_over(s, r, "another one is waited for");
		return;
	}
	*a = (struct python_awaited){ .runtime = *r, .module = r->module->id };
	snprintf(a->why, sizeof a->why, "%s", why);
}

static void look_at(struct session *s, const struct python_runtime *r, const struct target_memory *memory)
{
	const char *why = python_stay_refusal(r, &s->view.modules, memory->budget);
	struct python_proof p;

	note_third(s, r, memory);
	if (why) {
		pass_over(s, r, why);
		add_line(&s->python.notes, PYTHON_HOOKS_OBJECTS " are not recorded: the program may unload %s",
		         elf_module_name(r->module));
		return;
	}
	if (s->python.layout.version) {
		pass_over(s, r, "those of another one are");
		return;
	}
	prove(&p, s, r);
	why = refusal_of(&p);
	if (why && p.idle)
		await(s, r, why);
	else if (why)
		pass_over(s, r, why);
	else
		take(s, r, &p);
	if (!why)
		evaluator_code_find(s->python.evaluators, r->module, memory, &s->view.maps);
	take_objects(s, r, memory);
	if (!why)
		python_code_plan(s, r->module, memory);
	if (s->python.code_end.why[0])
		add_line(&s->python.details,
		         "each sample reads all code objects of its stack again: the end of them is not watched, %s",
		         s->python.code_end.why);
	python_proof_done(&p);
}

/* Another Python, whose structures are not known. */
static void note_pypy(struct session *s)
{
	for (uint32_t i = 0; i < s->view.modules.count; i++) {
		const char *name = elf_module_name(&s->view.modules.list[i]);

		if (!strncmp(name, "libpypy", strlen("libpypy"))) {
			add_line(&s->python.notes,
			         "the Python frames of PyPy in %s are not recorded: only CPython's can be read", name);
			return;
		}
	}
}

void python_session_find(struct session *s)
{
	struct python_runtime list[PYTHON_RUNTIMES_MAX];
	struct budget budget;
	uint32_t count = 0;
	struct err e;

	free(s->python.notes);
	free(s->python.unseen);
	free(s->python.objects);
	python_paths_done(&s->python.paths);
	free(s->python.details);
	s->python = (struct session_python){ 0 };
	budget_start(&budget, PYTHON_FIND_BYTES, PYTHON_FIND_WORK);
	const struct target_memory memory = target_memory_charged(&s->memory, &budget);
	if (python_find(list, &count, &s->view.modules, &s->view.maps, &memory, &e) < 0)
		add_line(&s->python.notes, "Python frames are not recorded: %s", e.text);
	for (uint32_t i = 0; i < count; i++)
		look_at(s, &list[i], &memory);
	if (s->python.layout.version && s->python.awaited.module) {
		/* Hooks read the layout: it is written only where there is none. */
		pass_over(s, &s->python.awaited.runtime, "those of another one are");
		s->python.awaited.module = 0;
	}
	note_pypy(s);
}

/* The layout first, then that there is one: who sees that sees all of it, and what the dump's readers need. */
static int tell_payload(struct session *s, const struct python_layout *layout, struct err *e)
{
	const struct memattach_session *b = &s->payload.block;
	const uint32_t yes = 1;

	int rc = late_layout_check(s, b->python_address, sizeof *layout, e);
	rc = rc ?: late_layout_check(s, b->has_python_address, sizeof yes, e);
	rc = rc ?: target_write(&s->writer, CHANGE_PAYLOAD, b->python_address, layout, sizeof *layout, e);
	if (rc < 0)
		return rc;
	dump_writer_python(&s->recording.dump, layout->version, s->python.evaluators);
	atomic_thread_fence(memory_order_release);
	return target_write(&s->writer, CHANGE_PAYLOAD, b->has_python_address, &yes, sizeof yes, e);
}

static void __attribute__((format(printf, 2, 3))) note(struct session *s, const char *format, ...)
{
	char text[600];
	struct err e;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	session_say(s, "%s", text);
	if (dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, text, &e) < 0)
		session_say(s, "memattach: %s", e.text);
}

static void give_up(struct session *s, const char *why)
{
	struct python_awaited *a = &s->python.awaited;

	note(s, "the Python frames of CPython %s in %s are not recorded: %s", a->runtime.version.text,
	     elf_module_name(a->runtime.module), why);
	a->module = 0;
}

static void begin(struct session *s, const struct python_proof *p, const struct maps *maps)
{
	const double since = (double)(clock_monotonic_ns() - s->recording.started_ns) / 1e9;
	struct python_awaited *a = &s->python.awaited;
	struct budget budget;
	struct err e;

	budget_start(&budget, PYTHON_FIND_BYTES, PYTHON_FIND_WORK);
	const struct target_memory memory = target_memory_charged(&s->memory, &budget);
	evaluator_code_find(s->python.evaluators, a->runtime.module, &memory, maps);
	if (tell_payload(s, &p->layout, &e) < 0) {
		if (late_layout_is_same_program(s))
			give_up(s, e.text);
		return;
	}
	note(s, "Python frames of CPython %s in %s are recorded from %.2f s after the attach on",
	     a->runtime.version.text, elf_module_name(a->runtime.module), since);
	free(s->python.notes);
	s->python.notes = NULL;
	take(s, &a->runtime, p);
	if (s->python.notes)
		note(s, "%.*s", (int)strcspn(s->python.notes, "\n"), s->python.notes);
	a->module = 0;
	record_paths(s);
}

/* It neither rests nor is as it should be: that may be so while it starts, or ends. */
static void count_failure(struct session *s, const char *why)
{
	struct python_awaited *a = &s->python.awaited;
	const uint64_t now = clock_monotonic_ns();

	if (!a->fails_since_ns)
		a->fails_since_ns = now;
	if (now - a->fails_since_ns >= FAILING_NS)
		give_up(s, why);
}

static void look_again(struct session *s)
{
	struct python_awaited *a = &s->python.awaited;
	struct python_proof p;
	struct maps maps;

	a->runtime.module = modules_with_id(&s->view.modules, a->module);
	if (!a->runtime.module) /* it was torn apart */
		a->module = 0;
	if (!a->module || !late_layout_is_same_program(s) || live_thread_maps(&s->target, &maps, ERR_IGNORED) < 0)
		return;
	python_proof_make(&p, &a->runtime, &s->view.modules, &maps, &s->memory, 1);
	const char *why = refusal_of(&p);
	if (!why)
		begin(s, &p, &maps);
	else if (!p.idle)
		count_failure(s, why);
	else
		a->fails_since_ns = 0;
	python_proof_done(&p);
	maps_free(&maps);
}

uint64_t python_session_await(struct session *s)
{
	const uint64_t began = clock_monotonic_ns(), since_ns = began - s->recording.started_ns;

	if (!s->python.awaited.module)
		return UINT64_MAX;
	look_again(s);
	if (since_ns >= SAY_NS)
		python_session_miss(s, false);
	const uint64_t now = clock_monotonic_ns(), usual_ns = since_ns / PAUSE_SHARE,
		       least_ns = (now - began) * PAUSE_LOOKS;
	const uint64_t pause_ns = usual_ns < PAUSE_MIN_NS   ? PAUSE_MIN_NS
	                          : usual_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS
	                                                    : usual_ns;
	return now + (pause_ns < least_ns ? least_ns : pause_ns);
}

void python_session_miss(struct session *s, bool ended)
{
	struct python_awaited *a = &s->python.awaited;

	a->runtime.module = modules_with_id(&s->view.modules, a->module);
	if (!a->module || !a->runtime.module || (a->said && !ended))
		return;
	a->said = true;
	note(s, "Python frames of CPython %s in %s were not recorded%s: %s", a->runtime.version.text,
	     elf_module_name(a->runtime.module), ended ? "" : " at first", a->why);
}
