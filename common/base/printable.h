/* SPDX-License-Identifier: MIT */
/*
 * Text of unknown origin for a terminal or a line of a report: names of processes, files, modules and functions may
 * hold escape sequences, line ends, marks that turn the direction of writing, and bytes that are no UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the well-formed sequence of UTF-8 at s has (RFC 3629), 0 if it is not well-formed or s is at its end.
 */
size_t printable_sequence(const unsigned char *s);
/* The character that such a sequence stands for. */
uint32_t printable_code_point(const unsigned char *s, size_t length);
/* Whether that sequence is shown as itself: no control character, no line separator, nothing invisible that moves or
 * turns text. */
bool printable_is_shown(const unsigned char *s, size_t length);

/*
 * Copies text so that nothing in it acts on a terminal: what is not shown as itself, and each byte that is not UTF-8,
 * becomes '?'. At most size bytes with the NUL, whole sequences only; out may be text. Returns the columns, one for
 * each code point.
 */
size_t printable_copy(const char *text, char *out, size_t size);
