/* SPDX-License-Identifier: MIT */
#include "exchange/report_speedscope.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "output/frame_table.h"
#include "base/json.h"
#include "output/output_rows.h"
#include "version.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
	const struct report *report;
	struct output_rows rows;
	struct json json;
	struct frame_table frames;
	struct folded_stack stack;
};

static int put_gap(struct speedscope *o, enum output_gap gap)
{
	uint32_t frame;
	int s = frame_table_word(&o->frames, output_gap_name(&o->rows, gap), &frame);

	if (!s)
		json_unsigned(&o->json, NULL, frame);
	return s;
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
	s = s || !row || !row->frame_count ? s : folded_stack_make(&o->stack, o->report, row);
	for (size_t k = row && row->frame_count ? o->stack.count : 0; !s && k-- > 0;) {
		uint32_t frame;
		s = frame_table_folded(&o->frames, &o->stack.list[k], &frame);
		if (!s)
			json_unsigned(&o->json, NULL, frame);
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

	snprintf(name, sizeof name, "%s%s%s", o->report->options.files ? "mappings of files: " : "", names[f],
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

static int put_frame(struct speedscope *o, const struct frame_entry *frame)
{
	uint32_t image = PLACE_IMAGE(frame->place);
	const char *file = frame->file ? frame->file : image ? o->report->images.list[image].path : NULL;

	json_object_line(&o->json, NULL);
	json_string(&o->json, "name", o->frames.names.list[frame->name]);
	if (file) {
		const char *clean = frame_name_clean(&o->frames.buffer, file);
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
	const char *clean = frame_name_clean(&o->frames.buffer, name);
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
	for (uint32_t i = 0; !s && i < o->frames.count; i++)
		s = put_frame(o, &o->frames.list[i]);
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
	frame_table_init(&o->frames, r);
	int s = put_all(o, name);
	frame_table_done(&o->frames);
	folded_stack_done(&o->stack);
	free(o);
	return s;
}
