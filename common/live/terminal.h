/* SPDX-License-Identifier: MIT */
/*
 * The terminal of standard input and output, while a program fills its screen: another screen than the one with what
 * was there before, no cursor, no line of its own breaking, and keys that come one by one and are not shown. Ctrl-C and
 * its like stay signals.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Whether both are a terminal, of which the modes are kept as they are now. */
int terminal_open(struct err *e) WARN_UNUSED;
/* Takes the screen. In the background it stops the process, as for any program that changes the terminal.
 * stops: Ctrl-Z shall stop the program. */
void terminal_enter(bool stops);
/* Gives it back; nothing if it was not taken. May be called in a signal handler, and in a child of the process that has
 * taken it. */
void terminal_leave(void);
/* A child has given it back. */
void terminal_left(void);
/* May this process set the terminal and read from it? Not a job in the background, which would be stopped for that. */
bool terminal_is_ours(void);
/* 80 columns and 24 lines if the terminal does not say. */
void terminal_size(size_t *columns, size_t *lines);

/* All of it, to standard output. -errno with a text. */
int terminal_write(const char *text, size_t bytes, struct err *e) WARN_UNUSED;
/* A screen that write_screen makes for its columns and lines, whole. */
typedef void (*terminal_screen_fn)(const void *view, size_t columns, size_t lines, FILE *out);
int terminal_draw(terminal_screen_fn write_screen, const void *view, struct err *e) WARN_UNUSED;
