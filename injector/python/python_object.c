/* SPDX-License-Identifier: MIT */
#include "python/python_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HEAD_MAX 256u                 /* bytes of a structure that are read at once */
#define CODE_BYTES_MAX (256u << 20)   /* of one code object */
#define TABLE_BYTES_MAX (16u << 20)   /* of one table of lines */
#define STRING_CHARS_MAX (1ull << 40) /* what a length may claim; only the first characters are read */
#define ELLIPSIS "\xe2\x80\xa6"

static const struct {
	const char *name, *symbol;
} kinds[PYTHON_KINDS] = {
	[PYTHON_CODE] = { "code", "PyCode_Type" },    [PYTHON_STR] = { "str", "PyUnicode_Type" },
	[PYTHON_BYTES] = { "bytes", "PyBytes_Type" }, [PYTHON_FRAME] = { "frame", "PyFrame_Type" },
	[PYTHON_NONE] = { "NoneType", NULL },         [PYTHON_DICT] = { "dict", "PyDict_Type" },
	[PYTHON_LIST] = { "list", "PyList_Type" },
};

/* A value at an offset of a structure that was read. */
static uint64_t word_at(const uint8_t *head, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, head + offset, sizeof word);
	return word;
}

static int32_t int_at(const uint8_t *head, uint32_t offset)
{
	int32_t value;

	memcpy(&value, head + offset, sizeof value);
	return value;
}

/* ---- types ---- */

/* Whether modules export the symbol, none of them at this address. */
static bool is_another(const struct python_view *v, uint64_t type, const char *symbol)
{
	bool exported = false;
	struct elf_symbol s;

	for (size_t i = 0; symbol && i < v->modules->count; i++)
		if (elf_module_find(&v->modules->list[i], symbol, NULL, &s)) {
			if (s.address == type)
				return false;
			exported = true;
		}
	return exported;
}

static bool is_named(const struct python_view *v, uint64_t type, const char *name)
{
	char text[16];
	uint64_t at;
	const struct elf_module *m = modules_find(v->modules, type, false);

	return m && elf_module_holds(m, type, v->release->type_name + 8, PF_W) &&
	       target_read_u64(&v->memory, type + v->release->type_name, &at, ERR_IGNORED) == 0 &&
	       target_read_string(&v->memory, at, text, sizeof text, ERR_IGNORED) == 0 && !strcmp(text, name);
}

int python_type_check(struct python_view *v, uint64_t type, enum python_kind kind, struct err *e)
{
	uint64_t meta = 0, own = 0;
	uint32_t of_object = v->release->frames.object_type;

	if (v->types[kind] && type == v->types[kind])
		return 0;
	if (v->types[kind] || !is_named(v, type, kinds[kind].name) || is_another(v, type, kinds[kind].symbol) ||
	    target_read_u64(&v->memory, type + of_object, &meta, e) || !is_named(v, meta, "type") ||
	    target_read_u64(&v->memory, meta + of_object, &own, e) || own != meta) {
		int rc = budget_check(v->memory.budget, e);
		return rc ?: err_set(e, EINVAL, "0x%" PRIx64 " is not the type %s", type, kinds[kind].name);
	}
	v->types[kind] = type;
	return 0;
}

int python_object_check(struct python_view *v, uint64_t address, enum python_kind kind, struct err *e)
{
	uint64_t type;

	int rc = target_read_u64(&v->memory, address + v->release->frames.object_type, &type, e);
	return rc ?: python_type_check(v, type, kind, e);
}

/* ---- str ---- */

static char *put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (char)c;
		return out;
	}
	if (c >= 0x800)
		*out++ = (char)(c >= 0x10000 ? 0xf0 | c >> 18 : 0xe0 | c >> 12);
	if (c >= 0x10000)
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
	*out++ = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
	*out++ = (char)(0x80 | (c & 0x3f));
	return out;
}

/* Bytes of characters of width bytes as UTF-8; false: not what a str can hold. */
static bool to_utf8(char *out, const uint8_t *bytes, size_t chars, unsigned width, bool ascii)
{
	for (size_t i = 0; i < chars; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * width, width);
		if (c > 0x10ffff || (ascii && c > 0x7f))
			return false;
		if (c == 0 || (c >= 0xd800 && c < 0xe000))
			c = 0xfffd; /* a text of ours ends at NUL, and UTF-8 has no lone surrogates */
		out = put_utf8(out, c);
	}
	*out = '\0';
	return true;
}

/* *all: characters that it has. */
static int read_string(struct python_view *v, uint64_t address, char *text, size_t chars, uint64_t *all, struct err *e)
{
	const struct python_release *r = v->release;
	uint8_t head[HEAD_MAX], bytes[4 * PYTHON_FILE_CHARS];

	int rc = target_read(&v->memory, address, head, r->string_state + 4, e);
	rc = rc ?: python_type_check(v, word_at(head, r->frames.object_type), PYTHON_STR, e);
	if (rc)
		return rc;
	uint64_t length = word_at(head, r->string_length);
	uint32_t state = (uint32_t)int_at(head, r->string_state);
	uint32_t width = (state & r->string_kind) / (r->string_kind & -r->string_kind);
	bool ascii = state & r->string_ascii;
	size_t shown = length < chars ? length : chars;
	if (!(state & r->string_compact) || (width != 1 && width != 2 && width != 4) || (ascii && width != 1) ||
	    length > STRING_CHARS_MAX || shown * width > sizeof bytes)
		return err_set(e, EINVAL, "the str at 0x%" PRIx64 " has flags or a length that no str has", address);
	rc = target_read(&v->memory, address + (ascii ? r->string_ascii_data : r->string_wide_data), bytes,
	                 shown * width, e);
	if (rc)
		return rc;
	if (!to_utf8(text, bytes, shown, width, ascii))
		return err_set(e, EINVAL, "the str at 0x%" PRIx64 " has characters that no str has", address);
	*all = length;
	return 0;
}

int python_string_read(struct python_view *v, uint64_t address, char *text, size_t chars, struct err *e)
{
	uint64_t all;

	int rc = read_string(v, address, text, chars, &all, e);
	if (rc == 0 && chars < all)
		strcat(text, ELLIPSIS);
	return rc;
}

int python_string_whole(struct python_view *v, uint64_t address, char *text, size_t chars, struct err *e)
{
	uint64_t all;

	int rc = read_string(v, address, text, chars, &all, e);
	return rc || all <= chars ? rc : err_set(e, EINVAL, "the str at 0x%" PRIx64 " is too long", address);
}

/* ---- bytes ---- */

static int bytes_size(struct python_view *v, uint64_t address, uint64_t limit, uint64_t *size, struct err *e)
{
	const struct python_frame_layout *l = &v->release->frames;

	int rc = python_object_check(v, address, PYTHON_BYTES, e);
	rc = rc ?: target_read_u64(&v->memory, address + l->bytes_size, size, e);
	if (rc == 0 && *size > limit)
		rc = err_set(e, EINVAL, "the bytes object at 0x%" PRIx64 " is larger than %" PRIu64 " bytes", address,
		             limit);
	return rc;
}

/* ---- code objects ---- */

int python_code_read(struct python_view *v, uint64_t address, struct python_code *code, struct err *e)
{
	const struct python_release *r = v->release;
	const struct python_frame_layout *l = &r->frames;
	uint8_t head[HEAD_MAX];
	uint64_t units = 0;

	int rc = target_read(&v->memory, address, head, r->code_bytes, e);
	rc = rc ?: python_type_check(v, word_at(head, l->object_type), PYTHON_CODE, e);
	if (rc)
		return rc;
	bool inside = l->code_units != PYTHON_ABSENT; /* the code is a part of the object */
	if (inside)
		units = word_at(head, l->code_units) * 2;
	else
		rc = bytes_size(v, word_at(head, l->code_start), CODE_BYTES_MAX, &units, e);
	if (rc)
		return rc;
	if (units == 0 || units > CODE_BYTES_MAX || units % 2)
		return err_set(e, EINVAL, "the code object at 0x%" PRIx64 " has a length that no code has", address);
	*code = (struct python_code){
		.address = address,
		.start = inside ? address + l->code_start : 0,
		.bytes = (uint32_t)units,
		.first_line = int_at(head, r->code_first_line),
		.first_traceable = l->first_traceable != PYTHON_ABSENT ? int_at(head, l->first_traceable) : 0,
		.name = word_at(head, r->code_name),
		.qualified_name = r->code_qualname != PYTHON_ABSENT ? word_at(head, r->code_qualname) : 0,
		.file = word_at(head, r->code_filename),
		.lines = word_at(head, r->code_lines),
	};
	return 0;
}

static int line_of(struct python_view *v, const struct python_code *code, int64_t offset, int32_t *line, struct err *e)
{
	uint64_t size;

	int rc = bytes_size(v, code->lines, TABLE_BYTES_MAX, &size, e);
	rc = rc ?: budget_fits(v->memory.budget, size, e);
	if (rc)
		return rc;
	AUTO_FREE uint8_t *bytes = malloc(size + 1);
	if (!bytes)
		return err_set(e, ENOMEM, "no memory for a table of lines");
	rc = target_read(&v->memory, code->lines + v->release->frames.bytes_data, bytes, size, e);
	if (rc)
		return rc;
	struct python_line_table t = { v->release->lines, code->first_line, code->bytes, bytes, size };
	if (python_lines_find(&t, offset, line))
		return err_set(e, EINVAL, "the table of lines at 0x%" PRIx64 " has no line for byte %lld of the code",
		               code->lines, (long long)offset);
	return 0;
}

int python_code_place(struct python_view *v, const struct python_code *code, int64_t offset, struct python_place *place,
                      struct err *e)
{
	int rc = python_string_read(v, code->name, place->function, PYTHON_NAME_CHARS, e);

	if (rc == 0 && code->qualified_name)
		rc = python_string_read(v, code->qualified_name, place->function, PYTHON_NAME_CHARS, e);
	rc = rc ?: python_string_read(v, code->file, place->file, PYTHON_FILE_CHARS, e);
	return rc ?: line_of(v, code, offset, &place->line, e);
}
