/* SPDX-License-Identifier: MIT */
#include "touch/python/python_hooks.h"

#include <stdio.h>

#include "host/clocks.h"
#include "entry/python_allocators.h"
#include "touch/python/python_functions.h"

#define OBJECTS PYTHON_HOOKS_OBJECTS

static const struct {
	uint32_t hook;
	bool outer;
} rows[ROW_WORDS] = {
	[ROW_MALLOC] = { HOOK_python_malloc, false },
	[ROW_CALLOC] = { HOOK_python_calloc, false },
	[ROW_REALLOC] = { HOOK_python_realloc, true },
	[ROW_FREE] = { HOOK_python_free, true },
};

/* With PYTHON_OBJECTS_AUTO; false: text says why not. */
static bool is_advisable(const struct session *s, char text[PYTHON_HOOKS_TEXT])
{
	const double limit = s->options.max_overhead;

	if (limit > 0 && limit < PYTHON_HOOKS_OVERHEAD) {
		snprintf(text, PYTHON_HOOKS_TEXT,
		         OBJECTS " are not recorded, as that may cost up to %g %% of the time: "
		                 "--python-allocators on records them",
		         100 * PYTHON_HOOKS_OVERHEAD);
		return false;
	}
	return true;
}

static bool is_wanted(const struct session *s, char text[PYTHON_HOOKS_TEXT])
{
	if (s->options.python_objects == PYTHON_OBJECTS_OFF)
		snprintf(text, PYTHON_HOOKS_TEXT, OBJECTS " are not recorded: --python-allocators off");
	return s->options.python_objects == PYTHON_OBJECTS_ON ||
	       (s->options.python_objects == PYTHON_OBJECTS_AUTO && is_advisable(s, text));
}

static bool add(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                char text[PYTHON_HOOKS_TEXT])
{
	const struct python_row *object = &s->python.allocators.rows[DOMAIN_OBJECT],
				*mem = &s->python.allocators.rows[DOMAIN_MEM];
	struct python_function list[ROW_FREE];
	char why[PYTHON_HOOKS_TEXT - 100];

	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		list[i - ROW_MALLOC] = (struct python_function){ .word = object->address + i * sizeof(uint64_t),
			                                         .second = mem->address + i * sizeof(uint64_t),
			                                         .value = object->words[i],
			                                         .hook = rows[i].hook,
			                                         .outer = rows[i].outer,
			                                         .in_line = true };
	if (!python_functions_hook(s, m, memory, list, ROW_FREE, why, sizeof why)) {
		snprintf(text, PYTHON_HOOKS_TEXT, OBJECTS " are not recorded: %s", why);
		return false;
	}
	s->python.hooked_module = m->id;
	python_hooks_relieve(s);
	snprintf(text, PYTHON_HOOKS_TEXT, OBJECTS " are recorded, too%s",
	         s->options.groups & GROUP_BIT(GROUP_MMAP)
	                 ? "; mappings that the interpreter makes by mmap are not, since arenas are among them"
	                 : "");
	return true;
}

bool python_hooks_plan(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                       char text[PYTHON_HOOKS_TEXT])
{
	struct python_allocators *a = &s->python.allocators;

	if (!is_wanted(s, text))
		return false;
	python_allocators_find(a, m, memory, &s->view.maps);
	switch (a->kind) {
	case PYTHON_ALLOCATOR_POOL: return add(s, m, memory, text);
	case PYTHON_ALLOCATOR_MALLOC:
		snprintf(text, PYTHON_HOOKS_TEXT, OBJECTS " are recorded, too: they come from malloc");
		return true;
	default: snprintf(text, PYTHON_HOOKS_TEXT, OBJECTS " are not recorded: %s", a->why); return false;
	}
}

/* One that holds another address of the function (arch/function_alias.h), also since an earlier session, does not. */
static bool leads_to_hooked(const struct session_python_functions *functions, uint64_t word)
{
	for (unsigned i = 0; i < functions->count; i++)
		if (functions->hooks[i].address == word)
			return true;
	return false;
}

static bool is_back(const struct session *s, const struct python_row *row)
{
	uint64_t words[ROW_WORDS];

	if (target_read(&s->memory, row->address, words, sizeof words, ERR_IGNORED) < 0)
		return false;
	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		if (leads_to_hooked(&s->python.functions, words[i]))
			return true;
	return false;
}

int python_hooks_watch(struct session *s, struct err *e)
{
	const struct python_row *rows_before = s->python.allocators.rows;
	const uint64_t since_ns = clock_monotonic_ns() - s->recording.started_ns;
	char text[PYTHON_HOOKS_TEXT];

	if (!s->python.hooked_module || s->python.words_are_back ||
	    (!is_back(s, &rows_before[DOMAIN_MEM]) && !is_back(s, &rows_before[DOMAIN_OBJECT])))
		return 0;
	s->python.words_are_back = true;
	snprintf(text, sizeof text,
	         OBJECTS
	         " are not recorded any more, %.1f s after the attach: the program has set its table of allocators to "
	         "what it was before (Py_Initialize after Py_Finalize does so). Those that it has freed since count as "
	         "live. Attach anew",
	         (double)since_ns / 1e9);
	session_say(s, "not seen: %s", text);
	return dump_writer_note(&s->recording.dump, DUMP_NOTE_HOOKS_LOST, text, e);
}

void python_hooks_relieve(struct session *s)
{
	const struct elf_module *m = modules_with_id(&s->view.modules, s->python.hooked_module);

	if (m)
		got_plan_leave(&s->view.plan, (uint32_t)(m - s->view.modules.list), GROUP_MMAP);
}
