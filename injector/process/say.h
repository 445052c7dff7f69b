/* SPDX-License-Identifier: MIT */
/*
 * The one way of text to a terminal, a receipt or a note: names of threads, files, modules and functions, and messages
 * of the target's loader are its own choice, and may hold escape sequences, newlines and bytes that are no UTF-8. Each
 * function makes one line of what it is given.
 */
#ifndef MEMATTACH_SAY_H
#define MEMATTACH_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* printf as one printable line (printable.h) without its newline, malloc'ed; NULL: no memory. */
char *say_format(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
/* Adds such a line, with a newline, to *lines, malloc'ed or NULL. False: no memory, *lines is as before. */
bool say_add_line(char **lines, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
/* Writes such a line and a newline. */
void say_line(FILE *f, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
/* "memattach: PID 812: …" on stderr; pid 0: none. */
void say_error(int pid, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes text of several lines, which end with a newline, each made printable. */
void say_lines(FILE *f, const char *lines);

#endif
