/* SPDX-License-Identifier: MIT */
#include "exchange/report_dhat.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "output/frame_name.h"
#include "base/json.h"
#include "output/output_rows.h"
#include "output/place_table.h"

#define VERSION 2
#define SHORT_LIVED 1000u /* microseconds: readers can list what lives no longer on average */
#define FIRST_FRAME 1u    /* number 0 is the root */

struct dhat {
	const struct report *report;
	struct output_rows rows;
	struct json json;
	struct place_table places; /* their frames come after those of the gaps */
	uint32_t gaps[OUTPUT_GAPS];
	uint32_t gap_count;
	struct name_text function, file;
};

/* What the totals are of. With times they have what was live as well, under names of its own. */
static bool is_live(const struct report *r)
{
	return !r->times.known && report_is_live(r->options.sort);
}

/* Innermost first. */
static int put_frames(struct dhat *d, size_t i)
{
	const struct report_row *row = output_rows_row(&d->rows, i);
	enum output_gap gap = output_rows_gap(&d->rows, i);
	struct json *j = &d->json;

	json_array_line(j, "fs");
	for (size_t k = 0; gap != OUTPUT_UNKNOWN && k < output_rows_depth(&d->rows, i); k++) {
		const struct place_entry *entry = place_table_get(&d->places, row->frames[k]);
		if (!entry)
			return -ENOMEM;
		for (uint32_t n = 0; n < entry->count; n++)
			json_unsigned(j, NULL, (uint64_t)FIRST_FRAME + d->gap_count + entry->first + n);
	}
	if (gap)
		json_unsigned(j, NULL, d->gaps[gap]);
	json_array_end(j);
	return 0;
}

/* Bytes and blocks of all rows. */
struct column {
	int64_t *bytes, *blocks;
};

/* column_done in any case. */
static int column_make(struct column *c, const struct dhat *d, enum output_side side, bool live)
{
	c->bytes = output_rows_column(&d->rows, side, live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES);
	c->blocks = output_rows_column(&d->rows, side, live ? FIGURE_LIVE_COUNT : FIGURE_ALLOCATED_COUNT);
	return c->bytes && c->blocks ? 0 : -ENOMEM;
}

static void column_done(struct column *c)
{
	free(c->bytes);
	free(c->blocks);
}

static bool is_zero(const struct column *c, size_t i)
{
	return !c->bytes || (!c->bytes[i] && !c->blocks[i]);
}

static void put_pair(struct json *j, const char *bytes, const char *blocks, const struct column *c, size_t i)
{
	json_unsigned(j, bytes, (uint64_t)c->bytes[i]);
	json_unsigned(j, blocks, (uint64_t)c->blocks[i]);
}

/* The greatest of many estimates for one stack would be too high: the maximum is that of the peak and of the end. */
static void put_times(struct dhat *d, size_t i, const struct column *peak, const struct column *end)
{
	struct json *j = &d->json;

	json_unsigned(j, "tl", output_rows_lived(&d->rows, i));
	put_pair(j, "mb", "mbk", peak->bytes[i] > end->bytes[i] ? peak : end, i);
	put_pair(j, "gb", "gbk", peak, i);
	put_pair(j, "eb", "ebk", end, i);
}

static int put_points(struct dhat *d)
{
	bool times = d->report->times.known;
	struct column total = { 0 }, peak = { 0 }, end = { 0 };
	struct json *j = &d->json;
	int s = column_make(&total, d, OUTPUT_NOW, is_live(d->report));
	if (!s && times)
		s = column_make(&peak, d, OUTPUT_PEAK, true);
	if (!s && times)
		s = column_make(&end, d, OUTPUT_NOW, true);

	json_array(j, "pps");
	for (size_t i = 0; !s && i < d->rows.count; i++) {
		progress_at(d->report->options.progress, "writing", i, d->rows.count);
		report_want_symbols(d->report, i, d->rows.shown);
		if (is_zero(&total, i) && is_zero(&peak, i) && is_zero(&end, i))
			continue;
		json_object_line(j, NULL);
		put_pair(j, "tb", "tbk", &total, i);
		if (times)
			put_times(d, i, &peak, &end);
		s = put_frames(d, i);
		json_object_end(j);
	}
	json_array_end(j);
	column_done(&total);
	column_done(&peak);
	column_done(&end);
	return s;
}

/* As valgrind writes it: 0x1234: function (file.c:56), or ??? (in /lib/library.so). */
static int put_frame(struct dhat *d, uint64_t place, const struct location *l)
{
	uint32_t image = PLACE_IMAGE(place);
	const char *file = l->file ? l->file : image ? d->report->images.list[image].path : NULL;
	const char *function = frame_name_clean(&d->function, l->function ? l->function : "???");
	const char *clean = frame_name_clean(&d->file, file ? file : "");
	uint64_t address = source_places_have(&d->report->images, place) ? 0 : PLACE_OFFSET(place);
	AUTO_FREE char *text = NULL;
	char line[16] = "";

	if (l->file && l->line)
		snprintf(line, sizeof line, ":%d", l->line);
	if (!function || !clean)
		return -ENOMEM;
	int n = file ? asprintf(&text, "0x%" PRIX64 ": %s (%s%s%s)", address, function, l->file ? "" : "in ", clean,
	                        line)
	             : asprintf(&text, "0x%" PRIX64 ": %s", address, function);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	json_string(&d->json, NULL, text);
	return 0;
}

static int put_table(struct dhat *d)
{
	struct json *j = &d->json;
	int s = 0;

	json_array(j, "ftbl");
	json_string(j, NULL, "[root]");
	for (uint32_t number = FIRST_FRAME; number < FIRST_FRAME + d->gap_count; number++)
		for (enum output_gap gap = OUTPUT_UNKNOWN; gap < OUTPUT_GAPS; gap++)
			if (d->gaps[gap] == number)
				json_string(j, NULL, output_gap_name(&d->rows, gap));
	for (size_t i = 0; i < d->places.count; i++) {
		const struct place_entry *entry = &d->places.list[i];
		for (uint32_t n = 0; !s && n < entry->count; n++)
			s = put_frame(d, entry->place, place_entry_location(d->report, entry, n));
	}
	json_array_end(j);
	return s;
}

/* Times are microseconds. */
static int put_head(struct dhat *d)
{
	const struct report *r = d->report;
	struct json *j = &d->json;
	const struct recorded_session *s = r->session_count ? &r->sessions[0] : NULL;
	const char *command = frame_name_clean(&d->file, !s ? "" : s->program[0] ? s->program : s->command);
	uint64_t end_ns = s ? s->duration_ns : 0;

	if (r->options.at_ns && r->options.at_ns < end_ns)
		end_ns = r->options.at_ns;
	json_unsigned(j, "dhatFileVersion", VERSION);
	json_string(j, "mode", "memattach-sampled-heap");
	json_string(j, "verb", is_live(r) ? "Live" : "Allocated");
	json_bool(j, "bklt", r->times.known);
	json_bool(j, "bkacc", false);
	json_string(j, "tu", "\xc2\xb5s");
	json_string(j, "Mtu", "s");
	json_string(j, "cmd", command);
	json_number(j, "pid", s ? s->pid : 0);
	json_unsigned(j, "te", end_ns / 1000);
	if (r->times.known) {
		json_unsigned(j, "tg", (r->times.peak_ns < end_ns ? r->times.peak_ns : end_ns) / 1000);
		json_unsigned(j, "tuth", SHORT_LIVED);
	}
	return command ? 0 : -ENOMEM;
}

int report_dhat(const struct report *r, FILE *out)
{
	struct dhat *d = calloc(1, sizeof *d);

	if (!d)
		return -ENOMEM;
	d->report = r;
	d->json.out = out;
	output_rows_init(&d->rows, r);
	place_table_init(&d->places, r);
	for (size_t i = 0; i < d->rows.count; i++) {
		enum output_gap gap = output_rows_gap(&d->rows, i);
		if (gap && !d->gaps[gap])
			d->gaps[gap] = FIRST_FRAME + d->gap_count++;
	}
	json_object(&d->json, NULL);
	int s = put_head(d);
	s = s ?: put_points(d);
	s = s ?: put_table(d);
	json_object_end(&d->json);
	place_table_done(&d->places);
	frame_name_done(&d->function);
	frame_name_done(&d->file);
	free(d);
	return s;
}
