/* SPDX-License-Identifier: MIT */
#include "say.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "printable.h"

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

void say_line(FILE *f, const char *format, va_list ap)
{
	AUTO_FREE char *text = say_format(format, ap);

	if (text)
		fprintf(f, "%s\n", text);
}

void say_error(int pid, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	AUTO_FREE char *text = say_format(format, ap);
	va_end(ap);
	if (pid)
		fprintf(stderr, "memattach: PID %d: ", pid);
	else
		fputs("memattach: ", stderr);
	fprintf(stderr, "%s\n", text ? text : "no memory for a message");
}

void say_lines(FILE *f, const char *lines)
{
	for (const char *line = lines; line && *line;) {
		size_t length = strcspn(line, "\n");
		AUTO_FREE char *text = strndup(line, length);

		if (text) {
			printable_copy(text, text, length + 1);
			fprintf(f, "%s\n", text);
		}
		line += length + (line[length] == '\n');
	}
}
