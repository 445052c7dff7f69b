/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to a stream: commas, indentation and escapes are its business. Strings may hold any bytes; what is not
 * UTF-8 becomes U+FFFD, and what acts on a terminal (printable.h) is escaped. Numbers that are not finite become null.
 * All is handed to the stream when the outermost value ends; the caller looks at its ferror.
 */
#ifndef MEMATTACH_JSON_H
#define MEMATTACH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	FILE *diverted_from; /* NULL: it is not */
	int depth;
	uint64_t arrays; /* bit i: the container at depth i is an array */
	bool filled;     /* the innermost object or array has an element */
	bool was_filled; /* when it was diverted */
	size_t used;
	char buffer[16384];
};

/* name: of the member, plain ASCII; NULL inside an array and at the top. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *name, const char *value); /* NULL: null */
void json_number(struct json *j, const char *name, double value);
void json_unsigned(struct json *j, const char *name, uint64_t value);
void json_hex(struct json *j, const char *name, uint64_t value); /* a string: "0x1f" */
void json_bool(struct json *j, const char *name, bool value);

/*
 * Elements that come again and again: those that are put between json_divert and json_divert_end go to another stream,
 * laid out for where they would be, and json_elements puts that text where elements of the same depth may be.
 */
void json_divert(struct json *j, FILE *to);
void json_divert_end(struct json *j);
void json_elements(struct json *j, const char *text, size_t length);

#endif
