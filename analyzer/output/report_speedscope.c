/* SPDX-License-Identifier: MIT */
#include "report_speedscope.h"

#include <stdlib.h>

#include "cleanup.h"
#include "frame_name.h"
#include "grow.h"
#include "json.h"
#include "output_rows.h"
#include "place_table.h"
#include "string_table.h"
#include "version.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
	const struct report *report;
	struct output_rows rows;
	struct json json;
	struct place_table places;
	uint32_t *frame_of; /* by number of a frame of the places; */
	uint32_t framed;    /* as many as have one */
	struct string_table names;
	struct map frame_at; /* name and image -> index in frames */
	struct speedscope_frame {
		uint32_t name; /* of names */
		uint64_t place;
		const char *file; /* of the first line that was met */
	} * frames;
	uint32_t frame_count;
	uint32_t gaps[OUTPUT_GAPS]; /* frame + 1, 0: none yet */
	struct name_text buffer;
};

/* The same function at another line, or inlined somewhere, is one frame. */
static int get_frame(struct speedscope *o, const char *name, uint64_t place, const char *file, uint32_t *frame)
{
	uint32_t number;
	int s = name ? string_table_add(&o->names, name, &number) : -ENOMEM;

	if (s)
		return s;
	uint64_t key = (uint64_t)number << 16 | PLACE_IMAGE(place);
	const uint32_t *known = map_find(&o->frame_at, key);
	if (known) {
		*frame = *known;
		return 0;
	}
	if (!grow_list(o->frames, o->frame_count) || map_put(&o->frame_at, key, o->frame_count))
		return -ENOMEM;
	o->frames[o->frame_count] = (struct speedscope_frame){ number, place, file };
	*frame = o->frame_count++;
	return 0;
}

/* The frames of a place; their numbers are frame_of[first] and what follows. */
static int frames_of_place(struct speedscope *o, uint64_t place, struct place_entry *entry)
{
	const struct place_entry *known = place_table_get(&o->places, place);

	if (!known)
		return -ENOMEM;
	*entry = *known;
	for (; o->framed < o->places.frame_count; o->framed++) {
		const struct location *l = place_location(o->report, entry, o->framed - entry->first);
		uint32_t frame;
		int s = get_frame(o, name_frame(&o->buffer, o->report, place, l), place, l->file, &frame);
		if (s)
			return s;
		if (!grow_list(o->frame_of, o->framed))
			return -ENOMEM;
		o->frame_of[o->framed] = frame;
	}
	return 0;
}

static int put_gap(struct speedscope *o, enum output_gap gap)
{
	if (!o->gaps[gap]) {
		int s = get_frame(o, output_gap_name(&o->rows, gap), 0, NULL, &o->gaps[gap]);
		if (s)
			return s;
		o->gaps[gap]++;
	}
	json_unsigned(&o->json, NULL, o->gaps[gap] - 1);
	return 0;
}

/* The outermost frame first. */
static int put_stack(struct speedscope *o, size_t i)
{
	const struct report_row *row = output_rows_row(&o->rows, i);
	enum output_gap gap = output_rows_gap(&o->rows, i);
	int s = 0;

	json_array_line(&o->json, NULL);
	if (gap)
		s = put_gap(o, gap);
	for (size_t k = output_rows_depth(&o->rows, i); !s && k-- > 0;) {
		struct place_entry entry;
		s = frames_of_place(o, row->frames[k], &entry);
		for (uint32_t n = entry.count; !s && n-- > 0;)
			json_unsigned(&o->json, NULL, o->frame_of[entry.first + n]);
	}
	json_array_end(&o->json);
	return s;
}

static int put_profile(struct speedscope *o, enum report_figure f, enum output_side side)
{
	static const char *const names[] = { "live bytes", "live blocks", "allocated bytes", "allocated blocks" };
	AUTO_FREE int64_t *column = output_rows_column(&o->rows, side, f);
	struct json *j = &o->json;
	char name[64];
	int s = column ? 0 : -ENOMEM;

	snprintf(name, sizeof name, "%s%s", names[f],
	         !report_compares(o->report) ? ""
	         : side == OUTPUT_OLD        ? ", before"
	                                     : ", after");
	json_object(j, NULL);
	json_string(j, "type", "sampled");
	json_string(j, "name", name);
	json_string(j, "unit", report_is_bytes(f) ? "bytes" : "none");
	json_unsigned(j, "startValue", 0);
	json_unsigned(j, "endValue", (uint64_t)output_rows_total(&o->rows, side, f));
	json_array(j, "samples");
	for (size_t i = 0; !s && i < o->rows.count; i++) {
		progress_at(o->report->options.progress, "writing", i, o->rows.count);
		report_want_symbols(o->report, i, o->rows.shown);
		if (column[i])
			s = put_stack(o, i);
	}
	json_array_end(j);
	json_array_line(j, "weights");
	for (size_t i = 0; !s && i < o->rows.count; i++)
		if (column[i])
			json_number(j, NULL, (double)column[i]);
	json_array_end(j);
	json_object_end(j);
	return s;
}

static int put_frame(struct speedscope *o, const struct speedscope_frame *frame)
{
	uint32_t image = PLACE_IMAGE(frame->place);
	const char *file = frame->file ? frame->file : image ? o->report->images.list[image].path : NULL;

	json_object_line(&o->json, NULL);
	json_string(&o->json, "name", o->names.list[frame->name]);
	if (file) {
		const char *clean = name_clean(&o->buffer, file);
		if (!clean)
			return -ENOMEM;
		json_string(&o->json, "file", clean);
	}
	json_object_end(&o->json);
	return 0;
}

static int put_all(struct speedscope *o, const char *name)
{
	/* speedscope shows the first one. */
	static const enum report_figure order[] = { FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT, FIGURE_ALLOCATED_BYTES,
		                                    FIGURE_ALLOCATED_COUNT };
	struct json *j = &o->json;
	const char *clean = name_clean(&o->buffer, name);
	int s = clean ? 0 : -ENOMEM;

	json_object(j, NULL);
	json_string(j, "$schema", SCHEMA);
	json_string(j, "name", clean);
	json_string(j, "exporter", "memanalyze " MEMATTACH_VERSION);
	json_unsigned(j, "activeProfileIndex", o->report->options.sort * (report_compares(o->report) ? 2u : 1u));
	json_array(j, "profiles");
	for (size_t i = 0; !s && i < sizeof order / sizeof order[0]; i++) {
		s = put_profile(o, order[i], OUTPUT_NOW);
		if (!s && report_compares(o->report))
			s = put_profile(o, order[i], OUTPUT_OLD);
	}
	json_array_end(j);
	json_object(j, "shared");
	json_array(j, "frames");
	for (uint32_t i = 0; !s && i < o->frame_count; i++)
		s = put_frame(o, &o->frames[i]);
	json_array_end(j);
	json_object_end(j);
	json_object_end(j);
	return s;
}

int report_speedscope(const struct report *r, const char *name, FILE *out)
{
	struct speedscope *o = calloc(1, sizeof *o);

	if (!o)
		return -ENOMEM;
	o->report = r;
	o->json.out = out;
	output_rows_init(&o->rows, r);
	place_table_init(&o->places, r);
	int s = put_all(o, name);
	place_table_done(&o->places);
	string_table_done(&o->names);
	map_done(&o->frame_at);
	name_done(&o->buffer);
	free(o->frame_of);
	free(o->frames);
	free(o);
	return s;
}
