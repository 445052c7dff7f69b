/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

/* What is collected for one stack of the dump before equal ones are merged. */
struct slot {
	uint32_t reference;
	struct estimate_sum live_bytes, live_count;
	double history_bytes;  /* bytes of its samples that stand in the history */
	double largest_weight; /* largest 1 / p among its samples, 0 none seen */
};

struct build {
	struct report *report;
	struct slot *slots; /* slots[0]: the stack is not known */
	size_t count, room;
	struct map slot_of;
	struct map row_of; /* hash of the frames -> row; collisions step by one */
};

static const char *const figure_names[] = { "live-bytes", "live-count", "allocated-bytes", "allocated-count" };

int report_figure_parse(const char *name)
{
	for (int i = 0; i < FIGURE_COUNT; i++)
		if (!strcmp(name, figure_names[i]))
			return i;
	return -1;
}

const char *report_figure_name(enum report_figure figure)
{
	return figure_names[figure];
}

static int add_slot(struct build *b, uint32_t reference)
{
	if (b->count == b->room) {
		size_t room = b->room ? 2 * b->room : 64;
		struct slot *more = reallocarray(b->slots, room, sizeof *more);
		if (!more)
			return -ENOMEM;
		b->slots = more;
		b->room = room;
	}
	b->slots[b->count] = (struct slot){ .reference = reference };
	return map_put(&b->slot_of, reference, (uint32_t)b->count++);
}

/* The slot of a reference, slots[0] if there is no such stack; NULL if out of memory. */
static struct slot *slot_of(struct build *b, uint32_t reference)
{
	const uint32_t *known = map_find(&b->slot_of, reference);
	struct dump_stack_copy copy;

	if (known)
		return &b->slots[*known];
	/* Only stacks that hold together get a slot, so a damaged file cannot ask for more memory than it has stacks. */
	if (dump_read_stack(b->report->dump, reference, &copy))
		return &b->slots[0];
	return add_slot(b, reference) ? NULL : &b->slots[b->count - 1];
}

static void note_sample(struct build *b, struct slot *slot, uint64_t size, uint32_t rate)
{
	double weight = 1 / estimate_probability(size, rate);

	if (weight > slot->largest_weight)
		slot->largest_weight = weight;
	if (rate > b->report->largest_rate)
		b->report->largest_rate = rate;
}

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct build *b = arg;
	struct slot *slot = slot_of(b, record->stack);
	double p = estimate_probability(record->size, record->rate_bytes);

	if (!slot)
		return -ENOMEM;
	estimate_add(&slot->live_bytes, (double)record->size, p);
	estimate_add(&slot->live_count, 1, p);
	note_sample(b, slot, record->size, record->rate_bytes);
	return 0;
}

static int on_history(void *arg, const struct dump_history_record *record)
{
	struct build *b = arg;
	struct slot *slot = slot_of(b, record->stack);

	if (!slot)
		return -ENOMEM;
	slot->history_bytes += (double)record->size;
	note_sample(b, slot, record->size, record->rate_bytes);
	return 0;
}

static int on_stack(void *arg, uint32_t reference)
{
	return slot_of(arg, reference) ? 0 : -ENOMEM;
}

static int on_note(void *arg, uint32_t kind, const char *text)
{
	struct report *r = arg;
	struct report_note *more = reallocarray(r->notes, r->note_count + 1, sizeof *more);

	if (!more)
		return -ENOMEM;
	r->notes = more;
	more[r->note_count] = (struct report_note){ .kind = kind, .text = strdup(text) };
	return more[r->note_count].text ? (r->note_count++, 0) : -ENOMEM;
}

/* What the header and the counters say that a reader of the figures must know. */
static int make_notes(struct report *r)
{
	const struct dump_header *h = dump_header(r->dump);
	int s = 0;

	if (h->state == DUMP_STATE_PREPARING)
		s = on_note(r, DUMP_NOTE_OTHER, "recording had not begun when this was read");
	if (!s && h->state == DUMP_STATE_EXECED)
		s = on_note(r, DUMP_NOTE_OTHER, "the target called execve: its heap is gone, the figures are from before");
	if (!s && dump_counter(r->dump, DUMP_COUNTER_lost_live_full))
		s = on_note(r, DUMP_NOTE_FULL, "the live table was full for a time: live figures are too low");
	if (!s && dump_counter(r->dump, DUMP_COUNTER_lost_stack_full))
		s = on_note(r, DUMP_NOTE_FULL, "there was no room for some stacks: their samples count as unknown stack");
	return s ? s : dump_each_note(r->dump, on_note, r);
}

/*
 * The weight of the next count that was not seen: the largest that was, or what the sums say where the records are
 * gone: sum of w^2 / sum of w, the mean weight of the samples weighted by themselves. Nothing known: one byte.
 */
static double next_count(const struct report *r, const struct slot *slot, const struct dump_stack *stack)
{
	double next = slot->largest_weight;

	if (r->largest_rate <= 1)
		return 0;
	if (stack && stack->allocated_count > 0)
		next = fmax(next, stack->variance_count / stack->allocated_count + 1);
	return next > 0 ? next : 1 / estimate_probability(1, r->largest_rate);
}

static void fill_row(const struct report *r, struct report_row *row, const struct slot *slot, const struct dump_stack *stack)
{
	struct estimate_sum *bytes = &row->sum[FIGURE_ALLOCATED_BYTES];
	struct estimate_sum *count = &row->sum[FIGURE_ALLOCATED_COUNT];

	row->sum[FIGURE_LIVE_BYTES] = slot->live_bytes;
	row->sum[FIGURE_LIVE_COUNT] = slot->live_count;
	if (stack && stack->taken >= slot->live_count.samples) {
		*bytes = (struct estimate_sum){ stack->allocated_bytes, stack->variance_bytes,
						slot->live_bytes.seen + slot->history_bytes, 0, stack->taken };
		*count = (struct estimate_sum){ stack->allocated_count, stack->variance_count, (double)stack->taken, 0,
						stack->taken };
	} else {
		*bytes = slot->live_bytes; /* the sums are lost; at least this was allocated */
		*count = slot->live_count;
	}
	for (int i = 0; i < FIGURE_COUNT; i++)
		row->sum[i].next = i == FIGURE_LIVE_COUNT || i == FIGURE_ALLOCATED_COUNT ?
					   next_count(r, slot, stack) :
				   r->largest_rate > 1 ? (double)r->largest_rate :
							 0;
}

/* The frames as places, without the allocator's own wrappers in front (operator new, reallocarray). */
static uint32_t make_frames(struct report *r, const struct dump_stack_copy *copy, uint64_t places[DUMP_FRAMES_MAX])
{
	uint32_t n = copy->stack.frame_count;
	uint32_t wrappers = 0;

	for (uint32_t i = 0; i < n; i++)
		places[i] = images_place(&r->images, copy->frames[i]);
	while (r->symbols && wrappers < n && symbols_in_allocator(r->symbols, places[wrappers]))
		wrappers++;
	if (wrappers == n)
		return n; /* nothing would be left */
	memmove(places, places + wrappers, (n - wrappers) * sizeof *places);
	return n - wrappers;
}

static struct report_row *row_of(struct build *b, const uint64_t *places, uint32_t n, bool unknown)
{
	struct report *r = b->report;
	uint64_t hash = map_mix(n + 1u + ((uint64_t)unknown << 32));
	const uint32_t *known;

	for (uint32_t i = 0; i < n; i++)
		hash = map_mix(hash ^ places[i]);
	while ((known = map_find(&b->row_of, hash))) {
		struct report_row *row = &r->rows[*known];
		if (row->unknown == unknown && row->frame_count == n &&
		    (!n || !memcmp(row->frames, places, n * sizeof *places)))
			return row;
		hash++;
	}
	struct report_row *row = &r->rows[r->row_count];
	*row = (struct report_row){ .frame_count = n, .unknown = unknown };
	if (n) {
		row->frames = malloc(n * sizeof *places);
		if (!row->frames)
			return NULL;
		memcpy(row->frames, places, n * sizeof *places);
	}
	r->row_count++;
	return map_put(&b->row_of, hash, (uint32_t)(r->row_count - 1)) ? NULL : row;
}

static int make_rows(struct build *b)
{
	struct report *r = b->report;

	r->rows = calloc(b->count, sizeof *r->rows);
	if (!r->rows)
		return -ENOMEM;
	for (size_t i = 0; i < b->count; i++) {
		struct slot *slot = &b->slots[i];
		struct dump_stack_copy copy;
		struct report_row part = { 0 };
		uint64_t places[DUMP_FRAMES_MAX];
		bool known = i && !dump_read_stack(r->dump, slot->reference, &copy);
		bool unknown = !known || !copy.stack.frame_count;
		uint32_t n = known ? make_frames(r, &copy, places) : 0;

		fill_row(r, &part, slot, known ? &copy.stack : NULL);
		if (!part.sum[FIGURE_ALLOCATED_COUNT].samples && !part.sum[FIGURE_LIVE_COUNT].samples)
			continue;
		r->stack_count += !unknown;
		struct report_row *row = row_of(b, places, n, unknown);
		if (!row)
			return -ENOMEM;
		for (int f = 0; f < FIGURE_COUNT; f++)
			estimate_merge(&row->sum[f], &part.sum[f]);
		row->flags |= known ? copy.stack.flags : 0;
	}
	return 0;
}

static void make_total(struct report *r)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		for (size_t i = 0; i < r->row_count; i++)
			estimate_merge(&r->total.sum[f], &r->rows[i].sum[f]);
		if (!r->row_count && r->largest_rate > 1)
			r->total.sum[f].next = (double)r->largest_rate;
	}
}

static enum report_figure sort_figure;

/* Largest first; ties by what was allocated, then by the frames, so that the order is the same each time. */
static int compare_rows(const void *a, const void *b)
{
	const struct report_row *x = a;
	const struct report_row *y = b;
	const enum report_figure order[] = { sort_figure, FIGURE_LIVE_BYTES, FIGURE_ALLOCATED_BYTES,
					     FIGURE_ALLOCATED_COUNT };

	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		double p = x->sum[order[i]].value;
		double q = y->sum[order[i]].value;
		if (p != q)
			return p > q ? -1 : 1;
	}
	for (uint32_t i = 0; i < x->frame_count && i < y->frame_count; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return x->frame_count < y->frame_count ? -1 : x->frame_count > y->frame_count;
}

static int collect(struct build *b)
{
	struct report *r = b->report;
	const struct dump_header *h = dump_header(r->dump);
	int s = add_slot(b, 0);

	/* Live records first: a stack's sums are then never older than its live records. */
	if (!s)
		s = dump_each_live(r->dump, on_live, b);
	if (!s)
		s = dump_each_history(r->dump, on_history, b);
	if (!s)
		s = dump_each_stack(r->dump, on_stack, b);
	if (!s && h->unknown_stack)
		s = on_stack(b, h->unknown_stack);
	if (!s)
		s = make_notes(r);
	return s ? s : make_rows(b);
}

int report_make(struct report *r, struct dump *dump, const struct report_options *options, struct err *e)
{
	const struct dump_header *h = dump_header(dump);
	struct build b = { .report = r };

	*r = (struct report){ .options = *options, .dump = dump };
	r->largest_rate = h->rate_bytes > h->first_rate_bytes ? h->rate_bytes : h->first_rate_bytes;
	r->lost = dump_counter(dump, DUMP_COUNTER_lost_busy) + dump_counter(dump, DUMP_COUNTER_lost_live_full);
	int s = images_load(&r->images, dump);
	if (!s && options->symbols) {
		if (dump_end(dump) == DUMP_END_RUNNING && !r->options.search.pid && h->pid > 0)
			r->options.search.pid = h->pid;
		r->symbols = symbols_new(&r->images, &r->options.search);
		s = r->symbols ? 0 : -ENOMEM;
	}
	if (!s)
		s = collect(&b);
	free(b.slots);
	map_done(&b.slot_of);
	map_done(&b.row_of);
	if (s) {
		report_done(r);
		return err_set(e, -s, "%s", s == -ENOMEM ? "out of memory" : strerror(-s));
	}
	make_total(r);
	sort_figure = options->sort;
	qsort(r->rows, r->row_count, sizeof *r->rows, compare_rows);
	r->complete = dump_complete(dump);
	return 0;
}

void report_done(struct report *r)
{
	for (size_t i = 0; i < r->row_count; i++)
		free(r->rows[i].frames);
	for (size_t i = 0; i < r->note_count; i++)
		free(r->notes[i].text);
	free(r->rows);
	free(r->notes);
	symbols_free(r->symbols);
	images_done(&r->images);
	*r = (struct report){ 0 };
}

size_t report_shown(const struct report *r)
{
	return r->options.top && r->options.top < r->row_count ? r->options.top : r->row_count;
}

struct estimate report_estimate(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	return estimate_interval(&row->sum[figure], r->options.confidence);
}

double report_share(const struct report *r, const struct report_row *row, enum report_figure figure)
{
	double all = r->total.sum[figure].value;

	return all > 0 ? row->sum[figure].value / all : 0;
}

double report_detection_limit(const struct report *r)
{
	return r->largest_rate > 1 ? estimate_detection_limit((double)r->largest_rate, r->options.confidence) : 0;
}

bool report_exact(const struct report *r)
{
	return r->largest_rate <= 1 && !r->lost;
}
