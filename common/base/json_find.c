/* SPDX-License-Identifier: MIT */
#include "base/json_find.h"

#include <string.h>

struct json_value json_value_of(const char *text, size_t bytes)
{
	return (struct json_value){ text, text + bytes };
}

static void skip_space(struct json_value *v)
{
	while (v->at < v->end && strchr(" \t\r\n", *v->at) && *v->at)
		v->at++;
}

static bool takes(struct json_value *v, char c)
{
	skip_space(v);
	if (v->at == v->end || *v->at != c)
		return false;
	v->at++;
	return true;
}

/* What is between the quotes, escapes and all. */
static bool take_string(struct json_value *v, const char **text, size_t *bytes)
{
	if (!takes(v, '"'))
		return false;
	*text = v->at;
	while (v->at < v->end && *v->at != '"')
		v->at += *v->at == '\\' && v->end - v->at > 1 ? 2 : 1;
	if (v->at >= v->end)
		return false;
	*bytes = (size_t)(v->at++ - *text);
	return true;
}

/* Brackets are counted, whatever their kind. */
static bool skip_value(struct json_value *v)
{
	const char *text;
	size_t bytes, depth = 0;

	skip_space(v);
	do {
		if (v->at == v->end)
			return false;
		if (*v->at == '"') {
			if (!take_string(v, &text, &bytes))
				return false;
		} else if (!depth && strchr(",]}", *v->at) && *v->at) {
			return false; /* there is no value */
		} else {
			depth += *v->at == '{' || *v->at == '[';
			depth -= depth && (*v->at == '}' || *v->at == ']');
			v->at++;
		}
		/* Numbers and words end where something else begins. */
	} while (depth || (v->at < v->end && !strchr(",]} \t\r\n", *v->at) && v->at[-1] != '"' && v->at[-1] != '}' &&
	                   v->at[-1] != ']'));
	return true;
}

bool json_value_member(struct json_value object, const char *name, struct json_value *value)
{
	const char *text;
	size_t bytes;

	if (!takes(&object, '{'))
		return false;
	do {
		if (!take_string(&object, &text, &bytes) || !takes(&object, ':'))
			return false;
		if (bytes == strlen(name) && !memcmp(text, name, bytes)) {
			*value = object;
			return true;
		}
	} while (skip_value(&object) && takes(&object, ','));
	return false;
}

bool json_value_next(struct json_value *rest, struct json_value *element)
{
	if (!takes(rest, '[') && !takes(rest, ','))
		return false;
	*element = *rest;
	return skip_value(rest);
}

/* Of "u00e9" after the backslash; -1: it is none, or no ASCII. */
static int code_of(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdef";
	int code = 0;

	if (end - at < 5)
		return -1;
	for (int i = 1; i < 5; i++) {
		const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
		if (!digit)
			return -1;
		code = 16 * code + (int)(digit - digits);
	}
	return code > 0 && code < 0x80 ? code : -1;
}

bool json_value_text(struct json_value value, char *out, size_t size)
{
	static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *text, *end;
	size_t bytes, used = 0;

	if (!take_string(&value, &text, &bytes))
		return false;
	for (end = text + bytes; text < end; text++) {
		int c = (unsigned char)*text;
		if (c == '\\' && ++text < end && *text == 'u') {
			c = code_of(text, end);
			text += 4;
		} else if (c == '\\') {
			const char *escape = text < end && *text ? strchr(escapes, *text) : NULL;
			c = escape ? meant[escape - escapes] : -1;
		}
		if (c <= 0 || used + 1 >= size)
			return false;
		out[used++] = (char)c;
	}
	out[used] = '\0';
	return true;
}
