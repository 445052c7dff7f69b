/* SPDX-License-Identifier: MIT */
#include "java/java_method.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ACCESS_NATIVE 0x100u /* of the class file format */
#define METHODS_MAX 65536u   /* of a class, by its format */
#define LINES_BYTES_MAX (1u << 20)
#define LINES_END 0u
#define LINES_LONG 0xffu /* two numbers follow: differences of bytecode index and line */
#define ELLIPSIS "\xe2\x80\xa6"

/* ---- methods ---- */

static int no_method(uint64_t address, const char *why, struct err *e)
{
	return err_set(e, EINVAL, "0x%" PRIx64 " is not a Method: %s", address, why);
}

/* Is it in the list of its class? */
static int class_has(struct java_view *v, uint64_t holder, uint64_t method, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t array, count = 0;
	AUTO_FREE uint64_t *list = NULL;

	int rc = java_field_read(&v->memory, holder, &s->class_methods, &array, e);
	rc = rc ?: java_field_read(&v->memory, array, &s->array_length, &count, e);
	if (rc == 0 && (count == 0 || count > METHODS_MAX))
		return no_method(method, "its class has no methods", e);
	rc = rc ?: budget_fits(v->memory.budget, 8 * count, e);
	if (rc)
		return rc;
	list = malloc(8 * count);
	if (!list)
		return err_set(e, ENOMEM, "no memory for the methods of a class");
	rc = target_read(&v->memory, array + s->methods_data.at, list, 8 * count, e);
	for (uint64_t i = 0; rc == 0 && i < count; i++)
		if (list[i] == method)
			return 0;
	return rc ?: no_method(method, "its class does not have it", e);
}

int java_method_read(struct java_view *v, uint64_t address, int32_t bci, struct java_method *m, struct err *e)
{
	const struct java_structures *s = &v->s;
	struct java_method new = { .address = address };
	uint64_t access, code_bytes;

	int rc = java_field_read(&v->memory, address, &s->method_const, &new.constant, e);
	rc = rc ?: java_field_read(&v->memory, address, &s->method_access, &access, e);
	rc = rc ?: java_field_read(&v->memory, new.constant, &s->const_pool, &new.pool, e);
	rc = rc ?: java_field_read(&v->memory, new.constant, &s->const_code_bytes, &code_bytes, e);
	rc = rc ?: java_field_read(&v->memory, new.pool, &s->pool_holder, &new.holder, e);
	rc = rc ?: class_has(v, new.holder, address, e);
	if (rc)
		return rc;
	new.native = access &ACCESS_NATIVE;
	new.code = new.constant + s->bytes.const_method;
	new.code_bytes = (uint32_t)code_bytes;
	if (bci < -1 || (bci > 0 && (uint32_t)bci >= new.code_bytes))
		return no_method(address, "it does not have that bytecode", e);
	*m = new;
	return 0;
}

/* ---- names ---- */

/* A Symbol is UTF-8 but for NUL and what is beyond 0xffff, which become U+FFFD as other bytes do that text has not. */
static int symbol_read(struct java_view *v, uint64_t symbol, char *text, size_t size, struct err *e)
{
	uint64_t bytes;

	symbol &= ~1ull; /* a pool's mark */
	int rc = java_field_read(&v->memory, symbol, &v->s.symbol_length, &bytes, e);
	if (rc)
		return rc;
	if (bytes == 0)
		return err_set(e, EINVAL, "the Symbol at 0x%" PRIx64 " is empty", symbol);
	bool cut = bytes >= size;
	size_t shown = cut ? size - sizeof ELLIPSIS : bytes;
	rc = target_read(&v->memory, symbol + v->s.symbol_text.at, text, shown, e);
	if (rc)
		return rc;
	text[shown] = '\0';
	while (cut && shown > 0 && ((uint8_t)text[shown - 1] & 0xc0) == 0x80)
		text[--shown] = '\0'; /* of a character that is cut */
	if (cut)
		memcpy(text + (shown && (uint8_t)text[shown - 1] >= 0xc0 ? shown - 1 : shown), ELLIPSIS,
		       sizeof ELLIPSIS);
	if (strlen(text) < shown || strpbrk(text, "\n\r\t"))
		return err_set(e, EINVAL, "the Symbol at 0x%" PRIx64 " has characters that no name has", symbol);
	return 0;
}

static int pool_symbol(struct java_view *v, const struct java_method *m, uint64_t index, char *text, size_t size,
                       struct err *e)
{
	uint64_t length, symbol = 0;

	int rc = java_field_read(&v->memory, m->pool, &v->s.pool_length, &length, e);
	if (rc == 0 && (index == 0 || index >= length))
		return err_set(e, EINVAL, "the pool at 0x%" PRIx64 " does not have entry %" PRIu64, m->pool, index);
	rc = rc ?: target_read_u64(&v->memory, m->pool + v->s.bytes.pool + 8 * index, &symbol, e);
	return rc ?: symbol_read(v, symbol, text, size, e);
}

/* "java/lang/Thread" is java.lang.Thread; what tells hidden classes apart follows a slash. */
static void class_external(char *name)
{
	for (char *p = name; *p; p++)
		*p = *p == '/' ? '.' : *p == '+' ? '/' : *p;
}

static int function_read(struct java_view *v, const struct java_method *m, struct java_place *place, struct err *e)
{
	char class[JAVA_CLASS_TEXT - 1], name[JAVA_NAME_TEXT];
	uint64_t symbol, index;

	int rc = java_field_read(&v->memory, m->holder, &v->s.class_name, &symbol, e);
	rc = rc ?: symbol_read(v, symbol, class, sizeof class, e);
	rc = rc ?: java_field_read(&v->memory, m->constant, &v->s.const_name, &index, e);
	rc = rc ?: pool_symbol(v, m, index, name, sizeof name, e);
	if (rc)
		return rc;
	class_external(class);
	snprintf(place->function, sizeof place->function, "%s.%s", class, name);
	return 0;
}

static int file_read(struct java_view *v, const struct java_method *m, struct java_place *place, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t index;

	int rc = s->pool_file.bytes ? java_field_read(&v->memory, m->pool, &s->pool_file, &index, e)
	                            : java_field_read(&v->memory, m->holder, &s->class_file, &index, e);
	place->file[0] = '\0';
	return rc || index == 0 ? rc : pool_symbol(v, m, index, place->file, sizeof place->file, e);
}

/* ---- lines ---- */

/* One entry: index and line move on. False: the end, or none. */
static bool line_next(const struct java_view *v, const uint8_t **at, const uint8_t *end, int32_t *bci, int32_t *line)
{
	uint32_t more[2]; /* what leads too far becomes negative */

	if (*at == end || **at == LINES_END)
		return false;
	uint8_t byte = *(*at)++;
	if (byte != LINES_LONG) {
		*bci = (int32_t)((uint32_t)*bci + (byte >> 3));
		*line = (int32_t)((uint32_t)*line + (byte & 7));
		return true;
	}
	if (!java_code_number(v, at, end, &more[0]) || !java_code_number(v, at, end, &more[1]))
		return false;
	*bci = (int32_t)((uint32_t)*bci + (more[0] >> 1 ^ -(more[0] & 1)));
	*line = (int32_t)((uint32_t)*line + (more[1] >> 1 ^ -(more[1] & 1)));
	return true;
}

/* The line of the last entry at or before bci; the first that is exactly there. */
static int line_from(const struct java_view *v, const struct java_method *m, int32_t wanted, const uint8_t *bytes,
                     size_t count, int32_t *found, struct err *e)
{
	const uint8_t *at = bytes, *const end = bytes + count;
	int32_t bci = 0, line = 0, best = 0;

	*found = JAVA_NO_LINE;
	while (line_next(v, &at, end, &bci, &line)) {
		if (bci < 0 || (uint32_t)bci >= m->code_bytes || line < 0)
			return err_set(e, EINVAL, "the Method at 0x%" PRIx64 " has a line outside of it", m->address);
		if (bci > wanted || bci < best)
			continue;
		best = bci;
		*found = line;
		if (bci == wanted)
			return 0;
	}
	return at < end && *at == LINES_END
	               ? 0
	               : err_set(e, EINVAL, "the lines of the Method at 0x%" PRIx64 " have no end", m->address);
}

static int line_read(struct java_view *v, const struct java_method *m, int32_t bci, int32_t *line, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t flags, words;

	*line = JAVA_NO_LINE;
	int rc = java_field_read(&v->memory, m->constant, &s->const_flags, &flags, e);
	rc = rc ?: java_field_read(&v->memory, m->constant, &s->const_words, &words, e);
	if (rc || m->native || !(flags & s->has_lines))
		return rc;
	uint64_t before = s->bytes.const_method + (uint64_t)m->code_bytes, all = 8 * words;
	if (all <= before || all - before > LINES_BYTES_MAX)
		return err_set(e, EINVAL, "the ConstMethod at 0x%" PRIx64 " has no likely size", m->constant);
	AUTO_FREE uint8_t *bytes = malloc(all - before);
	if (!bytes)
		return err_set(e, ENOMEM, "no memory for a table of lines");
	rc = target_read(&v->memory, m->constant + before, bytes, all - before, e);
	return rc ?: line_from(v, m, bci < 0 ? 0 : bci, bytes, all - before, line, e);
}

int java_method_place(struct java_view *v, const struct java_method *m, int32_t bci, struct java_place *place,
                      struct err *e)
{
	int rc = function_read(v, m, place, e);

	rc = rc ?: file_read(v, m, place, e);
	return rc ?: line_read(v, m, bci, &place->line, e);
}
