/* SPDX-License-Identifier: MIT */
#include "host/say.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/line_width.h"
#include "base/printable.h"

#define INDENT 2 /* of what a line that is too wide goes on in */
#define FREE 3
#define ERASE "\r\033[K"

static bool status_is_shown;
static char *kept_error;
static size_t kept_error_size;

static void put(FILE *f, size_t used, size_t indent, const char *text)
{
	if (f == stderr)
		say_status(NULL);
	line_width_put(f, used, indent, text);
}

char *say_format(const char *format, va_list ap)
{
	char *text;

	if (vasprintf(&text, format, ap) < 0)
		return NULL;
	printable_copy(text, text, strlen(text) + 1);
	return text;
}

bool say_add_line(char **lines, const char *format, va_list ap)
{
	AUTO_FREE char *line = say_format(format, ap);
	char *all = NULL;

	if (!line || asprintf(&all, "%s%s\n", *lines ? *lines : "", line) < 0)
		return false;
	free(*lines);
	*lines = all;
	return true;
}

void say_line(FILE *f, size_t used, const char *format, va_list ap)
{
	AUTO_FREE char *text = say_format(format, ap);

	if (text)
		put(f, used, used ? used : INDENT, text);
}

void say_unless(bool quiet, const char *format, ...)
{
	va_list ap;

	if (quiet)
		return;
	va_start(ap, format);
	say_line(stderr, 0, format, ap);
	va_end(ap);
}

void say_error(int pid, const char *format, ...)
{
	char from[32] = "";
	va_list ap;

	va_start(ap, format);
	AUTO_FREE char *text = say_format(format, ap);
	va_end(ap);
	if (kept_error && text) {
		snprintf(kept_error, kept_error_size, "%s", text);
		return;
	}
	if (pid)
		snprintf(from, sizeof from, "PID %d: ", pid);
	AUTO_FREE char *line = NULL;
	if (!text || asprintf(&line, "memattach: %s%s", from, text) < 0)
		line = NULL;
	put(stderr, 0, INDENT, line ? line : "memattach: no memory for a message");
}

void say_keep_errors(char *text, size_t size)
{
	kept_error = text;
	kept_error_size = size;
}

void say_lines(FILE *f, const char *lines)
{
	for (const char *line = lines; line && *line;) {
		size_t length = strcspn(line, "\n");
		AUTO_FREE char *text = strndup(line, length);

		if (text) {
			printable_copy(text, text, length + 1);
			put(f, 0, INDENT, text);
		}
		line += length + (line[length] == '\n');
	}
}

/*
 * Of the last columns one stays free because some terminals go on in the next line as soon as it is written, two
 * because they show Ctrl-C as ^C.
 */
size_t say_status_width(void)
{
	size_t columns = line_width(STDERR_FILENO);

	return columns > FREE ? columns - FREE : 1;
}

void say_status(const char *text)
{
	if (text)
		fprintf(stderr, ERASE "%.*s", (int)line_width_fit(text, say_status_width()), text);
	else if (status_is_shown)
		fputs(ERASE, stderr);
	fflush(stderr);
	status_is_shown = text != NULL;
}
