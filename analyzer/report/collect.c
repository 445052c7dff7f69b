/* SPDX-License-Identifier: MIT */
/* What was collected for each stack of a dump becomes rows, where equal stacks meet. */
#include "report/collect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_list.h"
#include "report/session_groups.h"
#include "report/judge.h"
#include "report/lost_samples.h"
#include "input/samples.h"
#include "report/stack_counts.h"
#include "report/stack_places.h"
#include "symbols/target_root.h"
#include "report/unseen.h"

struct build {
	struct report *report;
	struct dump *dump;
	enum collect_side side;
	struct image_map modules;
	struct stack_maker stacks;
	struct leak_window window;
	struct samples samples;
	struct labels labels;
	struct sample_filter filter;
	struct map threads;      /* those that are kept, with their number as key */
	struct report_row whole; /* the sum of all rows, where sessions are summed up */
};

/* Of one stack, until it is added to its row. */
struct part {
	struct report_row row;
	struct row_change change;
	struct leak_tally leak;
	const struct tally *tally;
	const struct window_part *window; /* NULL: none */
};

/* Whether the dump is the older one of a pair. */
static bool is_before(const struct build *b)
{
	return b->side == COLLECT_OLD || b->side == COLLECT_EARLIER;
}

static bool has_times(const struct build *b)
{
	return b->samples.options.at != UINT64_MAX || b->samples.options.since;
}

/* What the stack says was allocated, bytes and blocks. */
static void stack_sums(const struct part *part, const struct dump_stack *stack, struct estimate_sum pair[2])
{
	const struct estimate_sum *live = part->row.sum;

	if (stack && stack->taken_count >= live[FIGURE_LIVE_COUNT].samples) {
		pair[0] = (struct estimate_sum){ .value = (double)stack->taken_bytes + stack->excess_bytes,
			                         .variance = stack->variance_bytes,
			                         .seen = live[FIGURE_LIVE_BYTES].seen + part->tally->history_bytes,
			                         .samples = stack->taken_count };
		pair[1] = (struct estimate_sum){ .value = (double)stack->taken_count + stack->excess_count,
			                         .variance = stack->variance_count,
			                         .seen = (double)stack->taken_count,
			                         .samples = stack->taken_count };
	} else {
		pair[0] = live[FIGURE_LIVE_BYTES]; /* the sums are lost; at least this was allocated */
		pair[1] = live[FIGURE_LIVE_COUNT];
	}
}

/* What was allocated: the stack's sums, or in a window of time, and of samples that are chosen one by one, what records
 * are left of it. */
static void fill_allocated(const struct build *b, struct part *part, const struct dump_stack *stack)
{
	struct estimate_sum *sum = part->row.sum;

	if (has_times(b) || b->filter.records) {
		for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++)
			part->change.plus[FIGURE_ALLOCATED_BYTES + f] = sum[FIGURE_ALLOCATED_BYTES + f] =
				part->window->born[f];
	} else {
		stack_sums(part, stack, sum + FIGURE_ALLOCATED_BYTES);
	}
}

/* To what there would be without a filter; of what the filter leaves out, the samples are added in the end. */
static void add_unfiltered(const struct build *b, const struct part *part, const struct dump_stack *stack)
{
	struct report_row *all = &b->report->unfiltered;
	struct estimate_sum sum[FIGURE_COUNT];

	if (!filter_any(&b->report->options.filter) || is_before(b))
		return;
	memcpy(sum, part->row.sum, sizeof sum);
	if (b->filter.records && !has_times(b))
		stack_sums(part, stack, sum + FIGURE_ALLOCATED_BYTES);
	for (int f = 0; f < FIGURE_COUNT; f++)
		estimate_merge(&all->sum[f], &sum[f]);
}

/* Of the session, and of what is sampled half as often. */
static uint64_t largest_rate(const struct build *b, enum sample_half half)
{
	return half_rate(b->report->sessions[b->report->session_count - 1].largest_rate_bytes, half);
}

/* Says which sizes the samples of the stack show: a count that has no sample of its own is about them. What else an
 * unseen sample may weigh is known when all dumps are (unseen.h). */
static void know_sizes(const struct build *b, struct part *part, const struct dump_stack *stack)
{
	struct row_change *change = &part->change;
	struct estimate_sum *allocated = &part->row.sum[FIGURE_ALLOCATED_COUNT];
	double smallest = part->tally->smallest;
	double count = part->tally->next;

	/* Where records are gone: sum of w^2 / sum of w, the mean weight of the samples weighted by themselves. */
	if (b->samples.rate > 1 && stack && stack->taken_count) {
		double mean = stack->variance_count / ((double)stack->taken_count + stack->excess_count) + 1;
		uint64_t taken = largest_rate(b, HALF_NONE), counts = largest_rate(b, b->samples.options.half);
		count = fmax(count, counts != taken ? estimate_weight(estimate_size(mean, taken), counts) : mean);
	}
	if (!(smallest > 0))
		smallest = estimate_size(count, b->samples.rate);
	part->row.smallest[is_before(b)] = smallest;
	/* The sums of a stack do not know their largest weight. */
	if (!allocated->next)
		allocated->next = count;
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate_sum *sums[] = { &part->row.sum[f], &change->old[f], &change->plus[f],
			                        &change->minus[f] };
		for (size_t i = 0; !report_is_bytes(f) && i < sizeof sums / sizeof sums[0]; i++)
			if (!sums[i]->samples)
				sums[i]->next = count;
	}
	if (!part->leak.count.samples)
		part->leak.count.next = count;
}

/* What the samples say. */
static void take_samples(const struct build *b, struct part *part, size_t number)
{
	const struct samples *s = &b->samples;

	*part = (struct part){ .row.slack = s->lives[number].slack, .tally = &s->tallies[number] };
	part->row.change = b->report->rows.changes ? &part->change : NULL;
	part->row.leak = b->report->rows.leaks ? &part->leak : NULL;
	if (b->side != COLLECT_EARLIER) { /* which the later one holds */
		part->row.frees = s->lives[number].frees;
		part->row.frees.seen = part->tally->seen;
	}
	if (s->windows)
		part->window = &s->windows[number];
	if (s->leaks)
		part->leak = s->leaks[number];
	if (s->times)
		part->row.times = s->times[number];
	for (int f = 0; f <= FIGURE_LIVE_COUNT; f++) {
		part->row.sum[f] = s->lives[number].sum[f];
		if (!s->windows)
			continue;
		part->change.old[f] = part->window->old[f];
		part->change.plus[f] = part->window->plus[f];
		part->change.minus[f] = part->window->minus[f];
	}
}

/* Puts the figures of one dump of a pair on their side. */
static void take_side(const struct build *b, struct part *part)
{
	struct report_row *row = &part->row;
	struct row_change *change = &part->change;
	bool before = is_before(b);

	for (int f = 0; f < FIGURE_COUNT; f++) {
		if (b->side == COLLECT_NEW)
			change->plus[f] = row->sum[f];
		if (b->side == COLLECT_OLD)
			change->minus[f] = row->sum[f];
		if (before) {
			change->old[f] = row->sum[f];
			row->sum[f] = change->plus[f] = (struct estimate_sum){ 0 };
		} else if (b->report->options.diff) {
			change->old[f] = change->minus[f] = (struct estimate_sum){ 0 };
		}
	}
	if (before) {
		row->slack = (struct slack){ 0 };
		memset(row->lost, 0, sizeof row->lost);
	}
}

/* As many as are neither in the live table nor had to go for room. */
static uint64_t freed_samples(const struct dump_stack *stack, uint64_t records)
{
	if (!stack || stack->taken_count < records || stack->taken_count - records < stack->unkept)
		return 0;
	return stack->taken_count - records - stack->unkept;
}

/* Of the samples that the history has dropped, as many are chosen as of those that it has kept. */
static uint64_t chosen_part(const struct part *part, uint64_t dropped)
{
	const struct tally *tally = part->tally;
	uint64_t kept = part->leak.kept;

	return kept < tally->history ? (uint64_t)ceil((double)dropped * (double)kept / (double)tally->history)
	                             : dropped;
}

static void fill_part(const struct build *b, struct part *part, size_t number, const struct dump_stack *stack)
{
	uint64_t lost_live = dump_counter(b->dump, DUMP_COUNTER_lost_live_full);

	take_samples(b, part, number);
	fill_allocated(b, part, stack);
	know_sizes(b, part, stack);
	add_unfiltered(b, part, stack);
	uint64_t freed = freed_samples(stack, b->samples.lives[number].records);
	if (freed > part->tally->history)
		part->leak.dropped = chosen_part(part, freed - part->tally->history);
	/* Some of them may have been given up for room instead: it is known of how many in all, not of which stack. */
	const uint64_t unkept = stack ? (uint64_t)stack->unkept + stack->unkept_parts : 0;
	if (lost_live && unkept && stack->taken_count) {
		uint64_t lost = unkept < lost_live ? unkept : lost_live;
		uint64_t dropped = freed > part->tally->history ? freed - part->tally->history : 0;
		double seen = part->row.sum[FIGURE_LIVE_BYTES].seen + part->tally->history_bytes;
		lost_samples_weigh(stack, &part->row.frees, seen, (double)lost / (double)(unkept + dropped),
		                   (double)lost, part->row.lost);
	}
	take_side(b, part);
}

/* A stack that the report is not about. */
static void add_beside(const struct build *b, size_t number, const struct dump_stack *stack)
{
	struct part part = { .tally = &b->samples.tallies[number] };
	struct estimate_sum *sum = part.row.sum;

	if (is_before(b) || has_times(b))
		return;
	memcpy(sum, b->samples.lives[number].sum, sizeof b->samples.lives[number].sum);
	stack_sums(&part, stack, sum + FIGURE_ALLOCATED_BYTES);
	know_sizes(b, &part, stack);
	row_merge(&b->report->beside, &part.row);
}

/* Where samples are left out, their frees still say what the figures are worth. */
static bool is_empty(const struct build *b, const struct part *part)
{
	const struct free_tally *frees = &part->row.frees;

	return row_is_empty(&part->row, &part->change) &&
	       (!b->filter.records || (!frees->live.samples && !frees->missed.samples && !frees->seen.samples));
}

static int make_rows(struct build *b)
{
	struct report *r = b->report;

	for (size_t i = 0; i < b->samples.count; i++) {
		struct part part;
		struct dump_stack_copy copy;
		struct stack_places places = { .count = 0 };
		bool known = i && !dump_read_stack(b->dump, b->samples.tallies[i].reference, &copy);

		if (b->samples.tallies[i].beside) {
			add_beside(b, i, known ? &copy.stack : NULL);
			continue;
		}
		if (known) {
			stack_places_make(&b->stacks, &copy, &places);
			uint64_t caller = b->samples.tallies[i].aligned && copy.stack.frame_count
			                          ? images_place(&b->modules, copy.frames[0])
			                          : 0;
			if (!is_before(b))
				stack_counts_add(r, &copy.stack, &places, caller);
		}
		progress_at(r->options.progress, "adding up stacks", i, b->samples.count);
		fill_part(b, &part, i, known ? &copy.stack : NULL);
		if (is_empty(b, &part))
			continue;
		part.row.flags = places.flags;
		r->stack_count += places.count != 0;
		struct report_row *row = rows_get(&r->rows, places.list, places.count, !places.count);
		if (!row)
			return -ENOMEM;
		if (session_groups_wanted(&r->options) && !b->samples.tallies[i].out)
			row_merge(&b->whole, &part.row);
		row->out = b->samples.tallies[i].out;
		row_merge(row, &part.row);
		if (b->samples.plans)
			row_take_plan(row, &b->samples.plans[i]);
		uint32_t reference = b->samples.tallies[i].reference;
		index_list_join(r->spans.cells, &row->spans, spans_of(&r->spans, reference));
		index_list_join(r->stack_threads.parts, &row->threads, stack_threads_of(&r->stack_threads, reference));
	}
	return 0;
}

/* The times that the options name, as stamps of this dump. */
static void set_times(struct build *b, struct sample_options *times)
{
	const struct report_options *o = &b->report->options;
	const struct dump_header *h = dump_header(b->dump);
	uint64_t start = h->clock_start.stamp;
	uint64_t end = dump_latest_stamp(b->dump) > start ? dump_latest_stamp(b->dump) : start;

	times->at = o->at_ns ? dump_stamp_after(b->dump, o->at_ns) : UINT64_MAX;
	times->since = o->since_ns ? dump_stamp_after(b->dump, o->since_ns) : 0;
	b->window = leak_window(start, end, o->age_ns ? dump_stamp_after(b->dump, o->age_ns) - start : 0);
	if (end <= start)
		return;
	const double part = (double)b->window.age / (double)(end - start), ns = (double)dump_duration_ns(b->dump);
	b->report->age_ns = (uint64_t)(part * ns);
	b->report->old_seconds += (1 - part) * ns / 1e9;
}

/* Says of stacks whether the filter leaves them out; their names are asked for together. */
static int choose_stacks(void *arg, struct tally *tallies, size_t first, size_t count)
{
	struct build *b = arg;
	struct symbols *symbols = b->report->symbols;
	struct dump_stack_copy copy;
	struct stack_places places;

	for (size_t from = first; from < count; from += REPORT_AHEAD) {
		size_t end = count - from < REPORT_AHEAD ? count : from + REPORT_AHEAD;
		progress_at(b->report->options.progress, "choosing stacks", from, count);
		for (size_t i = from; symbols && i < end; i++)
			if (tallies[i].reference && !dump_read_stack(b->dump, tallies[i].reference, &copy)) {
				stack_places_make(&b->stacks, &copy, &places);
				symbols_want(symbols, places.list, places.count);
			}
		for (size_t i = from; i < end; i++) {
			bool known = tallies[i].reference && !dump_read_stack(b->dump, tallies[i].reference, &copy);
			places.count = 0;
			if (known)
				stack_places_make(&b->stacks, &copy, &places);
			tallies[i].out = !filter_keeps(&b->report->filter, places.list, places.count);
		}
	}
	return filter_failed(&b->report->filter) ? -ENOMEM : 0;
}

static int on_thread(void *arg, const struct dump_thread *thread)
{
	struct build *b = arg;

	/* The last name of a thread is its name. */
	return map_put(&b->threads, thread->tid, filter_thread(&b->report->filter, thread->tid, thread->name));
}

static uint64_t older_stamps(const struct build *b)
{
	return dump_stamp_after(b->dump, b->report->options.filter.older_ns) - dump_header(b->dump)->clock_start.stamp;
}

/* The age that is asked for is one at this time. */
static void set_end(struct build *b, uint64_t end)
{
	uint64_t older = older_stamps(b);

	if (b->report->options.filter.older_ns)
		b->filter.born_latest = end > older ? end - older : 0;
}

static int set_filter(struct build *b, uint64_t end)
{
	const struct filter_options *o = &b->report->options.filter;

	b->filter = (struct sample_filter){ .records = filter_by_record(o),
		                            .size_low = o->size_low,
		                            .size_high = o->size_high,
		                            .born_latest = UINT64_MAX,
		                            .threads = o->thread ? &b->threads : NULL,
		                            .choose = filter_by_stack(o) ? choose_stacks : NULL,
		                            .arg = b };
	set_end(b, end);
	if (!o->thread)
		return 0;
	unsigned long number = strtoul(o->thread, NULL, 10); /* of one that may have no name */
	int s = number && number <= UINT32_MAX
	                ? map_put(&b->threads, number, filter_thread(&b->report->filter, (uint32_t)number, ""))
	                : 0;
	return s ?: dump_each_thread(b->dump, on_thread, b);
}

/* Blocks by size or lifetime, as one dump knows them. */
static void add_classes(const struct build *b, struct class_sum *all, struct class_sum *list)
{
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		struct class_sum *sum = &list[i];
		for (int f = 0; f < FIGURE_COUNT; f++) {
			if (report_is_bytes(f))
				estimate_expect(&sum->sum[f], b->samples.rate > 1 ? (double)b->samples.rate : 0);
			else
				estimate_hide(&sum->sum[f], b->samples.rate);
			estimate_merge(&all[i].sum[f], &sum->sum[f]);
		}
		slack_merge(&all[i].slack, &sum->slack);
	}
}

static void add_left_out(struct build *b)
{
	struct estimate_sum *all = b->report->unfiltered.sum;

	if (is_before(b))
		return;
	for (int f = 0; f < FIGURE_COUNT; f++)
		if (report_is_live(f) || has_times(b))
			estimate_merge(&all[f], &b->samples.left_out[f]);
}

static bool needs_lost_history(const struct samples *s)
{
	uint64_t first = s->options.since ? s->options.since : s->options.at;

	/* The sums of stacks say nothing of samples that are chosen one by one. */
	if (s->options.filter && s->options.filter->records && dump_counter(s->dump, DUMP_COUNTER_lost_history))
		return true;
	/* What was dropped was freed, but for stragglers of idle threads, before the oldest record that is left. */
	return first != UINT64_MAX && dump_counter(s->dump, DUMP_COUNTER_lost_history) &&
	       (!s->oldest_freed || first < s->oldest_freed);
}

/* Looks at the moments of the timeline, with a reading of its own. */
static int read_timeline(struct build *b, size_t count, struct timeline *timeline, struct spans *spans,
                         enum sample_half half)
{
	/* Blocks are old at each moment, not at the one of the report. */
	struct sample_filter filter = b->filter;
	filter.born_latest = UINT64_MAX;
	struct sample_options options = { .at = UINT64_MAX,
		                          .age = older_stamps(b),
		                          .filter = filter_any(&b->report->options.filter) ? &filter : NULL,
		                          .timeline = timeline,
		                          .spans = spans,
		                          .half = half,
		                          .files = b->report->options.files,
		                          .progress = b->report->options.progress };
	struct samples samples = { .rate = largest_rate(b, half) };
	int s = timeline_init(timeline, count, dump_duration_ns(b->dump));

	for (size_t i = 0; !s && i < count; i++)
		timeline->points[i].stamp = dump_stamp_after(b->dump, timeline->points[i].ns);
	s = s ?: samples_read(&samples, b->dump, &options);
	/* Without any record that is left, nothing is known of what was freed. */
	uint64_t whole_since = samples.oldest_freed ? samples.oldest_freed : UINT64_MAX;
	if (!s)
		timeline_finish(timeline, samples.rate,
		                dump_counter(b->dump, DUMP_COUNTER_lost_history) ? whole_since : 0);
	samples_done(&samples);
	return s;
}

/* The moment at which most was live, by one half of the samples: the other half says what. */
static int find_peak(struct build *b, uint64_t *stamp, uint64_t *ns)
{
	struct timeline timeline = { 0 };
	int s = read_timeline(b, REPORT_PEAK_MOMENTS, &timeline, NULL, HALF_CHOOSES);

	if (!s) {
		*stamp = timeline_peak(&timeline)->stamp;
		*ns = timeline_peak(&timeline)->ns;
	}
	timeline_done(&timeline);
	return s;
}

/* Without the records of some samples, nobody knows how long their blocks lived. */
static bool has_all_records(const struct dump *dump)
{
	return !dump_counter(dump, DUMP_COUNTER_lost_history) && !dump_counter(dump, DUMP_COUNTER_lost_live_full);
}

static int read_views(struct build *b, struct sample_options *options)
{
	struct report *r = b->report;
	size_t moments = r->options.timeline ? r->options.timeline : r->options.moments;
	int s = 0;

	if (filter_any(&r->options.filter)) {
		s = set_filter(b, options->at != UINT64_MAX ? options->at : dump_latest_stamp(b->dump));
		options->filter = &b->filter;
	}
	options->times = r->options.times && report_is_whole(&r->options) && r->session_count == 1 &&
	                 has_all_records(b->dump);
	if (!s && options->times)
		s = find_peak(b, &options->peak, &r->times.peak_ns);
	/* They are about the end, and about all of the session. */
	struct spans *spans = r->options.moments && report_is_whole(&r->options) ? &r->spans : NULL;
	if (!s && r->options.peak) {
		s = find_peak(b, &options->at, &r->options.at_ns);
		set_end(b, options->at);
	}
	if (!s && moments)
		s = read_timeline(b, moments, &r->timeline, spans, HALF_NONE);
	if (!s && moments && !r->usage.count)
		s = usage_read(&r->usage, b->dump);
	return s ?: samples_read(&b->samples, b->dump, options);
}

/* A growth is of two times. */
static bool wants_threads(const struct report_options *o)
{
	return o->stack_threads && !o->diff && !o->since_ns && !o->leaks;
}

static bool wants_labels(const struct report_options *o)
{
	return o->sample_groups || groups_label(o->by) != LABEL_KINDS;
}

static int add_labels(struct build *b)
{
	struct report *r = b->report;
	int s = 0;

	for (int kind = 0; !s && kind < LABEL_KINDS; kind++)
		s = groups_add_labels(groups_label(r->options.by) == (enum label_kind)kind ? &r->groups
		                                                                           : &r->labels[kind],
		                      &b->labels.of[kind], b->samples.rate);
	r->sessions[r->session_count - 1].labels = b->labels.look;
	return s;
}

int collect_dump(struct report *r, struct dump *dump, enum collect_side side, struct map *kept)
{
	struct build b = { .report = r, .dump = dump, .side = side };
	struct sample_options options = { .leaks = r->rows.leaks ? &b.window : NULL,
		                          .kept = kept,
		                          .files = r->options.files,
		                          .plan = r->options.plan > 0,
		                          .planned = r->options.sort,
		                          .threads = r->options.by == BY_THREAD || r->options.sample_groups,
		                          .classes = wants_labels(&r->options) || groups_class(r->options.by),
		                          .labels = wants_labels(&r->options) ? &b.labels : NULL,
		                          .stack_threads = wants_threads(&r->options) ? &r->stack_threads : NULL,
		                          .later = side == COLLECT_LATER,
		                          .progress = r->options.progress };

	char root[IMAGE_ROOT_TEXT];

	options.half = r->options.peak ? HALF_TELLS : HALF_NONE;
	b.samples.rate = largest_rate(&b, options.half); /* there may be blocks that only this one would have seen */
	set_times(&b, &options);
	target_root_find(dump, root);
	int s = images_add(&r->images, dump, root, &b.modules);
	if (!s && r->symbols)
		s = symbols_take_dump(r->symbols, dump, &b.modules);
	s = s ?: stack_maker_init(&b.stacks, dump, &b.modules, &r->images, r->symbols, r->options.native);
	if (dump_header(dump)->python_version)
		r->python.version = dump_header(dump)->python_version;
	if (dump_header(dump)->java_version)
		r->java.version = dump_header(dump)->java_version;
	if (!s && options.labels)
		s = labels_read(&b.labels, dump);
	s = s ?: read_views(&b, &options);
	s = s ?: make_rows(&b);
	if (!s && options.stack_threads)
		s = stack_threads_finish(options.stack_threads, dump);
	s = s ?: threads_read_names(&b.samples.threads, dump);
	if (!s)
		s = groups_add_threads(r->options.by == BY_THREAD ? &r->groups : &r->threads, &b.samples.threads,
		                       r->sessions[r->session_count - 1].pid, b.samples.rate);
	if (!s && session_groups_wanted(&r->options))
		s = session_groups_add(r, &b.whole, b.samples.rate);
	if (!s && options.classes) {
		add_classes(&b, r->classes.sizes, b.samples.classes.sizes);
		add_classes(&b, r->classes.lifetimes, b.samples.classes.lifetimes);
		add_classes(&b, r->classes.residency, b.samples.classes.residency);
	}
	if (!s && options.labels)
		s = add_labels(&b);
	if (!s)
		add_left_out(&b);
	if (!s)
		judge_session(r, &r->sessions[r->session_count - 1], &b.samples.fit, b.modules.got_entries);
	unseen_note_rate(r, b.samples.rate, is_before(&b));
	r->times.known = !s && options.times && has_all_records(dump); /* it may be recorded meanwhile */
	if (!s && needs_lost_history(&b.samples))
		r->past_unknown = true;
	samples_done(&b.samples);
	labels_done(&b.labels);
	map_done(&b.threads);
	stack_maker_done(&b.stacks);
	image_map_done(&b.modules);
	return s;
}
