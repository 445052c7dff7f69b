/* SPDX-License-Identifier: MIT */
/*
 * Compares what python_lines.c reads from tables of lines with what the interpreter itself says: for
 * check_python_lines.py, which writes the records. Exit 0: all are equal; 1: not, the first is named; 2: a record is
 * cut.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dump/python_lines.h"

struct record {
	uint32_t format;
	int32_t first_line;
	uint32_t code_bytes;
	uint32_t table_bytes;
}; /* then the table, and one int32 for each code unit */

static bool same(const struct python_line_table *t, const int32_t *lines, unsigned long number)
{
	struct python_line_cursor c;
	struct python_line_range range = { 0 };
	uint32_t covered = 0;

	python_lines_start(&c, t);
	while (python_lines_next(&c, &range)) {
		for (uint32_t at = range.start; at < range.end; at += 2)
			if (lines[at / 2] != range.line) {
				printf("record %lu, offset %u: %d, not %d\n", number, at, range.line, lines[at / 2]);
				return false;
			}
		covered = range.end;
	}
	if (c.malformed || covered != t->code_bytes)
		printf("record %lu: %s, %u of %u bytes\n", number, c.malformed ? "malformed" : "ended", covered,
		       t->code_bytes);
	return !c.malformed && covered == t->code_bytes;
}

int main(void)
{
	unsigned long number = 0;

	for (struct record r; fread(&r, sizeof r, 1, stdin) == 1; number++) {
		uint8_t *bytes = malloc(r.table_bytes + 1);
		int32_t *lines = malloc(r.code_bytes * 2 + 4), line;

		if (!bytes || !lines || fread(bytes, 1, r.table_bytes, stdin) != r.table_bytes ||
		    fread(lines, 4, r.code_bytes / 2, stdin) != r.code_bytes / 2)
			return 2;
		struct python_line_table t = { r.format, r.first_line, r.code_bytes, bytes, r.table_bytes };
		if (!same(&t, lines, number))
			return 1;
		if (r.code_bytes &&
		    (python_lines_find(&t, r.code_bytes - 2, &line) || line != lines[r.code_bytes / 2 - 1]))
			return 1;
		free(bytes);
		free(lines);
	}
	printf("%lu tables\n", number);
	return number == 0;
}
