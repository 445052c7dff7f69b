/* SPDX-License-Identifier: MIT */
/* The rows that are shown, which the estimates chose: the first one and its share, the first twenty, all that are
 * listed; what of a heap the live table had no room for; what the allocator adds; what --plan says. */
#include "statements.h"

#define ROWS_RATE 65536u
#define BLOCK 256u
#define STACKS_MAX 30000u
#define STACKS_SEEN 4096u
#define FIRST_ROWS 20

/* Live samples that are expected of each stack. */
struct heap {
	const char *name;
	unsigned stacks;
	double (*samples)(unsigned i, struct random_source *random);
};

static double few(unsigned i, struct random_source *random)
{
	(void)i;
	(void)random;
	return 0.02;
}

static double five(unsigned i, struct random_source *random)
{
	(void)i;
	(void)random;
	return 5;
}

static double fifty(unsigned i, struct random_source *random)
{
	(void)i;
	(void)random;
	return 50;
}

/* 2048 in all. */
static double zipf(unsigned i, struct random_source *random)
{
	(void)random;
	return 2048 / 10.886 / (i + 1);
}

/* A thousand in all, on average. */
static double lognormal(unsigned i, struct random_source *random)
{
	(void)i;
	return 0.5 * exp(2 * sqrt(-2 * log(random_unit(random))) * cos(2 * M_PI * random_unit(random)) - 2);
}

static const struct heap heaps[] = {
	{ "30000 stacks of 0.02 samples", 30000, few },
	{ "30000 stacks by Zipf, 2048 samples", 30000, zipf },
	{ "2000 lognormal stacks, 1000", 2000, lognormal },
	{ "1000 stacks of 5", 1000, five },
	{ "100 stacks of 50", 100, fifty },
	{ "10 stacks of 5", 10, five },
};

static const char *const words[] = { "first row: ",   "share of the first row: ",  "first 20 rows: ",
	                             "listed rows: ", "all lower ends together: ", "--by function, first row: " };
#define WORDS (sizeof words / sizeof words[0])
static char names[sizeof heaps / sizeof heaps[0]][WORDS][96];

/* Only of stacks that have one is there a record: blocks of the other ones are in the truth alone. */
static void build(struct dump_builder *b, const struct heap *heap, double *truth, double *all,
                  struct random_source *random)
{
	double p = estimate_probability(BLOCK, ROWS_RATE);

	dump_builder_init(b, ROWS_RATE, 16384, STACKS_SEEN, 1);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/main", NULL, 0, 0);
	*all = 0;
	for (unsigned i = 0; i < heap->stacks; i++) {
		double blocks = fmax(1, round(heap->samples(i, random) / p)), log_q = log1p(-p);
		double at = floor(log(random_unit(random)) / log_q);
		truth[i] = blocks * BLOCK;
		*all += truth[i];
		uint32_t stack = at < blocks ? session_stack(b, i) : 0;
		for (; at < blocks; at += 1 + floor(log(random_unit(random)) / log_q))
			sample(b, stack, BLOCK, ROWS_RATE, 1, 0);
	}
}

static void state_heap(size_t number, struct random_source *random)
{
	static double truth[STACKS_MAX];
	const struct heap *heap = &heaps[number];
	struct dump_builder b;
	struct report r;
	bool together = true;
	double all;

	for (size_t k = 0; k < WORDS; k++)
		snprintf(names[number][k], sizeof names[number][k], "%s%s", words[k], heap->name);
	build(&b, heap, truth, &all, random);
	session_report(&r, &b, 1, (struct report_options){ .top = 0 });
	for (size_t i = 0; i < r.rows.count; i++) {
		const struct report_row *row = &r.rows.list[i];
		struct estimate x = report_estimate(&r, row, FIGURE_LIVE_BYTES);
		double has = truth[stack_of_row(row)];
		if (!i) {
			holds(names[number][0], x, has);
			holds(names[number][1], report_share_interval(&r, row, FIGURE_LIVE_BYTES), has / all);
		}
		if (i < FIRST_ROWS)
			holds(names[number][2], x, has);
		holds(names[number][3], x, has);
		together &= x.low <= has * (1 + 1e-9);
	}
	count_statement(names[number][4], HOLDS, 0, together);
	report_done(&r);
	session_report(&r, &b, 1, (struct report_options){ .by = BY_FUNCTION });
	for (size_t i = 0; i < r.groups.count && i < 1; i++) {
		const struct report_row own = report_group(&r.groups.list[i], true);
		unsigned long place = strtoul(r.groups.list[i].name + 1, NULL, 16);
		holds(names[number][5], report_estimate(&r, &own, FIGURE_LIVE_BYTES), truth[(place - 0x400100) / 16]);
	}
	report_done(&r);
	dump_builder_done(&b);
}

/* The lower end of a stack that is three times as large as the others is above them all. */
static void state_power(struct random_source *random)
{
	struct dump_builder b;
	struct report r;

	session_begin(&b, ROWS_RATE, 16384, 1);
	for (unsigned i = 0; i < 100; i++)
		session_blocks(&b, random, session_stack(&b, i), BLOCK, (i ? 50 : 150) * ROWS_RATE / BLOCK, ROWS_RATE);
	session_report(&r, &b, 1, (struct report_options){ 0 });
	double low = report_estimate(&r, r.rows.list, FIGURE_LIVE_BYTES).low;
	count_statement("a stack of 150 samples, 99 of 50: its lower end is above 100", POWER, 0.7,
	                stack_of_row(r.rows.list) == 0 && low > 100.0 * ROWS_RATE);
	report_done(&r);
	dump_builder_done(&b);
}

/* A live sample that had no room. */
static void lose(struct dump_builder *b, uint32_t stack)
{
	struct dump_stack *record = dump_builder_at(b, (uint64_t)stack * DUMP_STACK_ALIGN);

	*live_record(b, --b->live_used) = (struct dump_live_record){ 0 };
	record->unkept++;
	dump_builder_header(b)->counters[0][DUMP_COUNTER_lost_live_full]++;
}

/* Of which stack so large a part is lost. */
struct loss {
	const char *total, *row;
	int stack; /* -1: of all */
	double part;
};

static const struct loss losses[] = {
	{ "three blocks of 64 MiB lost: total", "three blocks of 64 MiB lost: their row", 1, 1 },
	{ "all small blocks lost: total", "all small blocks lost: their row", 0, 1 },
	{ "half of all lost: total", "half of all lost: row of small blocks", -1, 0.5 },
	{ "5 % of all lost: total", "5 % of all lost: row of small blocks", -1, 0.05 },
};

static void state_loss(const struct loss *loss, struct random_source *random)
{
	static const struct block_class blocks[] = { { 100, 400000 }, { 64 << 20, 3 }, { 4096, 2000 } };
	struct dump_builder b;
	struct report r;
	double all = 0;

	session_begin(&b, ROWS_RATE, 4096, 1);
	for (int i = 0; i < 3; i++) {
		uint32_t stack = session_stack(&b, (unsigned)i);
		double p = estimate_probability(blocks[i].size, ROWS_RATE), log_q = log1p(-p);
		for (double at = p < 1 ? floor(log(random_unit(random)) / log_q) : 0; at < (double)blocks[i].blocks;
		     at += 1 + (p < 1 ? floor(log(random_unit(random)) / log_q) : 0)) {
			sample(&b, stack, blocks[i].size, ROWS_RATE, 1, 0);
			if ((loss->stack < 0 || loss->stack == i) && random_unit(random) < loss->part)
				lose(&b, stack);
		}
		all += (double)blocks[i].size * (double)blocks[i].blocks;
	}
	session_report(&r, &b, 1, (struct report_options){ 0 });
	holds(loss->total, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), all);
	int of = loss->stack < 0 ? 0 : loss->stack;
	for (size_t i = 0; i < r.rows.count; i++)
		if (stack_of_row(&r.rows.list[i]) == of)
			holds(loss->row, report_estimate(&r, &r.rows.list[i], FIGURE_LIVE_BYTES),
			      (double)blocks[of].size * (double)blocks[of].blocks);
	report_done(&r);
	dump_builder_done(&b);
}

/* As glibc has it. */
static uint64_t usable(uint64_t size)
{
	return size <= 24 ? 24 : (size + 8 + 15) / 16 * 16 - 8;
}

/* Of blocks of 4 KiB and of others so small that often none of them is sampled. */
static void state_slack(uint64_t size, uint64_t count, const char *name, struct random_source *random)
{
	const struct block_class blocks[] = { { 4096, 4000 }, { size, count } };
	struct dump_builder b;
	struct report r;
	double truth = 0;

	session_begin(&b, ROWS_RATE, 4096, 1);
	for (int i = 0; i < 2; i++) {
		uint64_t first = b.live_used;
		session_blocks(&b, random, session_stack(&b, (unsigned)i), blocks[i].size, blocks[i].blocks, ROWS_RATE);
		for (uint64_t k = first; k < b.live_used; k++)
			live_record(&b, k)->usable = usable(blocks[i].size);
		truth += (double)(usable(blocks[i].size) - blocks[i].size) * (double)blocks[i].blocks;
	}
	session_report(&r, &b, 1, (struct report_options){ 0 });
	struct estimate x = report_slack(&r, &r.total.slack);
	x.high += x.unseen;
	holds(name, x, truth);
	report_done(&r);
	dump_builder_done(&b);
}

/* Who follows --plan 10 % reaches it within a tenth. */
static void state_plan(const struct block_class *blocks, int classes, const char *name, struct random_source *random)
{
	const double wanted = 0.1;
	struct dump_builder b;
	struct report r;
	struct sampled_heap heap;

	session_begin(&b, ROWS_RATE, 4096, 1);
	uint32_t stack = session_stack(&b, 0);
	for (int i = 0; i < classes; i++)
		session_blocks(&b, random, stack, blocks[i].size, blocks[i].blocks, ROWS_RATE);
	session_report(&r, &b, 1, (struct report_options){ .plan = wanted });
	if (r.rows.count) {
		uint64_t rate = (uint64_t)report_plan(&r, r.rows.list).rate;
		heap_sample(&heap, blocks, classes, rate, random);
		struct estimate x = estimate_interval(&heap.bytes, 0.95);
		count_statement(name, POWER, 0.85, (x.high - x.low) / 2 <= 1.1 * wanted * x.value);
	}
	report_done(&r);
	dump_builder_done(&b);
}

void state_rows(unsigned runs, struct random_source *random)
{
	static const struct block_class alike[] = { { 1024, 6400 } };
	static const struct block_class spread[] = { { 64, 12 * ROWS_RATE / 64 }, { 4 * ROWS_RATE, 3 } };
	struct block_class octaves[16];

	for (int i = 0; i < 16; i++)
		octaves[i] = (struct block_class){ 16u << i, (uint64_t)ceil(20.0 * ROWS_RATE / 16 / (16u << i)) };
	for (unsigned run = 0; run < runs; run++) {
		for (size_t i = 0; i < sizeof heaps / sizeof heaps[0]; i++)
			state_heap(i, random);
		state_power(random);
		for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
			state_loss(&losses[i], random);
		state_slack(1, 60000, "what the allocator adds to 4 KiB, 60000 of 1 B", random);
		state_slack(1, 20000, "what the allocator adds to 4 KiB, 20000 of 1 B", random);
		state_slack(20, 50000, "what the allocator adds to 4 KiB, 50000 of 20 B", random);
		state_plan(alike, 1, "--plan 10, 100 samples: 11 % are reached", random);
		state_plan(spread, 2, "--plan 10, half 64 B, half 4 R: 11 % are reached", random);
		state_plan(octaves, 16, "--plan 10, 16 B to 8 R: 11 % are reached", random);
	}
}
