/* SPDX-License-Identifier: MIT */
#include "python_code.h"

#include <stdio.h>
#include <sys/mman.h>

#include "plan_words.h"
#include "python_releases.h"

/* In each PyTypeObject since 3.0: tp_name, tp_basicsize, tp_itemsize, tp_dealloc. */
#define NAME_TO_SIZE 8u
#define NAME_TO_DEALLOC 24u

static bool is_private_data(const struct session *s, const struct elf_module *m, uint64_t word)
{
	const struct mapping *map = maps_find(&s->view.maps, word);

	return word % sizeof word == 0 && elf_module_holds(m, word, sizeof word, PF_W) && map && !map->shared &&
	       (map->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE);
}

/* Will the memory be searched for copies at the detach in any case? */
static bool is_searched(const struct session *s)
{
	for (size_t i = 0; i < s->view.plan.entry_count; i++)
		if (s->view.plan.entries[i].flags & GOT_ESCAPES)
			return true;
	return false;
}

/* NULL: the word of s->python.code_end and what it holds are known, and it may be patched; else why not. */
static const char *refusal(struct session *s, const struct elf_module *m, const struct target_memory *memory)
{
	const struct python_release *r = python_release_find(s->python.layout.version >> 16 & 0xff);
	struct python_code_end *end = &s->python.code_end;
	struct err ignored;
	uint64_t size;

	if (!r)
		return "its version is not known";
	const uint64_t name = s->python.layout.code_type + r->type_name;
	end->word = name + NAME_TO_DEALLOC;
	if (target_read_u64(memory, name + NAME_TO_SIZE, &size, &ignored) < 0 || size != r->code_bytes)
		return "its type of code objects is not laid out as expected";
	if (!is_private_data(s, m, end->word))
		return "its type of code objects is not in its own data";
	if (target_read_u64(memory, end->word, &end->function, &ignored) < 0 ||
	    !elf_module_holds(m, end->function, 1, PF_X))
		return "the program has put another function there";
	return is_searched(s) ? NULL : "a copy of it would have to be searched for at the detach, for its sake alone";
}

void session_plan_python_code(struct session *s, const struct elf_module *m, const struct target_memory *memory)
{
	struct python_code_end *end = &s->python.code_end;
	const char *why = refusal(s, m, memory);
	struct err e;

	if (!why) {
		end->module = m->id;
		if (session_add_python_code(s, &e) == 0)
			return;
		why = e.text;
	}
	*end = (struct python_code_end){ 0 };
	snprintf(end->why, sizeof end->why, "%s", why);
}

int session_add_python_code(struct session *s, struct err *e)
{
	const struct python_code_end *end = &s->python.code_end;
	const struct elf_module *m = modules_with_id(&s->view.modules, end->module);
	const struct mapping *map = maps_find(&s->view.maps, end->word);

	if (!m || !is_searched(s))
		return 0;
	if (!map)
		return err_set(e, EFAULT, "it is not mapped");
	const struct entry_plan word = { .address = end->word,
		                         .value = end->function,
		                         .original = end->function,
		                         .hook = HOOK_python_code,
		                         .module = (uint32_t)(m - s->view.modules.list),
		                         .flags = GOT_ESCAPES | GOT_COUNTS | GOT_PYTHON,
		                         .page_protection = map->prot,
		                         .relocation = R_X86_64_64 };
	return plan_words_add(&s->view.plan, &word, 0, e);
}
