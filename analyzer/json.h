/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to a stream: commas, indentation and escapes are its business. Strings may hold any bytes; what is not UTF-8
 * becomes U+FFFD. Numbers that are not finite become null. The caller looks at ferror of the stream.
 */
#ifndef MEMATTACH_JSON_H
#define MEMATTACH_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	uint64_t arrays; /* bit i: the container at depth i is an array */
	bool filled; /* the innermost object or array has an element */
};

/* name: of the member, NULL inside an array and at the top. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *name, const char *value); /* NULL: null */
void json_number(struct json *j, const char *name, double value);
void json_unsigned(struct json *j, const char *name, uint64_t value);
void json_bool(struct json *j, const char *name, bool value);

#endif
