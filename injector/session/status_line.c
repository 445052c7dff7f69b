/* SPDX-License-Identifier: MIT */
#include "session/status_line.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/rate_control.h"
#include "stats/estimate.h"
#include "base/printable.h"
#include "host/say.h"
#include "base/size.h"

#define MAPPINGS_MIN 0.0005
#define ENTRIES_MAX (1u << 20) /* more live samples are not added up every second */

bool status_line_wanted(const struct session *s)
{
	const char *term = getenv("TERM");

	return !s->options.quiet && !s->live_child && !s->options.launched && !s->options.among_several &&
	       isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* Of a mapping that was cut nothing is known here but this part: all of the others are taken for live. */
static void add_record(struct estimate_sum *sum, uint64_t bytes, uint64_t whole, uint32_t rate)
{
	const double p = estimate_probability(whole, rate), x = (double)bytes;

	estimate_add(sum, x, p);
	if (bytes < whole)
		sum->variance +=
			estimate_part_variance(x, p, ((double)whole - x) / 2) - estimate_part_variance(x, p, 0);
}

/* Is it no memory, but a mapping of a file? */
static bool is_file(const struct dump_writer *w, uint32_t number)
{
	const struct dump_stack *stack = w->own->features & DUMP_FEATURE_FILES ? dump_writer_stack(w, number) : NULL;

	return stack && stack->flags & DUMP_STACK_FILE;
}

/* Sum over the live table, as it is at this moment. */
static bool live_sum(const struct dump_writer *w, struct estimate_sum *sum)
{
	const struct dump_header *h = w->own;
	uint64_t entries = 0;

	for (uint32_t i = 0; i < h->region_count; i++) {
		const struct dump_region *r = &h->regions[i];
		if (r->kind != DUMP_REGION_LIVE)
			continue;
		entries += r->entries;
		if (entries > ENTRIES_MAX)
			return false;
		const struct dump_live_record *records =
			(const void *)((const char *)w->shared + r->offset + DUMP_LIVE_RECORDS_AT(r->entries));
		for (uint64_t k = 0; k < r->entries; k++) {
			uint64_t key = atomic_load_explicit((const _Atomic uint64_t *)&records[k].address,
			                                    memory_order_acquire);
			if (DUMP_KEY_IS_FREE(key) || key == DUMP_KEY_BUSY || is_file(w, records[k].stack))
				continue;
			const struct thinning_sample sample = thinning_of_live(&records[k]);
			uint32_t rate = thinning_rate(w->thinnings, w->thinning_count, &sample, UINT64_MAX);
			if (!rate)
				continue;
			add_record(sum, records[k].size, sample.size, rate);
			estimate_expect(sum, rate > 1 ? rate : 0);
		}
	}
	if (h->rate_bytes > 1)
		estimate_expect(sum, (double)h->rate_bytes);
	return true;
}

const char *status_line_time(uint64_t ns, char text[STATUS_LINE_TIME])
{
	uint64_t seconds = ns / 1000000000u;

	snprintf(text, STATUS_LINE_TIME, "%02u:%02u:%02u", (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60),
	         (unsigned)(seconds % 60));
	return text;
}

struct line {
	char text[512];
	size_t columns, width;
};

/* Adds it to the line if it fits. */
static __attribute__((format(printf, 2, 3))) bool add(struct line *l, const char *format, ...)
{
	char part[128];
	va_list ap;

	va_start(ap, format);
	vsnprintf(part, sizeof part, format, ap);
	va_end(ap);
	size_t columns = printable_copy(part, part, sizeof part), used = strlen(l->text);
	if (l->columns + columns > l->width || used + strlen(part) >= sizeof l->text)
		return false;
	strcpy(l->text + used, part);
	l->columns += columns;
	return true;
}

static void add_live(struct line *l, struct estimate e)
{
	char live[SIZE_TEXT], low[SIZE_TEXT], high[SIZE_TEXT];

	size_format(e.low, low);
	size_format(e.high, high);
	if (!add(l, "  live %s (%s … %s)", size_format(e.value, live), low, high))
		add(l, "  live %s … %s", low, high);
}

/* What comes first is most important; what does not fit is left out. */
void status_line_show(struct session *s)
{
	struct line line = { 0 };
	struct estimate_sum sum = { 0 };
	char time[STATUS_LINE_TIME], file[SIZE_TEXT], rate[SIZE_TEXT];

	if (!status_line_wanted(s))
		return;
	line.width = say_status_width();
	add(&line, "%s  %llu samples", status_line_time(clock_monotonic_ns() - s->recording.started_ns, time),
	    (unsigned long long)dump_writer_counter(&s->recording.dump, DUMP_COUNTER_samples_taken));
	if (live_sum(&s->recording.dump, &sum))
		add_live(&line, estimate_interval(&sum, ESTIMATE_CONFIDENCE));
	add(&line, "  file %s", size_format((double)s->recording.dump.used, file));
	if (s->recording.governor.limit > 0)
		add(&line, "  rate %s, cost %.2f %%", size_format((double)s->recording.governor.rate, rate),
		    100 * s->recording.governor.overhead);
	if (rate_control_mappings(s) >= MAPPINGS_MIN)
		add(&line, " + %.2f %% for mappings", 100 * rate_control_mappings(s));
	say_status(line.text);
}

void status_line_text(const struct session *s, const char *format, ...)
{
	va_list ap;

	if (!status_line_wanted(s))
		return;
	va_start(ap, format);
	char *line = say_format(format, ap);
	va_end(ap);
	if (line)
		say_status(line);
	free(line);
}
