/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

/* What "%.17g" and PRIu64 write at most, with the NUL. */
#define NUMBER_TEXT 32
/* Doubles without a fraction are exact below this. */
#define WHOLE_MAX 0x1p53

/* Objects deeper than this are on one line each, without spaces: figures and frames. There are many of them. */
#define INLINE_DEPTH 3

static void flush(struct json *j)
{
	fwrite(j->buffer, 1, j->used, j->out);
	j->used = 0;
}

static void put(struct json *j, const char *text, size_t length)
{
	if (length > sizeof j->buffer - j->used) {
		flush(j);
		if (length > sizeof j->buffer) {
			fwrite(text, 1, length, j->out);
			return;
		}
	}
	memcpy(j->buffer + j->used, text, length);
	j->used += length;
}

static void put_char(struct json *j, char c)
{
	if (j->used == sizeof j->buffer)
		flush(j);
	j->buffer[j->used++] = c;
}

#define PUT_LITERAL(j, text) put(j, text, sizeof(text) - 1)

static bool is_open(const struct json *j)
{
	if (j->lines >> j->depth & 1)
		return false;
	return j->depth && (j->depth <= INLINE_DEPTH || j->arrays >> j->depth & 1);
}

static void new_line(struct json *j, int depth)
{
	put_char(j, '\n');
	for (int i = 0; i < depth; i++)
		PUT_LITERAL(j, "  ");
}

/* How many bytes from s on go out as they are. */
static size_t plain_run(const struct json *j, const unsigned char *s)
{
	size_t n = 0;

	for (size_t each;; n += each) {
		while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\' && !(s[n] == '<' && j->in_markup))
			n++;
		each = printable_sequence(s + n);
		if (each < 2 || !printable_is_shown(s + n, each))
			return n;
	}
}

static void put_escape(struct json *j, uint32_t unit)
{
	char text[8];

	put(j, text, (size_t)snprintf(text, sizeof text, "\\u%04x", (unsigned)unit & 0xffff));
}

/* A character that does not go out as it is; returns how many bytes it has. */
static size_t put_special(struct json *j, const unsigned char *s)
{
	size_t length = printable_sequence(s);
	uint32_t c = length ? printable_code_point(s, length) : 0xfffd;

	if (c == '"' || c == '\\') {
		put_char(j, '\\');
		put_char(j, (char)c);
	} else if (c < 0x10000) {
		put_escape(j, c);
	} else {
		put_escape(j, 0xd800 + ((c - 0x10000) >> 10));
		put_escape(j, 0xdc00 + (c & 0x3ff));
	}
	return length ? length : 1;
}

static void quote(struct json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put_char(j, '"');
	for (;;) {
		size_t run = plain_run(j, s);
		put(j, (const char *)s, run);
		s += run;
		if (!*s)
			break;
		s += put_special(j, s);
	}
	put_char(j, '"');
}

static void separate(struct json *j, const char *name)
{
	if (j->filled)
		put_char(j, ',');
	bool open = is_open(j);
	if (open)
		new_line(j, j->depth);
	j->filled = true;
	if (!name)
		return;
	put_char(j, '"');
	put(j, name, strlen(name));
	PUT_LITERAL(j, "\":");
	if (open)
		put_char(j, ' ');
}

/* A value that no container holds is all there is. */
static void end_value(struct json *j)
{
	if (!j->depth)
		flush(j);
}

static void begin(struct json *j, const char *name, char bracket, bool line)
{
	separate(j, name);
	put_char(j, bracket);
	j->depth++;
	j->arrays = (j->arrays & ~(1ull << j->depth)) | (uint64_t)(bracket == '[') << j->depth;
	j->lines = (j->lines & ~(1ull << j->depth)) | (uint64_t)line << j->depth;
	j->filled = false;
}

static void end(struct json *j, char bracket)
{
	if (j->filled && is_open(j))
		new_line(j, j->depth - 1);
	j->depth--;
	put_char(j, bracket);
	j->filled = true;
	if (!j->depth)
		put_char(j, '\n');
	end_value(j);
}

void json_object(struct json *j, const char *name)
{
	begin(j, name, '{', false);
}

void json_object_line(struct json *j, const char *name)
{
	begin(j, name, '{', true);
}

void json_object_end(struct json *j)
{
	end(j, '}');
}

void json_array(struct json *j, const char *name)
{
	begin(j, name, '[', false);
}

void json_array_line(struct json *j, const char *name)
{
	begin(j, name, '[', true);
}

void json_array_end(struct json *j)
{
	end(j, ']');
}

void json_string(struct json *j, const char *name, const char *value)
{
	separate(j, name);
	if (value)
		quote(j, value);
	else
		PUT_LITERAL(j, "null");
	end_value(j);
}

/* The shorter of two forms that reads back as the same number. The program never leaves the locale "C". */
static int format_double(double value, char text[NUMBER_TEXT])
{
	if (value == floor(value) && fabs(value) < WHOLE_MAX)
		return snprintf(text, NUMBER_TEXT, "%.0f", value);
	int n = snprintf(text, NUMBER_TEXT, "%.15g", value);
	return strtod(text, NULL) == value ? n : snprintf(text, NUMBER_TEXT, "%.17g", value);
}

static void put_number(struct json *j, const char *name, double value, int (*format)(double, char[NUMBER_TEXT]))
{
	char text[NUMBER_TEXT];

	separate(j, name);
	if (isfinite(value))
		put(j, text, (size_t)format(value, text));
	else
		PUT_LITERAL(j, "null");
	end_value(j);
}

void json_number(struct json *j, const char *name, double value)
{
	put_number(j, name, value, format_double);
}

static int format_estimate(double value, char text[NUMBER_TEXT])
{
	if (value == floor(value) && fabs(value) < WHOLE_MAX)
		return snprintf(text, NUMBER_TEXT, "%.0f", value);
	return snprintf(text, NUMBER_TEXT, "%.10g", value);
}

void json_estimate(struct json *j, const char *name, double value)
{
	put_number(j, name, value, format_estimate);
}

void json_unsigned(struct json *j, const char *name, uint64_t value)
{
	char text[NUMBER_TEXT];

	separate(j, name);
	put(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
	end_value(j);
}

void json_hex(struct json *j, const char *name, uint64_t value)
{
	char text[NUMBER_TEXT];

	separate(j, name);
	put(j, text, (size_t)snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", value));
	end_value(j);
}

void json_flag(struct json *j, const char *name, bool value)
{
	if (value)
		json_bool(j, name, true);
}

void json_bool(struct json *j, const char *name, bool value)
{
	separate(j, name);
	if (value)
		PUT_LITERAL(j, "true");
	else
		PUT_LITERAL(j, "false");
	end_value(j);
}
