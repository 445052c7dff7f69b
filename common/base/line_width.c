/* SPDX-License-Identifier: MIT */
#include "base/line_width.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_UNKNOWN 80

size_t line_width(int fd)
{
	struct winsize size = { 0 };

	if (!isatty(fd))
		return LINE_ANY_WIDTH;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : WIDTH_UNKNOWN;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t line_width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

size_t line_width_fit(const char *text, size_t columns)
{
	size_t bytes = 0;

	for (size_t n = 0; text[bytes] && (continues(text[bytes]) || n < columns); bytes++)
		n += !continues(text[bytes]);
	return bytes;
}

/* The bytes of text that the first line holds: to the last blank that it has room for, or all of a longer word. */
static size_t first_part(const char *text, size_t columns)
{
	size_t fits = line_width_fit(text, columns), start = strspn(text, " ");

	if (!text[fits])
		return fits;
	for (size_t end = fits; end > start; end--)
		if (text[end] == ' ')
			return end;
	return start + strcspn(text + start, " ");
}

void line_width_put(FILE *out, size_t used, size_t indent, const char *text)
{
	const size_t width = line_width(fileno(out));

	for (;;) {
		size_t part = first_part(text, width > used ? width - used : 0);
		const char *rest = text + part + strspn(text + part, " ");
		fprintf(out, "%.*s\n", (int)part, text);
		if (!*rest)
			return;
		fprintf(out, "%*s", (int)indent, "");
		text = rest;
		used = indent;
	}
}
