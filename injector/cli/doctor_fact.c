/* SPDX-License-Identifier: MIT */
#include "cli/doctor_fact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/line_width.h"
#include "host/say.h"

#define NAME_WIDTH 16

void doctor_fact(const char *name, const char *format, ...)
{
	va_list ap;
	int used = printf("%-*s", NAME_WIDTH, name);

	va_start(ap, format);
	say_line(stdout, used > 0 ? (size_t)used : 0, format, ap);
	va_end(ap);
}

void doctor_fact_lines(const char *name, const char *before, const char *text)
{
	for (const char *line = text; line && *line;) {
		int length = (int)strcspn(line, "\n");
		doctor_fact(line == text ? name : "", "%s%.*s", before, length, line);
		line += length + (line[length] == '\n');
	}
}

void doctor_fact_heading(const char *text)
{
	putchar('\n');
	line_width_put(stdout, 0, 2, text);
}
