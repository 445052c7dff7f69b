/* SPDX-License-Identifier: MIT */
/*
 * Lines for people: on a terminal none is wider than the terminal, whose width may change at any time. A message goes
 * on in further lines, and a line that is to be erased is cut: one that has gone on could not be. Each character counts
 * as one column.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define LINE_ANY_WIDTH ((size_t)-1)

/* The columns of the terminal, 80 if it does not say; LINE_ANY_WIDTH: the descriptor is none. */
size_t line_width(int fd);
/* Columns of a UTF-8 text. */
size_t line_width_of(const char *text);
/* How many bytes of the UTF-8 text are in its first columns. */
size_t line_width_fit(const char *text, size_t columns);
/*
 * Writes one line. On a terminal it is broken at blanks, and each further part begins with indent of them; a word is
 * never broken: it may be a path that is to be copied. used: the columns that the line has already.
 */
void line_width_put(FILE *out, size_t used, size_t indent, const char *text);
