/* SPDX-License-Identifier: MIT */
#include "status_line.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "estimate.h"
#include "say.h"
#include "size.h"

#define ENTRIES_MAX (1u << 20) /* more live samples are not added up every second */

bool status_line_wanted(const struct session *s)
{
	const char *term = getenv("TERM");

	return !s->options.quiet && !s->live_child && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
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
			if (DUMP_KEY_IS_FREE(key) || key == DUMP_KEY_BUSY)
				continue;
			const struct thinning_sample sample = thinning_of_live(&records[k]);
			uint32_t rate = thinning_rate(w->thinnings, w->thinning_count, &sample, UINT64_MAX);
			if (!rate)
				continue;
			estimate_add(sum, (double)sample.size, estimate_probability(sample.size, rate));
			estimate_expect(sum, rate > 1 ? rate : 0);
		}
	}
	if (h->rate_bytes > 1)
		estimate_expect(sum, (double)h->rate_bytes);
	return true;
}

const char *status_line_time(uint64_t ns, char *text)
{
	uint64_t seconds = ns / 1000000000u;

	snprintf(text, STATUS_LINE_TIME, "%02u:%02u:%02u", (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60),
	         (unsigned)(seconds % 60));
	return text;
}

void status_line_show(struct session *s)
{
	struct estimate_sum sum = { 0 };
	char live[SIZE_TEXT] = "", low[SIZE_TEXT], high[SIZE_TEXT], file[SIZE_TEXT], rate[SIZE_TEXT];

	if (!status_line_wanted(s))
		return;
	fprintf(stderr, "\r\033[K%s  %llu samples", status_line_time(monotonic_ns() - s->recording.started_ns, rate),
	        (unsigned long long)dump_writer_counter(&s->recording.dump, DUMP_COUNTER_samples_taken));
	if (live_sum(&s->recording.dump, &sum)) {
		struct estimate e = estimate_interval(&sum, ESTIMATE_CONFIDENCE);
		fprintf(stderr, "  live %s (%s … %s)", size_format(e.value, live), size_format(e.low, low),
		        size_format(e.high, high));
	}
	fprintf(stderr, "  file %s", size_format((double)s->recording.dump.used, file));
	if (s->recording.governor.limit > 0)
		fprintf(stderr, "  rate %s, cost %.2f %%", size_format((double)s->recording.governor.rate, rate),
		        100 * s->recording.governor.overhead);
	fflush(stderr);
}

/* What a line of the terminal holds; one that is longer could not be wiped. */
static int columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;
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
		fprintf(stderr, "\r\033[K%.*s", columns(), line);
	fflush(stderr);
	free(line);
}

void status_line_end(const struct session *s)
{
	if (status_line_wanted(s))
		fputs("\r\033[K", stderr);
}
