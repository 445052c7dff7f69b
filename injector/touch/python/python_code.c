/* SPDX-License-Identifier: MIT */
#include "touch/python/python_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "arch/code.h"
#include "touch/python/python_functions.h"
#include "python/python_releases.h"

/* In each PyTypeObject since 3.0: tp_name, tp_basicsize, tp_itemsize, tp_dealloc. */
#define NAME_TO_SIZE 8u
#define NAME_TO_DEALLOC 24u

static void on_distance(void *context, enum distance_kind kind, size_t at, uint64_t target)
{
	bool *found = context;

	(void)kind, (void)at, (void)target;
	*found = true;
}

/* Does the code of the interpreter name the address anywhere, as an operand or by a distance? */
static bool names(const uint8_t *code, size_t bytes, uint64_t at, uint64_t address)
{
	const struct code_extent wanted = { address, address };
	bool found = false;

	code_distances(code, bytes, at, &wanted, on_distance, &found);
	if (found)
		return true;
	for (size_t i = 0; i + sizeof(uint32_t) <= bytes; i++) {
		uint32_t word;
		memcpy(&word, code + i, sizeof word);
		if (word == address || word == (uint32_t)(address - (at + i + sizeof word)))
			return true;
	}
	return false;
}

/*
 * A build that is optimised by a profile may have the function in line, behind a comparison of the word with its
 * address. None is known that does; then something of its code would hold that address, or the way to it.
 */
static bool may_be_in_line(const struct elf_module *m, const struct target_memory *memory, uint64_t function)
{
	bool found = false;

	for (size_t i = 0; i < m->phdr_count && !found; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		AUTO_FREE uint8_t *code = p->p_type == PT_LOAD && p->p_flags & PF_X ? malloc(p->p_filesz) : NULL;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			found = !code ||
			        target_read(memory, m->bias + p->p_vaddr, code, p->p_filesz, ERR_IGNORED) < 0 ||
			        names(code, p->p_filesz, m->bias + p->p_vaddr, function);
	}
	return found;
}

/* NULL: the word of s->python.code_end and what it holds are known; else why the function is not to be hooked. */
static const char *refusal(struct session *s, const struct elf_module *m, const struct target_memory *memory)
{
	const struct python_release *r = python_release_find(s->python.layout.version >> 16 & 0xff);
	struct python_code_end *end = &s->python.code_end;
	uint64_t size;

	if (!r)
		return "its version is not known";
	const uint64_t name = s->python.layout.code_type + r->type_name;
	end->word = name + NAME_TO_DEALLOC;
	if (target_read_u64(memory, name + NAME_TO_SIZE, &size, ERR_IGNORED) < 0 || size != r->code_bytes)
		return "its type of code objects is not laid out as expected";
	if (end->word % sizeof end->word || !elf_module_holds(m, end->word, sizeof end->word, PF_W))
		return "its type of code objects is not in its own data";
	if (target_read_u64(memory, end->word, &end->function, ERR_IGNORED) < 0 ||
	    !elf_module_holds(m, end->function, 1, PF_X))
		return "the program has put another function there";
	return may_be_in_line(m, memory, end->function) ? "some code may have that function in line" : NULL;
}

void python_code_plan(struct session *s, const struct elf_module *m, const struct target_memory *memory)
{
	struct python_code_end *end = &s->python.code_end;
	const char *why = refusal(s, m, memory);
	const struct python_function function = { .word = end->word, .value = end->function, .hook = HOOK_python_code };

	if (why)
		snprintf(end->why, sizeof end->why, "%s", why);
	else
		end->hooked = python_functions_hook(s, m, memory, &function, 1, end->why, sizeof end->why);
}
