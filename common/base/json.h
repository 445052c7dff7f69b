/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON to a stream: commas, indentation and escapes are its business. Strings may hold any bytes; what is not
 * UTF-8 becomes U+FFFD, and what acts on a terminal (printable.h) is escaped. Numbers that are not finite become null.
 * All is handed to the stream when the outermost value ends; the caller looks at its ferror.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	uint64_t arrays; /* bit i: the container at depth i is an array */
	uint64_t lines;  /* … is on one line */
	bool in_markup;  /* it will stand in a page: "<" is escaped */
	bool filled;     /* the innermost object or array has an element */
	size_t used;
	char buffer[16384];
};

/* name: of the member, plain ASCII; NULL inside an array and at the top. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
/* The same, all on one line, without spaces. */
void json_object_line(struct json *j, const char *name);
void json_array_line(struct json *j, const char *name);
void json_string(struct json *j, const char *name, const char *value); /* NULL: null */
void json_number(struct json *j, const char *name, double value);
/* The same with ten digits, but for whole numbers: what is estimated is not known better. */
void json_estimate(struct json *j, const char *name, double value);
void json_unsigned(struct json *j, const char *name, uint64_t value);
void json_hex(struct json *j, const char *name, uint64_t value); /* a string: "0x1f" */
void json_bool(struct json *j, const char *name, bool value);
/* Only if it is true. */
void json_flag(struct json *j, const char *name, bool value);
