/* SPDX-License-Identifier: MIT */
#include "python/code_record.h"

#include "dump_format.h"
#include "tables/stack_table.h"

struct code_draft {
	struct stack_draft draft;
	const struct code_object *code;
	uint32_t data_bytes;
	uint8_t lines;
};

static uint8_t *copy(uint8_t *to, uint64_t from, uint32_t bytes)
{
	__builtin_memcpy(to, (const void *)(uintptr_t)from, bytes);
	return to + bytes;
}

static void code_write(struct dump_stack *record, const struct stack_draft *draft)
{
	const struct code_draft *d = (const struct code_draft *)draft;
	struct dump_code *to = (struct dump_code *)(void *)record;
	const struct code_object *code = d->code;

	*to = (struct dump_code){
		.hash = draft->hash,
		.data_bytes = d->data_bytes,
		.flags = DUMP_STACK_CODE | (code->name.cut ? DUMP_CODE_NAME_CUT : 0) |
		         (code->file.cut ? DUMP_CODE_FILE_CUT : 0) | (code->table_cut ? DUMP_CODE_TABLE_CUT : 0),
		.address = code->address,
		.code_bytes = code->bytes,
		.first_line = code->first_line,
		.table_bytes = code->table_bytes,
		.name_bytes = code->name.bytes,
		.file_bytes = code->file.bytes,
		.name_width = code->name.width,
		.file_width = code->file.width,
		.lines = d->lines,
	};
	copy(copy(copy(to->data, code->name.address, code->name.bytes), code->file.address, code->file.bytes),
	     code->table, code->table_bytes);
}

bool code_record_store(const struct code_object *code, const struct python_layout *layout, uint32_t *reference)
{
	struct code_draft d = {
		.code = code,
		.data_bytes = (uint32_t)code->name.bytes + code->file.bytes + code->table_bytes,
		.lines = (uint8_t)layout->code.lines_format,
	};

	d.draft = (struct stack_draft){ .hash = code->hash,
		                        .bytes = DUMP_CODE_BYTES((uint64_t)d.data_bytes),
		                        .write = code_write };
	return stack_table_store(&d.draft, reference) != 0;
}
