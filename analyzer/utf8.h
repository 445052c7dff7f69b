/* SPDX-License-Identifier: MIT */
/* UTF-8 of unknown origin. */
#ifndef MEMATTACH_UTF8_H
#define MEMATTACH_UTF8_H

#include <stddef.h>

/* How many bytes the well-formed sequence at s has (RFC 3629), 0 if it is not well-formed or s is at its end. */
size_t utf8_length(const unsigned char *s);

/*
 * Copies text for a terminal: control characters (so no escape sequences) and bytes that are not UTF-8 become '?'. At most
 * size bytes with the NUL, whole sequences only. Returns the columns, one for each code point.
 */
size_t utf8_printable(const char *text, char *out, size_t size);

#endif
