/* SPDX-License-Identifier: MIT */
#include "allocators/function_body.h"

#include <stdlib.h>

bool function_body_read(struct function_body *b, const struct module_file *file, uint64_t address, uint64_t bytes)
{
	*b = (struct function_body){ .address = address, .bytes = bytes };
	b->code = malloc(bytes);
	b->seen = calloc(bytes, 1);
	b->todo = calloc(bytes, sizeof *b->todo);
	return b->code && b->seen && b->todo && !module_file_read(file, address, b->code, bytes, ERR_IGNORED);
}

void function_body_done(struct function_body *b)
{
	free(b->code);
	free(b->seen);
	free(b->todo);
}

void function_body_add(struct function_body *b, uint64_t address)
{
	uint64_t at = address - b->address;

	if (at < b->bytes && !b->seen[at]) {
		b->seen[at] = 1;
		b->todo[b->todo_count++] = (uint32_t)at;
	}
}

bool function_body_next(struct function_body *b, struct instruction *in)
{
	if (!b->todo_count)
		return false;
	uint64_t at = b->todo[b->todo_count - 1];
	if (!instruction_read(in, b->code + at, b->bytes - at, b->address + at))
		return false;
	b->todo_count--;
	return true;
}
