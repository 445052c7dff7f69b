/* SPDX-License-Identifier: MIT */
#include "json_frames.h"

#include <stdlib.h>

#include "build_id.h"
#include "grow.h"

/* A place whose text is not kept is put out anew each time: one of a file may have a path of 4 KiB at each of 64
 * inlined calls. */
#define KEPT_BYTES (32u << 20)

void json_build_id(struct json *j, const struct image *image)
{
	char hex[BUILD_ID_TEXT];

	build_id_format(image->build_id, image->build_id_bytes, hex);
	json_string(j, "build_id", hex[0] ? hex : NULL);
}

static void put_frame(struct json *j, const struct report *r, uint64_t place, const struct location *l)
{
	const struct image *image = &r->images.list[PLACE_IMAGE(place)];

	json_object(j, NULL);
	json_hex(j, "address", PLACE_OFFSET(place));
	json_string(j, "function", l->function);
	json_string(j, "file", l->file);
	if (l->file && l->line)
		json_unsigned(j, "line", (uint64_t)l->line);
	else
		json_string(j, "line", NULL);
	json_string(j, "module", image->path);
	json_build_id(j, image);
	json_bool(j, "inlined", l->inlined);
	json_object_end(j);
}

static void put_place(struct json *j, const struct report *r, uint64_t place)
{
	size_t n;
	const struct location *list = report_locations(r, place, &n);

	for (size_t k = 0; k < n; k++)
		put_frame(j, r, place, &list[k]);
}

/* NULL: no memory, or no more shall be kept. */
static const struct json_frame_text *make_text(struct json_frames *frames, struct json *j, uint64_t place)
{
	struct json_frame_text text = { 0 };
	FILE *to;

	if (frames->bytes > KEPT_BYTES || !grow_list(frames->list, frames->count))
		return NULL;
	to = open_memstream(&text.text, &text.length);
	if (!to)
		return NULL;
	json_divert(j, to);
	put_place(j, frames->report, place);
	json_divert_end(j);
	bool bad = ferror(to);
	bad = fclose(to) || bad;
	if (bad || map_put(&frames->text_of, place, (uint32_t)frames->count)) {
		free(text.text);
		return NULL;
	}
	frames->list[frames->count] = text;
	frames->bytes += text.length + sizeof text;
	return &frames->list[frames->count++];
}

void json_frames_init(struct json_frames *frames, const struct report *report)
{
	*frames = (struct json_frames){ .report = report };
}

void json_frames_done(struct json_frames *frames)
{
	for (size_t i = 0; i < frames->count; i++)
		free(frames->list[i].text);
	free(frames->list);
	map_done(&frames->text_of);
	*frames = (struct json_frames){ 0 };
}

void json_frames_put(struct json_frames *frames, struct json *j, uint64_t place)
{
	const uint32_t *known = map_find(&frames->text_of, place);
	const struct json_frame_text *text = known ? &frames->list[*known] : make_text(frames, j, place);

	if (text)
		json_elements(j, text->text, text->length);
	else
		put_place(j, frames->report, place);
}
