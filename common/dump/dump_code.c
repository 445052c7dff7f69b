/* SPDX-License-Identifier: MIT */
#include "dump/dump_code.h"

#include <string.h>

#include "dump/dump_internal.h"
#include "dump/python_lines.h"

#define KNOWN_FLAGS (DUMP_STACK_CODE | DUMP_CODE_NAME_CUT | DUMP_CODE_FILE_CUT | DUMP_CODE_TABLE_CUT)
#define INSTEAD 0xfffdu
#define ELLIPSIS 0x2026u

static bool is_text(uint16_t bytes, uint8_t width, uint32_t limit)
{
	return (width == 1 || width == 2 || width == 4) && bytes % width == 0 && bytes <= limit;
}

static bool holds_together(const struct dump_code *c)
{
	return c->hash && c->flags & DUMP_STACK_CODE && !(c->flags & ~KNOWN_FLAGS) &&
	       c->lines <= DUMP_LINES_LOCATIONS && is_text(c->name_bytes, c->name_width, DUMP_CODE_NAME_MAX) &&
	       is_text(c->file_bytes, c->file_width, DUMP_CODE_FILE_MAX) && c->table_bytes <= DUMP_CODE_TABLE_MAX &&
	       (uint32_t)c->name_bytes + c->file_bytes + c->table_bytes == c->data_bytes;
}

int dump_read_code(struct dump *dump, uint32_t reference, struct dump_code_copy *copy)
{
	uint64_t offset, room = dump_stack_place(dump, reference, &offset);
	struct dump_code *code = &copy->code;

	if (room < sizeof *code || dump_read(dump, offset, code, sizeof *code) != sizeof *code ||
	    !holds_together(code) || code->data_bytes > room - sizeof *code ||
	    dump_read(dump, offset + sizeof *code, copy->data, code->data_bytes) != code->data_bytes) {
		dump_skip(dump, DUMP_SKIP_code);
		return -EPROTO;
	}
	return 0;
}

static char *put_character(char *out, uint32_t c)
{
	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = INSTEAD;
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

static void put_text(char *out, const uint8_t *characters, uint32_t bytes, uint8_t width, bool cut)
{
	for (uint32_t at = 0; at < bytes; at += width) {
		uint32_t c = 0;
		memcpy(&c, characters + at, width); /* little-endian, as the dump */
		out = put_character(out, c);
	}
	if (cut)
		out = put_character(out, ELLIPSIS);
	*out = 0;
}

void dump_code_name(const struct dump_code_copy *copy, char text[DUMP_CODE_NAME_TEXT])
{
	const struct dump_code *c = &copy->code;

	put_text(text, copy->data, c->name_bytes, c->name_width, c->flags & DUMP_CODE_NAME_CUT);
}

void dump_code_file(const struct dump_code_copy *copy, char text[DUMP_CODE_FILE_TEXT])
{
	const struct dump_code *c = &copy->code;

	put_text(text, copy->data + c->name_bytes, c->file_bytes, c->file_width, c->flags & DUMP_CODE_FILE_CUT);
}

int32_t dump_code_line(const struct dump_code_copy *copy, int32_t offset)
{
	const struct dump_code *c = &copy->code;
	const struct python_line_table table = { .format = (enum dump_lines)c->lines,
		                                 .first_line = c->first_line,
		                                 .code_bytes = c->code_bytes,
		                                 .bytes = copy->data + c->name_bytes + c->file_bytes,
		                                 .count = c->table_bytes };
	int32_t line = c->first_line;

	if (offset >= 0 &&
	    (c->lines == DUMP_LINES_NONE || c->flags & DUMP_CODE_TABLE_CUT || python_lines_find(&table, offset, &line)))
		return 0;
	return line > 0 ? line : 0;
}
