/* SPDX-License-Identifier: MIT */
#include "exchange/profile.h"

#include <math.h>
#include <stdlib.h>

const struct profile_type profile_types[PROFILE_TYPES] = {
	{ "alloc_samples", "count", true, FIGURE_ALLOCATED_COUNT },
	{ "inuse_samples", "count", true, FIGURE_LIVE_COUNT },
	{ "alloc_objects", "count", false, FIGURE_ALLOCATED_COUNT },
	{ "alloc_space", "bytes", false, FIGURE_ALLOCATED_BYTES },
	{ "inuse_objects", "count", false, FIGURE_LIVE_COUNT },
	{ "inuse_space", "bytes", false, FIGURE_LIVE_BYTES },
};

void profile_init(struct profile *p, const struct report *report)
{
	*p = (struct profile){ .report = report };
	output_rows_init(&p->rows, report);
	place_table_init(&p->places, report);
	profile_string(p, "");
	for (size_t i = 0; i < p->rows.count; i++) {
		enum output_gap gap = output_rows_gap(&p->rows, i);
		if (gap && !p->gaps[gap])
			p->gaps[gap] = ++p->gap_count;
	}
}

void profile_done(struct profile *p)
{
	string_table_done(&p->strings);
	frame_name_done(&p->buffer);
	place_table_done(&p->places);
	map_done(&p->function_of);
	free(p->mappings);
	free(p->mapped);
	free(p->stack);
}

uint32_t profile_string(struct profile *p, const char *text)
{
	const char *clean = frame_name_clean(&p->buffer, text);
	uint32_t number = 0;

	if (!clean || string_table_add(&p->strings, clean, &number))
		p->error = -ENOMEM;
	return number;
}

uint64_t profile_location(struct profile *p, uint64_t place)
{
	const struct place_entry *entry = place_table_get(&p->places, place);

	if (!entry) {
		p->error = -ENOMEM;
		return 1;
	}
	return p->gap_count + 1u + (uint64_t)(entry - p->places.list);
}

uint32_t profile_frame_name(struct profile *p, const struct place_entry *entry, const struct location *location)
{
	const char *text = frame_name_text(&p->buffer, p->report, entry->place, location);
	uint32_t name = 0;

	if (!text || string_table_add(&p->strings, text, &name))
		p->error = -ENOMEM;
	return name;
}

uint32_t profile_function(struct profile *p, uint32_t name, uint32_t file, bool *fresh)
{
	uint64_t key = (uint64_t)name << 32 | file;
	const uint32_t *known = map_find(&p->function_of, key);

	*fresh = !known;
	if (known)
		return *known;
	if (map_put(&p->function_of, key, ++p->function_count))
		p->error = -ENOMEM;
	return p->function_count;
}

/* ---- samples ---- */

const uint64_t *profile_stack(struct profile *p, size_t row, size_t *count)
{
	const struct report_row *r = output_rows_row(&p->rows, row);
	enum output_gap gap = output_rows_gap(&p->rows, row);
	size_t depth = gap == OUTPUT_UNKNOWN || gap == OUTPUT_MORE ? 0 : output_rows_depth(&p->rows, row);

	*count = 0;
	if (depth + 1 > p->stack_room) {
		free(p->stack);
		p->stack_room = 2 * depth + 64;
		p->stack = calloc(p->stack_room, sizeof *p->stack);
	}
	if (!p->stack) {
		p->stack_room = 0;
		p->error = -ENOMEM;
		return NULL;
	}
	while (*count < depth) {
		p->stack[*count] = profile_location(p, r->frames[*count]);
		++*count;
	}
	if (gap)
		p->stack[(*count)++] = p->gaps[gap];
	return p->stack;
}

/* *more: so many samples than rows may be put. */
static void put_row(struct profile *p, size_t i, const struct profile_part *whole, size_t *more,
                    profile_put_sample *put)
{
	struct profile_split split;

	p->error = profile_split(p->report, output_rows_row(&p->rows, i), whole, &split);
	size_t wanted = !p->error && split.count ? split.count - 1 : 0;
	if (wanted > *more) {
		put(p, i, whole);
	} else if (!p->error) {
		*more -= wanted;
		for (size_t k = 0; k < split.count; k++)
			put(p, i, &split.parts[k]);
	}
	free(split.parts);
}

void profile_samples(struct profile *p, profile_put_sample *put)
{
	enum output_side side = report_compares(p->report) ? OUTPUT_GROWTH : OUTPUT_NOW;
	size_t more = p->report->options.top ? p->report->options.top + 1 - p->rows.count : SIZE_MAX;
	int64_t *columns[FIGURE_COUNT];
	bool all = true;

	for (int f = 0; f < FIGURE_COUNT; f++) {
		columns[f] = output_rows_column(&p->rows, side, f);
		all = all && columns[f];
	}
	p->error = all ? p->error : -ENOMEM;
	for (size_t i = 0; !p->error && i < p->rows.count; i++) {
		struct profile_part whole = { .thread = "" };
		for (int f = 0; f < FIGURE_COUNT; f++) {
			whole.values[f] = columns[f][i];
			whole.samples[f] = output_rows_samples(&p->rows, i, f);
		}
		progress_at(p->report->options.progress, "writing", i, p->rows.count);
		report_want_symbols(p->report, i, p->rows.shown);
		put_row(p, i, &whole, &more, put);
	}
	for (int f = 0; f < FIGURE_COUNT; f++)
		free(columns[f]);
}

/* ---- times ---- */

uint64_t profile_time_ns(const struct report *r)
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

/* Weighted by time, with the sum of the times. */
static double interval_of(const struct recorded_session *s, double *seconds)
{
	double end = (double)s->duration_ns / 1e9, at = 0, sum = 0, rate = (double)s->first_rate_bytes;

	for (size_t i = 0; i < s->rate_count; i++) {
		double next = fmax(at, fmin(s->rates[i].seconds, end));
		sum += rate * (next - at);
		at = next;
		rate = (double)s->rates[i].new_bytes;
	}
	*seconds += end;
	return sum + rate * (end - at);
}

double profile_interval(const struct report *r)
{
	double seconds = 0, sum = 0;

	for (size_t i = 0; i < r->session_count; i++)
		sum += interval_of(&r->sessions[i], &seconds);
	return seconds > 0 ? sum / seconds : r->session_count ? (double)r->sessions[0].rate_bytes : 1;
}
