/* SPDX-License-Identifier: MIT */
#include "json/json_frames.h"

#include <stdlib.h>

#include "base/build_id.h"
#include "report/folding.h"
#include "base/grow.h"

void json_frames_init(struct json_frames *f, const struct report *report)
{
	*f = (struct json_frames){ .report = report };
	place_table_init(&f->places, report);
}

void json_frames_done(struct json_frames *f)
{
	place_table_done(&f->places);
	free(f->modules);
	map_done(&f->module_of);
	*f = (struct json_frames){ 0 };
}

int json_frames_stack(struct json_frames *f, struct json *j, const struct report_row *row)
{
	const struct report_own own = row->frame_count ? report_own(f->report, row) : (struct report_own){ 0, 0 };
	uint64_t folded = own.location;

	json_array_line(j, "frames");
	for (size_t i = 0; i < report_depth(f->report, row); i++) {
		const struct place_entry *entry = place_table_get(&f->places, row->frames[i]);
		if (!entry)
			return -ENOMEM;
		folded += i < own.frame ? entry->count : 0;
		for (uint32_t k = 0; k < entry->count; k++)
			json_unsigned(j, NULL, entry->first + k);
	}
	json_array_end(j);
	if (folded)
		json_unsigned(j, "folded", folded);
	return 0;
}

/* The number of an image in the table of modules; new ones come at its end. */
static int module_number(struct json_frames *f, uint32_t image, uint32_t *number)
{
	const uint32_t *known = map_find(&f->module_of, image);

	if (!known) {
		if (!grow_list(f->modules, f->module_count) || map_put(&f->module_of, image, f->module_count))
			return -ENOMEM;
		f->modules[f->module_count] = image;
		*number = f->module_count++;
		return 0;
	}
	*number = *known;
	return 0;
}

/* A language is only said where it is certain. */
static void put_frame(const struct report *r, struct json *j, uint64_t place, const struct location *l, uint32_t module)
{
	static const char *const languages[] = { [IMAGE_PYTHON] = "python", [IMAGE_JAVA] = "java" };
	const enum image_language language = source_places_language(&r->images, place);

	json_object_line(j, NULL);
	if (l->function)
		json_string(j, "function", l->function);
	if (l->file)
		json_string(j, "file", l->file);
	if (l->file && l->line)
		json_unsigned(j, "line", (uint64_t)l->line);
	if (PLACE_IMAGE(place))
		json_unsigned(j, "module", module);
	if (!language)
		json_hex(j, "address", PLACE_OFFSET(place));
	json_flag(j, "inlined", l->inlined);
	const char *kind = language ? NULL : folding_kind(r, place, l);
	if (kind)
		json_string(j, "kind", kind);
	if (language)
		json_string(j, "language", languages[language]);
	json_object_end(j);
}

static int put_frames(struct json_frames *f, struct json *j)
{
	json_array(j, "frames");
	for (size_t i = 0; i < f->places.count; i++) {
		const struct place_entry *entry = &f->places.list[i];
		uint32_t image = PLACE_IMAGE(entry->place);
		uint32_t module = 0;
		if (image && module_number(f, image, &module))
			return -ENOMEM;
		for (uint32_t k = 0; k < entry->count; k++)
			put_frame(f->report, j, entry->place, place_entry_location(f->report, entry, k), module);
	}
	json_array_end(j);
	return 0;
}

static void put_module(const struct report *r, struct json *j, uint32_t image)
{
	static const char *const sources[] = {
		[IMAGE_SOURCE_NONE] = "none", [IMAGE_SOURCE_FILE] = "file", [IMAGE_SOURCE_DEBUG] = "debug"
	};
	const struct image *i = &r->images.list[image];
	const struct image_found *file = r->symbols ? symbols_image_file(r->symbols, image) : NULL;
	char hex[BUILD_ID_TEXT];

	build_id_format(i->build_id, i->build_id_bytes, hex);
	json_object_line(j, NULL);
	json_string(j, "path", i->path);
	json_string(j, "build_id", hex[0] ? hex : NULL);
	json_string(j, "symbols", file ? sources[file->source] : NULL);
	json_string(j, "reason", file ? file->reason : NULL);
	json_object_end(j);
}

int json_frames_tables(struct json_frames *f, struct json *j)
{
	const struct report *r = f->report;
	int s = put_frames(f, j);

	/* Then those that only groups, or the search for the allocator's own functions, had to do with. */
	for (uint32_t i = 1; !s && r->symbols && i < r->images.count; i++) {
		uint32_t number;
		if (symbols_image_file(r->symbols, i))
			s = module_number(f, i, &number);
	}
	if (s)
		return s;
	json_array(j, "modules");
	for (uint32_t i = 0; i < f->module_count; i++)
		put_module(r, j, f->modules[i]);
	json_array_end(j);
	return 0;
}
