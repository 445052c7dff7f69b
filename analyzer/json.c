/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "utf8.h"

/* Objects deeper than this stand on one line each: figures and frames. */
#define INLINE_DEPTH 3

static bool is_open(const struct json *j)
{
	return j->depth && (j->depth <= INLINE_DEPTH || j->arrays >> j->depth & 1);
}

static void new_line(struct json *j, int depth)
{
	fprintf(j->out, "\n%*s", 2 * depth, "");
}

static void quote(struct json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	const unsigned char *run = s; /* what goes out as it is */

	putc_unlocked('"', j->out);
	for (size_t n; *s; s += n ? n : 1) {
		n = utf8_length(s);
		if (n > 1 || (n == 1 && *s >= 0x20 && *s != '"' && *s != '\\' && *s != 0x7f))
			continue;
		fwrite(run, 1, (size_t)(s - run), j->out);
		if (!n)
			fputs("\\ufffd", j->out);
		else
			fprintf(j->out, *s == '"' || *s == '\\' ? "\\%c" : "\\u%04x", *s);
		run = s + 1;
	}
	fwrite(run, 1, (size_t)(s - run), j->out);
	putc_unlocked('"', j->out);
}

static void separate(struct json *j, const char *name)
{
	if (j->filled)
		putc_unlocked(',', j->out);
	if (is_open(j))
		new_line(j, j->depth);
	else if (j->filled)
		putc_unlocked(' ', j->out);
	j->filled = true;
	if (name) {
		quote(j, name);
		fputs(": ", j->out);
	}
}

static void begin(struct json *j, const char *name, char bracket)
{
	separate(j, name);
	putc_unlocked(bracket, j->out);
	j->depth++;
	j->arrays = (j->arrays & ~(1ull << j->depth)) | (uint64_t)(bracket == '[') << j->depth;
	j->filled = false;
}

static void end(struct json *j, char bracket)
{
	if (j->filled && is_open(j))
		new_line(j, j->depth - 1);
	j->depth--;
	putc_unlocked(bracket, j->out);
	j->filled = true;
	if (!j->depth)
		putc_unlocked('\n', j->out);
}

void json_object(struct json *j, const char *name)
{
	begin(j, name, '{');
}

void json_object_end(struct json *j)
{
	end(j, '}');
}

void json_array(struct json *j, const char *name)
{
	begin(j, name, '[');
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
		fputs("null", j->out);
}

void json_number(struct json *j, const char *name, double value)
{
	char text[40];

	separate(j, name);
	if (!isfinite(value)) {
		fputs("null", j->out);
		return;
	}
	if (value == floor(value) && fabs(value) < 9007199254740992.0) {
		fprintf(j->out, "%.0f", value);
		return;
	}
	/* The shortest that reads back as the same number. */
	snprintf(text, sizeof text, "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof text, "%.17g", value);
	fputs(text, j->out);
}

void json_unsigned(struct json *j, const char *name, uint64_t value)
{
	separate(j, name);
	fprintf(j->out, "%" PRIu64, value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	separate(j, name);
	fputs(value ? "true" : "false", j->out);
}
