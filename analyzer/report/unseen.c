/* SPDX-License-Identifier: MIT */
#include "report/unseen.h"

#include <math.h>

void unseen_note_rate(struct report *r, uint64_t rate, bool before)
{
	uint64_t *largest = before ? &r->rate_before : &r->rate_now;

	r->rates_differ |= r->largest_rate && r->largest_rate != rate;
	*largest = rate > *largest ? rate : *largest;
	r->largest_rate = rate > r->largest_rate ? rate : r->largest_rate;
}

uint64_t unseen_rate_before(const struct report *r)
{
	return r->options.diff ? r->rate_before : r->rate_now;
}

/* Dumps of different rates: the smallest block that any of them shows, as each side sees it. */
static double smallest_of(const struct report *r, const struct report_row *row)
{
	double now = row->smallest[0];
	double before = row->smallest[1];

	if (!r->rates_differ)
		return 0;
	return now > 0 && before > 0 ? fmin(now, before) : fmax(now, before);
}

static void fill(struct estimate_sum *sum, int figure, uint64_t rate, double smallest)
{
	if (report_is_bytes(figure)) {
		sum->next = rate > 1 ? (double)rate : 0;
	} else {
		estimate_hide(sum, rate);
		estimate_expect(sum, estimate_weight(smallest, rate));
	}
}

static void fill_row(const struct report *r, struct report_row *row)
{
	uint64_t before = unseen_rate_before(r);
	double smallest = smallest_of(r, row);
	/* Of one session, what was allocated since is a set of its own, from which nothing has gone. */
	bool only_comes = r->options.since_ns || r->same_session;

	for (int f = 0; f < FIGURE_COUNT; f++) {
		fill(&row->sum[f], f, r->rate_now, smallest);
		if (!row->change)
			continue;
		fill(&row->change->old[f], f, before, smallest);
		fill(&row->change->plus[f], f, r->rate_now, smallest);
		if (only_comes && !report_is_live(f))
			row->change->minus[f] = (struct estimate_sum){ 0 };
		else
			fill(&row->change->minus[f], f, before, smallest);
	}
	if (row->leak) {
		fill(&row->leak->bytes, FIGURE_LIVE_BYTES, r->rate_now, smallest);
		fill(&row->leak->count, FIGURE_LIVE_COUNT, r->rate_now, smallest);
	}
}

void unseen_fill_rows(struct report *r)
{
	for (size_t i = 0; i < r->rows.count; i++)
		fill_row(r, &r->rows.list[i]);
}

void unseen_fill_total(struct report *r)
{
	fill_row(r, &r->total);
	fill_row(r, &r->unfiltered);
	fill_row(r, &r->beside);
}

struct unseen_stacks unseen_stacks(const struct report *r, bool live)
{
	enum report_figure f = live ? FIGURE_LIVE_BYTES : FIGURE_ALLOCATED_BYTES;
	struct estimate_sum sum = { .next = r->largest_rate > 1 ? (double)r->largest_rate : 0 };
	struct unseen_stacks found = { 0 };

	for (size_t i = 0; i < r->rows.count; i++) {
		const struct estimate_sum *row = &r->rows.list[i].sum[f];
		double n = (double)row->samples;
		double unseen = n > 0 ? (row->value - row->seen) / n : 0; /* of a sample */
		found.stacks += n == 0;
		if (n == 1)
			sum.value += unseen;
		if (n == 1 || n == 2)
			sum.variance += n * unseen * unseen;
	}
	found.estimate = sum.value;
	found.high = estimate_high_smooth(&sum, r->options.confidence);
	return found;
}
