/* SPDX-License-Identifier: MIT */
#include "exchange/report_pprof.h"

#include <math.h>
#include <stdlib.h>

#include "exchange/profile_comments.h"
#include "exchange/pprof_tables.h"

enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };

static void put_type(struct pprof *p, unsigned field, const char *name, const char *unit)
{
	uint32_t numbers[] = { profile_string(&p->base, name), profile_string(&p->base, unit) };

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
	uint32_t name = profile_string(&p->base, "bytes");

	if (!(blocks > 0 && bytes > 0))
		return;
	proto_clear(&p->packed);
	proto_number(&p->packed, LABEL_KEY, name);
	proto_number(&p->packed, LABEL_NUMBER, (uint64_t)round(bytes / blocks));
	proto_number(&p->packed, LABEL_UNIT, name);
	proto_message(&p->message, SAMPLE_LABEL, &p->packed);
}

/* The innermost frame first. */
static void put_locations(struct pprof *p, size_t row)
{
	size_t count;
	const uint64_t *locations = profile_stack(&p->base, row, &count);

	proto_clear(&p->packed);
	for (size_t k = 0; k < count; k++)
		proto_element(&p->packed, locations[k]);
	proto_message(&p->message, SAMPLE_LOCATION, &p->packed);
}

static void put_thread(struct pprof *p, const char *thread)
{
	if (!thread[0])
		return;
	proto_clear(&p->packed);
	proto_number(&p->packed, LABEL_KEY, profile_string(&p->base, "thread"));
	proto_number(&p->packed, LABEL_STRING, profile_string(&p->base, thread));
	proto_message(&p->message, SAMPLE_LABEL, &p->packed);
}

static void put_sample(struct profile *base, size_t row, const struct profile_part *part)
{
	struct pprof *p = (struct pprof *)base;
	bool any = false;

	put_locations(p, row);
	proto_clear(&p->packed);
	for (int t = 0; t < PROFILE_TYPES; t++) {
		int64_t value = profile_value(part, &profile_types[t]);
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

static void put_comment(void *to, const char *line)
{
	struct pprof *p = to;

	proto_clear(&p->part);
	proto_number(&p->part, PROFILE_COMMENT, profile_string(&p->base, line));
	if (!p->part.failed)
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
}

static void put_head(struct pprof *p)
{
	const struct report *r = p->base.report;

	for (int t = 0; t < PROFILE_TYPES; t++)
		put_type(p, PROFILE_SAMPLE_TYPE, profile_types[t].name, profile_types[t].unit);
	put_type(p, PROFILE_PERIOD_TYPE, "space", "bytes");
	profile_comments(r, put_comment, p);
	proto_clear(&p->part);
	proto_number(&p->part, PROFILE_TIME, profile_time_ns(r));
	proto_number(&p->part, PROFILE_PERIOD, (uint64_t)fmax(1, round(profile_interval(r))));
	proto_number(&p->part, PROFILE_DEFAULT_TYPE, profile_string(&p->base, profile_types[PROFILE_TYPES - 1].name));
	if (!p->part.failed)
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
}

static void done(struct pprof *p)
{
	proto_done(&p->message);
	proto_done(&p->part);
	proto_done(&p->packed);
	profile_done(&p->base);
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
	profile_init(&p->base, r);
	put_head(p);
	profile_samples(&p->base, put_sample);
	if (!p->base.error)
		pprof_put_tables(p);
	gzip_end(&p->gzip);
	s = p->base.error;
	done(p);
	return s;
}
