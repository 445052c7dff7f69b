/* SPDX-License-Identifier: MIT */
#include "output/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/line_width.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define SHORT_ARGUMENTS 8
#define NAME_BYTES 4096
#define PATIENCE 8u /* how often a name may be looked through for what closes an angle */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The '>' that belongs to the '<' at s; NULL if there is none, or so much has been looked through that the name is none
 * that people write. */
static const char *closing(const char *s, size_t *patience)
{
	int angles = 0;
	int round = 0;

	for (; *s && *patience; s++, --*patience) {
		if (*s == '(')
			round++;
		else if (*s == ')')
			round--;
		else if (*s == '<' && !round)
			angles++;
		else if (*s == '>' && !round && s[-1] != '-' && !--angles)
			return s;
	}
	return NULL;
}

/* The length of "operator<", "operator<<", "operator>" … at s, 0 if there is none. */
static size_t operator_length(const char *begin, const char *s, size_t *patience)
{
	static const char word[] = "operator";
	size_t n = sizeof word - 1;

	if (strncmp(s, word, n) || (s > begin && is_word(s[-1])) || !strchr("<>-", s[n]) || !s[n])
		return 0;
	while (s[n] && strchr("<>=-*", s[n])) {
		/* operator<<int>: the second one opens the arguments unless a third follows */
		if (s[n] == '<' && s[n - 1] == '<' && closing(s + n, patience) && s[n + 1] != '<' && s[n + 1] != '(')
			break;
		n++;
	}
	return n;
}

void short_name_templates(const char *name, char *out, size_t size)
{
	size_t used = 0;
	size_t patience = PATIENCE * strnlen(name, size);

	for (const char *s = name; *s && used + 8 < size;) {
		size_t n = operator_length(name, s, &patience);
		const char *end = !n && *s == '<' && s > name && is_word(s[-1]) ? closing(s, &patience) : NULL;
		if (end && end - s - 1 > SHORT_ARGUMENTS) {
			memcpy(out + used, "<" ELLIPSIS ">", 5);
			used += 5;
			s = end + 1;
			continue;
		}
		for (n = n ? n : 1; n && used + 8 < size; n--)
			out[used++] = *s++;
	}
	out[used] = 0;
}

/* a::(anonymous namespace)::f -> a::f */
static void drop_anonymous(char *name)
{
	static const char word[] = "(anonymous namespace)::";

	for (char *s = name; (s = strstr(s, word));)
		memmove(s, s + sizeof word - 1, strlen(s + sizeof word - 1) + 1);
}

/* f(a, b) const -> f(…) const */
static void drop_parameters(char *name)
{
	char *close = strrchr(name, ')');
	int depth = 0;

	for (char *s = close; s && s >= name; s--) {
		depth += (*s == ')') - (*s == '(');
		if (depth)
			continue;
		if (close - s > 3 && s > name && strncmp(s, "(anonymous", 10) != 0) {
			memmove(s + 4, close, strlen(close) + 1);
			memcpy(s + 1, ELLIPSIS, 3);
		}
		return;
	}
}

static char *skip_columns(char *s, size_t columns)
{
	for (; columns && *s; columns--)
		for (s++; ((unsigned char)*s & 0xc0) == 0x80; s++)
			;
	return s;
}

/* The end of a name says more than its beginning: it keeps two thirds. */
size_t short_name_cut(char *text, size_t columns)
{
	size_t have = line_width_of(text);

	if (have <= columns || !columns)
		return have;
	char *at = skip_columns(text, (columns - 1) / 3);
	char *rest = skip_columns(at, have - columns + 1);
	/* What is dropped has at least two columns; they may be two bytes, the mark has three. */
	if (rest - at < 3)
		rest = skip_columns(rest, 1), columns--;
	memmove(at + 3, rest, strlen(rest) + 1);
	memcpy(at, ELLIPSIS, 3);
	return columns;
}

void short_name(const char *name, size_t columns, char *out, size_t size)
{
	char text[NAME_BYTES];

	short_name_templates(name, text, sizeof text);
	drop_anonymous(text);
	if (line_width_of(text) > columns)
		drop_parameters(text);
	short_name_cut(text, columns);
	snprintf(out, size, "%.*s", (int)size - 1, text);
}
