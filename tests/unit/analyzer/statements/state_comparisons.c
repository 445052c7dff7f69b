/* SPDX-License-Identifier: MIT */
/* Comparisons and sums of dumps, whose rates are the same or not; what the governor makes of them. */
#include "statements.h"

#define KIB 1024.0
#define STACKS_MAX 50

/* Equal heaps: so many stacks of so many bytes in blocks of 256, looked at with two rates. */
struct pair {
	const char *any, *row, *first, *total, *total_grown;
	unsigned stacks;
	double bytes;
	uint64_t rates[2];
};

#define PAIR(text, n, size, old, new)                                                                                  \
	{                                                                                                              \
		.any = "--diff, nothing grown, " text ": a row is called grown", .row = "--diff, " text ": rows",      \
		.first = "--diff, " text ": first row", .total = "--diff, " text ": total",                            \
		.total_grown = "--diff, " text ": total called grown", .stacks = (n), .bytes = (size)*KIB, .rates = {  \
			(old)*1024u,                                                                                   \
			(new) * 1024u                                                                                  \
		}                                                                                                      \
	}

static const struct pair pairs[] = {
	PAIR("512k and 512k", 50, 100, 512, 512), PAIR("512k and 4k", 50, 100, 512, 4),
	PAIR("4k and 512k", 50, 100, 4, 512),     PAIR("512k and 64k", 50, 1024, 512, 64),
	PAIR("2M and 256k", 20, 3072, 2048, 256), PAIR("one stack, 512k and 4k", 1, 100, 512, 4),
};

/* more: bytes of the first stack beside the others. */
static void build(struct dump_builder *b, const struct pair *pair, int side, double more, struct random_source *random)
{
	uint64_t rate = pair->rates[side];

	session_begin(b, rate, 4096, 1);
	for (unsigned i = 0; i < pair->stacks; i++)
		session_blocks(b, random, session_stack(b, i), 256,
		               (uint64_t)((pair->bytes + (side && !i ? more : 0)) / 256), rate);
}

static void compare_equal(const struct pair *pair, struct random_source *random)
{
	struct dump_builder dumps[2];
	struct report r;
	bool any = false;

	for (int side = 0; side < 2; side++)
		build(&dumps[side], pair, side, 0, random);
	session_report(&r, dumps, 2, (struct report_options){ .diff = true });
	for (size_t i = 0; i < r.rows.count; i++) {
		any |= r.rows.list[i].grown;
		holds(pair->row, report_growth(&r, &r.rows.list[i], FIGURE_LIVE_BYTES), 0);
	}
	if (r.rows.count)
		holds(pair->first, report_growth(&r, r.rows.list, FIGURE_LIVE_BYTES), 0);
	count_statement(pair->any, FALSE_ALARM, 0, any);
	count_statement(pair->total_grown, FALSE_ALARM, 0, r.total.grown);
	holds(pair->total, report_growth(&r, &r.total, FIGURE_LIVE_BYTES), 0);
	report_done(&r);
	for (int side = 0; side < 2; side++)
		dump_builder_done(&dumps[side]);
}

/* Blocks of one stack whose sizes have a heavy tail (Pareto, 1.1), so that one of them may be a good part of all. */
enum { TAIL_STACKS = 5, TAIL_BLOCKS = 8000 };
static uint64_t tail_sizes[TAIL_STACKS][TAIL_BLOCKS];

static double draw_tail(struct random_source *random)
{
	double all = 0;

	for (unsigned i = 0; i < TAIL_STACKS * TAIL_BLOCKS; i++) {
		double size = fmin(16 * pow(random_unit(random), -1 / 1.1), 64e6);
		tail_sizes[i / TAIL_BLOCKS][i % TAIL_BLOCKS] = (uint64_t)size;
		all += floor(size);
	}
	return all;
}

static double tail_of(int stack)
{
	double sum = 0;

	for (unsigned i = 0; i < TAIL_BLOCKS; i++)
		sum += (double)tail_sizes[stack][i];
	return sum;
}

static void sample_tail(struct dump_builder *b, uint64_t rate, struct random_source *random)
{
	session_begin(b, rate, 8192, 1);
	for (unsigned i = 0; i < TAIL_STACKS; i++) {
		uint32_t stack = session_stack(b, i);
		for (unsigned k = 0; k < TAIL_BLOCKS; k++)
			if (random_unit(random) < estimate_probability(tail_sizes[i][k], rate))
				sample(b, stack, tail_sizes[i][k], (uint32_t)rate, 1, 0);
	}
}

/* What is said of one session: that there are so many blocks or more, and not more than those and the unseen ones. */
static void look_at_tail(struct dump_builder *b, double all)
{
	struct report r;

	session_report(&r, b, 1, (struct report_options){ 0 });
	holds("heavy tail: total", report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), all);
	for (size_t i = 0; i < r.rows.count; i++)
		holds("heavy tail: rows", report_estimate(&r, &r.rows.list[i], FIGURE_LIVE_BYTES),
		      tail_of(stack_of_row(&r.rows.list[i])));
	struct estimate blocks = report_estimate(&r, &r.total, FIGURE_LIVE_COUNT);
	const double count = TAIL_STACKS * TAIL_BLOCKS;
	count_statement("heavy tail: so many blocks or more", HOLDS, 0, blocks.low <= count);
	count_statement("heavy tail: blocks, with those that are unseen", HOLDS, 0,
	                blocks.low <= count && count <= blocks.high + blocks.unseen);
	report_done(&r);
}

/* The same heap twice. */
static void compare_tails(uint64_t old, uint64_t new, struct random_source *random)
{
	struct dump_builder dumps[2];
	struct report r;
	bool any = false;
	double all = draw_tail(random);

	sample_tail(&dumps[0], old, random);
	sample_tail(&dumps[1], new, random);
	session_report(&r, dumps, 2, (struct report_options){ .diff = true });
	for (size_t i = 0; i < r.rows.count; i++) {
		struct estimate x = report_growth(&r, &r.rows.list[i], FIGURE_LIVE_BYTES);
		any |= r.rows.list[i].grown;
		holds("--diff, heavy tail: rows", x, 0);
		if (!i)
			holds("--diff, heavy tail: first row", x, 0);
	}
	count_statement("--diff, nothing grown, heavy tail: a row is called grown", FALSE_ALARM, 0, any);
	count_statement("--diff, heavy tail: total called grown", FALSE_ALARM, 0, r.total.grown);
	holds("--diff, heavy tail: total", report_growth(&r, &r.total, FIGURE_LIVE_BYTES), 0);
	report_done(&r);
	look_at_tail(&dumps[0], all);
	for (int side = 0; side < 2; side++)
		dump_builder_done(&dumps[side]);
}

/* Power: one of the stacks has grown by so many samples of the larger rate. */
static void compare_grown(const struct pair *pair, const char *name, const char *first, double samples, double least,
                          struct random_source *random)
{
	struct dump_builder dumps[2];
	struct report r;
	bool found = false;
	double more = samples * (double)(pair->rates[0] > pair->rates[1] ? pair->rates[0] : pair->rates[1]);

	for (int side = 0; side < 2; side++)
		build(&dumps[side], pair, side, more, random);
	session_report(&r, dumps, 2, (struct report_options){ .diff = true });
	for (size_t i = 0; i < r.rows.count; i++)
		found |= r.rows.list[i].grown && stack_of_row(&r.rows.list[i]) == 0;
	count_statement(name, POWER, least, found);
	holds(first, report_growth(&r, r.rows.list, FIGURE_LIVE_BYTES), stack_of_row(r.rows.list) ? 0 : more);
	report_done(&r);
	for (int side = 0; side < 2; side++)
		dump_builder_done(&dumps[side]);
}

static void add_up(const struct pair *pair, const char *rows, const char *total, struct random_source *random)
{
	struct dump_builder dumps[2];
	struct report r;

	for (int side = 0; side < 2; side++)
		build(&dumps[side], pair, side, 0, random);
	session_report(&r, dumps, 2, (struct report_options){ 0 });
	for (size_t i = 0; i < r.rows.count; i++)
		holds(rows, report_estimate(&r, &r.rows.list[i], FIGURE_LIVE_BYTES), 2 * pair->bytes);
	holds(total, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), 2 * pair->bytes * pair->stacks);
	report_done(&r);
	for (int side = 0; side < 2; side++)
		dump_builder_done(&dumps[side]);
}

void state_comparisons(unsigned runs, struct random_source *random)
{
	static const struct pair twice[] = { PAIR("", 50, 100, 4, 512), PAIR("", 1, 1024, 4, 4096),
		                             PAIR("", 1, 200, 512, 4), PAIR("", 50, 100, 512, 512) };

	for (unsigned run = 0; run < runs; run++) {
		for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
			compare_equal(&pairs[i], random);
		compare_tails(65536, run % 2 ? 16384 : 65536, random);
		compare_grown(&pairs[1], "--diff, 512k and 4k: growth of 12 samples of 512k is found",
		              "--diff, 512k and 4k, one has grown: first row", 12, 0.9, random);
		compare_grown(&pairs[2], "--diff, 4k and 512k: growth of 25 samples of 512k is found",
		              "--diff, 4k and 512k, one has grown: first row", 25, 0.9, random);
		add_up(&twice[0], "sum of dumps, 50 stacks, 4k and 512k: rows",
		       "sum of dumps, 50 stacks, 4k and 512k: total", random);
		add_up(&twice[1], "sum of dumps, a stack of 1 MiB, 4k and 4M: row",
		       "sum of dumps, a stack of 1 MiB, 4k and 4M: total", random);
		add_up(&twice[2], "sum of dumps, a stack of 200 KiB, 512k and 4k: row",
		       "sum of dumps, a stack of 200 KiB, 512k and 4k: total", random);
		add_up(&twice[3], "sum of dumps, 50 stacks, 512k and 512k: rows",
		       "sum of dumps, 50 stacks, 512k and 512k: total", random);
	}
}
