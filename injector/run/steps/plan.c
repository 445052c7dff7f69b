/* SPDX-License-Identifier: MIT */
#include "run/steps/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "entry/python_allocators.h"
#include "touch/python/python_hooks.h"
#include "files/whole_io.h"

#define ENVIRONMENT_BYTES (256u << 10) /* of the target's, at its beginning */

/* Each name that the user gave must be somewhere. */
static int check_given(const struct session *s, const struct allocators *found, struct err *e)
{
	for (unsigned i = 0; i < s->options.given_count; i++) {
		const char *name = s->options.given[i].symbol;
		bool is_there = false;
		for (size_t k = 0; k < found->function_count && !is_there; k++)
			is_there = !strncmp(found->functions[k].name, name, ALLOCATOR_NAME_MAX - 1);
		if (!is_there)
			return err_set(
				e, ENOENT,
				"--hook %s: no module has a function of that name in its symbols; nothing was changed "
				"(a stripped program needs its debug file in /usr/lib/debug)",
				name);
	}
	return 0;
}

static int find_stored(const struct session *s, struct stored_pointer *stored, struct err *e)
{
	uint64_t resident, swapped;

	*stored = (struct stored_pointer){ 0 };
	target_private_memory(&s->target, &resident, &swapped);
	if (s->options.hooks != HOOKS_AUTO || swapped || resident > STORED_BYTES)
		return 0;
	const struct stored_pointers_input in = { &s->target,       &s->memory,    &s->view.maps,
		                                  &s->view.modules, &s->view.libc, &s->view.plan };
	return stored_pointers_find(stored, &in, e);
}

static void say_stored(const struct session *s, const struct stored_pointer *stored)
{
	const struct elf_module *m = modules_find(&s->view.modules, stored->function, true);

	if (stored->function && s->options.verbose)
		session_say(s, "the program has stored a pointer to an allocation function of %s, at 0x%llx",
		            m ? elf_module_name(m) : "?", (unsigned long long)stored->at);
}

static int find_allocators(const struct session *s, struct allocators *found, struct err *e)
{
	const struct allocators_input in = { &s->view.modules, &s->view.libc,    &s->view.plan,         &s->memory,
		                             &s->view.maps,    s->options.given, s->options.given_count };

	return allocators_find(found, &in, e);
}

static int choose_hooks(struct session *s, const struct allocators *found, uint64_t stored, struct err *e)
{
	const struct entry_hooks_input in = { found, &s->view.modules, &s->view.libc, s->options.hooks, &s->view.plan,
		                              stored };

	int rc = check_given(s, found, e);
	return rc ?: entry_hooks_choose(&s->hooks, &in, e);
}

/* Of CPython: one in a library is told of by python_session_find(). */
static bool is_spare(const struct session *s, const struct known_allocator *known)
{
	const struct elf_module *program = modules_main(&s->view.modules);
	struct python_allocators python;

	if (!program || known->family != FAMILY_MIMALLOC)
		return false;
	python_allocators_find(&python, program, &s->memory, &s->view.maps);
	return python.no_third;
}

int plan_look(struct session *s, struct allocators *found, struct stored_pointer *stored, struct err *e)
{
	int rc = find_allocators(s, found, e);
	if (rc < 0)
		return rc;
	if (found->program_text && is_spare(s, found->program_text))
		found->program_text = NULL;
	rc = find_stored(s, stored, e);
	if (rc == 0 && !libc_loads_payload(&s->view.libc))
		entry_hooks_give_quiet(found, &s->view.plan);
	if (rc == 0)
		say_stored(s, stored);
	rc = rc ?: choose_hooks(s, found, stored->function, e);
	if (rc < 0)
		allocators_free(found);
	return rc;
}

static int make_got_plan(struct session *s, const struct got_plan_options *options, struct err *e)
{
	struct got_plan plan;

	const int rc = got_plan_make(&plan, &s->view.modules, &s->view.libc, &s->memory, &s->view.maps, options, e);
	if (rc < 0)
		return rc;
	got_plan_free(&s->view.plan); /* of before: the payload is mapped after all, say */
	s->view.plan = plan;
	return 0;
}

static bool wants_no_hooks(const struct session *s)
{
	return s->options.hooks == HOOKS_GOT && !s->options.given_count;
}

static int refuse_static(const struct session *s, struct err *e)
{
	const char *why = s->options.hooks == HOOKS_GOT ? "--hooks got allows no others"
	                  : s->hooks.notes              ? s->hooks.notes
	                                                : "no symbols tell where its allocation functions are";

	return err_set(
		e, ENOEXEC,
		"it is a static program: it calls its allocator through no GOT entry, and %.*s; nothing was changed",
		(int)strcspn(why, "\n"), why);
}

/* The program has an allocator, but no symbols. */
static int note_hidden(struct session *s, const struct allocators *found, struct err *e)
{
	const struct elf_module *program = modules_main(&s->view.modules);

	return !program || !found->program_text
	               ? 0
	               : entry_hooks_note(&s->hooks, e,
	                                  "%s has messages of %s in it, but no symbols that tell where its functions "
	                                  "are (a debug file in /usr/lib/debug would): what it allocates by that is "
	                                  "not seen",
	                                  elf_module_name(program), found->program_text->name);
}

/* Whether PHP is told to pass all on to malloc, as it looks when it starts. */
static bool passes_zend_on(const struct session *s)
{
	static const char variable[] = "\0USE_ZEND_ALLOC=";
	AUTO_FREE char *text = calloc(1, ENVIRONMENT_BYTES + 1);
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/environ", s->target.pid);
	if (!text || whole_io_text(path, text + 1, ENVIRONMENT_BYTES) < 0)
		return false;
	const char *at = memmem(text, ENVIRONMENT_BYTES, variable, sizeof variable - 1);
	return at && !strtol(at + sizeof variable - 1, NULL, 10);
}

/* PHP: scripts allocate from pools that the program maps. */
static int note_zend(struct session *s, struct err *e)
{
	struct elf_symbol symbol;

	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		if (elf_module_find(m, "_emalloc", NULL, &symbol) && symbol.function && !passes_zend_on(s))
			return entry_hooks_note(&s->hooks, e,
			                        "%s has Zend's memory manager: what scripts allocate by that is not "
			                        "seen (where it is started with USE_ZEND_ALLOC=0 in its environment, "
			                        "all is)",
			                        elf_module_name(m));
	}
	return 0;
}

int plan_relieve(struct session *s, struct err *e)
{
	entry_hooks_relieve(&s->hooks, &s->view.modules, &s->view.plan);
	int rc = got_plan_refuse_escaping(&s->view.plan, &s->view.modules, e);
	if (rc == 0 && !libc_loads_payload(&s->view.libc))
		rc = got_plan_refuse_throwing(&s->view.plan, &s->view.modules, e);
	return rc;
}

int plan_session(struct session *s, struct err *e)
{
	const struct got_plan_options options = { .groups = s->options.groups };
	struct allocators found = { 0 };
	struct stored_pointer stored;

	entry_hooks_free(&s->hooks);
	int rc = make_got_plan(s, &options, e);
	if (rc == 0 && !wants_no_hooks(s))
		rc = plan_look(s, &found, &stored, e);
	rc = rc ?: note_hidden(s, &found, e);
	rc = rc ?: note_zend(s, e);
	allocators_free(&found);
	if (rc == -E2BIG && s->options.hooks == HOOKS_AUTO && !s->options.given_count) {
		/* GOT entries are no worse for it. */
		session_say(s, "memattach: allocators inside modules were not searched for: %s", e->text);
		rc = 0;
	}
	if (rc < 0)
		return rc;
	rc = plan_relieve(s, e);
	if (rc < 0)
		return rc;
	if (s->view.plan.entry_count || s->hooks.count)
		return 0;
	if (s->view.modules.is_static)
		return refuse_static(s, e);
	return err_set(e, ENOENT,
	               "no module calls an allocation function through a table that could be patched; nothing was "
	               "changed");
}

int plan_again(struct session *s, const struct got_plan_options *options, struct err *e)
{
	int rc = make_got_plan(s, options, e);

	rc = rc ?: plan_relieve(s, e);
	if (rc == 0)
		python_hooks_relieve(s);
	return rc;
}
