/* SPDX-License-Identifier: MIT */
#include "touch/python/python_functions.h"

#include <stdio.h>
#include <string.h>

#include "arch/function_alias.h"

#define NAME "CPython"

static const char *find_alias(struct function_alias *alias, const struct elf_module *m,
                              const struct target_memory *memory, const struct python_function *f)
{
	const uint64_t from = function_alias_place(f->value) - FUNCTION_ALIAS_AROUND;
	uint8_t around[2 * FUNCTION_ALIAS_AROUND];

	if (!elf_module_holds(m, from, sizeof around, PF_X) ||
	    target_read(memory, from, around, sizeof around, ERR_IGNORED) < 0)
		return "its code cannot be read";
	*alias = function_alias_find(f->value, around);
	if (!f->in_line)
		return NULL;
	return alias->address ? function_alias_obstacle() : "no nop is in front of it";
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

static void add_words(struct session_python_functions *to, const struct python_function *f,
                      const struct function_alias *alias)
{
	const uint64_t words[] = { f->word, f->second };

	/* One that has an alias since an earlier session is left alone. */
	if (!f->in_line || alias->function != f->value)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (words[i])
			to->words[to->word_count++] =
				(struct python_word){ .address = words[i], .value = f->value, .alias = alias->address };
}

/* Functions to be hooked, and what is known of each. */
struct attempt {
	const struct python_function *list;
	unsigned count;
	struct allocator_function functions[PYTHON_FUNCTIONS_MAX];
	struct function_alias aliases[PYTHON_FUNCTIONS_MAX];
	const char *name; /* of the one that is refused */
};

/* NULL, or why one of them cannot be hooked. */
static const char *find_functions(struct attempt *a, const struct session *s, const struct elf_module *m,
                                  const struct target_memory *memory)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct allocator_function *f = &a->functions[i];
		f->module = (uint32_t)(m - s->view.modules.list);
		f->like = (struct allocation_name){ .family = FAMILY_GIVEN, .hook = a->list[i].hook };
		a->name = listed_hook_symbol(a->list[i].hook);
		snprintf(f->name, sizeof f->name, "%s", a->name);
		const char *why = find_alias(&a->aliases[i], m, memory, &a->list[i]);
		if (why)
			return why;
		f->address = a->aliases[i].function;
	}
	return NULL;
}

static const char *hook_functions(struct attempt *a, struct session *s, struct session_python_functions *to,
                                  struct err *e)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct entry_hook *hook = &to->hooks[to->count++];
		const char *why = entry_hook_make(hook, &a->functions[i], &s->view.modules, a->list[i].outer);
		a->name = listed_hook_symbol(a->list[i].hook);
		if (why)
			return why;
		if (meets(&s->hooks, hook))
			return "its padding is used by another hook";
		if (entry_hooks_add(&s->hooks, hook, e) < 0)
			return e->text;
		add_words(to, &a->list[i], &a->aliases[i]);
	}
	return NULL;
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
	struct attempt a = { .list = list, .count = count, .name = "" };
	struct err e;

	if (s->options.hooks == HOOKS_GOT) {
		snprintf(why, size, "--hooks got allows no hook at the entry of a function");
		return false;
	}
	const char *text = find_functions(&a, s, m, memory);
	if (!text && look_at(s, a.functions, count, memory, &e) < 0)
		text = e.text;
	text = text ?: hook_functions(&a, s, &to, &e);
	if (text) {
		snprintf(why, size, "%s cannot be hooked at its entry: %s", a.name, text);
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
