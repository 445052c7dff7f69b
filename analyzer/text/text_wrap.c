/* SPDX-License-Identifier: MIT */
#include "text/text_wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ESCAPE '\033'
#define HANG_MOST 16u /* text begins at this column at the latest, where a label and blanks stand before it */
#define HANG_MORE 4u

struct wrap {
	FILE *out;
	size_t columns;
	char *line;
	size_t used;
};

/* The bytes of the character at text, or of a sequence that colours, which has no column. */
static size_t step(const char *text, const char *end, size_t *columns)
{
	const char *s = text + 1;

	if (*text == ESCAPE) {
		while (s < end && s[-1] != 'm')
			s++;
		return (size_t)(s - text);
	}
	while (s < end && ((unsigned char)*s & 0xc0) == 0x80)
		s++;
	++*columns;
	return (size_t)(s - text);
}

/* Where the next lines of this one begin: below what stands behind its label, else some columns further in. */
static size_t hang_of(const char *line, const char *end)
{
	size_t first = 0, columns = 0, blanks = 0;

	while (line + first < end && line[first] == ' ')
		first++;
	for (const char *s = line + first; s < end && columns + first <= HANG_MOST;) {
		if (*s != ' ' && *s != ESCAPE && blanks >= 2)
			return first + columns;
		blanks = *s == ' ' ? blanks + 1 : *s == ESCAPE ? blanks : 0;
		s += step(s, end, &columns);
	}
	return first + HANG_MORE;
}

/* The bytes that fit, to a blank; all of them if there is none. */
static size_t fitting(const char *text, const char *end, size_t used, size_t most)
{
	const char *blank = NULL;
	bool word = false;

	for (const char *s = text; s < end;) {
		if (*s == ' ' && word && !(s[-1] >= '0' && s[-1] <= '9')) /* a number has its unit behind it */
			blank = s;
		word = word || *s != ' ';
		s += step(s, end, &used);
		if (used > most && blank)
			return (size_t)(blank - text);
	}
	return (size_t)(end - text);
}

static void put_line(const struct wrap *w, const char *line, const char *end)
{
	size_t hang = hang_of(line, end), used = 0;

	if (hang * 2 > w->columns)
		hang = HANG_MORE;
	for (;;) {
		size_t n = fitting(line, end, used, w->columns), bare = n;
		while (line + n < end && bare && line[bare - 1] == ' ') /* before a break */
			bare--;
		fprintf(w->out, "%*s", (int)used, "");
		fwrite(line, 1, bare, w->out);
		putc('\n', w->out);
		for (line += n; line < end && *line == ' ';)
			line++;
		if (line >= end)
			return;
		used = hang;
	}
}

static ssize_t take(void *cookie, const char *text, size_t bytes)
{
	struct wrap *w = cookie;

	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '\n') {
			put_line(w, w->line, w->line + w->used);
			w->used = 0;
		} else if (!grow_list(w->line, w->used)) {
			return 0;
		} else {
			w->line[w->used++] = text[i];
		}
	}
	return (ssize_t)bytes;
}

static int finish(void *cookie)
{
	struct wrap *w = cookie;

	fwrite(w->line, 1, w->used, w->out);
	free(w->line);
	free(w);
	return 0;
}

FILE *text_wrap_open(FILE *out, size_t columns)
{
	const cookie_io_functions_t io = { .write = take, .close = finish };
	struct wrap *w = calloc(1, sizeof *w);
	FILE *stream;

	if (!w)
		return NULL;
	*w = (struct wrap){ .out = out, .columns = columns };
	stream = fopencookie(w, "w", io);
	if (!stream)
		free(w);
	return stream;
}
