/* SPDX-License-Identifier: MIT */
#include "exchange/report_pprof.h"

#include <math.h>
#include <stdlib.h>

#include "exchange/pprof_comments.h"
#include "exchange/pprof_tables.h"
#include "exchange/pprof_threads.h"

enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };

/* The last one is what readers show. */
#define TYPES 6
static const struct {
	const char *name, *unit;
	bool samples; /* how many, not what they say */
	enum report_figure figure;
} types[TYPES] = {
	{ "alloc_samples", "count", true, FIGURE_ALLOCATED_COUNT },
	{ "inuse_samples", "count", true, FIGURE_LIVE_COUNT },
	{ "alloc_objects", "count", false, FIGURE_ALLOCATED_COUNT },
	{ "alloc_space", "bytes", false, FIGURE_ALLOCATED_BYTES },
	{ "inuse_objects", "count", false, FIGURE_LIVE_COUNT },
	{ "inuse_space", "bytes", false, FIGURE_LIVE_BYTES },
};

static void put_type(struct pprof *p, unsigned field, const char *name, const char *unit)
{
	uint32_t numbers[] = { pprof_string(p, name), pprof_string(p, unit) };

	proto_number(&p->message, TYPE_NAME, numbers[0]);
	proto_number(&p->message, TYPE_UNIT, numbers[1]);
	pprof_put(p, field);
}

/* The mean size of its blocks: pprof can choose by it. */
static void put_size(struct pprof *p, const int64_t values[FIGURE_COUNT])
{
	bool live = values[FIGURE_LIVE_COUNT] > 0;
	double blocks = (double)values[live ? FIGURE_LIVE_COUNT : FIGURE_ALLOCATED_COUNT];
	double bytes = (double)values[live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES];
	uint32_t name = pprof_string(p, "bytes");

	if (!(blocks > 0 && bytes > 0))
		return;
	proto_clear(&p->packed);
	proto_number(&p->packed, LABEL_KEY, name);
	proto_number(&p->packed, LABEL_NUMBER, (uint64_t)round(bytes / blocks));
	proto_number(&p->packed, LABEL_UNIT, name);
	proto_message(&p->message, SAMPLE_LABEL, &p->packed);
}

/* The innermost frame first. */
static void put_locations(struct pprof *p, size_t i)
{
	const struct report_row *row = output_rows_row(&p->rows, i);
	enum output_gap gap = output_rows_gap(&p->rows, i);

	proto_clear(&p->packed);
	if (gap != OUTPUT_UNKNOWN && gap != OUTPUT_MORE)
		for (size_t k = 0; k < output_rows_depth(&p->rows, i); k++)
			proto_element(&p->packed, pprof_location(p, row->frames[k]));
	if (gap)
		proto_element(&p->packed, p->gaps[gap]);
	proto_message(&p->message, SAMPLE_LOCATION, &p->packed);
}

static void put_thread(struct pprof *p, const char *thread)
{
	if (!thread[0])
		return;
	proto_clear(&p->packed);
	proto_number(&p->packed, LABEL_KEY, pprof_string(p, "thread"));
	proto_number(&p->packed, LABEL_STRING, pprof_string(p, thread));
	proto_message(&p->message, SAMPLE_LABEL, &p->packed);
}

static void put_sample(struct pprof *p, size_t i, const struct pprof_part *part)
{
	bool any = false;

	put_locations(p, i);
	proto_clear(&p->packed);
	for (int t = 0; t < TYPES; t++) {
		enum report_figure f = types[t].figure;
		int64_t value = types[t].samples ? (int64_t)part->samples[f] : part->values[f];
		proto_element(&p->packed, (uint64_t)value);
		any |= value != 0;
	}
	proto_message(&p->message, SAMPLE_VALUE, &p->packed);
	put_size(p, part->values);
	put_thread(p, part->thread);
	if (any)
		pprof_put(p, PROFILE_SAMPLE);
	proto_clear(&p->message);
}

/* A sample for each thread that is known, as long as --top is not exceeded. */
static void put_row(struct pprof *p, size_t i, const struct pprof_part *whole)
{
	struct pprof_split split;

	p->error = pprof_split(p->report, output_rows_row(&p->rows, i), whole, &split);
	size_t more = !p->error && split.count ? split.count - 1 : 0;
	if (more > p->more) {
		put_sample(p, i, whole);
	} else if (!p->error) {
		p->more -= more;
		for (size_t k = 0; k < split.count; k++)
			put_sample(p, i, &split.parts[k]);
	}
	free(split.parts);
}

static void put_samples(struct pprof *p)
{
	enum output_side side = report_compares(p->report) ? OUTPUT_GROWTH : OUTPUT_NOW;
	int64_t *columns[FIGURE_COUNT];
	bool all = true;

	for (int f = 0; f < FIGURE_COUNT; f++) {
		columns[f] = output_rows_column(&p->rows, side, f);
		all = all && columns[f];
	}
	p->error = all ? p->error : -ENOMEM;
	p->more = p->report->options.top ? p->report->options.top + 1 - p->rows.count : SIZE_MAX;
	for (size_t i = 0; !p->error && i < p->rows.count; i++) {
		struct pprof_part whole = { .thread = "" };
		for (int f = 0; f < FIGURE_COUNT; f++) {
			whole.values[f] = columns[f][i];
			whole.samples[f] = output_rows_samples(&p->rows, i, f);
		}
		progress_at(p->report->options.progress, "writing", i, p->rows.count);
		report_want_symbols(p->report, i, p->rows.shown);
		put_row(p, i, &whole);
	}
	for (int f = 0; f < FIGURE_COUNT; f++)
		free(columns[f]);
}

/* What was live then, or at the end of the latest session. */
static uint64_t time_of(const struct report *r)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < r->session_count; i++) {
		const struct recorded_session *s = &r->sessions[i];
		uint64_t after = r->options.at_ns && r->options.at_ns < s->duration_ns ? r->options.at_ns
		                                                                       : s->duration_ns;
		if (s->start_ns && s->start_ns + after > latest)
			latest = s->start_ns + after;
	}
	return latest;
}

static void put_head(struct pprof *p)
{
	const struct report *r = p->report;

	pprof_string(p, ""); /* the first one */
	for (int t = 0; t < TYPES; t++)
		put_type(p, PROFILE_SAMPLE_TYPE, types[t].name, types[t].unit);
	put_type(p, PROFILE_PERIOD_TYPE, "space", "bytes");
	pprof_put_comments(p);
	proto_clear(&p->part);
	proto_number(&p->part, PROFILE_TIME, time_of(r));
	proto_number(&p->part, PROFILE_PERIOD, (uint64_t)fmax(1, round(pprof_interval(r))));
	proto_number(&p->part, PROFILE_DEFAULT_TYPE, pprof_string(p, types[TYPES - 1].name));
	if (!p->part.failed)
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
}

static void done(struct pprof *p)
{
	proto_done(&p->message);
	proto_done(&p->part);
	proto_done(&p->packed);
	string_table_done(&p->strings);
	name_done(&p->buffer);
	place_table_done(&p->places);
	map_done(&p->function_of);
	free(p->mappings);
	free(p);
}

int report_pprof(const struct report *r, FILE *out)
{
	struct pprof *p = calloc(1, sizeof *p);
	int s = p ? gzip_begin(&p->gzip, out) : -ENOMEM;

	if (s) {
		free(p);
		return s;
	}
	p->report = r;
	output_rows_init(&p->rows, r);
	place_table_init(&p->places, r);
	pprof_init_gaps(p);
	put_head(p);
	put_samples(p);
	if (!p->error)
		pprof_put_tables(p);
	gzip_end(&p->gzip);
	s = p->error;
	done(p);
	return s;
}
