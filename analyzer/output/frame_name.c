/* SPDX-License-Identifier: MIT */
#include "output/frame_name.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

#define INSTEAD "\xef\xbf\xbd" /* U+FFFD */
#define INSTEAD_BYTES 3u
#define ADDRESS_TEXT 24u

static bool make_room(struct name_text *buffer, size_t bytes)
{
	if (bytes <= buffer->room)
		return true;
	char *more = realloc(buffer->text, 2 * bytes);
	if (!more)
		return false;
	buffer->text = more;
	buffer->room = 2 * bytes;
	return true;
}

/* Returns the end of what it wrote; there is room for three bytes for each. */
static char *put_clean(char *out, const char *name)
{
	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		size_t n = printable_sequence(s);
		if (n && printable_is_shown(s, n)) {
			memcpy(out, s, n);
			out += n;
		} else {
			memcpy(out, INSTEAD, INSTEAD_BYTES);
			out += INSTEAD_BYTES;
		}
		s += n ? n : 1;
	}
	*out = 0;
	return out;
}

const char *frame_name_clean(struct name_text *buffer, const char *name)
{
	if (!make_room(buffer, INSTEAD_BYTES * strlen(name) + 1))
		return NULL;
	put_clean(buffer->text, name);
	return buffer->text;
}

const char *frame_name_text(struct name_text *buffer, const struct report *r, uint64_t place, const struct location *l)
{
	uint32_t image = PLACE_IMAGE(place);
	char name[NAME_MAX + 1] = "";

	if (l->function && l->function[0])
		return frame_name_clean(buffer, l->function);
	if (image)
		image_short_name(&r->images.list[image], name, sizeof name);
	if (!make_room(buffer, INSTEAD_BYTES * strlen(name) + ADDRESS_TEXT))
		return NULL;
	char *end = put_clean(buffer->text, name);
	snprintf(end, ADDRESS_TEXT, "%s0x%" PRIx64, image ? "+" : "", PLACE_OFFSET(place));
	return buffer->text;
}

void frame_name_done(struct name_text *buffer)
{
	free(buffer->text);
	*buffer = (struct name_text){ 0 };
}
