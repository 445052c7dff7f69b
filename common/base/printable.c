/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <string.h>

size_t printable_sequence(const unsigned char *s)
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

uint32_t printable_code_point(const unsigned char *s, size_t length)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = s[0] & masks[length];

	for (size_t i = 1; i < length; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

bool printable_is_shown(const unsigned char *s, size_t length)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x0000, 0x001f },
		{ 0x007f, 0x009f }, /* C0, DEL, C1 */
		{ 0x061c, 0x061c },
		{ 0x200b, 0x200f }, /* direction marks, characters without a width */
		{ 0x2028, 0x202e },
		{ 0x2060, 0x206f }, /* separators of lines, embeddings and overrides, invisible operators */
		{ 0xfeff, 0xfeff },
		{ 0xfff9, 0xfffb },   /* byte order mark, annotations */
		{ 0xe0000, 0xe007f }, /* tags */
	};
	uint32_t c = printable_code_point(s, length);

	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return false;
	return true;
}

size_t printable_copy(const char *text, char *out, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0;
	size_t columns = 0;

	while (*s) {
		/* Nearly all text is nothing else. */
		if (*s >= ' ' && *s < 0x7f && used + 2 <= size) {
			out[used++] = (char)*s++;
			columns++;
			continue;
		}
		size_t n = printable_sequence(s);
		bool shown = n && printable_is_shown(s, n);
		size_t put = shown ? n : 1;
		if (used + put + 1 > size)
			break;
		/* Never after s, also where out is text. */
		if (shown)
			memmove(out + used, s, n);
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
