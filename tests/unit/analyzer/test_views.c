/* SPDX-License-Identifier: MIT */
/* Merging, comparing, looking back, leaks, groups: from dumps that are built to known figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "dump_builder.h"
#include "report.h"
#include "report_json.h"
#include "report_text.h"

#define SECOND 3000000000ull /* in stamps of dump_builder */
#define START 1000000ull
#define RATE 65536u

static const uint64_t frames_a[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(1, 0x400200) };
static const uint64_t frames_b[] = { DUMP_FRAME(1, 0x400300), DUMP_FRAME(1, 0x400200) };

static struct dump_live_record *live_record(struct dump_builder *b, uint64_t i)
{
	return dump_builder_live(b, i);
}

static struct dump_history_record *history_record(struct dump_builder *b, uint64_t i)
{
	struct dump_region *region = dump_builder_region(b, DUMP_REGION_HISTORY);
	struct dump_history_block *blocks = dump_builder_at(b, region->offset);

	return &blocks[i / DUMP_HISTORY_RECORDS].records[i % DUMP_HISTORY_RECORDS];
}

/* A sample that is allocated at a second of the session, and freed at another; 0: it lives. */
static void sample(struct dump_builder *b, uint32_t stack, uint64_t size, uint32_t rate, double born, double freed)
{
	struct dump_header *h = dump_builder_header(b);
	uint64_t taken = 0;

	dump_builder_sample(b, stack, size, rate, freed == 0);
	if (freed == 0) {
		live_record(b, b->live_used - 1)->stamp = START + (uint64_t)(born * (double)SECOND);
		return;
	}
	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		taken += h->counters[i][DUMP_COUNTER_samples_freed];
	struct dump_history_record *record = history_record(b, taken - 1);
	record->allocated_stamp = START + (uint64_t)(born * (double)SECOND);
	record->freed_stamp = START + (uint64_t)(freed * (double)SECOND);
}

static struct dump *open_built(struct dump_builder *b)
{
	struct dump *dump;
	struct err e;
	char path[] = "/tmp/views.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(dump_builder_write(b, path), 0);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	unlink(path);
	return dump;
}

static void make(struct report *r, struct dump_builder *b, struct report_options options)
{
	struct dump *dump = open_built(b);
	struct err e;

	if (options.confidence == 0)
		options.confidence = 0.95;
	assert_int_equal(report_make(r, dump, "x.dump", &options, &e), 0);
	dump_close(dump);
}

static char *text_of(const struct report *r)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_text(r, "x.dump", out, false);
	fclose(out);
	return text;
}

static char *json_of(const struct report *r)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_json(r, out);
	fclose(out);
	return text;
}

static void assert_says(char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no \"%s\" in:\n%s", what, text);
	free(text);
}

static const struct report_row *row_with(const struct report *r, uint64_t address)
{
	for (size_t i = 0; i < r->rows.count; i++)
		if (r->rows.list[i].frame_count && PLACE_OFFSET(r->rows.list[i].frames[0]) == address)
			return &r->rows.list[i];
	fail_msg("no row of %llx", (unsigned long long)address);
	return NULL;
}

static void test_lost_samples_are_not_exact(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t a = dump_builder_stack(&b, frames_a, 2, 0);
	for (int i = 0; i < 10; i++)
		dump_builder_sample(&b, a, 100, 1, 1);
	make(&r, &b, (struct report_options){ 0 });
	assert_true(report_exact(&r) && report_complete(&r));
	report_done(&r);
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_busy] = 3;
	make(&r, &b, (struct report_options){ 0 });
	assert_false(report_exact(&r) || report_complete(&r));
	struct estimate bytes = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	struct estimate count = report_estimate(&r, &r.rows.list[0], FIGURE_ALLOCATED_COUNT);
	assert_true(bytes.value == 1000 && bytes.low == 1000 && bytes.high == 1300);
	assert_true(count.low == 10 && count.high == 13);
	assert_says(text_of(&r), "INCOMPLETE samples were lost: the figures are NOT exact");
	char *text = text_of(&r);
	assert_null(strstr(text, "  exact"));
	free(text);
	assert_says(json_of(&r), "\"complete\": false");
	assert_says(json_of(&r), "\"damaged\": false");
	assert_says(json_of(&r), "\"exact\": false");
	report_done(&r);

	/* No room in the live table: what was allocated is still exact. */
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_busy] = 0;
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_live_full] = 1;
	struct dump_stack *stack = dump_builder_at(&b, (uint64_t)a * DUMP_STACK_ALIGN);
	stack->taken_count++;
	stack->unkept++;
	make(&r, &b, (struct report_options){ 0 });
	struct estimate live = report_estimate(&r, &r.rows.list[0], FIGURE_LIVE_COUNT);
	assert_true(live.low == 10 && live.high > 10);
	bytes = report_estimate(&r, &r.total, FIGURE_ALLOCATED_BYTES);
	assert_true(bytes.low == bytes.high);
	report_done(&r);
	dump_builder_done(&b);
}

/* Two hosts, other load addresses, other rates: the same stack is one row, figures and variances add up. */
static void test_merge(void **state)
{
	static const uint64_t biases[] = { 0x555500000000, 0x7f1000000000, 0x400000 };
	static const uint32_t rates[] = { 4096, 65536, 1 };
	struct report_options options = { .confidence = 0.95 };
	struct report r;
	struct err e;
	double value = 0;
	double variance = 0;

	(void)state;
	assert_int_equal(report_init(&r, &options, &e), 0);
	for (int i = 0; i < 30; i++) {
		uint64_t bias = biases[i % 3];
		const uint64_t frames[] = { DUMP_FRAME(1 + i % 5, bias + 0x1234) };
		struct dump_builder b;
		dump_builder_init(&b, rates[i % 3], 64, 8, 1);
		dump_builder_module(&b, 1 + (uint32_t)i % 5, bias, bias, bias + 0x10000,
		                    i % 2 ? "/usr/bin/a" : "/opt/b", "same", 4, 0);
		uint32_t s = dump_builder_stack(&b, frames, 1, 0);
		for (int k = 0; k < 5; k++) {
			double p = estimate_probability(1000, rates[i % 3]);
			dump_builder_sample(&b, s, 1000, rates[i % 3], 1);
			value += 1000 / p;
			variance += 1e6 * (1 - p) / (p * p);
		}
		struct dump *dump = open_built(&b);
		assert_int_equal(report_add(&r, dump, "one.dump", &e), 0);
		dump_close(dump);
		dump_builder_done(&b);
	}
	assert_int_equal(report_finish(&r, &e), 0);
	assert_int_equal(r.rows.count, 1);
	assert_int_equal(r.session_count, 30);
	const struct estimate_sum *sum = &r.rows.list[0].sum[FIGURE_LIVE_BYTES];
	assert_int_equal(sum->samples, 150);
	assert_true(fabs(sum->value / value - 1) < 1e-12 && fabs(sum->variance / variance - 1) < 1e-12);
	assert_true(sum->seen == 150000);
	assert_int_equal(report_counter(&r, DUMP_COUNTER_samples_taken), 150);
	assert_says(text_of(&r), "sums over 30 dumps");
	assert_says(json_of(&r), "\"dumps\": [");
	report_done(&r);
}

/* a: 10 blocks at 5 s, of which 4 are freed at 15 s. b: 6 blocks at 20 s. Recorded exactly, 30 s. */
static void build_past(struct dump_builder *b)
{
	dump_builder_init(b, 1, 64, 8, 2);
	uint32_t s = dump_builder_stack(b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(b, frames_b, 2, 0);
	for (int i = 0; i < 10; i++)
		sample(b, s, 100, 1, 5, i < 4 ? 15 : 0);
	for (int i = 0; i < 6; i++)
		sample(b, t, 1000, 1, 20, 0);
}

static void test_at(void **state)
{
	static const struct {
		uint64_t at;
		double a, b;
	} cases[] = { { 1, 0, 0 }, { 6, 1000, 0 }, { 16, 600, 0 }, { 25, 600, 6000 }, { 1000, 600, 6000 } };
	struct dump_builder b;
	struct report r;

	(void)state;
	build_past(&b);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		make(&r, &b, (struct report_options){ .at_ns = cases[i].at * 1000000000u });
		struct estimate x = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
		assert_true(x.value == cases[i].a + cases[i].b && x.low == x.high);
		x = report_estimate(&r, &r.total, FIGURE_ALLOCATED_BYTES);
		assert_true(x.value == (cases[i].at < 5 ? 0 : 1000) + cases[i].b);
		assert_false(r.past_unknown);
		report_done(&r);
	}
	dump_builder_done(&b);
}

static void test_since(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build_past(&b);
	make(&r, &b, (struct report_options){ .since_ns = 10000000000u });
	struct estimate x = report_growth(&r, row_with(&r, 0x400300), FIGURE_LIVE_BYTES);
	assert_true(x.value == 6000 && x.low == 6000 && x.high == 6000);
	assert_true(row_with(&r, 0x400300)->grown && r.rows.list[0].grown);
	x = report_growth(&r, row_with(&r, 0x400100), FIGURE_LIVE_BYTES);
	assert_true(x.value == -400 && x.high == -400);
	assert_false(row_with(&r, 0x400100)->grown);
	x = report_growth(&r, &r.total, FIGURE_LIVE_COUNT);
	assert_true(x.value == 2);
	x = report_growth(&r, &r.total, FIGURE_ALLOCATED_BYTES);
	assert_true(x.value == 6000);
	assert_says(text_of(&r), "+5.86 KiB");
	assert_says(text_of(&r), "shrunk");
	assert_says(json_of(&r), "\"significant\": true");
	report_done(&r);
	make(&r, &b, (struct report_options){ .since_ns = 10000000000u, .at_ns = 16000000000u });
	x = report_growth(&r, &r.total, FIGURE_LIVE_BYTES);
	assert_true(x.value == -400);
	report_done(&r);
	/* What was dropped may have lived then. */
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_history] = 7;
	make(&r, &b, (struct report_options){ .since_ns = 10000000000u });
	assert_true(r.past_unknown && !report_complete(&r));
	assert_says(text_of(&r), "does not reach back");
	assert_says(json_of(&r), "\"past_unknown\": true");
	report_done(&r);
	make(&r, &b, (struct report_options){ .since_ns = 20000000000u });
	assert_false(r.past_unknown);
	report_done(&r);
	dump_builder_done(&b);
}

static void compare(struct report *r, struct dump_builder *old, struct dump_builder *new)
{
	struct report_options options = { .confidence = 0.95, .diff = true };
	struct dump *a = open_built(old);
	struct dump *b = open_built(new);
	struct err e;

	assert_int_equal(report_init(r, &options, &e), 0);
	assert_int_equal(report_add_pair(r, a, "old", b, "new", &e), 0);
	assert_int_equal(report_finish(r, &e), 0);
	dump_close(a);
	dump_close(b);
}

static void test_diff_of_one_session(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	dump_builder_init(&old, RATE, 256, 8, 2);
	dump_builder_init(&new, RATE, 256, 8, 2);
	dump_builder_header(&old)->session_id = dump_builder_header(&new)->session_id = 77;
	uint32_t s = dump_builder_stack(&old, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(&old, frames_b, 2, 0);
	assert_int_equal(dump_builder_stack(&new, frames_a, 2, 0), s);
	assert_int_equal(dump_builder_stack(&new, frames_b, 2, 0), t);
	for (int i = 0; i < 100; i++) {
		sample(&old, s, 1000, RATE, 5, 0);
		sample(&new, s, 1000, RATE, 5, 0);
	}
	for (int i = 0; i < 20; i++)
		sample(&new, t, 1000, RATE, 20, 0);
	compare(&r, &old, &new);
	assert_true(r.same_session);
	/* The hundred that stay say nothing about growth, so they add no doubt. */
	const struct report_row *still = row_with(&r, 0x400100);
	struct estimate x = report_growth(&r, still, FIGURE_LIVE_BYTES);
	assert_true(x.value == 0 && x.error == 0 && !still->grown);
	assert_int_equal(still->change->old[FIGURE_LIVE_COUNT].samples, 100);
	const struct report_row *grown = &r.rows.list[0];
	assert_true(grown->grown && PLACE_OFFSET(grown->frames[0]) == 0x400300);
	x = report_growth(&r, grown, FIGURE_ALLOCATED_BYTES);
	assert_true(fabs(x.value / (20 * 1000 / estimate_probability(1000, RATE)) - 1) < 1e-9);
	report_done(&r);

	dump_builder_header(&old)->session_id = 78;
	compare(&r, &old, &new);
	assert_false(r.same_session);
	x = report_growth(&r, row_with(&r, 0x400100), FIGURE_LIVE_BYTES);
	assert_true(x.value == 0 && x.low < 0 && x.high > 0);
	assert_says(text_of(&r), "not distinguishable from zero");
	assert_says(json_of(&r), "\"side\": \"old\"");
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

static void test_leaks(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, RATE, 256, 8, 8);
	uint32_t leak = dump_builder_stack(&b, frames_a, 2, 0);
	uint32_t churn = dump_builder_stack(&b, frames_b, 2, 0);
	for (int i = 0; i < 60; i++)
		sample(&b, leak, 128, RATE, i / 2.0, 0);
	for (int i = 0; i < 300; i++)
		sample(&b, churn, 100000, RATE, i / 10.0, i < 290 ? i / 10.0 + 1 : 0);
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_true(PLACE_OFFSET(r.rows.list[0].frames[0]) == 0x400100 && r.rows.list[0].grown);
	assert_false(r.rows.list[1].grown);
	assert_int_equal(r.rows.list[0].change->leak.count.samples, 41); /* born within the first 20 s */
	assert_int_equal(r.rows.list[0].change->leak.gained, 20);
	assert_says(text_of(&r), "LEAK");
	assert_says(json_of(&r), "\"leaks\": true");
	report_done(&r);
	make(&r, &b, (struct report_options){ .leaks = true, .age_ns = 29000000000u });
	assert_int_equal(r.rows.list[0].change->leak.count.samples, 3);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_groups(void **state)
{
	const uint64_t recursive[] = { DUMP_FRAME(1, 0x400300), DUMP_FRAME(1, 0x400200), DUMP_FRAME(1, 0x400200) };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(&b, recursive, 3, 0);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	dump_builder_sample(&b, s, 1000, 1, 1);
	dump_builder_sample(&b, t, 10, 1, 1);
	make(&r, &b, (struct report_options){ .by = BY_FUNCTION });
	assert_int_equal(r.groups.count, 3);
	assert_string_equal(r.groups.list[0].name, "+0x400200");
	assert_true(r.groups.list[0].inclusive[FIGURE_LIVE_BYTES].value == 1010); /* recursion counts once */
	assert_true(r.groups.list[0].exclusive[FIGURE_LIVE_BYTES].value == 0);
	assert_true(r.groups.list[1].exclusive[FIGURE_LIVE_BYTES].value == 1000);
	assert_says(text_of(&r), "inclusive");
	assert_says(json_of(&r), "\"by\": \"function\"");
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_MODULE });
	assert_int_equal(r.groups.count, 1);
	assert_string_equal(r.groups.list[0].name, "/usr/bin/a");
	assert_true(r.groups.list[0].inclusive[FIGURE_LIVE_COUNT].value == 2);
	assert_true(r.groups.list[0].exclusive[FIGURE_LIVE_COUNT].value == 2);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_memory_that_went_past(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_sampler(&b); /* about 10 MiB live */
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.memory.known);
	assert_says(json_of(&r), "\"memory\": null");
	report_done(&r);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 12 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.memory.known && !r.memory.mostly_unseen);
	report_done(&r);
	dump_builder_header(&b)->private_latest_bytes = 200 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.memory.mostly_unseen);
	assert_says(text_of(&r), "WENT PAST US");
	assert_says(json_of(&r), "\"mostly_unseen\": true");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_fragmentation(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	for (uint64_t i = 0; i < 10; i++) {
		dump_builder_sample(&b, s, 100, 1, 1);
		live_record(&b, i)->usable = i == 9 ? 0 : 104; /* one is not known */
	}
	make(&r, &b, (struct report_options){ 0 });
	assert_true(r.total.slack.sum.value == 36 && r.total.slack.requested == 900);
	assert_says(text_of(&r), "the allocator adds 36 B to 900 B requested (4.00 %)  exact\n");
	assert_says(json_of(&r), "\"slack_bytes\"");
	report_done(&r);
	/* By function, too: inclusive everywhere, exclusive in the caller of the allocator. */
	make(&r, &b, (struct report_options){ .by = BY_FUNCTION });
	assert_int_equal(r.groups.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct group *g = &r.groups.list[i];
		bool own = !strcmp(g->name, "+0x400100") || !strcmp(g->name, "0x400100");
		assert_true(g->slack_inclusive.sum.value == 36 && g->slack_inclusive.requested == 900);
		assert_true(g->slack_exclusive.sum.value == (own ? 36 : 0));
	}
	assert_says(text_of(&r), "      exclusive 1000 B  exact\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* As many samples as an average session at this rate and of this length has, of blocks of which there are so many at
 * length 1. */
static void make_planned(struct report *r, double blocks, uint64_t size, double rate, enum report_figure sort,
                         double precision)
{
	struct dump_builder b;
	uint64_t n = (uint64_t)round(blocks * estimate_probability(size, (uint64_t)rate));

	dump_builder_init(&b, (uint64_t)rate, 1 << 14, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	for (uint64_t i = 0; i < n; i++)
		dump_builder_sample(&b, s, size, (uint32_t)rate, 1);
	make(r, &b, (struct report_options){ .plan = precision, .sort = sort });
	dump_builder_done(&b);
}

static void test_plan(void **state)
{
	struct report r;

	(void)state;
	make_planned(&r, 400 / estimate_probability(64, RATE), 64, RATE, FIGURE_LIVE_BYTES, 0.05);
	struct report_plan plan = report_plan(&r, &r.rows.list[0]);
	assert_true(plan.now > 0.095 && plan.now < 0.11);
	/* Four times the samples: a quarter of the rate, four times as long; a little less, since the interval is wide
	 * for so few. */
	assert_true(plan.rate > RATE * 0.24 && plan.rate < RATE * 0.26);
	assert_true(plan.seconds > 30 * 3.85 && plan.seconds < 30 * 4.15);
	assert_says(text_of(&r), "takes --rate");
	report_done(&r);
}

/* Who does as the plan says knows what was wanted: with few samples, where an interval of blocks allows for much, and
 * with many. */
static void test_plan_comes_true(void **state)
{
	static const uint64_t sizes[] = { 16, 200, 4096, RATE };
	static const double samples[] = { 2, 6, 30, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++) {
			for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++) {
				double blocks = samples[k] / estimate_probability(sizes[i], RATE);
				struct report r;
				make_planned(&r, blocks, sizes[i], RATE, f, 0.1);
				struct report_plan plan = report_plan(&r, &r.rows.list[0]);
				report_done(&r);
				if (plan.now <= 0.1) { /* nothing to do */
					assert_true(plan.rate == RATE && plan.seconds == 30);
					continue;
				}
				assert_true(plan.rate >= 1 && plan.rate < RATE && plan.seconds > 30);
				/* 384 samples are known to 10 %; blocks of the size of the rate are counted by fewer.
				 */
				assert_true(plan.seconds < 30 * 500 / samples[k]);
				if (plan.rate > 100) {
					make_planned(&r, blocks, sizes[i], plan.rate, f, 0.1);
					double now = report_plan(&r, &r.rows.list[0]).now;
					if (!(now < 0.112))
						fail_msg("%g samples of %llu: %g", samples[k],
						         (unsigned long long)sizes[i], now);
					report_done(&r);
				}
				make_planned(&r, blocks * plan.seconds / 30, sizes[i], RATE, f, 0.1);
				double now = report_plan(&r, &r.rows.list[0]).now;
				assert_true(now > 0.08 && now < 0.112);
				report_done(&r);
			}
		}
	}
}

/* Samples whose stack had no room are in the total; any row may lack them. */
static void test_samples_without_a_stack(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t a = dump_builder_stack(&b, frames_a, 2, 0);
	uint32_t none = dump_builder_stack(&b, frames_a, 0, 0);
	dump_builder_header(&b)->unknown_stack = none;
	for (int i = 0; i < 10; i++)
		dump_builder_sample(&b, i < 7 ? a : none, 100, 1, 1);
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_stack_full] = 3;
	make(&r, &b, (struct report_options){ 0 });
	assert_false(report_exact(&r) || report_complete(&r));
	struct estimate total = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	struct estimate row = report_estimate(&r, row_with(&r, 0x400100), FIGURE_LIVE_BYTES);
	assert_true(total.low == 1000 && total.high == 1000 && row.low == 700 && row.high == 1000);
	assert_says(text_of(&r), "3 without a stack");
	assert_says(text_of(&r), "INCOMPLETE samples have no stack");
	assert_says(json_of(&r), "\"without_stack\": 3");
	report_done(&r);
	dump_builder_done(&b);
}

/* What the older of two sessions has lost may be all the growth there seems to be. */
static void test_growth_allows_for_lost_samples(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	dump_builder_init(&old, 1, 64, 8, 1);
	dump_builder_init(&new, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&old, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(&new, frames_a, 2, 0);
	for (int i = 0; i < 20; i++) {
		if (i < 10)
			dump_builder_sample(&old, s, 100, 1, 1);
		dump_builder_sample(&new, t, 100, 1, 1);
	}
	for (int lost = 0; lost < 12; lost += 4) {
		dump_builder_header(&old)->counters[0][DUMP_COUNTER_lost_busy] = (uint64_t)lost;
		dump_builder_header(&new)->counters[0][DUMP_COUNTER_lost_busy] = (uint64_t)lost / 4;
		compare(&r, &old, &new);
		struct estimate x = report_growth(&r, &r.rows.list[0], FIGURE_LIVE_BYTES);
		assert_true(x.value == 1000 && x.low == 1000 - 100 * lost && x.high == 1000 + 25 * lost);
		assert_true(r.rows.list[0].grown && report_complete(&r) == !lost);
		report_done(&r);
	}
	dump_builder_header(&old)->counters[0][DUMP_COUNTER_lost_busy] = 10;
	compare(&r, &old, &new);
	assert_false(r.rows.list[0].grown || r.total.grown);
	assert_says(text_of(&r), "lost on the older side");
	assert_says(json_of(&r), "\"lost_before\": 10");
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

/* memattach is killed 3 ms after the start; the recorder goes on until the lease ends after 10 s, as far as there is
 * something to record. */
static void test_session_without_an_end(void **state)
{
	const uint64_t frames[] = { DUMP_FRAME(1, 0x1010) };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames, 1, 0);
	sample(&b, s, 100, 1, 0.001, 0);
	sample(&b, s, 100, 1, 4, 0);
	sample(&b, s, 100, 1, 2, 6);
	sample(&b, s, 100, 1, 1, 0);
	struct dump_header *h = dump_builder_header(&b);
	h->state = DUMP_STATE_ABANDONED;
	h->clock_latest = h->clock_start;
	h->clock_latest.stamp += 3 * SECOND / 1000;
	h->clock_latest.monotonic_ns += 3000000;
	h->clock_latest.realtime_ns += 3000000;
	h->lease_stamp = h->clock_latest.stamp + 10 * SECOND;
	h->lease_realtime_ns = h->clock_latest.realtime_ns + 10000000000u;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for at least 6.0 s, abandoned");
	assert_says(json_of(&r), "\"duration_seconds\": 6,");
	assert_says(json_of(&r), "\"duration_is_least\": true");
	report_done(&r);
	/* Killed before it renewed anything: the lease tells how fast stamps go. */
	const struct dump_clock renewed = h->clock_latest;
	h->clock_latest = h->clock_start;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for at least 6.0 s, abandoned");
	report_done(&r);
	h->clock_latest = renewed;
	/* The ages of blocks follow. */
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_true(fabs((double)r.age_ns - 2e9) < 1e6);
	report_done(&r);
	/* A later stamp than the lease is damage, and a clock that makes no sense does not make the session longer than
	 * the lease. */
	live_record(&b, 1)->stamp = START + 20 * SECOND;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for at least 6.0 s, abandoned");
	report_done(&r);
	h->clock_latest.monotonic_ns += 300000000;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for at least 10.3 s, abandoned");
	report_done(&r);
	h->clock_latest.monotonic_ns -= 300000000;
	/* Likewise as long as the lease holds and memattach is not heard of; while it is, the last renewal is as good.
	 */
	h->state = DUMP_STATE_RUNNING;
	h->lease_realtime_ns = ((uint64_t)time(NULL) + 60) * 1000000000u;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for at least 6.0 s, still running");
	report_done(&r);
	h->clock_latest.realtime_ns = ((uint64_t)time(NULL) + 60) * 1000000000u;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for 0.0 s, still running");
	assert_says(text_of(&r), "  copy       still running; this copy is from 20");
	assert_says(json_of(&r), "\"rest_missing\": false");
	report_done(&r);
	/* The last copy of a session whose memattach was killed. */
	h->clock_latest.realtime_ns = 1700000000000000000u;
	h->lease_realtime_ns = h->clock_latest.realtime_ns + 10000000000u;
	setenv("TZ", "UTC", 1);
	make(&r, &b, (struct report_options){ 0 });
	assert_says(
		text_of(&r),
		"  copy       recorded until the last copy at 2023-11-14 22:13:20 +0000; what came after is missing\n");
	assert_says(json_of(&r), "\"ended\": \"abandoned\",\n    \"copied_at\": \"2023-11-14T22:13:20.000Z\",\n    "
	                         "\"rest_missing\": true");
	report_done(&r);
	h->clock_latest.realtime_ns = 0;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded until the last copy at an unknown time;");
	assert_says(json_of(&r), "\"copied_at\": null");
	report_done(&r);
	/* An end that was written is the end. */
	h->state = DUMP_STATE_DETACHED;
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "recorded for 0.0 s, ended by detaching");
	assert_says(json_of(&r), "\"duration_is_least\": false");
	assert_says(json_of(&r), "\"copied_at\": null");
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session_without_an_end),
		cmocka_unit_test(test_lost_samples_are_not_exact),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_diff_of_one_session),
		cmocka_unit_test(test_leaks),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_memory_that_went_past),
		cmocka_unit_test(test_fragmentation),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_plan_comes_true),
		cmocka_unit_test(test_samples_without_a_stack),
		cmocka_unit_test(test_growth_allows_for_lost_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
