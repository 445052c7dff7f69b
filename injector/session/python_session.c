/* SPDX-License-Identifier: MIT */
#include "python_session.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "evaluator_code.h"
#include "python_code.h"
#include "python_hooks.h"
#include "python_proof.h"
#include "say.h"

#define PROOF_NS 1000000000ull /* no further proof is begun after that */

/* A process that is busy may change under each look: then another moment is tried. */
static void prove(struct python_proof *p, const struct session *s, const struct python_runtime *r)
{
	const uint64_t until_ns = monotonic_ns() + PROOF_NS;

	python_prove(p, r, &s->view.modules, &s->view.maps, &s->memory, PYTHON_LOOKS);
	while (!p->key_proved && !python_version_refusal(&r->version) && monotonic_ns() < until_ns) {
		python_proof_done(p);
		python_prove(p, r, &s->view.modules, &s->view.maps, &s->memory, PYTHON_LOOKS);
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

/* They need no proof of how frames are laid out: the table of allocators has its own. */
static void take_objects(struct session *s, const struct python_runtime *r, const struct target_memory *memory)
{
	char text[PYTHON_HOOKS_TEXT];

	if (r->version.free_threaded) {
		add_line(&s->python.notes,
		         "objects of Python of any size are not recorded: a free-threaded build takes them from an "
		         "allocator of its own");
		return;
	}
	if (s->python.objects || s->python.hooked_module)
		return;
	if (session_plan_python(s, r->module, memory, text))
		s->python.objects = strdup(text);
	else
		add_line(&s->python.notes, "%s", text);
}

static void take(struct session *s, const struct python_runtime *r, const struct python_proof *p,
                 const struct target_memory *memory)
{
	s->python.layout = p->layout;
	s->python.runtime = r->address;
	if (p->interpreters > 1 && p->attached_why[0])
		add_line(&s->python.notes,
		         "Python frames of the subinterpreters of CPython %s in %s may be missing: %s", r->version.text,
		         elf_module_name(r->module), p->attached_why);
	evaluator_code_find(s->python.evaluators, r->module, memory, &s->view.maps);
	add_line(&s->python.details, "CPython %s in %s: its frames are recorded", r->version.text,
	         elf_module_name(r->module));
}

static void look_at(struct session *s, const struct python_runtime *r, const struct target_memory *memory)
{
	const char *why = python_stay_refusal(r, &s->view.modules, memory->budget);
	struct python_proof p;

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
	if (why)
		pass_over(s, r, why);
	else
		take(s, r, &p, memory);
	take_objects(s, r, memory);
	if (!why)
		session_plan_python_code(s, r->module, memory);
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

void session_find_python(struct session *s)
{
	struct python_runtime list[PYTHON_RUNTIMES_MAX];
	struct budget budget;
	uint32_t count = 0;
	struct err e;

	free(s->python.notes);
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
	note_pypy(s);
}
