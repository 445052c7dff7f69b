/* SPDX-License-Identifier: MIT */
#include "utf8.h"

#include <string.h>

size_t utf8_length(const unsigned char *s)
{
	unsigned first = s[0];

	if (!first)
		return 0;
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, beyond U+10FFFF. */
	if ((first == 0xe0 && s[1] < 0xa0) || (first == 0xed && s[1] > 0x9f) || (first == 0xf0 && s[1] < 0x90) ||
	    (first == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

size_t utf8_printable(const char *text, char *out, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0;
	size_t columns = 0;

	while (*s) {
		size_t n = utf8_length(s);
		/* C1 controls are U+0080 … U+009F. */
		int plain = n == 1 ? *s >= 0x20 && *s != 0x7f : n && !(n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
		size_t put = plain ? n : 1;
		if (used + put + 1 > size)
			break;
		if (plain)
			memcpy(out + used, s, n);
		else
			out[used] = '?';
		used += put;
		columns++;
		s += n ? n : 1;
	}
	if (size)
		out[used] = 0;
	return columns;
}
