/* SPDX-License-Identifier: MIT */
#include "entry/evaluator_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "allocators/function_table.h"
#include "arch/instruction.h"

#define LOOKUPS_MAX 4096u /* branches out of the function whose destination is looked up */

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	struct dump_evaluator *found = context;

	if (type != STT_FUNC || strcmp(name, EVALUATOR_SYMBOL) != 0)
		return true;
	*found = (struct dump_evaluator){ address, bytes };
	return false;
}

static bool find_function(struct dump_evaluator *found, const struct function_table *t)
{
	struct elf_symbol s;

	*found = (struct dump_evaluator){ 0 };
	if (elf_module_find(t->file->module, EVALUATOR_SYMBOL, NULL, &s) && s.function && !s.ifunc)
		*found = (struct dump_evaluator){ s.address, s.bytes };
	else
		(void)module_file_symbols(t->file, on_symbol, found);
	found->bytes = found->start ? function_table_bytes(t, found->start, found->bytes) : 0;
	return found->bytes && found->bytes <= EVALUATOR_BYTES_MAX;
}

static bool is_listed(const struct dump_evaluator *list, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (address - list[i].start < list[i].bytes)
			return true;
	return false;
}

/* Stubs of the linker have one description together; a call at the end of a function jumps to one of them. */
static bool is_stub(const struct module_file *f, uint64_t address)
{
	uint8_t code[2 * INSTRUCTION_MAX];
	struct instruction in = { 0 };

	if (module_file_read(f, address, code, sizeof code, ERR_IGNORED) ||
	    !instruction_read(&in, code, sizeof code, address))
		return false;
	if (in.landing_pad && !instruction_read(&in, code + in.bytes, sizeof code - in.bytes, address + in.bytes))
		return false;
	return in.flow == FLOW_JUMP && in.has_memory;
}

/* What is described apart, but is no other function. */
static bool part_around(struct dump_evaluator *part, const struct function_table *t, uint64_t address)
{
	uint64_t start = function_table_before(t, address + 1);

	if (!start || (start == address && !function_table_is_part(t, address)) || is_stub(t->file, address))
		return false;
	*part = (struct dump_evaluator){ start, function_table_bytes(t, start, 0) };
	return address - start < part->bytes && part->bytes <= EVALUATOR_BYTES_MAX;
}

static unsigned add_parts(struct dump_evaluator *list, const struct function_table *t, const uint8_t *code)
{
	const struct dump_evaluator f = list[0];
	unsigned count = 1, lookups = 0;
	struct instruction in;

	for (uint64_t at = 0; at < f.bytes && count < DUMP_EVALUATORS && lookups < LOOKUPS_MAX;) {
		if (!instruction_read(&in, code + at, f.bytes - at, f.start + at)) {
			at++;
			continue;
		}
		at += in.bytes;
		bool jumps = in.flow == FLOW_CONDITION || in.flow == FLOW_JUMP;
		if (!jumps || !in.has_target || is_listed(list, count, in.target))
			continue;
		lookups++;
		count += part_around(&list[count], t, in.target);
	}
	return count;
}

void evaluator_code_find(struct dump_evaluator *list, const struct elf_module *m, const struct target_memory *tm,
                         const struct maps *maps)
{
	struct module_file file;
	struct function_table table;
	struct dump_evaluator found[DUMP_EVALUATORS];
	unsigned count = 0;

	module_file_open(&file, m, tm, maps);
	function_table_open(&table, &file);
	if (find_function(&found[0], &table)) {
		AUTO_FREE uint8_t *code = malloc(found[0].bytes);
		count = 1;
		if (code && module_file_read(&file, found[0].start, code, found[0].bytes, ERR_IGNORED) == 0)
			count = add_parts(found, &table, code);
	}
	function_table_close(&table);
	module_file_close(&file);
	memcpy(list, found, count * sizeof *list);
}
