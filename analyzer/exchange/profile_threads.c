/* SPDX-License-Identifier: MIT */
#include "exchange/profile_threads.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"

/* Shares of what is known; rounding may leave a little. */
#define ALL 0.999999

ORDER_BY(compare_parts, struct thread_part, thread);

/* Those of one name together; returns how many there are. */
static size_t collect(const struct stack_threads *t, uint32_t first, struct thread_part *list)
{
	size_t n = 0, count = 0;

	for (uint32_t i = first; i; i = t->parts[i - 1].next)
		list[n++] = t->parts[i - 1];
	qsort(list, n, sizeof *list, compare_parts);
	for (size_t i = 0; i < n; i++) {
		if (!count || list[count - 1].thread != list[i].thread) {
			list[count++] = list[i];
			continue;
		}
		for (int f = 0; f < FIGURE_COUNT; f++) {
			list[count - 1].share[f].value += list[i].share[f].value;
			list[count - 1].share[f].samples += list[i].share[f].samples;
		}
	}
	return count;
}

static size_t length(const struct stack_threads *t, uint32_t first)
{
	size_t n = 0;

	for (uint32_t i = first; i; i = t->parts[i - 1].next)
		n++;
	return n;
}

/* What is left is the largest part's if all of the figure is known, else the last one's, which is of no thread. */
static void share_out(const struct thread_part *list, size_t count, enum report_figure f, double all,
                      const struct profile_part *whole, struct profile_part *parts)
{
	int64_t left = whole->values[f];
	uint64_t samples = whole->samples[f];
	double known = 0;
	size_t most = 0;

	for (size_t i = 0; i < count && all > 0; i++) {
		double share = fmin(1, list[i].share[f].value / all);
		int64_t value = (int64_t)floor((double)whole->values[f] * share);
		parts[i].values[f] = value < left ? value : left;
		parts[i].samples[f] = list[i].share[f].samples < samples ? list[i].share[f].samples : samples;
		left -= parts[i].values[f];
		samples -= parts[i].samples[f];
		known += share;
		most = list[i].share[f].value > list[most].share[f].value ? i : most;
	}
	size_t to = known > ALL ? most : count;
	parts[to].values[f] += left;
	parts[count].samples[f] += samples;
}

/* What is of no thread is one part. */
static void move_part(const struct profile_part *from, struct profile_part *to)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		to->values[f] += from->values[f];
		to->samples[f] += from->samples[f];
	}
}

static bool is_empty(const struct profile_part *part)
{
	for (int f = 0; f < FIGURE_COUNT; f++)
		if (part->values[f] || part->samples[f])
			return false;
	return true;
}

int profile_split(const struct report *r, const struct report_row *row, const struct profile_part *whole,
                  struct profile_split *split)
{
	const struct stack_threads *t = &r->stack_threads;
	uint32_t first = row && !t->full ? row->threads : 0;
	size_t n = length(t, first);
	AUTO_FREE struct thread_part *list = calloc(n + 1, sizeof *list);

	*split = (struct profile_split){ .parts = calloc(n + 1, sizeof *split->parts) };
	if (!list || !split->parts)
		return -ENOMEM;
	n = collect(t, first, list);
	for (int f = 0; f < FIGURE_COUNT; f++)
		share_out(list, n, f, row ? row->sum[f].value : 0, whole, split->parts);
	for (size_t i = 0; i <= n; i++) {
		split->parts[i].thread = i < n ? t->names.list[list[i].thread] : "";
		if (i < n && !split->parts[i].thread[0]) {
			move_part(&split->parts[i], &split->parts[n]);
			continue;
		}
		if (!is_empty(&split->parts[i]))
			split->parts[split->count++] = split->parts[i];
	}
	return 0;
}
