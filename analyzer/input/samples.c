/* SPDX-License-Identifier: MIT */
#include "input/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/parts/parts.h"
#include "input/parts/sample_pairs.h"

#define READS_MAX 16
#define BATCH 64
#define PROBABILITIES 2048u /* a power of two */

/* What a block of this size adds; sizes come again and again, and logarithms are dear. */
struct probability {
	_Alignas(64) uint64_t size;
	uint32_t rate; /* 0: nothing here yet */
	struct estimate_block block;
};

struct sample_batch {
	struct probability probabilities[PROBABILITIES];
	struct sample list[BATCH];
	size_t count;
	struct parts parts; /* which come when all have been read */
};

/* Makes room for more elements of a list, all of them beginning a cache line. */
static int grow_lines(void **list, size_t count, size_t room, size_t element_bytes)
{
	void *more = aligned_alloc(64, (room * element_bytes + 63) & ~(size_t)63);

	if (!more)
		return -ENOMEM;
	if (count)
		memcpy(more, *list, count * element_bytes);
	free(*list);
	*list = more;
	return 0;
}

/* Whether samples are chosen one by one, so that the sums of their stack say nothing. */
static bool by_record(const struct samples *s)
{
	return s->options.filter && s->options.filter->records;
}

/* Makes room for more elements of another list; false: there is none. */
#define MORE(list, room) ((more = reallocarray(list, room, sizeof *(list))) ? ((list) = more, true) : false)

static int grow(struct samples *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	bool windows = s->options.since || s->options.at != UINT64_MAX || s->options.kept || by_record(s);
	void *tallies = s->tallies;
	int r = grow_lines(&tallies, s->count, room, sizeof *s->tallies);

	s->tallies = tallies;
	if (r)
		return r;
	void *more;
	if (!MORE(s->lives, room) || (windows && !MORE(s->windows, room)) ||
	    (s->options.leaks && !MORE(s->leaks, room)) || (s->options.times && !MORE(s->times, room)) ||
	    (s->options.plan && !MORE(s->plans, room)))
		return -ENOMEM;
	s->room = room;
	return 0;
}

/* Says of the stacks from number first on whether they are left out. */
static int choose(struct samples *s, size_t first)
{
	const struct sample_filter *filter = s->options.filter;

	return filter && filter->choose ? filter->choose(filter->arg, s->tallies, first, s->count) : 0;
}

static int add_stack(struct samples *s, uint32_t reference, bool beside)
{
	int r = s->count == s->room ? grow(s) : 0;

	if (r)
		return r;
	s->tallies[s->count] = (struct tally){ .reference = reference, .beside = beside };
	s->lives[s->count] = (struct live_part){ 0 };
	if (s->windows)
		s->windows[s->count] = (struct window_part){ 0 };
	if (s->leaks)
		s->leaks[s->count] = (struct leak_tally){ 0 };
	if (s->times)
		s->times[s->count] = (struct row_times){ 0 };
	if (s->plans)
		s->plans[s->count] = NULL;
	r = map_put(&s->stack_of, reference, (uint32_t)s->count);
	if (!r)
		s->count++;
	/* At first all are chosen together, which is quicker. */
	return r || !s->chosen ? r : choose(s, s->count - 1);
}

/*
 * Only stacks that hold together get a number, and no more of them than there is room for side by side, so a damaged
 * file cannot ask for more memory than it has stacks; samples of others are those of stack 0.
 */
static int number_of(struct samples *s, uint32_t reference, uint32_t *number)
{
	const uint32_t *known = map_find(&s->stack_of, reference);
	struct dump_stack_copy copy;

	*number = known ? *known : 0;
	if (known || dump_read_stack(s->dump, reference, &copy))
		return 0;
	s->stack_bytes +=
		sizeof copy.stack + (copy.stack.frame_count + dump_python_count(&copy)) * sizeof copy.frames[0];
	if (s->stack_bytes > dump_stack_room(s->dump)) {
		dump_skip_stack(s->dump); /* they overlap */
		return 0;
	}
	*number = (uint32_t)s->count;
	return add_stack(s, reference, !(copy.stack.flags & DUMP_STACK_FILE) == s->options.files);
}

static int add_to_thread(struct samples *s, const struct sample *sample, double p)
{
	struct thread_sum *thread = threads_get(&s->threads, sample->tid);

	if (!thread)
		return -ENOMEM;
	sample_add(thread->sum, sample, p);
	if (!sample->freed)
		slack_add(&thread->slack, sample->size, sample->usable, p);
	return 0;
}

static const struct estimate_block *block_of(struct sample_batch *batch, uint64_t size, uint64_t rate)
{
	struct probability *c =
		&batch->probabilities[(size ^ size >> 11 ^ (uint32_t)rate * 0x9e3779b1u >> 16) % PROBABILITIES];

	if (c->size != size || c->rate != rate)
		*c = (struct probability){ size, rate, estimate_block(estimate_probability(size, rate)) };
	return &c->block;
}

static void add_to_tally(struct tally *tally, const struct sample *sample, const struct estimate_block *block)
{
	double bytes = (double)(sample->whole ? sample->whole : 1);

	if (!(tally->smallest > 0) || bytes < tally->smallest)
		tally->smallest = bytes;
	if (block->p < 1 && block->weight > tally->next)
		tally->next = block->weight;
}

static bool is_born_in(const struct sample_options *o, const struct sample *sample)
{
	return sample->born <= o->at && (!o->since || sample->born > o->since);
}

static void add_to_window(struct window_part *window, const struct sample_options *o, const struct sample *sample,
                          bool live, double p)
{
	uint64_t born = sample->born, freed = sample->freed;
	bool was_live = o->since && born <= o->since && (!freed || freed > o->since);

	if (was_live)
		sample_add(window->old, sample, p);
	if (o->since && live && !was_live)
		sample_add(window->plus, sample, p);
	if (was_live && !live)
		sample_add_gone(window->minus, sample, p);
	if (is_born_in(o, sample))
		sample_add(window->born, sample, p);
}

static bool is_chosen(const struct sample_filter *f, const struct sample *sample)
{
	if (!f)
		return true;
	if (sample->size < f->size_low || (f->size_high && sample->size >= f->size_high) ||
	    sample->born > f->born_latest)
		return false;
	const uint32_t *wanted = f->threads ? map_find(f->threads, sample->tid) : NULL;
	return !f->threads || (wanted && *wanted);
}

static void leave_out(struct samples *s, const struct sample *sample, bool live, double p)
{
	if (live)
		sample_add(s->left_out, sample, p);
	if (is_born_in(&s->options, sample))
		sample_add(s->left_out + FIGURE_ALLOCATED_BYTES, sample, p);
}

/* In nanoseconds. */
static double lifetime_of(const struct samples *s, const struct sample *sample, bool live)
{
	uint64_t end = live ? s->view_end : sample->freed;

	return end > sample->born ? fmin(1e19, (double)(end - sample->born) * s->ns_per_stamp) : 0;
}

/* The rate that it counts with in a half of the samples; 0: it is not in it. */
static uint64_t rate_in(const struct sample *s, enum sample_half half)
{
	const struct thinning_sample sample = { s->whole, s->born, s->stack, s->tid, s->rate };

	return half == HALF_NONE ? s->rate : half_rate_of(&sample, half);
}

static void add_to_times(struct samples *s, const struct sample *sample, bool live, double p)
{
	struct row_times *times = &s->times[sample->number];
	uint64_t peak = s->options.peak;

	if (!sample_is_later(sample))
		times->lived += lifetime_of(s, sample, live) / p;
	if (sample->born > peak || (sample->freed && sample->freed <= peak))
		return;
	uint64_t rate = rate_in(sample, HALF_TELLS);
	if (!rate)
		return;
	double half = block_of(s->batch, sample->whole, rate)->p;
	times->peak[FIGURE_LIVE_BYTES] += (double)sample->size / half;
	if (!sample_is_later(sample))
		times->peak[FIGURE_LIVE_COUNT] += 1 / half;
}

static int add_to_plan(struct samples *s, const struct sample *sample, bool live, double p)
{
	enum report_figure f = s->options.planned;
	struct row_plan **plan = &s->plans[sample->number];

	if (!(f <= FIGURE_LIVE_COUNT ? live : is_born_in(&s->options, sample)))
		return 0;
	if (!*plan && !(*plan = calloc(1, sizeof **plan)))
		return -ENOMEM;
	double x = (double)sample->size, rest = sample->rest;
	if (f == FIGURE_LIVE_BYTES || f == FIGURE_ALLOCATED_BYTES)
		row_plan_add(*plan, sample->whole, x, x * (x + 2 * rest), p, s->rate);
	else if (!sample_is_later(sample))
		row_plan_add(*plan, sample->whole, 1, 1, p, s->rate);
	return 0;
}

static void add_to_classes(struct samples *s, const struct sample *sample, bool live, double p)
{
	const struct labels *labels = s->options.labels;
	struct class_sum *const of[] = {
		&s->classes.sizes[class_of(CLASS_SIZE, sample->size)],
		&s->classes.lifetimes[class_of(CLASS_LIFETIME, (uint64_t)lifetime_of(s, sample, live))],
		&s->classes.residency[residency_of(sample->flags, sample->freed)],
		labels ? labels_sum(labels, LABEL_TYPE, sample->address, sample->freed) : NULL,
		labels ? labels_sum(labels, LABEL_HOLDER, sample->address, sample->freed) : NULL
	};

	for (size_t i = 0; i < sizeof of / sizeof of[0] && of[i]; i++) {
		if (live)
			sample_add(of[i]->sum, sample, p);
		if (live && !sample->freed)
			slack_add(&of[i]->slack, sample->size, sample->usable, p);
		if (is_born_in(&s->options, sample))
			sample_add(of[i]->sum + FIGURE_ALLOCATED_BYTES, sample, p);
	}
}

static int add_to_timeline(struct samples *s, const struct sample *sample, double p)
{
	const uint64_t age = s->options.age, old = sample->born < UINT64_MAX - age ? sample->born + age : UINT64_MAX;
	struct timeline *t = s->options.timeline;

	timeline_add(t, sample->size, p, old, sample->freed, sample->rest);
	if (!s->options.spans)
		return 0;
	const size_t born = timeline_find(t, sample->born),
		     gone = sample->freed ? timeline_find(t, sample->freed) : SIZE_MAX;
	return spans_add(s->options.spans, s->tallies[sample->number].reference, born, gone, sample->size, p,
	                 sample->rest);
}

/* The record of a block ended because its address was given out again. */
static int add_missed(struct samples *s, const struct sample *sample, double p)
{
	struct free_tally *frees = &s->lives[sample->number].frees;
	const struct reuse_pair pair = { .size = sample->size, .p = p, .stack = sample->number };

	frees->replaced += (double)sample->size / p;
	/* Where all is recorded the later block is. */
	int r = s->rate > 1 ? reuse_add(&s->reuse, sample->freed, &pair) : 1;
	if (r == 1)
		free_tally_add_pair(frees, sample->size, p, p);
	return r < 0 ? r : 0;
}

/* How records end, for what the figures are worth. */
static int add_end(struct samples *s, const struct sample *sample, double p)
{
	double needed = (double)(sample->size < TRUST_PAGE ? sample->size : TRUST_PAGE);

	if (sample->freed && sample->missed)
		return add_missed(s, sample, p);
	if (sample->freed) {
		free_sum_add(&s->tallies[sample->number].seen, (double)sample->size, p, sample->rest);
		return 0;
	}
	free_sum_add(&s->lives[sample->number].frees.live, (double)sample->size, p, sample->rest);
	if (sample->size <= TRUST_FIT_MAX && !sample->mapping)
		estimate_add(&s->fit, needed, p);
	return 0;
}

static int add_to_pair(struct samples *s, const struct sample *sample, double p)
{
	struct window_part *window = &s->windows[sample->number];
	bool later = s->options.later;

	return sample_pairs_add(s->options.kept, later, later ? window->plus : window->minus, sample, p);
}

/* A block counts once: with what there is of it. */
static void add_to_leaks(struct samples *s, const struct sample *sample)
{
	const uint64_t size = sample->live > 0 ? (uint64_t)sample->live : sample->size;

	const struct leak_sample block = { .size = size,
		                           .rate = sample->rate,
		                           .p = estimate_probability(sample->whole, sample->rate),
		                           .comparable = sample->survival > (double)s->rate,
		                           .born = sample->born,
		                           .freed = sample->freed };

	leak_add(&s->leaks[sample->number], s->options.leaks, &block);
}

static int add_sample(struct samples *s, const struct sample *sample)
{
	const struct sample_options *o = &s->options;
	struct tally *tally = &s->tallies[sample->number];
	struct live_part *part = &s->lives[sample->number];

	const bool later = sample_is_later(sample);

	if (sample->freed) {
		tally->history_bytes += (double)sample->size;
		tally->history += !later;
	} else {
		part->records += !later;
	}
	uint64_t rate = sample->rate ? rate_in(sample, o->half) : 0;
	if (!rate)
		return 0;
	const struct estimate_block *block = block_of(s->batch, sample->whole, rate);
	double p = block->p, weight = block->weight;
	bool live = sample->born <= o->at && (!sample->freed || sample->freed > o->at);
	add_to_tally(tally, sample, block);
	tally->aligned |= sample->aligned;
	if (rate > s->rate)
		s->rate = rate;
	if (!tally->beside && add_end(s, sample, p))
		return -ENOMEM;
	if (!tally->beside && !is_chosen(o->filter, sample)) {
		leave_out(s, sample, live, p);
		return 0;
	}
	if (live)
		sample_add(part->sum, sample, p);
	if (tally->beside)
		return 0;
	if (!tally->out &&
	    ((live && o->threads && add_to_thread(s, sample, p)) || (o->timeline && add_to_timeline(s, sample, p))))
		return -ENOMEM;
	if (o->stack_threads && !tally->out &&
	    stack_threads_add(o->stack_threads, tally->reference, sample, weight, live, is_born_in(o, sample)))
		return -ENOMEM;
	if (o->classes && !tally->out)
		add_to_classes(s, sample, live, p);
	if (s->times && !tally->out)
		add_to_times(s, sample, live, p);
	if (s->plans && add_to_plan(s, sample, live, p))
		return -ENOMEM;
	if (s->windows)
		add_to_window(&s->windows[sample->number], o, sample, live, p);
	if (o->leaks && !later)
		add_to_leaks(s, sample);
	if (sample->freed)
		return 0;
	if (live)
		slack_add(&part->slack, sample->size, sample->usable, p);
	return o->kept ? add_to_pair(s, sample, p) : 0;
}

/* Adds what is in the batch: each pass fetches what the next one needs. */
static int add_batch(struct samples *s)
{
	struct sample_batch *b = s->batch;
	int r = 0;

	for (size_t i = 0; i < b->count; i++)
		map_fetch(&s->stack_of, b->list[i].stack);
	for (size_t i = 0; !r && i < b->count; i++) {
		r = number_of(s, b->list[i].stack, &b->list[i].number);
		__builtin_prefetch(&s->tallies[b->list[i].number], 1);
	}
	for (size_t i = 0; !r && i < b->count; i++)
		r = add_sample(s, &b->list[i]);
	s->taken += b->count;
	b->count = 0;
	progress_at(s->options.progress, "reading samples", s->taken, s->expected);
	return r;
}

/* A sample survives its own rate, whatever it is. */
static bool needs_survival(const struct samples *s, uint32_t rate)
{
	return s->options.leaks && rate < s->rate;
}

static int take_sample(struct samples *s, const struct sample *sample, bool part)
{
	if (part)
		return parts_add(&s->batch->parts, sample);
	s->batch->list[s->batch->count++] = *sample;
	return s->batch->count == BATCH ? add_batch(s) : 0;
}

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct samples *s = arg;
	struct sample sample = sample_of_live(record, dump_live_rate(s->dump, record));

	sample.survival = needs_survival(s, record->rate_bytes) ? dump_live_survival(record) : INFINITY;
	/* Of two states of a session one may have what the other has parts of. */
	return take_sample(s, &sample, record->flags & DUMP_LIVE_PART || (s->options.kept && sample.mapping));
}

static int on_history(void *arg, const struct dump_history_record *record)
{
	struct samples *s = arg;
	struct sample sample = sample_of_history(record, dump_history_rate(s->dump, record));

	sample.survival = needs_survival(s, record->rate_bytes) ? dump_history_survival(record) : INFINITY;
	if (!s->oldest_freed)
		s->oldest_freed = record->freed_stamp;
	return take_sample(s, &sample, record->flags & DUMP_HISTORY_PART);
}

static int add_part(struct samples *s, const struct sample *part)
{
	struct sample sample = *part;
	int r = number_of(s, sample.stack, &sample.number);

	s->taken++;
	return r ?: add_sample(s, &sample);
}

static int add_parts(struct samples *s)
{
	struct parts *parts = &s->batch->parts;
	int r = add_batch(s);

	parts_join(parts);
	for (size_t i = 0; !r && i < parts->count; i++)
		r = add_part(s, parts_next(parts, i));
	return r;
}

static int on_stack(void *arg, uint32_t reference)
{
	uint32_t number;

	return number_of(arg, reference, &number);
}

static int read_records(struct samples *s)
{
	int r = add_stack(s, 0, s->options.files);

	s->batch->count = 0;
	if (!r && s->options.filter && s->options.filter->choose) {
		r = dump_each_stack(s->dump, on_stack, s);
		r = r ?: choose(s, 0);
		s->chosen = true;
	}
	r = r ?: dump_each_live(s->dump, on_live, s);
	r = r ?: add_batch(s);
	r = r ?: dump_each_history(s->dump, on_history, s);
	return r ?: add_parts(s);
}

static void clear(struct samples *s)
{
	for (size_t i = 0; s->plans && i < s->count; i++)
		free(s->plans[i]);
	free(s->tallies);
	free(s->lives);
	free(s->windows);
	free(s->leaks);
	free(s->times);
	free(s->plans);
	map_done(&s->stack_of);
	threads_done(&s->threads);
	reuse_done(&s->reuse);
	s->fit = (struct estimate_sum){ 0 };
	s->classes = (struct classes){ 0 };
	memset(s->left_out, 0, sizeof s->left_out);
	if (s->batch)
		parts_done(&s->batch->parts);
	s->chosen = false;
	s->tallies = NULL;
	s->lives = NULL;
	s->windows = NULL;
	s->leaks = NULL;
	s->times = NULL;
	s->plans = NULL;
	s->count = s->room = 0;
	s->taken = s->stack_bytes = s->oldest_freed = 0;
}

/* What was added to elsewhere. */
static void clear_others(const struct sample_options *o)
{
	if (o->timeline)
		timeline_clear(o->timeline);
	if (o->spans) {
		spans_done(o->spans);
		spans_init(o->spans, o->timeline->count);
	}
	if (o->stack_threads)
		stack_threads_restart(o->stack_threads);
	if (o->labels)
		labels_clear(o->labels);
}

static int read_pairs(struct samples *s)
{
	int r = reuse_find(&s->reuse, s->dump);

	for (size_t i = 0; !r && i < s->reuse.count; i++) {
		const struct reuse_pair *pair = &s->reuse.pairs[i];
		double later = reuse_later(&s->reuse, pair, s->dump);
		if (later > 0)
			free_tally_add_pair(&s->lives[pair->stack].frees, pair->size, pair->p, later);
	}
	return r;
}

static int read_stacks(struct samples *s)
{
	uint32_t unknown = dump_header(s->dump)->unknown_stack;
	int r = dump_each_stack(s->dump, on_stack, s);

	return r || !unknown ? r : on_stack(s, unknown);
}

/* In nanoseconds. */
static double stamp_length(const struct dump *dump)
{
	static const uint64_t long_ns = 1000000000000000u;
	uint64_t stamps = dump_stamp_after(dump, long_ns) - dump_header(dump)->clock_start.stamp;

	return stamps ? (double)long_ns / (double)stamps : 1;
}

int samples_read(struct samples *s, struct dump *dump, const struct sample_options *options)
{
	int r = 1;

	s->dump = dump;
	s->options = *options;
	s->ns_per_stamp = stamp_length(dump);
	s->view_end = options->at != UINT64_MAX ? options->at : dump_latest_stamp(dump);
	s->expected = dump_expected_samples(dump);
	s->batch = aligned_alloc(64, sizeof *s->batch);
	if (!s->batch)
		return -ENOMEM;
	memset(s->batch->probabilities, 0, sizeof s->batch->probabilities);
	s->batch->parts = (struct parts){ 0 };
	for (int i = 0; r == 1 && i < READS_MAX; i++) {
		clear(s);
		clear_others(options);
		r = read_records(s);
		r = r ?: dump_thinned_meanwhile(dump);
	}
	if (r >= 0)
		r = read_pairs(s);
	return r < 0 ? r : read_stacks(s);
}

void samples_done(struct samples *s)
{
	clear(s);
	free(s->batch);
	s->batch = NULL;
}
