/* SPDX-License-Identifier: MIT */
/*
 * The one way of text to a terminal, a receipt or a note: names of threads, files, modules and functions, and messages
 * of the target's loader are its own choice, and may hold escape sequences, newlines and bytes that are no UTF-8. Each
 * function makes one line of what it is given.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* printf as one printable line (printable.h) without its newline, malloc'ed; NULL: no memory. */
char *say_format(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
/* Adds such a line, with a newline, to *lines, malloc'ed or NULL. False: no memory, *lines is as before. */
bool say_add_line(char **lines, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
/* Writes such a line and a newline, and on a terminal several of them where one would be too wide. used: the columns
 * that the line has already, where the further ones begin, too. */
void say_line(FILE *f, size_t used, const char *format, va_list ap) __attribute__((format(printf, 3, 0)));
/* "memattach: PID 812: …" on stderr; pid 0: none. */
void say_error(int pid, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line on stderr for those who want to know. */
void say_unless(bool quiet, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From now on such an error goes to text, which has so many bytes, in the place of the one before; NULL: to stderr. */
void say_keep_errors(char *text, size_t size);
/*
 * On stderr, which has to be a terminal: a line that says how things are, cut to the terminal's width. It is there
 * until another one takes its place, or until one of these functions says something; NULL: wipes it.
 */
void say_status(const char *text);
/* The columns that it may have. */
size_t say_status_width(void);
/* Writes text of several lines, which end with a newline, each made printable. */
void say_lines(FILE *f, const char *lines);
