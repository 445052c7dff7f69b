/* SPDX-License-Identifier: MIT */
/* Verdicts of the live view, which looks again and again: whether any of them is false in ten minutes of a steady heap,
 * and how soon a stack that leaks is called grown. */
#include "statements.h"

#include "live/live_rows.h"

#define STACKS 20u
#define LOOKS 600u /* once a second */
#define SAMPLES 20 /* live ones of a stack, on average, at any time */
#define LIVE_RATE 65536u
#define BLOCK 4096u
#define BLOCKS_MAX 65536u

struct block {
	double born, freed;
};

struct scene {
	struct live_heap heap;
	struct live_stack stacks[STACKS];
	struct block *blocks[STACKS];
	size_t count[STACKS];
};

/* Sampled blocks of one stack: steady from long before the view begins, each lives for an exponential time; and others
 * that come so fast, and stay. */
static void fill_stack(struct scene *s, unsigned i, double lifetime, double leaks, struct random_source *random)
{
	size_t n = 0;

	for (double at = -20 * lifetime; at < LOOKS; at -= lifetime / SAMPLES * log(random_unit(random)))
		if (n < BLOCKS_MAX)
			s->blocks[i][n++] = (struct block){ at, at - lifetime * log(random_unit(random)) };
	for (double at = 0; leaks > 0 && at < LOOKS; at -= log(random_unit(random)) / leaks)
		if (n < BLOCKS_MAX)
			s->blocks[i][n++] = (struct block){ at, INFINITY };
	s->count[i] = n;
}

static void sums_at(struct scene *s, unsigned i, double base, double now)
{
	struct live_stack *stack = &s->stacks[i];
	double p = estimate_probability(BLOCK, LIVE_RATE);

	*stack = (struct live_stack){ .reference = i };
	for (size_t k = 0; k < s->count[i]; k++) {
		const struct block *b = &s->blocks[i][k];
		bool was = b->born <= base && b->freed > base;
		bool is = b->born <= now && b->freed > now;
		if (was)
			estimate_add(&stack->base[0], BLOCK, p);
		if (is)
			estimate_add(&stack->live[0], BLOCK, p);
		if (was && is)
			estimate_add(&stack->still[0], BLOCK, p);
	}
	live_stack_add(&s->heap.total, stack);
}

/* The bases are those of live_heap.h. */
static void look(struct scene *s, unsigned second, struct live_rows *rows)
{
	const struct live_names names = { .by = BY_STACK };
	unsigned half = LIVE_WINDOW_NS / 2000000000u;
	double base = second < 2 * half ? 0 : (second / half - 1) * half;

	s->heap.total = (struct live_stack){ 0 };
	for (unsigned i = 0; i < STACKS; i++)
		sums_at(s, i, base, second);
	if (live_rows_make(rows, &s->heap, &names, LIVE_SORT_LIVE, live_rows_level(0.95, second)))
		abort();
}

/* The first stack leaks so many samples a second, from the start; 0: none does. */
static void view(struct scene *s, double lifetime, double leaks, const char *row_name, const char *total_name,
                 struct random_source *random)
{
	struct live_rows rows;
	bool other = false, total = false, leak = false;

	for (unsigned i = 0; i < STACKS; i++)
		fill_stack(s, i, lifetime, i ? 0 : leaks, random);
	for (unsigned second = 1; second <= (leaks > 0 ? 120 : LOOKS); second++) {
		look(s, second, &rows);
		total |= rows.total.verdict != 0;
		for (size_t k = 0; k < rows.count; k++) {
			bool first = !rows.list[k].figures->reference;
			leak |= first && rows.list[k].verdict > 0;
			other |= !(first && leaks > 0) && rows.list[k].verdict != 0;
		}
		live_rows_done(&rows);
	}
	count_statement(row_name, leaks > 0 ? POWER : FALSE_ALARM, leaks > 0 ? 0.9 : 0, leaks > 0 ? leak : other);
	if (total_name)
		count_statement(total_name, FALSE_ALARM, 0, total);
}

void state_live(unsigned runs, struct random_source *random)
{
	struct scene s = { .heap = { .list = s.stacks, .count = STACKS, .rate = LIVE_RATE } };

	for (unsigned i = 0; i < STACKS; i++) {
		s.blocks[i] = calloc(BLOCKS_MAX, sizeof *s.blocks[i]);
		if (!s.blocks[i])
			abort();
	}
	for (unsigned run = 0; run < runs; run++) {
		view(&s, 3, 0, "--live, 600 looks at lifetimes of 3 s: a row is said to change",
		     "--live, 600 looks at lifetimes of 3 s: the total is", random);
		view(&s, 30, 0, "--live, 600 looks at lifetimes of 30 s: a row is said to change",
		     "--live, 600 looks at lifetimes of 30 s: the total is", random);
		view(&s, 30, 1, "--live: a leak of a sample a second is found in 2 min", NULL, random);
		view(&s, 3, 2, "--live: a leak of two samples a second, and churn, is found", NULL, random);
	}
	for (unsigned i = 0; i < STACKS; i++)
		free(s.blocks[i]);
}
