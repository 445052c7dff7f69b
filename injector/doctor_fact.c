/* SPDX-License-Identifier: MIT */
#include "doctor_fact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

#define NAME_WIDTH 16

void fact(const char *name, const char *format, ...)
{
	va_list ap;

	printf("%-*s", NAME_WIDTH, name);
	va_start(ap, format);
	say_line(stdout, format, ap);
	va_end(ap);
}

void fact_lines(const char *name, const char *before, const char *text)
{
	for (const char *line = text; line && *line;) {
		int length = (int)strcspn(line, "\n");
		fact(line == text ? name : "", "%s%.*s", before, length, line);
		line += length + (line[length] == '\n');
	}
}
