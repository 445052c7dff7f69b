/* SPDX-License-Identifier: MIT */
#include "touch/python/python_functions.h"

#include <stdio.h>
#include <string.h>

#include "entry/function_alias.h"

#define NAME "CPython"

/* Where the function begins that the value of a word leads to, and the nop in front of it, where no island ever is. */
struct place {
	uint64_t function;
	uint64_t alias; /* the function itself: there is none */
};

static const char *find_place(struct place *place, const struct elf_module *m, const struct target_memory *memory,
                              const struct python_function *f)
{
	uint8_t around[2 * FUNCTION_ALIAS_MAX];

	if (!elf_module_holds(m, f->value - FUNCTION_ALIAS_MAX, sizeof around, PF_X) ||
	    target_read(memory, f->value - FUNCTION_ALIAS_MAX, around, sizeof around, ERR_IGNORED) < 0)
		return "its code cannot be read";
	const unsigned skipped = function_alias_skip(around + FUNCTION_ALIAS_MAX, FUNCTION_ALIAS_MAX);
	const unsigned before = skipped ? 0 : function_alias_before(around, FUNCTION_ALIAS_MAX);
	place->function = f->value + skipped;
	place->alias = f->value - before;
	return f->in_line && !skipped && !before ? "no nop is in front of it" : NULL;
}

static int look_at(struct session *s, struct allocator_function *list, unsigned count,
                   const struct target_memory *memory, struct err *e)
{
	const struct allocators_input in = {
		.modules = &s->view.modules, .libc = &s->view.libc, .memory = memory, .maps = &s->view.maps
	};

	return allocator_functions_look(list, count, &in, e);
}

/* Is another hook in the way: of the same function, or with an island where one of this hook would be? */
static bool meets(const struct entry_hooks *h, const struct entry_hook *new)
{
	for (size_t i = 0; i < h->count; i++) {
		const uint64_t theirs = h->list[i].plan.island, ours = new->plan.island;
		if (h->list[i].address == new->address ||
		    (theirs && theirs < ours + ENTRY_JUMP_BYTES && ours < theirs + ENTRY_JUMP_BYTES))
			return true;
	}
	return false;
}

static void add_words(struct session_python_functions *to, const struct python_function *f, const struct place *place)
{
	const uint64_t words[] = { f->word, f->second };

	/* One that leads to the nop since an earlier session is left alone. */
	if (!f->in_line || place->function != f->value)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (words[i])
			to->words[to->word_count++] =
				(struct python_word){ .address = words[i], .value = f->value, .alias = place->alias };
}

/* *name: of the function that is refused. */
static const char *try(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                       const struct python_function *list, unsigned count, struct session_python_functions *to,
                       const char **name, struct err *e)
{
	struct allocator_function functions[PYTHON_FUNCTIONS_MAX] = { 0 };
	struct place places[PYTHON_FUNCTIONS_MAX];
	const char *why = NULL;

	for (unsigned i = 0; i < count && !why; i++) {
		functions[i].module = (uint32_t)(m - s->view.modules.list);
		functions[i].like = (struct allocation_name){ .family = FAMILY_GIVEN, .hook = list[i].hook };
		*name = listed_hook_symbol(list[i].hook);
		snprintf(functions[i].name, sizeof functions[i].name, "%s", *name);
		why = find_place(&places[i], m, memory, &list[i]);
		functions[i].address = places[i].function;
	}
	if (!why && look_at(s, functions, count, memory, e) < 0)
		return e->text;
	for (unsigned i = 0; i < count && !why; i++) {
		struct entry_hook *hook = &to->hooks[to->count++];
		why = entry_hook_make(hook, &functions[i], &s->view.modules, list[i].outer);
		*name = listed_hook_symbol(list[i].hook);
		if (!why && meets(&s->hooks, hook))
			why = "its padding is used by another hook";
		if (!why && entry_hooks_add(&s->hooks, hook, e) < 0)
			why = e->text;
		if (!why)
			add_words(to, &list[i], &places[i]);
	}
	return why;
}

static void name_them(struct entry_hooks *h)
{
	const size_t length = strlen(h->text);

	if (!strstr(h->text, NAME))
		snprintf(h->text + length, sizeof h->text - length, "%s" NAME, length ? ", " : "");
}

bool python_functions_hook(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                           const struct python_function *list, unsigned count, char *why, size_t size)
{
	struct session_python_functions to = s->python.functions;
	const size_t before = s->hooks.count;
	const char *name = "", *text;

	if (s->options.hooks == HOOKS_GOT) {
		snprintf(why, size, "--hooks got allows no hook at the entry of a function");
		return false;
	}
	text = try(s, m, memory, list, count, &to, &name, ERR_IGNORED);
	if (text) {
		snprintf(why, size, "%s cannot be hooked at its entry: %s", name, text);
		s->hooks.count = before;
		return false;
	}
	s->python.functions = to;
	name_them(&s->hooks);
	return true;
}

int python_functions_again(struct session *s, struct err *e)
{
	const struct session_python_functions *f = &s->python.functions;
	int rc = 0;

	for (unsigned i = 0; i < f->count && rc == 0; i++)
		rc = entry_hooks_add(&s->hooks, &f->hooks[i], e);
	if (rc == 0 && f->count)
		name_them(&s->hooks);
	return rc;
}
