/* SPDX-License-Identifier: MIT */
/*
 * Looks up single strings in JSON that others have written: no tree, no allocation, no recursion. What is no JSON is
 * found nowhere, or where a reader that takes less for granted would find it, too; nothing is read beyond the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A value in a text, and all that follows it. */
struct json_value {
	const char *at, *end;
};

struct json_value json_value_of(const char *text, size_t bytes);
/* The value of an object's member, the first one of that name; names with escapes are not found. */
bool json_value_member(struct json_value object, const char *name, struct json_value *value);
/* The elements of an array, one after the other: rest begins as the array, and is what is left. */
bool json_value_next(struct json_value *rest, struct json_value *element);
/* A string, without its escapes. False: it is none, does not fit, or has a character that is no ASCII as an escape. */
bool json_value_text(struct json_value value, char *out, size_t size);
