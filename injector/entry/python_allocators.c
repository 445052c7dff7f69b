/* SPDX-License-Identifier: MIT */
#include "entry/python_allocators.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "hooks.h"
#include "arch/function_alias.h"
#include "arch/instruction.h"
#include "elf/module_file.h"
#include "arch/word_references.h"

#define CODE_BYTES_MAX 512u  /* of a function: where the compiler has put the allocator into it, that comes behind */
#define INSTRUCTIONS_MAX 40u /* in which the limit is compared */
#define LAYERS_MAX 4u        /* of tools before an allocator */

static const char *const names[DOMAINS][ROW_WORDS] = {
	[DOMAIN_RAW] = { NULL, "PyMem_RawMalloc", "PyMem_RawCalloc", "PyMem_RawRealloc", "PyMem_RawFree" },
	[DOMAIN_MEM] = { NULL, "PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc", "PyMem_Free" },
	[DOMAIN_OBJECT] = { NULL, "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "PyObject_Free" },
};

/* The interpreter that is looked at. */
struct look {
	struct python_allocators *out;
	const struct elf_module *module;
	const struct target_memory *tm;
	const struct maps *maps;
	struct module_file file;
};

static bool __attribute__((format(printf, 2, 3))) refuse(struct look *l, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(l->out->why, sizeof l->out->why, format, ap);
	va_end(ap);
	l->out->kind = PYTHON_ALLOCATOR_UNKNOWN;
	return false;
}

/* Only words of the interpreter itself: a GOT entry, a pointer of its own. */
static bool read_word(void *context, uint64_t address, uint64_t *word)
{
	const struct look *l = context;

	return elf_module_holds(l->module, address, sizeof *word, 0) &&
	       target_read_u64(l->tm, address, word, ERR_IGNORED) == 0;
}

/* As many bytes of the function's code as there are, 0: it cannot be read. */
static size_t read_code(const struct look *l, uint64_t address, uint64_t bytes, uint8_t *code)
{
	bytes = bytes < CODE_BYTES_MAX ? bytes : CODE_BYTES_MAX;
	if (!bytes || !elf_module_holds(l->module, address, bytes, PF_X) ||
	    module_file_read(&l->file, address, code, bytes, ERR_IGNORED) < 0)
		return 0;
	return (size_t)bytes;
}

static bool find_references(struct look *l, const char *name, struct word_references *r)
{
	uint8_t code[CODE_BYTES_MAX];
	struct elf_symbol s;
	size_t bytes = 0;

	if (elf_module_find(l->module, name, NULL, &s) && s.function && !s.ifunc)
		bytes = read_code(l, s.address, s.bytes, code);
	if (!bytes)
		return refuse(l, "it exports no %s whose code can be read", name);
	word_references_find(r, code, bytes, s.address, read_word, l);
	return true;
}

/* Do all four functions refer to the context and to their own word of a row that is here? */
static bool is_row(const struct word_references *functions, uint64_t address)
{
	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		if (!word_references_has(&functions[i], address) ||
		    !word_references_has(&functions[i], address + i * sizeof(uint64_t)))
			return false;
	return true;
}

static bool is_private_data(const struct look *l, const struct python_row *row)
{
	const struct mapping *first = maps_find(l->maps, row->address),
			     *last = maps_find(l->maps, row->address + sizeof row->words - 1);

	return row->address % sizeof(uint64_t) == 0 &&
	       elf_module_holds(l->module, row->address, sizeof row->words, PF_W) && first && last && !first->shared &&
	       !last->shared && first->prot & last->prot & PROT_READ;
}

static bool find_row(struct look *l, enum python_domain domain)
{
	struct word_references functions[ROW_WORDS] = { 0 };
	struct python_row *row = &l->out->rows[domain];
	struct err e;

	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		if (!find_references(l, names[domain][i], &functions[i]))
			return false;
	for (unsigned i = 0; i < functions[ROW_MALLOC].count; i++) {
		uint64_t address = functions[ROW_MALLOC].list[i];

		if (!is_row(functions, address) ||
		    (domain != DOMAIN_RAW && address == l->out->rows[DOMAIN_RAW].address))
			continue;
		if (row->address)
			return refuse(l, "%s refers to two rows of functions", names[domain][ROW_MALLOC]);
		row->address = address;
	}
	if (!row->address)
		return refuse(l, "%s and its kin do not refer to one row of functions", names[domain][ROW_MALLOC]);
	if (!is_private_data(l, row))
		return refuse(l, "%s refers to a row that is not in the interpreter's own data",
		              names[domain][ROW_MALLOC]);
	if (target_read(l->tm, row->address, row->words, sizeof row->words, &e) < 0)
		return refuse(l, "%s", e.text);
	return true;
}

static bool same_functions(const struct python_row *a, const struct python_row *b)
{
	return !memcmp(&a->words[ROW_MALLOC], &b->words[ROW_MALLOC], 4 * sizeof(uint64_t));
}

static bool overlap(const struct python_row *a, const struct python_row *b)
{
	return a->address < b->address + sizeof b->words && b->address < a->address + sizeof a->words;
}

/* Does the function compare something with the size of the largest block? */
static bool compares_limit(const struct look *l, uint64_t pointer)
{
	const uint64_t function = function_alias_place(pointer);
	uint8_t code[CODE_BYTES_MAX];
	size_t at = 0, bytes = read_code(l, function, CODE_BYTES_MAX, code);
	struct instruction in;

	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < bytes; i++, at += in.bytes) {
		if (!instruction_read(&in, code + at, bytes - at, function + at))
			return false;
		if (in.has_immediate && (in.immediate == POOL_MAX || in.immediate == POOL_MAX - 1))
			return true;
	}
	return false;
}

static bool has_own_functions(const struct look *l, const struct python_row *row)
{
	for (unsigned i = ROW_MALLOC; i <= ROW_FREE; i++)
		if (!elf_module_holds(l->module, function_alias_place(row->words[i]), 1, PF_X))
			return false;
	return true;
}

/* What a tool of the interpreter passes on to: its context is such a row (tracemalloc), or has it behind a letter. */
static bool pass_on(const struct look *l, struct python_row *row)
{
	for (unsigned before = 0; before < 2; before++) {
		struct python_row next = { .address = row->words[ROW_CONTEXT] + before * sizeof(uint64_t) };
		if (is_private_data(l, &next) &&
		    target_read(l->tm, next.address, next.words, sizeof next.words, ERR_IGNORED) == 0 &&
		    has_own_functions(l, &next)) {
			*row = next;
			return true;
		}
	}
	return false;
}

/* The allocator behind all tools. False: that is not told. */
static bool find_last(const struct look *l, enum python_domain domain, struct python_row *row)
{
	*row = l->out->rows[domain];
	for (unsigned i = 0; row->words[ROW_CONTEXT] && i < LAYERS_MAX; i++)
		if (!has_own_functions(l, row) || !pass_on(l, row))
			return false;
	return !row->words[ROW_CONTEXT];
}

static bool is_no_third(const struct look *l)
{
	struct python_row last[DOMAINS];

	for (unsigned domain = 0; domain < DOMAINS; domain++)
		if (!find_last(l, domain, &last[domain]))
			return false;
	const struct python_row *object = &last[DOMAIN_OBJECT];
	return same_functions(object, &last[DOMAIN_MEM]) &&
	       (same_functions(object, &last[DOMAIN_RAW]) ||
	        (has_own_functions(l, object) && compares_limit(l, object->words[ROW_MALLOC])));
}

static bool is_pool(struct look *l)
{
	const struct python_row *object = &l->out->rows[DOMAIN_OBJECT], *mem = &l->out->rows[DOMAIN_MEM];

	if (object->words[ROW_CONTEXT] || mem->words[ROW_CONTEXT] || !same_functions(object, mem))
		return refuse(l, "the program has set another allocator for them (tracemalloc, PYTHONMALLOC, a tool)");
	if (!has_own_functions(l, object))
		return refuse(l, "the program has set an allocator for them that is not the interpreter's");
	for (unsigned i = ROW_MALLOC; i < ROW_FREE; i++)
		for (unsigned k = i + 1; k <= ROW_FREE; k++)
			if (object->words[i] == object->words[k])
				return refuse(l, "two functions of its allocator are the same");
	return compares_limit(l, object->words[ROW_MALLOC]) ||
	       refuse(l, "its allocator does not compare sizes with %d", POOL_MAX);
}

static void look(struct look *l)
{
	const struct python_row *rows = l->out->rows;

	for (unsigned domain = 0; domain < DOMAINS; domain++)
		if (!find_row(l, domain))
			return;
	if (overlap(&rows[DOMAIN_RAW], &rows[DOMAIN_MEM]) || overlap(&rows[DOMAIN_RAW], &rows[DOMAIN_OBJECT]) ||
	    overlap(&rows[DOMAIN_MEM], &rows[DOMAIN_OBJECT])) {
		(void)refuse(l, "the rows of its domains are not three");
		return;
	}
	l->out->no_third = is_no_third(l);
	if (same_functions(&rows[DOMAIN_RAW], &rows[DOMAIN_OBJECT]) &&
	    same_functions(&rows[DOMAIN_RAW], &rows[DOMAIN_MEM]))
		l->out->kind = PYTHON_ALLOCATOR_MALLOC;
	else if (is_pool(l))
		l->out->kind = PYTHON_ALLOCATOR_POOL;
}

void python_allocators_find(struct python_allocators *a, const struct elf_module *m, const struct target_memory *tm,
                            const struct maps *maps)
{
	struct look l = { .out = a, .module = m, .tm = tm, .maps = maps };

	*a = (struct python_allocators){ .kind = PYTHON_ALLOCATOR_UNKNOWN };
	module_file_open(&l.file, m, tm, maps);
	look(&l);
	module_file_close(&l.file);
}
