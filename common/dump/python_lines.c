/* SPDX-License-Identifier: MIT */
#include "dump/python_lines.h"

#define UNIT_BYTES 2u
#define LINE_MAX_ 0x7fffffff
#define LINE_MIN (-0x7fffffff) /* lines of code that a program makes itself may be anything */

/* Kinds of 3.11's entries; those below are short ones, which stay on their line. */
#define ONE_LINE_FIRST 10u
#define NO_COLUMNS 13u
#define LONG_FORM 14u
#define NO_LOCATION 15u

void python_lines_start(struct python_line_cursor *c, const struct python_line_table *table)
{
	*c = (struct python_line_cursor){ .table = table, .line = table->first_line };
}

static bool fail(struct python_line_cursor *c)
{
	c->malformed = true;
	return false;
}

/* The range from the cursor over bytes of code; an empty one is none. */
static bool make_range(struct python_line_cursor *c, uint64_t bytes, int64_t line, struct python_line_range *range)
{
	uint64_t start = c->address, end = start + bytes;

	if (end > c->table->code_bytes || line > LINE_MAX_ || line < LINE_MIN)
		return fail(c);
	c->address = end;
	*range = (struct python_line_range){ (uint32_t)start, (uint32_t)end, (int32_t)line };
	return true;
}

static bool next_lnotab(struct python_line_cursor *c, struct python_line_range *range)
{
	const struct python_line_table *t = c->table;

	if (c->at == t->count)
		return make_range(c, t->code_bytes - c->address, c->line, range);
	if (t->count - c->at < 2)
		return fail(c);
	/* Tables of 3.9 may reach a little beyond code that was optimised away. */
	uint64_t bytes = t->bytes[c->at], left = t->code_bytes - c->address;
	if (!make_range(c, bytes < left ? bytes : left, c->line, range))
		return false;
	c->line += (int8_t)t->bytes[c->at + 1];
	c->at += 2;
	return true;
}

static bool next_linetable(struct python_line_cursor *c, struct python_line_range *range)
{
	const struct python_line_table *t = c->table;

	if (t->count - c->at < 2)
		return fail(c);
	int8_t delta = (int8_t)t->bytes[c->at + 1];
	if (delta != INT8_MIN)
		c->line += delta;
	uint64_t bytes = t->bytes[c->at];
	c->at += 2;
	return make_range(c, bytes, delta == INT8_MIN ? PYTHON_NO_LINE : c->line, range);
}

/* Six bits a byte, the lowest first; bit 6: more follow. Then the lowest bit is the sign. */
static bool signed_number(struct python_line_cursor *c, int64_t *value)
{
	const struct python_line_table *t = c->table;
	uint64_t number = 0;

	for (unsigned shift = 0; shift < 36; shift += 6) {
		if (c->at == t->count || t->bytes[c->at] & 0x80)
			return fail(c);
		uint8_t byte = t->bytes[c->at++];
		number |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40)) {
			*value = number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
			return true;
		}
	}
	return fail(c);
}

static bool next_location(struct python_line_cursor *c, struct python_line_range *range)
{
	const struct python_line_table *t = c->table;
	uint8_t head = t->bytes[c->at++];
	unsigned kind = head >> 3 & 15;
	int64_t delta = 0;

	if (!(head & 0x80))
		return fail(c);
	if ((kind == LONG_FORM || kind == NO_COLUMNS) && !signed_number(c, &delta))
		return false;
	if (kind >= ONE_LINE_FIRST && kind < NO_COLUMNS)
		delta = kind - ONE_LINE_FIRST;
	while (c->at < t->count && !(t->bytes[c->at] & 0x80)) /* columns, and the last line */
		c->at++;
	c->line += delta;
	return make_range(c, ((head & 7u) + 1) * UNIT_BYTES, kind == NO_LOCATION ? PYTHON_NO_LINE : c->line, range);
}

bool python_lines_next(struct python_line_cursor *c, struct python_line_range *range)
{
	const struct python_line_table *t = c->table;

	do {
		bool more = c->at < t->count || (t->format == DUMP_LINES_LNOTAB && c->address < t->code_bytes);
		if (c->malformed || !more)
			return false;
		bool made = t->format == DUMP_LINES_LNOTAB      ? next_lnotab(c, range)
		            : t->format == DUMP_LINES_LINETABLE ? next_linetable(c, range)
		                                                : next_location(c, range);
		if (!made)
			return false;
	} while (range->start == range->end);
	return true;
}

int python_lines_find(const struct python_line_table *table, int64_t offset, int32_t *line)
{
	struct python_line_cursor c;
	struct python_line_range range;
	int32_t found = table->first_line;
	bool covered = offset < 0;

	python_lines_start(&c, table);
	while (python_lines_next(&c, &range))
		if (offset >= range.start && offset < range.end) {
			found = range.line;
			covered = true;
		}
	if (c.malformed || !covered)
		return -1;
	*line = found;
	return 0;
}
