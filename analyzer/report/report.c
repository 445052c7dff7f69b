/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/collect.h"
#include "stats/compare.h"
#include "report/filter_rows.h"
#include "report/folding.h"
#include "base/grow.h"
#include "report/judge.h"
#include "input/parts/sample_pairs.h"
#include "input/samples.h"
#include "report/unseen.h"

/* What an allocator needs for a block beside its usable bytes, and at most beside those that were asked for: glibc's
 * least chunk has 32. */
#define MEMORY_HEADER_BYTES 8.0
#define MEMORY_ADDED_BYTES 31.0

static int fail(int s, struct err *e)
{
	return err_set(e, -s, "%s", s == -ENOMEM ? "out of memory" : strerror(-s));
}

static int on_note(void *arg, uint32_t kind, const char *text)
{
	struct report *r = arg;
	uint64_t hash = map_mix(kind);
	const uint32_t *known;

	judge_note(r, kind);
	for (const char *s = text; *s; s++)
		hash = map_mix(hash ^ (unsigned char)*s);
	/* The dumps of one program have the same notes. */
	for (; (known = map_find(&r->note_of, hash)); hash++)
		if (r->notes[*known].kind == kind && !strcmp(r->notes[*known].text, text))
			return 0;
	if (r->note_count == REPORT_NOTES_MAX) {
		r->notes_left_out++;
		return 0;
	}
	if (!grow_list(r->notes, r->note_count) || map_put(&r->note_of, hash, (uint32_t)r->note_count))
		return -ENOMEM;
	struct report_note *note = &r->notes[r->note_count];
	*note = (struct report_note){ .kind = kind, .text = strdup(text) };
	return note->text ? (r->note_count++, 0) : -ENOMEM;
}

/* What the header and the counters say that a reader of the figures must know. */
static int make_notes(struct report *r, struct dump *dump)
{
	const struct dump_header *h = dump_header(dump);
	int s = 0;

	if (h->state == DUMP_STATE_PREPARING)
		s = on_note(r, DUMP_NOTE_OTHER, "recording had not begun when this was read");
	if (!s && h->state == DUMP_STATE_EXECED)
		s = on_note(r, DUMP_NOTE_OTHER,
		            "the target called execve: its heap is gone, the figures are from before");
	if (!s && dump_counter(dump, DUMP_COUNTER_lost_live_full))
		s = on_note(r, DUMP_NOTE_FULL, "the live table was full for a time: live figures are too low");
	if (!s && dump_counter(dump, DUMP_COUNTER_lost_stack_full))
		s = on_note(r, DUMP_NOTE_FULL,
		            "there was no room for some stacks: their samples count as unknown stack");
	if (!s && r->options.leaks && dump_counter(dump, DUMP_COUNTER_lost_history))
		s = on_note(r, DUMP_NOTE_OTHER,
		            "some of the history was dropped: the test for leaks takes it to be like the rest");
	return s ?: dump_each_note(dump, on_note, r);
}

static bool needs_lines(const struct report_options *o)
{
	return o->by == BY_STACK || o->by == BY_FILE || o->by == BY_LINE || filter_by_stack(&o->filter) ||
	       o->filter.hide;
}

bool report_is_whole(const struct report_options *o)
{
	return !o->at_ns && !o->since_ns && !o->peak && !o->diff && !o->filter.older_ns;
}

int report_init(struct report *r, const struct report_options *options, struct err *e)
{
	*r = (struct report){ .options = *options, .whole = true };
	int s = images_init(&r->images);
	r->rows.changes = report_compares(r);
	r->rows.leaks = options->leaks || (options->beside_leaks && report_is_whole(options));
	if (!s && r->rows.changes) {
		r->total.change = calloc(1, sizeof *r->total.change);
		s = r->total.change ? 0 : -ENOMEM;
	}
	if (!s && r->rows.leaks) {
		r->total.leak = calloc(1, sizeof *r->total.leak);
		s = r->total.leak ? 0 : -ENOMEM;
	}
	if (!s && options->symbols && (!groups_of_samples(options->by) || filter_by_stack(&options->filter))) {
		r->symbols = symbols_new(&r->images, &r->options.search, needs_lines(options));
		s = r->symbols ? 0 : -ENOMEM;
	}
	return s ? fail(s, e) : filter_init(&r->filter, &r->options.filter, &r->images, r->symbols, e);
}

static int add_session(struct report *r, struct dump *dump, const char *name)
{
	if (!grow_list(r->sessions, r->session_count))
		return -ENOMEM;
	struct recorded_session *session = &r->sessions[r->session_count++];
	int s = recorded_session_init(session, dump, name);
	return s;
}

static int add(struct report *r, struct dump *dump, const char *name, enum collect_side side, struct map *kept)
{
	int s = add_session(r, dump, name);

	s = s ?: make_notes(r, dump);
	s = s ?: collect_dump(r, dump, side, kept);
	if (s)
		return s;
	struct recorded_session *session = &r->sessions[r->session_count - 1];
	recorded_session_finish(session, dump);
	r->whole = r->whole && session->whole;
	uint64_t busy = session->counters[DUMP_COUNTER_lost_busy];
	uint64_t full = session->counters[DUMP_COUNTER_lost_live_full];
	if (side != COLLECT_OLD && side != COLLECT_EARLIER) {
		r->lost_busy += busy;
		r->lost_live += full;
		r->lost_stack += session->counters[DUMP_COUNTER_lost_stack_full];
	}
	if (side == COLLECT_OLD || side == COLLECT_EARLIER || r->options.since_ns)
		r->lost_before += busy + full;
	return 0;
}

/* A time that the dump does not reach is no moment of it. */
static int check_times(const struct report *r, const struct dump *dump, struct err *e)
{
	uint64_t wanted = r->options.at_ns > r->options.since_ns ? r->options.at_ns : r->options.since_ns;
	double seconds = (double)dump_duration_ns(dump) / 1e9;

	return r->options.peak || dump_has_no_end(dump) || (double)wanted / 1e9 <= seconds
	               ? 0
	               : err_set(e, EINVAL, "--%s %gs: the session lasted for %.1f s",
	                         r->options.at_ns == wanted ? "at" : "since", (double)wanted / 1e9, seconds);
}

int report_add(struct report *r, struct dump *dump, const char *name, struct err *e)
{
	int s = check_times(r, dump, e);

	if (s)
		return s;
	s = add(r, dump, name, COLLECT_ONLY, NULL);
	return s ? fail(s, e) : 0;
}

/* What was allocated between two states of one session: the sums only grow. */
static void subtract_allocated(struct report *r)
{
	for (size_t i = 0; i < r->rows.count; i++) {
		for (int f = FIGURE_ALLOCATED_BYTES; f < FIGURE_COUNT; f++) {
			struct report_row *row = &r->rows.list[i];
			const struct estimate_sum *new = &row->sum[f];
			struct row_change *change = row->change;
			const struct estimate_sum *old = &change->old[f];
			change->plus[f] = (struct estimate_sum){ .value = fmax(0, new->value - old->value),
				                                 .variance = fmax(0, new->variance - old->variance),
				                                 .seen = fmax(0, new->seen - old->seen),
				                                 .next = fmax(new->next, old->next),
				                                 .samples = new->samples > old->samples
				                                                    ? new->samples - old->samples
				                                                    : 0 };
			/* The history may have dropped more than it had then. */
			change->plus[f].seen = fmin(change->plus[f].seen, change->plus[f].value);
		}
	}
}

int report_add_pair(struct report *r, struct dump *old, const char *old_name, struct dump *new, const char *new_name,
                    struct err *e)
{
	const struct dump_header *a = dump_header(old);
	const struct dump_header *b = dump_header(new);
	struct map kept = { 0 };
	int s = 0;

	r->same_session = a->session_id && a->session_id == b->session_id;
	if (r->same_session)
		s = sample_pairs_keys(old, &kept);
	if (!s)
		s = add(r, new, new_name, r->same_session ? COLLECT_LATER : COLLECT_NEW,
		        r->same_session ? &kept : NULL);
	if (!s && r->same_session)
		s = dump_take_thinnings(old, new);
	if (!s)
		s = add(r, old, old_name, r->same_session ? COLLECT_EARLIER : COLLECT_OLD,
		        r->same_session ? &kept : NULL);
	map_done(&kept);
	if (s)
		return fail(s, e);
	if (r->same_session)
		subtract_allocated(r);
	return 0;
}

static void share_sizes(const struct report *r, struct row_change *change)
{
	for (int f = 0; f < FIGURE_COUNT; f++)
		if (!report_is_bytes(f))
			compare_share_sizes(&change->plus[f], r->rate_now, &change->minus[f], unseen_rate_before(r));
}

/* Whether it has grown even if all that the older side has lost was of this row. */
static bool not_for_losses(const struct report *r, const struct report_row *row)
{
	return !r->lost_before || report_growth(r, row, r->options.sort).low > 0;
}

static void call_leak(const struct report *r, struct report_row *row, bool significant)
{
	const struct leak_tally *t = row->leak;
	enum leak_verdict shape = leak_shape(t);

	row->grows = significant && shape > LEAK_STEP;
	row->grown = row->grows && shape == LEAK_GROWTH && leak_residual_life(t, r->options.confidence) > 1;
}

/* At which level Benjamini and Hochberg decided: that of so many p-values as they call significant, or of one. */
static double tail_of_rows(const double *sorted, size_t n, double threshold, double level)
{
	size_t called = 0;

	while (called < n && sorted[called] < 1 && sorted[called] <= threshold)
		called++;
	return fmin(level / 2, level * (double)(called ? called : 1) / (double)n);
}

/* Sets p-values and, among them, what is called grown. */
static int test_rows(struct report *r)
{
	double *p = calloc(r->rows.count ? r->rows.count : 1, sizeof *p);
	enum report_figure f = r->options.sort;
	size_t n = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < r->rows.count; i++) {
		struct report_row *row = &r->rows.list[i];
		const struct row_change *change = row->change;
		progress_at(r->options.progress, "comparing", i, r->rows.count);
		if (r->rows.leaks)
			row->p_value = leak_p_value(row->leak);
		else
			row->p_value = compare_p_value(&change->plus[f], &change->minus[f]);
		/* A stack without any old block is no candidate for a leak, one that grew in one go is none either. */
		if (!r->rows.leaks)
			p[n++] = row->p_value;
		else if (row->leak->count.samples)
			p[n++] = leak_shape(row->leak) > LEAK_STEP ? row->p_value : 1;
	}
	const struct row_change *all = r->total.change;
	r->total.p_value = all ? compare_p_value(&all->plus[f], &all->minus[f]) : 1;
	/* Like its interval, on both sides. */
	r->total.grown = r->total.p_value <= (1 - r->options.confidence) / 2 && not_for_losses(r, &r->total);
	judge_row(r, &r->total);
	double threshold = compare_threshold(p, n, 1 - r->options.confidence);
	if (n && !r->rows.leaks)
		r->growth_tail = tail_of_rows(p, n, threshold, 1 - r->options.confidence);
	for (size_t i = 0; i < r->rows.count; i++) {
		struct report_row *row = &r->rows.list[i];
		bool significant = row->p_value < 1 && row->p_value <= threshold;
		if (r->rows.leaks)
			call_leak(r, row, significant);
		else
			row->grown = significant && not_for_losses(r, row);
		judge_row(r, row);
	}
	free(p);
	return 0;
}

/* What a row is sorted by, worked out once. */
struct ranked {
	double rank;
	uint32_t row;
	int first; /* what is called a leak or grown, what grows, the rest */
};

/* Largest first; ties by what was allocated, then by the frames, so that the order is the same each time. */
static int compare_ranked(const void *a, const void *b, void *context)
{
	const struct report *r = context;
	const struct ranked *p = a;
	const struct ranked *q = b;

	if (p->first != q->first)
		return p->first > q->first ? -1 : 1;
	if (p->rank != q->rank)
		return p->rank > q->rank ? -1 : 1;
	const struct report_row *x = &r->rows.list[p->row];
	const struct report_row *y = &r->rows.list[q->row];
	const enum report_figure order[] = { r->options.sort, FIGURE_LIVE_BYTES, FIGURE_ALLOCATED_BYTES,
		                             FIGURE_ALLOCATED_COUNT };
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		double v = x->sum[order[i]].value;
		double w = y->sum[order[i]].value;
		if (v != w)
			return v > w ? -1 : 1;
	}
	for (uint32_t i = 0; i < x->frame_count && i < y->frame_count; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return x->frame_count < y->frame_count ? -1 : x->frame_count > y->frame_count;
}

static struct ranked rank_row(const struct report *r, size_t i, bool by_leak)
{
	const struct report_row *row = &r->rows.list[i];
	struct ranked ranked = { .row = (uint32_t)i };

	if (by_leak || report_compares(r))
		ranked.first = row->grown ? 2 : row->grows;
	if (by_leak)
		ranked.rank = row->leak->bytes.value;
	else if (report_compares(r))
		ranked.rank = report_growth(r, row, r->options.sort).low;
	else
		ranked.rank = row->sum[r->options.sort].value;
	return ranked;
}

/* Moves each row to its place, along the cycles of the permutation: there is no room for a second list. */
static void permute_rows(struct report_row *list, struct ranked *ranked, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct report_row first = list[i];
		size_t to = i;
		while (ranked[to].row != i) {
			size_t from = ranked[to].row;
			list[to] = list[from];
			ranked[to].row = (uint32_t)to;
			to = from;
		}
		list[to] = first;
		ranked[to].row = (uint32_t)to;
	}
}

static int sort_rows(struct report *r)
{
	struct ranked *ranked = calloc(r->rows.count ? r->rows.count : 1, sizeof *ranked);

	if (!ranked)
		return -ENOMEM;
	for (size_t i = 0; i < r->rows.count; i++)
		ranked[i] = rank_row(r, i, r->options.leaks);
	map_done(&r->rows.row_of); /* it knows the old places */
	qsort_r(ranked, r->rows.count, sizeof *ranked, compare_ranked, r);
	permute_rows(r->rows.list, ranked, r->rows.count);
	free(ranked);
	return 0;
}

uint32_t *report_leaks(const struct report *r, size_t *count)
{
	AUTO_FREE struct ranked *ranked = calloc(r->rows.count + 1, sizeof *ranked);
	uint32_t *list = malloc((r->rows.count + 1) * sizeof *list);

	*count = 0;
	for (size_t i = 0; ranked && i < r->rows.count; i++)
		if (r->rows.list[i].leak->count.samples)
			ranked[(*count)++] = rank_row(r, i, true);
	if (!ranked || !list) {
		free(list);
		return NULL;
	}
	qsort_r(ranked, *count, sizeof *ranked, compare_ranked, (void *)r);
	for (size_t i = 0; i < *count; i++)
		list[i] = ranked[i].row;
	return list;
}

static void make_total(struct report *r)
{
	struct row_change *change = r->total.change;
	struct leak_tally *leak = r->total.leak;

	if (change)
		*change = (struct row_change){ 0 };
	if (leak)
		*leak = (struct leak_tally){ 0 };
	r->total = (struct report_row){ .change = change, .leak = leak };
	for (size_t i = 0; i < r->rows.count; i++)
		row_merge(&r->total, &r->rows.list[i]);
	unseen_fill_total(r);
	r->total.flags = 0;
}

static enum report_kernel kernel_verdict(const struct report_memory *m, double live_high, double seen_high)
{
	double width = live_high - m->live.low + 2 * MEMORY_NOISE_BYTES;

	if (m->private_growth > seen_high + MEMORY_NOISE_BYTES)
		return KERNEL_MORE;
	if (width > fmax(fabs(m->private_growth), m->live.value))
		return KERNEL_CANNOT_TELL;
	if (m->private_growth > live_high + MEMORY_NOISE_BYTES)
		return KERNEL_FREED;
	return m->private_growth < m->live.low - MEMORY_NOISE_BYTES ? KERNEL_LESS : KERNEL_AGREES;
}

static void make_memory(struct report *r)
{
	struct report_memory *m = &r->memory;
	bool any_mmap = false;

	*m = (struct report_memory){ .shared_growth = NAN, .files_growth = NAN };
	r->resident = (struct report_resident){ .why = "", .allocator = "" };
	if (report_compares(r) || r->options.at_ns || !r->session_count || r->options.files)
		return; /* the sizes are those of the whole session, and of memory */
	*m = (struct report_memory){ .known = true, .mmap_sampled = true };
	for (size_t i = 0; i < r->session_count; i++) {
		const struct recorded_session *s = &r->sessions[i];
		m->known = m->known && s->private_start_bytes && s->private_latest_bytes;
		m->private_growth += (double)s->private_latest_bytes - (double)s->private_start_bytes;
		m->shared_growth += s->shared_growth;
		m->files_growth += s->files_growth;
		m->mmap_sampled = m->mmap_sampled && s->samples_mmap;
		any_mmap |= s->samples_mmap;
		m->ended |= s->end == DUMP_END_EXITED || s->end == DUMP_END_KILLED;
	}
	m->live = report_estimate(r, &r->unfiltered, FIGURE_LIVE_BYTES);
	m->seen = report_estimate(r, &r->unfiltered, FIGURE_ALLOCATED_BYTES);
	double live_high = m->live.high + report_interval(r, &r->total.slack.sum, FIGURE_LIVE_BYTES).high +
	                   MEMORY_HEADER_BYTES * report_estimate(r, &r->unfiltered, FIGURE_LIVE_COUNT).high;
	double seen_high =
		m->seen.high + MEMORY_ADDED_BYTES * report_estimate(r, &r->unfiltered, FIGURE_ALLOCATED_COUNT).high;
	resident_make(&r->resident, r->sessions, r->session_count);
	resident_judge(&r->resident, &m->live, live_high, any_mmap);
	m->allocators_growth = r->resident.known ? resident_of_allocators(&r->resident) : m->private_growth;
	m->not_live = fmax(0, m->private_growth - m->live.low);
	m->verdict = kernel_verdict(m, live_high, seen_high);
	m->mostly_unseen = m->known && m->allocators_growth > MEMORY_NOISE_BYTES &&
	                   seen_high < m->allocators_growth / 2;
}

static int make_groups(struct report *r)
{
	enum group_by by = r->options.by;
	int s = 0;

	for (unsigned i = 0; i < SESSION_KINDS; i++) {
		groups_sort(&r->session_groups[i], r->options.sort, BY_PROCESS + i);
		groups_share_error(&r->session_groups[i], r, BY_PROCESS + i);
	}
	groups_sort(&r->threads, r->options.sort, BY_THREAD);
	groups_share_error(&r->threads, r, BY_THREAD);
	for (int kind = 0; kind < LABEL_KINDS; kind++) {
		groups_sort(&r->labels[kind], r->options.sort, BY_TYPE + kind);
		groups_share_error(&r->labels[kind], r, BY_TYPE + kind);
	}
	if (by == BY_STACK)
		return 0;
	if (!groups_of_samples(by))
		return groups_make(&r->groups, r);
	if (groups_label(by) != LABEL_KINDS)
		s = groups_add_gone(&r->groups, &r->total);
	if (groups_class(by))
		s = groups_add_classes(&r->groups, &r->classes, by, &r->total);
	groups_sort(&r->groups, r->options.sort, by);
	groups_share_error(&r->groups, r, by);
	return s;
}

int report_finish(struct report *r, struct err *e)
{
	int s = 0;

	unseen_fill_rows(r);
	make_total(r);
	if (!filter_any(&r->options.filter))
		memcpy(r->unfiltered.sum, r->total.sum, sizeof r->total.sum);
	memcpy(r->unfiltered.lost, r->total.lost, sizeof r->total.lost);
	uint64_t known = r->total.lost[FIGURE_LIVE_BYTES].samples;
	r->lost_unknown = r->lost_live > known ? r->lost_live - known : 0;
	/* What the figures are worth does not depend on which are shown. */
	make_memory(r);
	judge(r);
	if (filter_any(&r->options.filter) || r->options.filter.hide) {
		s = filter_rows(r);
		make_total(r);
	}
	for (size_t i = 0; report_compares(r) && i < r->rows.count; i++)
		share_sizes(r, r->rows.list[i].change);
	if (report_compares(r))
		share_sizes(r, r->total.change);
	if (!s && (r->rows.leaks || report_compares(r)))
		s = test_rows(r);
	s = s ?: folding_find_shared(r);
	for (int k = 0; k < 2; k++)
		r->listed_whole[k] = report_estimate(r, &r->total, k ? FIGURE_ALLOCATED_BYTES : FIGURE_LIVE_BYTES).high;
	s = s ?: make_groups(r);
	s = s ?: sort_rows(r);
	if (!s && filter_failed(&r->filter))
		s = -ENOMEM;
	return s ? fail(s, e) : 0;
}

void report_done(struct report *r)
{
	for (size_t i = 0; i < r->session_count; i++)
		recorded_session_done(&r->sessions[i]);
	for (size_t i = 0; i < r->note_count; i++)
		free(r->notes[i].text);
	free(r->total.change);
	free(r->total.leak);
	free(r->sessions);
	free(r->notes);
	map_done(&r->note_of);
	rows_done(&r->rows);
	groups_done(&r->groups);
	for (unsigned i = 0; i < SESSION_KINDS; i++)
		groups_done(&r->session_groups[i]);
	groups_done(&r->threads);
	usage_done(&r->usage);
	for (int kind = 0; kind < LABEL_KINDS; kind++)
		groups_done(&r->labels[kind]);
	map_done(&r->shared_places);
	timeline_done(&r->timeline);
	spans_done(&r->spans);
	stack_threads_done(&r->stack_threads);
	filter_done(&r->filter);
	symbols_free(r->symbols);
	images_done(&r->images);
	*r = (struct report){ 0 };
}

int report_make(struct report *r, struct dump *dump, const char *name, const struct report_options *options,
                struct err *e)
{
	int s = report_init(r, options, e);

	s = s ?: report_add(r, dump, name, e);
	s = s ?: report_finish(r, e);
	if (s)
		report_done(r);
	return s;
}
