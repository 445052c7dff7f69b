/* SPDX-License-Identifier: MIT */
/*
 * The table of a code object that tells which instruction is on which line, as its three formats say:
 *
 *   3.9    co_lnotab (Objects/lnotab_notes.txt of 3.9): pairs of bytes, how far the address and then the line go on
 *   3.10   co_linetable (Objects/lnotab_notes.txt of 3.10): the same, but each pair is a range and its line, which may
 *          be -128: it has none
 *   3.11 … co_linetable (Objects/locations.md, InternalDocs/code_objects.md): entries that begin with a byte above 127
 *
 * Pure: reads nothing but the bytes that it is given, which may be anything; ends after as many steps as they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dump_format.h"

#define PYTHON_NO_LINE (-1) /* the instruction has none */

struct python_line_table {
	enum dump_lines format;
	int32_t first_line;   /* co_firstlineno */
	uint32_t code_bytes;  /* of the code */
	const uint8_t *bytes; /* of the table */
	size_t count;
};

/* A range of the code, in bytes from its start, that is on one line. Neighbours may be on the same. */
struct python_line_range {
	uint32_t start;
	uint32_t end; /* after it, above start */
	int32_t line; /* PYTHON_NO_LINE: none */
};

struct python_line_cursor {
	const struct python_line_table *table;
	size_t at;
	uint64_t address;
	int64_t line;
	bool malformed; /* the table ends within an entry, reaches beyond the code, or a number is beyond all lines */
};

void python_lines_start(struct python_line_cursor *c, const struct python_line_table *table);
/* False: no more, or malformed. */
bool python_lines_next(struct python_line_cursor *c, struct python_line_range *range);

/*
 * The line of the instruction at offset bytes from the start of the code; below 0, before the first has run: that of
 * the code object itself. -1: the table is malformed (all of it is read), or has no range for it.
 */
int python_lines_find(const struct python_line_table *table, int64_t offset, int32_t *line);
