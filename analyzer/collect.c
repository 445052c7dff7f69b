/* SPDX-License-Identifier: MIT */
/*
 * Samples are collected for each stack of the dump; then the stacks become rows, where equal ones meet.
 *
 * Live records are read first: the cumulative sums of a stack are then never older than its live records. Only stacks that
 * hold together get a slot, so a damaged file cannot ask for more memory than it has stacks.
 */
#include "collect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define READS_MAX 16

/* What is collected for one stack of the dump. */
struct slot {
	uint32_t reference;
	struct report_row part;
	struct estimate_sum born_bytes, born_count; /* what was allocated in the window, from records */
};

/* What every sample adds to, kept apart so that a long history finds it in the caches. */
struct tally {
	struct estimate_sum sizes; /* of all its samples that still have a record: what is known of its sizes */
	double history_bytes;      /* bytes of its samples that stand in the history */
	uint64_t history;          /* how many they are */
};

struct build {
	struct report *report;
	struct dump *dump;
	enum collect_side side;
	struct map *kept;
	struct image_map modules;
	struct leak_window window;
	uint64_t at, since;  /* stamps; at: UINT64_MAX the end, since: 0 none */
	uint64_t rate;       /* largest of the session and its samples */
	uint64_t oldest_freed; /* of the oldest history record, 0: none */
	struct slot *slots;  /* slots[0]: the stack is not known */
	struct tally *tallies; /* one for each slot */
	size_t count, room;
	struct map slot_of;
};

static int add_slot(struct build *b, uint32_t reference)
{
	if (b->count == b->room) {
		size_t room = b->room ? 2 * b->room : 64;
		struct slot *more = reallocarray(b->slots, room, sizeof *more);
		if (!more)
			return -ENOMEM;
		b->slots = more;
		struct tally *tallies = reallocarray(b->tallies, room, sizeof *tallies);
		if (!tallies)
			return -ENOMEM;
		b->tallies = tallies;
		b->room = room;
	}
	b->slots[b->count] = (struct slot){ .reference = reference };
	b->tallies[b->count] = (struct tally){ 0 };
	return map_put(&b->slot_of, reference, (uint32_t)b->count++);
}

/* The slot of a reference, slots[0] if there is no such stack; NULL if out of memory. */
static struct slot *slot_of(struct build *b, uint32_t reference)
{
	const uint32_t *known = map_find(&b->slot_of, reference);
	struct dump_stack_copy copy;

	if (known)
		return &b->slots[*known];
	if (dump_read_stack(b->dump, reference, &copy))
		return &b->slots[0];
	return add_slot(b, reference) ? NULL : &b->slots[b->count - 1];
}

static struct tally *tally_of(const struct build *b, const struct slot *slot)
{
	return &b->tallies[slot - b->slots];
}

static uint64_t key_of(const struct dump_live_record *record)
{
	return map_mix(record->address ^ map_mix(record->stamp));
}

static void add_pair(struct estimate_sum pair[FIGURE_COUNT], uint64_t size, double p)
{
	estimate_add(&pair[FIGURE_LIVE_BYTES], (double)size, p);
	estimate_add_block(&pair[FIGURE_LIVE_COUNT], p);
}

/* Of two states of one session, a block that is in both changes nothing. */
static int add_to_pair(struct build *b, struct slot *slot, const struct dump_live_record *record, double p)
{
	const uint32_t *known = map_find(b->kept, key_of(record));

	if (b->side == COLLECT_LATER && !known)
		add_pair(slot->part.plus, record->size, p);
	else if (b->side == COLLECT_LATER)
		return map_put(b->kept, key_of(record), 1);
	else if (!known || !*known)
		add_pair(slot->part.minus, record->size, p);
	return 0;
}

static void add_slack(struct slot *slot, const struct dump_live_record *record, double p)
{
	double slack = (double)record->usable - (double)record->size;

	if (record->usable < record->size || record->usable > record->size + (1ull << 40))
		return; /* 0: unknown */
	estimate_add(&slot->part.slack.sum, slack, p);
	estimate_expect(&slot->part.slack.sum, p < 1 ? slack / p : 0);
	slot->part.slack.requested += (double)record->size / p;
}

/* What a sample adds, from whichever record. */
struct sample {
	uint64_t size;
	uint32_t rate;
	double survival;      /* thinning.h: of a session at a larger rate it would not be a sample; for leaks only */
	uint64_t born, freed; /* stamps; freed 0: it lives at the end */
};

/* Returns its p. */
static double add_sample(struct build *b, struct slot *slot, const struct sample *sample)
{
	uint64_t size = sample->size, born = sample->born, freed = sample->freed;
	uint32_t rate = sample->rate;
	double p = estimate_probability(size, rate);
	bool live = born <= b->at && (!freed || freed > b->at);
	bool was_live = b->since && born <= b->since && (!freed || freed > b->since);

	estimate_add_block(&tally_of(b, slot)->sizes, p);
	if (rate > b->rate)
		b->rate = rate;
	if (live)
		add_pair(slot->part.sum, size, p);
	if (was_live)
		add_pair(slot->part.old, size, p);
	if (b->since && live && !was_live)
		add_pair(slot->part.plus, size, p);
	if (was_live && !live)
		add_pair(slot->part.minus, size, p);
	if ((b->since || b->at != UINT64_MAX) && born <= b->at && born > b->since) {
		estimate_add(&slot->born_bytes, (double)size, p);
		estimate_add_block(&slot->born_count, p);
	}
	if (b->report->efficiency)
		efficiency_add(b->report->efficiency, size, p, live);
	if (b->report->options.leaks)
		leak_add(&slot->part.leak, &b->window, size, rate, sample->survival > (double)b->rate, born, freed);
	return p;
}

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct build *b = arg;
	uint32_t rate = dump_live_rate(b->dump, record);

	if (!rate)
		return 0; /* given up; others stand for it */
	struct slot *slot = slot_of(b, record->stack);
	if (!slot)
		return -ENOMEM;
	const struct sample sample = { record->size, rate, b->report->options.leaks ? dump_live_survival(record) : 0,
				       record->stamp, 0 };
	double p = add_sample(b, slot, &sample);
	if (record->stamp <= b->at)
		add_slack(slot, record, p);
	return b->kept ? add_to_pair(b, slot, record, p) : 0;
}

static int on_history(void *arg, const struct dump_history_record *record)
{
	struct build *b = arg;
	struct slot *slot = slot_of(b, record->stack);

	if (!slot)
		return -ENOMEM;
	if (!b->oldest_freed)
		b->oldest_freed = record->freed_stamp;
	struct tally *tally = tally_of(b, slot);
	tally->history_bytes += (double)record->size;
	tally->history++;
	uint32_t rate = dump_history_rate(b->dump, record);
	const struct sample sample = { record->size, rate, b->report->options.leaks ? dump_history_survival(record) : 0,
				       record->allocated_stamp,
				       record->freed_stamp ? record->freed_stamp : 1 };
	if (rate)
		add_sample(b, slot, &sample);
	return 0;
}

static int on_stack(void *arg, uint32_t reference)
{
	return slot_of(arg, reference) ? 0 : -ENOMEM;
}

/* What was allocated: the stack's sums, or in a window of time what records are left of it. */
static void fill_allocated(const struct build *b, struct slot *slot, const struct dump_stack *stack)
{
	struct report_row *row = &slot->part;
	struct estimate_sum *bytes = &row->sum[FIGURE_ALLOCATED_BYTES];
	struct estimate_sum *count = &row->sum[FIGURE_ALLOCATED_COUNT];

	if (b->at != UINT64_MAX || b->since) {
		*bytes = slot->born_bytes;
		*count = slot->born_count;
		row->plus[FIGURE_ALLOCATED_BYTES] = *bytes;
		row->plus[FIGURE_ALLOCATED_COUNT] = *count;
	} else if (stack && stack->taken >= row->sum[FIGURE_LIVE_COUNT].samples) {
		/* The sums do not know how sizes are spread, but the records that are left do. */
		const struct estimate_sum *sizes = &tally_of(b, slot)->sizes;
		double share = sizes->variance > 0 ? stack->variance_count / sizes->variance : 0;
		*bytes = (struct estimate_sum){ .value = stack->allocated_bytes,
						.variance = stack->variance_bytes,
						.seen = row->sum[FIGURE_LIVE_BYTES].seen + tally_of(b, slot)->history_bytes,
						.samples = stack->taken };
		*count = (struct estimate_sum){ .value = stack->allocated_count,
						.variance = stack->variance_count,
						.seen = (double)stack->taken,
						.samples = stack->taken,
						.log_sum = share * sizes->log_sum,
						.log_square = share * sizes->log_square };
	} else {
		*bytes = row->sum[FIGURE_LIVE_BYTES]; /* the sums are lost; at least this was allocated */
		*count = row->sum[FIGURE_LIVE_COUNT];
	}
}

/*
 * Lets a count know all that is known of the sizes of this stack: blocks so small that no sample shows them are hidden among all that
 * it allocated, so every record of it tells, live or not.
 */
static void know_sizes(const struct build *b, struct estimate_sum *count, const struct slot *slot, double next)
{
	count->known = tally_of(b, slot)->sizes.known;
	count->next = next;
	estimate_hide(count, b->rate);
}

/* Says what an unseen sample would weigh, in every set that this dump may have one in. */
static void fill_next(const struct build *b, struct slot *slot, const struct dump_stack *stack)
{
	struct report_row *row = &slot->part;
	double bytes = b->rate > 1 ? (double)b->rate : 0;
	double count = tally_of(b, slot)->sizes.next;

	/* Where records are gone: sum of w^2 / sum of w, the mean weight of the samples weighted by themselves. */
	if (b->rate > 1 && stack && stack->allocated_count > 0)
		count = fmax(count, stack->variance_count / stack->allocated_count + 1);
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate_sum *sums[] = { &row->sum[f], &row->old[f], &row->plus[f], &row->minus[f] };
		for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
			if (report_is_bytes(f))
				sums[i]->next = bytes;
			else
				know_sizes(b, sums[i], slot, count);
		}
	}
	estimate_expect(&row->leak.bytes, bytes);
	know_sizes(b, &row->leak.count, slot, count);
}

static void fill_row(const struct build *b, struct slot *slot, const struct dump_stack *stack)
{
	struct report_row *row = &slot->part;
	uint64_t live = row->sum[FIGURE_LIVE_COUNT].samples;

	fill_allocated(b, slot, stack);
	fill_next(b, slot, stack);
	if (stack && stack->freed > tally_of(b, slot)->history)
		row->leak.dropped = stack->freed - tally_of(b, slot)->history;
	uint64_t lost_live = dump_counter(b->dump, DUMP_COUNTER_lost_live_full);
	if (stack && lost_live && stack->taken > stack->freed + live) {
		/* Some of them may have been given up for room instead: it is known of how many in all, not of which stack. */
		row->lost_live = stack->taken - stack->freed - live;
		if (row->lost_live > lost_live)
			row->lost_live = lost_live;
	}
	for (int f = 0; f < FIGURE_COUNT; f++) {
		if (b->side == COLLECT_NEW)
			row->plus[f] = row->sum[f];
		if (b->side == COLLECT_OLD)
			row->minus[f] = row->old[f] = row->sum[f];
		if (b->side == COLLECT_EARLIER)
			row->old[f] = row->sum[f];
		if (b->side == COLLECT_OLD || b->side == COLLECT_EARLIER)
			row->sum[f] = (struct estimate_sum){ 0 };
	}
	if (b->side == COLLECT_OLD || b->side == COLLECT_EARLIER) {
		row->slack = (struct slack){ 0 };
		row->leak = (struct leak_tally){ 0 };
		row->lost_live = 0;
	}
}

/* The frames as places, without the allocator's own wrappers in front (operator new, reallocarray). */
static uint32_t make_frames(struct build *b, const struct dump_stack_copy *copy, uint64_t places[DUMP_FRAMES_MAX])
{
	struct symbols *symbols = b->report->symbols;
	uint32_t n = copy->stack.frame_count;
	uint32_t wrappers = 0;

	for (uint32_t i = 0; i < n; i++)
		places[i] = images_place(&b->modules, copy->frames[i]);
	while (symbols && wrappers < n && symbols_in_allocator(symbols, places[wrappers]))
		wrappers++;
	if (wrappers == n)
		return n; /* nothing would be left */
	memmove(places, places + wrappers, (n - wrappers) * sizeof *places);
	return n - wrappers;
}

static int make_rows(struct build *b)
{
	struct report *r = b->report;

	for (size_t i = 0; i < b->count; i++) {
		struct slot *slot = &b->slots[i];
		struct report_row *part = &slot->part;
		struct dump_stack_copy copy;
		uint64_t places[DUMP_FRAMES_MAX];
		bool known = i && !dump_read_stack(b->dump, slot->reference, &copy);
		bool unknown = !known || !copy.stack.frame_count;
		uint32_t n = known ? make_frames(b, &copy, places) : 0;

		fill_row(b, slot, known ? &copy.stack : NULL);
		part->flags = known ? copy.stack.flags : 0;
		if (!part->sum[FIGURE_ALLOCATED_COUNT].samples && !part->sum[FIGURE_LIVE_COUNT].samples &&
		    !part->old[FIGURE_ALLOCATED_COUNT].samples && !part->old[FIGURE_LIVE_COUNT].samples)
			continue;
		r->stack_count += !unknown;
		struct report_row *row = rows_get(&r->rows, places, n, unknown);
		if (!row)
			return -ENOMEM;
		row_merge(row, part);
	}
	return 0;
}

/* The times that the options name, as stamps of this dump. */
static void set_times(struct build *b)
{
	const struct report_options *o = &b->report->options;
	const struct dump_header *h = dump_header(b->dump);
	uint64_t start = h->clock_start.stamp;
	uint64_t end = h->clock_latest.stamp > start ? h->clock_latest.stamp : start;

	b->at = o->at_ns ? dump_stamp_after(b->dump, o->at_ns) : UINT64_MAX;
	b->since = o->since_ns ? dump_stamp_after(b->dump, o->since_ns) : 0;
	b->window = leak_window(start, end, o->age_ns ? dump_stamp_after(b->dump, o->age_ns) - start : 0);
	if (end > start)
		b->report->age_ns = (uint64_t)((double)b->window.age / (double)(end - start) *
					       (double)dump_duration_ns(b->dump));
}

static bool needs_lost_history(const struct build *b)
{
	uint64_t first = b->since ? b->since : b->at;

	/* What was dropped was freed, but for stragglers of idle threads, before the oldest record that is left. */
	return first != UINT64_MAX && dump_counter(b->dump, DUMP_COUNTER_lost_history) &&
	       (!b->oldest_freed || first < b->oldest_freed);
}

/* Live records and history; again if the live samples were thinned meanwhile. */
static int read_samples(struct build *b)
{
	struct efficiency *efficiency = b->report->efficiency;
	struct efficiency before = { 0 };
	int s = 1;

	if (efficiency)
		before = *efficiency;
	for (int i = 0; s == 1 && i < READS_MAX; i++) {
		if (efficiency)
			*efficiency = before;
		free(b->slots);
		free(b->tallies);
		b->tallies = NULL;
		map_done(&b->slot_of);
		b->slots = NULL;
		b->count = b->room = 0;
		b->oldest_freed = 0;
		s = add_slot(b, 0);
		if (!s)
			s = dump_each_live(b->dump, on_live, b);
		if (!s)
			s = dump_each_history(b->dump, on_history, b);
		if (!s)
			s = dump_thinned_meanwhile(b->dump);
	}
	return s == 1 ? 0 : s;
}

int collect_dump(struct report *r, struct dump *dump, enum collect_side side, struct map *kept)
{
	const struct dump_header *h = dump_header(dump);
	struct build b = { .report = r, .dump = dump, .side = side, .kept = kept };

	b.rate = r->sessions[r->session_count - 1].largest_rate_bytes; /* there may be blocks that only this one would have seen */
	set_times(&b);
	int s = images_add(&r->images, dump, &b.modules);
	if (!s)
		s = read_samples(&b);
	if (!s)
		s = dump_each_stack(dump, on_stack, &b);
	if (!s && h->unknown_stack)
		s = on_stack(&b, h->unknown_stack);
	if (!s)
		s = make_rows(&b);
	if (b.rate > r->largest_rate)
		r->largest_rate = b.rate;
	if (needs_lost_history(&b))
		r->past_unknown = true;
	free(b.slots);
	free(b.tallies);
	map_done(&b.slot_of);
	image_map_done(&b.modules);
	return s;
}

static int on_key(void *arg, const struct dump_live_record *record)
{
	return map_put(arg, key_of(record), 0);
}

int collect_keys(struct dump *dump, struct map *kept)
{
	return dump_each_live(dump, on_key, kept);
}
