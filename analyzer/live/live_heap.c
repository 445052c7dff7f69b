/* SPDX-License-Identifier: MIT */
#include "live/live_heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/given_files.h"
#include "input/parts/parts.h"
#include "base/grow.h"
#include "report/stack_places.h"
#include "symbols/target_root.h"

#define PROBABILITIES 1024u /* a power of two */
#define READS_MAX 8
#define LOOKS_FOR_NAMES 4u

enum { BYTES, BLOCKS };

/* Sizes come again and again, and exponentials are dear. */
struct live_probability {
	uint64_t size;
	uint32_t rate; /* 0: nothing here yet */
	double p;
};

static int add_stack(struct live_heap *h, uint32_t reference)
{
	if (!grow_list(h->list, h->count))
		return -ENOMEM;
	h->list[h->count] = (struct live_stack){ .reference = reference };
	h->count++;
	return 0;
}

static void forget(struct live_heap *h)
{
	for (size_t i = 0; i < h->count; i++) {
		free(h->list[i].places);
		free(h->list[i].frames);
	}
	free(h->list);
	map_done(&h->stack_of);
	symbols_free(h->symbols);
	images_done(&h->images);
	h->symbols = NULL;
	h->list = NULL;
	h->count = h->placed = h->nameless = 0;
	h->stack_of = (struct map){ 0 };
	h->stack_bytes = 0;
	memset(h->bases, 0, sizeof h->bases);
}

static int begin(struct live_heap *h)
{
	h->opened = false;
	h->rate = 1;
	int r = images_init(&h->images);
	if (!r && h->search) {
		h->symbols = symbols_new(&h->images, h->search, true);
		r = h->symbols ? 0 : -ENOMEM;
	}
	return r ?: add_stack(h, 0);
}

int live_heap_init(struct live_heap *h, const struct image_search *search)
{
	*h = (struct live_heap){ .search = search, .probabilities = calloc(PROBABILITIES, sizeof *h->probabilities) };
	return h->probabilities ? begin(h) : -ENOMEM;
}

void live_heap_done(struct live_heap *h)
{
	forget(h);
	free(h->probabilities);
}

/* ---- reading ---- */

struct look {
	struct live_heap *heap;
	struct dump *dump;
	struct parts parts; /* which come when all has been read */
};

/*
 * Only stacks that hold together get a number, and no more of them than there is room for side by side: a damaged dump
 * cannot ask for more memory than it has stacks.
 */
static int number_of(struct look *l, uint32_t reference, uint32_t *number)
{
	struct live_heap *h = l->heap;
	const uint32_t *known = map_find(&h->stack_of, reference);
	struct dump_stack_copy copy;

	*number = known ? *known : 0;
	if (known || !reference || dump_read_stack(l->dump, reference, &copy))
		return 0;
	size_t bytes = (copy.stack.frame_count + dump_python_count(&copy)) * sizeof copy.frames[0];
	if (h->stack_bytes + bytes + sizeof copy.stack > dump_stack_room(l->dump)) {
		dump_skip_stack(l->dump); /* they overlap */
		return 0;
	}
	int r = add_stack(h, reference);
	if (r)
		return r;
	struct live_stack *stack = &h->list[h->count - 1];
	stack->places = malloc(bytes + 1);
	if (!stack->places || map_put(&h->stack_of, reference, (uint32_t)(h->count - 1))) {
		free(stack->places);
		h->count--;
		return -ENOMEM;
	}
	memcpy(stack->places, copy.frames, bytes);
	stack->place_count = copy.stack.frame_count;
	stack->flags = copy.stack.flags;
	h->stack_bytes += bytes + sizeof copy.stack;
	*number = (uint32_t)(h->count - 1);
	return 0;
}

static double probability(struct live_heap *h, uint64_t size, uint32_t rate)
{
	struct live_probability *c = &h->probabilities[(size ^ size >> 10 ^ rate * 0x9e3779b1u >> 16) % PROBABILITIES];

	if (c->size != size || c->rate != rate)
		*c = (struct live_probability){ size, rate, estimate_probability(size, rate) };
	return c->p;
}

static int add_live(struct look *l, const struct sample *sample)
{
	struct live_heap *h = l->heap;
	uint32_t number;
	int r = number_of(l, sample->stack, &number);

	if (r)
		return r;
	struct live_stack *stack = &h->list[number];
	if (stack->flags & DUMP_STACK_FILE)
		return 0; /* no memory */
	double p = probability(h, sample->whole, sample->rate);
	sample_add(stack->live, sample, p);
	for (int b = 0; b < LIVE_BASES; b++)
		if (h->bases[b].set && sample->born <= h->bases[b].stamp)
			sample_add_bytes(&stack->still[b], sample, (double)sample->size, p);
	if (sample->born > h->youngest)
		h->youngest = sample->born;
	if (sample->rate > h->rate)
		h->rate = sample->rate;
	return 0;
}

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct look *l = arg;
	const struct sample sample = sample_of_live(record, dump_live_rate(l->dump, record));

	if (!sample.rate)
		return 0;
	return record->flags & DUMP_LIVE_PART ? parts_add(&l->parts, &sample) : add_live(l, &sample);
}

static int add_parts(struct look *l)
{
	int r = 0;

	parts_join(&l->parts);
	for (size_t i = 0; !r && i < l->parts.count; i++)
		r = add_live(l, parts_next(&l->parts, i));
	return r;
}

/* What was allocated, of whatever is live; a stack of which nothing is live matters to what is kept in all. */
static int on_stack(void *arg, uint32_t reference)
{
	struct look *l = arg;
	struct dump_stack_copy copy;
	uint32_t number;

	int r = number_of(l, reference, &number);
	if (r || !number || dump_read_stack(l->dump, reference, &copy))
		return r;
	if (!(copy.stack.flags & DUMP_STACK_FILE))
		l->heap->list[number].allocated = (double)copy.stack.taken_bytes + copy.stack.excess_bytes;
	return 0;
}

static int on_rate(void *arg, const struct dump_rate_change *change)
{
	struct live_heap *h = arg;
	uint64_t larger = change->old_bytes > change->new_bytes ? change->old_bytes : change->new_bytes;

	if (larger > h->rate)
		h->rate = larger;
	return 0;
}

/* Names of Java frames come some time after the stack: its frames are kept until they are there, or do not come. */
static void keep_frames(struct live_heap *h, struct live_stack *stack, bool nameless)
{
	const bool wait = nameless && stack->looks++ < LOOKS_FOR_NAMES;

	if (wait && !stack->frames) {
		stack->frames = stack->places;
		stack->frame_count = stack->place_count;
		stack->places = NULL;
		h->nameless++;
	} else if (!wait && stack->frames) {
		free(stack->frames);
		stack->frames = NULL;
		h->nameless--;
	}
}

/* Native, Python and Java frames become places. */
static int place_stack(struct live_heap *h, struct stack_maker *maker, struct live_stack *stack)
{
	const uint32_t count = stack->frames ? stack->frame_count : stack->place_count;
	struct dump_stack_copy copy = { .stack = { .frame_count = count, .flags = stack->flags } };
	struct stack_places places;

	memcpy(copy.frames, stack->frames ? stack->frames : stack->places,
	       (count + dump_python_count(&copy)) * sizeof copy.frames[0]);
	stack_places_make(maker, &copy, &places);
	keep_frames(h, stack, places.java_nameless);
	uint64_t *list = realloc(stack->places, places.count * sizeof places.list[0] + 1);
	if (!list)
		return -ENOMEM;
	memcpy(list, places.list, places.count * sizeof places.list[0]);
	stack->places = list;
	stack->place_count = places.count;
	stack->group = 0;
	return 0;
}

/* The frames of stacks that are new, by the modules as they are now. */
static int make_places(struct live_heap *h, struct dump *dump)
{
	struct image_map modules;
	struct stack_maker maker = { .native = false };
	char root[IMAGE_ROOT_TEXT];

	if (h->placed == h->count && !h->nameless)
		return 0;
	const struct given_files *given = h->search ? h->search->given : NULL;

	if (!given)
		target_root_find(dump, root);
	int r = images_add(&h->images, dump, given ? given->root : root, &modules);
	if (!r && given)
		given_files_apply(given, &h->images, &modules);
	if (!r && h->symbols && !h->placed)
		r = symbols_take_dump(h->symbols, dump, &modules);
	if (!r) /* wrappers are passed over by who looks at the names */
		r = stack_maker_init(&maker, dump, &modules, &h->images, NULL, false);
	for (size_t i = 0; !r && h->nameless && i < h->placed; i++)
		if (h->list[i].frames)
			r = place_stack(h, &maker, &h->list[i]);
	for (; !r && h->placed < h->count; h->placed++)
		if (h->list[h->placed].place_count || h->list[h->placed].flags)
			r = place_stack(h, &maker, &h->list[h->placed]);
	stack_maker_done(&maker);
	image_map_done(&modules);
	return r;
}

static void clear_sums(struct live_heap *h)
{
	for (size_t i = 0; i < h->count; i++) {
		struct live_stack *stack = &h->list[i];
		memset(stack->live, 0, sizeof stack->live);
		memset(stack->still, 0, sizeof stack->still);
	}
	h->youngest = 0;
}

static int read_live(struct look *l)
{
	int r = 1;

	for (int i = 0; i < READS_MAX && r == 1; i++) {
		clear_sums(l->heap);
		r = dump_each_live(l->dump, on_live, l);
		r = r ?: add_parts(l);
		parts_done(&l->parts);
		r = r ?: dump_thinned_meanwhile(l->dump);
	}
	return r < 0 ? r : 0;
}

void live_stack_add(struct live_stack *sum, const struct live_stack *stack)
{
	for (int f = BYTES; f <= BLOCKS; f++)
		estimate_merge(&sum->live[f], &stack->live[f]);
	for (int b = 0; b < LIVE_BASES; b++) {
		estimate_merge(&sum->base[b], &stack->base[b]);
		estimate_merge(&sum->still[b], &stack->still[b]);
	}
	sum->allocated += stack->allocated;
}

/* What an unseen sample would weigh. */
static void fill_next(struct live_heap *h)
{
	h->total = (struct live_stack){ 0 };
	for (size_t i = 0; i < h->count; i++) {
		struct live_stack *stack = &h->list[i];
		stack->live[BYTES].next = h->rate > 1 ? (double)h->rate : 0;
		estimate_hide(&stack->live[BLOCKS], h->rate);
		live_stack_add(&h->total, stack);
	}
}

/* ---- bases ---- */

static void take_base(struct live_heap *h, int b)
{
	h->bases[b] = (struct live_base){ .set = true, .stamp = h->youngest, .ns = h->ns };
	for (size_t i = 0; i < h->count; i++)
		h->list[i].base[b] = h->list[i].still[b] = h->list[i].live[BYTES];
	h->total.base[b] = h->total.still[b] = h->total.live[BYTES];
}

static void move_base(struct live_heap *h)
{
	h->bases[0] = h->bases[1];
	h->bases[1].set = false;
	for (size_t i = 0; i < h->count; i++) {
		h->list[i].base[0] = h->list[i].base[1];
		h->list[i].still[0] = h->list[i].still[1];
	}
	h->total.base[0] = h->total.base[1];
	h->total.still[0] = h->total.still[1];
}

void live_heap_restart(struct live_heap *h)
{
	h->bases[1].set = false;
	take_base(h, 0);
}

static uint64_t age_of(const struct live_heap *h, const struct live_base *base)
{
	return base->set && h->ns > base->ns ? h->ns - base->ns : 0;
}

static void renew_bases(struct live_heap *h)
{
	if (!h->bases[0].set || h->ns < h->bases[0].ns)
		live_heap_restart(h);
	if (age_of(h, &h->bases[1]) >= LIVE_WINDOW_NS / 2)
		move_base(h);
	if (!h->bases[1].set && age_of(h, &h->bases[0]) >= LIVE_WINDOW_NS / 2)
		take_base(h, 1);
}

double live_heap_window(const struct live_heap *h)
{
	return (double)age_of(h, &h->bases[0]) / 1e9;
}

/* The first without the second, which is a part of it. Of a mapping a part may have gone, so it may be in both. */
static struct estimate_sum rest_of(const struct estimate_sum *sum, const struct estimate_sum *part, double next)
{
	if (sum->samples <= part->samples && !(sum->seen > part->seen))
		return (struct estimate_sum){ .next = next };
	return (struct estimate_sum){ .value = fmax(0, sum->value - part->value),
		                      .variance = fmax(0, sum->variance - part->variance),
		                      .seen = fmax(0, sum->seen - part->seen),
		                      .samples = sum->samples > part->samples ? sum->samples - part->samples : 1,
		                      .next = next };
}

void live_heap_growth(const struct live_heap *h, const struct live_stack *stack, struct estimate_sum *plus,
                      struct estimate_sum *minus)
{
	double next = h->rate > 1 ? (double)h->rate : 0;

	*plus = rest_of(&stack->live[BYTES], &stack->still[0], next);
	*minus = rest_of(&stack->base[0], &stack->still[0], next);
}

/* ---- a look ---- */

/* Whether anything was sampled, freed or given up since. */
static bool is_unchanged(const struct live_heap *h, const struct dump *dump)
{
	const struct dump_header *now = dump_header(dump);

	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		if (dump_counter(dump, (enum dump_counter)i) != h->counters[i])
			return false;
	return now->region_count == h->header.region_count && now->thinnings == h->header.thinnings;
}

static void take_header(struct live_heap *h, const struct dump *dump)
{
	const struct dump_header *now = dump_header(dump);

	h->header = *now;
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		h->counters[i] = dump_counter(dump, (enum dump_counter)i);
	h->end = dump_end(dump);
	if (now->rate_bytes > h->rate)
		h->rate = now->rate_bytes;
	if (now->first_rate_bytes > h->rate)
		h->rate = now->first_rate_bytes;
}

/* The time of the look: the header's is renewed once a second. */
static void take_time(struct live_heap *h, const struct dump *dump)
{
	uint64_t latest = dump_latest_stamp(dump);
	uint64_t stamp = h->youngest > latest && h->end == DUMP_END_RUNNING ? h->youngest : latest;

	h->ns = dump_stamp_realtime_ns(dump, stamp);
	h->duration_ns = h->ns > h->header.clock_start.realtime_ns ? h->ns - h->header.clock_start.realtime_ns : 0;
}

static uint64_t count_skipped(const struct dump *dump)
{
	uint64_t n = 0;

	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		n += i == DUMP_SKIP_busy ? 0 : dump_skipped(dump, (enum dump_skip)i);
	return n;
}

static int read_all(struct live_heap *h, struct dump *dump)
{
	struct look l = { .heap = h, .dump = dump };
	int r = read_live(&l);

	r = r ?: dump_each_stack(dump, on_stack, &l);
	r = r ?: dump_each_rate(dump, on_rate, h);
	r = r ?: make_places(h, dump);
	h->skipped = count_skipped(dump);
	return r;
}

int live_heap_look(struct live_heap *h, struct dump *dump, bool *anew)
{
	int r = 0;

	*anew = h->opened && dump_header(dump)->session_id != h->header.session_id;
	if (*anew) {
		forget(h);
		r = begin(h);
	}
	if (r)
		return r;
	bool unchanged = h->opened && !h->nameless && is_unchanged(h, dump);
	bool thinned = h->opened && dump_header(dump)->thinnings != h->header.thinnings;
	take_header(h, dump);
	h->opened = true;
	if (!unchanged)
		r = read_all(h, dump);
	if (r)
		return r;
	take_time(h, dump);
	fill_next(h);
	if (thinned || dump_header(dump)->thinnings != h->header.thinnings)
		h->bases[0].set = false;
	h->header.thinnings = dump_header(dump)->thinnings;
	renew_bases(h);
	return 0;
}

struct estimate live_heap_estimate(const struct live_heap *h, const struct live_stack *stack, bool bytes,
                                   double confidence)
{
	const struct estimate_sum *sum = &stack->live[bytes ? BYTES : BLOCKS],
				  *all = &h->total.live[bytes ? BYTES : BLOCKS];
	bool whole = stack == &h->total;
	double most = whole ? 0 : estimate_interval(&h->total.live[BYTES], confidence).high;
	/* Rows are those that the estimates chose. */
	double part = whole ? 1 : estimate_listed_share(&stack->live[BYTES], confidence, most);
	struct estimate x = estimate_interval_listed(sum, confidence, part);
	uint64_t lost = h->counters[DUMP_COUNTER_lost_busy] + h->counters[DUMP_COUNTER_lost_live_full];

	if (!whole && stack != &h->list[0])
		lost += h->counters[DUMP_COUNTER_lost_stack_full];
	if (all->samples)
		x.high += (double)lost * all->value / (double)all->samples;
	return x;
}
