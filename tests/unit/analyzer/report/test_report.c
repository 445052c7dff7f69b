/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "dump_builder.h"
#include "report/report.h"
#include "json/report_json.h"
#include "text/report_text.h"

struct made {
	struct dump_builder b;
	int fd;
	struct dump *dump;
	struct report report;
	char *text, *json;
};

/* Opens what was built and makes the report with both its forms. */
static void make(struct made *m, struct report_options options)
{
	struct err e;
	size_t size;
	FILE *out;

	m->fd = dump_builder_fd(&m->b, m->b.size);
	assert_true(m->fd >= 0);
	assert_int_equal(dump_open_fd(m->fd, &m->dump, &e), 0);
	if (options.confidence == 0)
		options.confidence = 0.95;
	options.verbose = true;
	assert_int_equal(report_make(&m->report, m->dump, "x.dump", &options, &e), 0);
	out = open_memstream(&m->text, &size);
	report_text(&m->report, "x.dump", out, (struct text_style){ 0 });
	fclose(out);
	out = open_memstream(&m->json, &size);
	assert_int_equal(report_json(&m->report, out), 0);
	fclose(out);
}

static void done(struct made *m)
{
	free(m->text);
	free(m->json);
	report_done(&m->report);
	dump_close(m->dump);
	close(m->fd);
	dump_builder_done(&m->b);
}

static const uint64_t frames_a[] = { DUMP_FRAME(1, 0x400100), DUMP_FRAME(1, 0x400200) };
static const uint64_t frames_b[] = { DUMP_FRAME(1, 0x400300), DUMP_FRAME(1, 0x400200) };

static void test_everything_recorded_is_exact(void **state)
{
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 1, 1024, 8, 4);
	uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0);
	uint32_t b = dump_builder_stack(&m.b, frames_b, 2, 0);
	for (int i = 0; i < 500; i++)
		dump_builder_sample(&m.b, a, 1001, 1, 1);
	for (int i = 0; i < 100; i++)
		dump_builder_sample(&m.b, b, 3, 1, i < 50);
	make(&m, (struct report_options){ 0 });
	assert_true(report_exact(&m.report));
	assert_int_equal(m.report.rows.count, 2);
	static const double want[2][FIGURE_COUNT] = { { 500500, 500, 500500, 500 }, { 150, 50, 300, 100 } };
	for (int i = 0; i < 2; i++)
		for (int f = 0; f < FIGURE_COUNT; f++) {
			struct estimate x = report_estimate(&m.report, &m.report.rows.list[i], f);
			assert_true(x.value == want[i][f] && x.low == want[i][f] && x.high == want[i][f] &&
			            x.error == 0);
		}
	assert_true(report_detection_limit(&m.report) == 0 && report_hidden_bytes(&m.report) == 0);
	assert_non_null(strstr(m.json, "\"estimate\":500500,\"stderr\":0,\"low\":500500,\"high\":500500"));
	assert_non_null(strstr(m.text, "exact"));
	assert_null(strstr(m.text, "without a sample"));
	done(&m);
}

static void test_each_sample_is_weighted_before_the_sum(void **state)
{
	struct made m;
	double p1 = -expm1(-100.0 / 65536);
	double p2 = -expm1(-200000.0 / 65536);
	double p3 = -expm1(-100.0 / 4096); /* the rate changed */

	(void)state;
	dump_builder_init(&m.b, 65536, 64, 8, 1);
	uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0);
	dump_builder_sample(&m.b, a, 100, 65536, 1);
	dump_builder_sample(&m.b, a, 200000, 65536, 1);
	dump_builder_sample(&m.b, a, 100, 4096, 1);
	make(&m, (struct report_options){ 0 });
	struct estimate x = report_estimate(&m.report, &m.report.rows.list[0], FIGURE_LIVE_BYTES);
	assert_true(fabs(x.value / (100 / p1 + 200000 / p2 + 100 / p3) - 1) < 1e-14);
	assert_true(x.low >= 200200);
	struct estimate n = report_estimate(&m.report, &m.report.rows.list[0], FIGURE_ALLOCATED_COUNT);
	assert_true(fabs(n.value / (1 / p1 + 1 / p2 + 1 / p3) - 1) < 1e-14);
	assert_true(fabs(report_detection_limit(&m.report) / (-log(0.05) * 65536) - 1) < 1e-12);
	done(&m);
}

/* A library at two addresses, and a stack that was interned twice. */
/* The interval of a number of blocks is about the sizes that its samples show; where it has none, those of the stack
 * that were freed. What may be below is said beside it. */
static void test_counts_are_of_the_sizes_that_samples_show(void **state)
{
	double p = estimate_probability(4096, 524288);
	double hidden = 1 / estimate_probability(ESTIMATE_HIDDEN_BYTES, 524288);
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 524288, 64, 8, 8);
	uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0);
	uint32_t b = dump_builder_stack(&m.b, frames_b, 2, 0);
	uint32_t c = dump_builder_stack(&m.b, frames_b, 1, 0);
	dump_builder_sample(&m.b, a, 4096, 524288, 1);
	dump_builder_sample(&m.b, b, 4096, 524288, 1);
	dump_builder_sample(&m.b, c, 64, 524288, 0);
	for (int i = 0; i < 400; i++)
		dump_builder_sample(&m.b, b, 4096, 524288, 0);
	make(&m, (struct report_options){ .sort = FIGURE_ALLOCATED_COUNT });
	const struct report_row *much = &m.report.rows.list[0];
	const struct report_row *freed = &m.report.rows.list[1];
	const struct report_row *little = &m.report.rows.list[2];
	double small = estimate_probability(64, 524288);
	assert_int_equal(much->sum[FIGURE_ALLOCATED_COUNT].samples, 401);
	assert_true(report_estimate(&m.report, much, FIGURE_LIVE_COUNT).high < 1.02 * 5.572 / p);
	struct estimate few = report_estimate(&m.report, little, FIGURE_LIVE_COUNT);
	assert_true(few.high < 1.02 * 5.572 / p && few.unseen == ceil(-log(0.05) * hidden) - 1);
	struct estimate none = report_estimate(&m.report, freed, FIGURE_LIVE_COUNT);
	assert_true(none.value == 0 && none.high > 3.68 / small && none.high < 3.70 / small &&
	            none.unseen == few.unseen);
	/* The total is not about blocks of which no live sample is, though a freed one is known. */
	struct estimate total = report_estimate(&m.report, &m.report.total, FIGURE_LIVE_COUNT);
	assert_true(total.high < 1.02 * 7.225 / p && total.unseen == few.unseen);
	assert_true(report_estimate(&m.report, &m.report.total, FIGURE_ALLOCATED_COUNT).high > 5.5 / small);
	struct estimate all = report_estimate(&m.report, much, FIGURE_ALLOCATED_COUNT);
	assert_true(all.high - all.low < 1.05 * 2 * 1.96 * all.error);
	assert_non_null(strstr(m.json, "\"hidden_block_bytes\": 16"));
	assert_non_null(strstr(m.json, "\"unseen\":98165}"));
	assert_non_null(strstr(m.text, "up to 98,165 live and 98,165 allocated ones, smaller than all samples\n"));
	assert_non_null(strstr(m.text, "smaller than all samples of the row: up to 98,165 of 16 bytes or more"));
	done(&m);
}

static void test_equal_stacks_are_one_row(void **state)
{
	const uint64_t first[] = { DUMP_FRAME(1, 0x7f0000001000) };
	const uint64_t second[] = { DUMP_FRAME(2, 0x7f0000501000) };
	const uint64_t other[] = { DUMP_FRAME(3, 0x7f0000a01000) };
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 65536, 64, 8, 1);
	dump_builder_module(&m.b, 1, 0x7f0000000000, 0x7f0000000000, 0x7f0000100000, "/lib/a.so", "idid", 4, 0);
	dump_builder_module(&m.b, 2, 0x7f0000500000, 0x7f0000500000, 0x7f0000600000, "/copy/a.so", "idid", 4, 0);
	dump_builder_module(&m.b, 3, 0x7f0000a00000, 0x7f0000a00000, 0x7f0000b00000, "/lib/a.so", "IDID", 4, 0);
	uint32_t s[] = { dump_builder_stack(&m.b, first, 1, 0), dump_builder_stack(&m.b, second, 1, 0),
		         dump_builder_stack(&m.b, first, 1, 0), dump_builder_stack(&m.b, other, 1, 0) };
	for (int i = 0; i < 4; i++)
		dump_builder_sample(&m.b, s[i], 1000, 65536, 1);
	make(&m, (struct report_options){ .symbols = true });
	assert_int_equal(m.report.stack_count, 4);
	assert_int_equal(m.report.rows.count, 2);
	assert_int_equal(m.report.rows.list[0].sum[FIGURE_LIVE_COUNT].samples, 3);
	struct estimate all = report_estimate(&m.report, &m.report.rows.list[0], FIGURE_LIVE_BYTES);
	struct estimate one = report_estimate(&m.report, &m.report.rows.list[1], FIGURE_LIVE_BYTES);
	assert_true(fabs(all.value / one.value - 3) < 1e-12);
	assert_true(fabs(all.error / one.error - sqrt(3)) < 1e-12);
	assert_non_null(strstr(m.text, "a.so+0x1000"));
	done(&m);
}

static void test_samples_without_a_stack_are_counted(void **state)
{
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 65536, 64, 8, 1);
	uint32_t none = dump_builder_stack(&m.b, NULL, 0, 0);
	uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0);
	dump_builder_header(&m.b)->unknown_stack = none;
	dump_builder_sample(&m.b, none, 1000, 65536, 1);
	dump_builder_sample(&m.b, a, 500, 65536, 1);
	dump_builder_sample(&m.b, a, 500, 65536, 1);
	/* The second live record loses its stack. */
	dump_builder_live(&m.b, 1)->stack = 12345;
	make(&m, (struct report_options){ 0 });
	assert_int_equal(m.report.total.sum[FIGURE_LIVE_COUNT].samples, 3);
	assert_int_equal(m.report.rows.count, 2);
	assert_non_null(strstr(m.text, "(stack not known)"));
	assert_false(m.report.whole);
	done(&m);
}

static void test_order_is_that_of_the_figure(void **state)
{
	struct made m;

	(void)state;
	for (int f = 0; f < FIGURE_COUNT; f++) {
		dump_builder_init(&m.b, 1, 1024, 8, 4);
		uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0); /* few large ones, churn */
		uint32_t b = dump_builder_stack(&m.b, frames_b, 2, 0); /* many small ones that stay */
		for (int i = 0; i < 200; i++)
			dump_builder_sample(&m.b, a, 5000, 1, i < 2);
		for (int i = 0; i < 100; i++)
			dump_builder_sample(&m.b, b, 10, 1, 1);
		make(&m, (struct report_options){ .sort = (enum report_figure)f, .top = 1 });
		bool b_first = f == FIGURE_LIVE_COUNT;
		assert_int_equal(m.report.rows.list[0].sum[FIGURE_ALLOCATED_COUNT].samples, b_first ? 100 : 200);
		assert_int_equal(report_shown(&m.report), 1);
		assert_non_null(strstr(m.text, "1 more stack"));
		assert_int_equal(report_figure_parse(report_figure_name((enum report_figure)f)), f);
		done(&m);
	}
	assert_int_equal(report_figure_parse("live"), -1);
}

/* One of a thing is not "blocks". */
static void test_one_is_not_many(void **state)
{
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 1, 64, 8, 2);
	uint32_t a = dump_builder_stack(&m.b, frames_a, 2, 0);
	uint32_t b = dump_builder_stack(&m.b, frames_b, 2, 0);
	for (int i = 0; i < 3; i++)
		dump_builder_sample(&m.b, a, 5000, 1, 1);
	dump_builder_sample(&m.b, b, 100, 1, 1);
	make(&m, (struct report_options){ .top = 1, .depth = 1 });
	assert_non_null(strstr(m.text, "in 3 blocks  exact   kept 100.0 %"));
	assert_non_null(strstr(m.text, "   3 samples\n"));
	assert_non_null(strstr(m.text, "... 1 more frame\n"));
	assert_non_null(strstr(m.text, "\n1 more stack holds 100 B"));
	done(&m);
	dump_builder_init(&m.b, 1, 64, 8, 2);
	b = dump_builder_stack(&m.b, frames_b, 2, 0);
	dump_builder_sample(&m.b, b, 100, 1, 1);
	make(&m, (struct report_options){ .sort = FIGURE_LIVE_COUNT });
	assert_non_null(strstr(m.text, "   1. 1 block  exact   100.0 %   1 sample\n"));
	done(&m);
	dump_builder_init(&m.b, 1, 64, 8, 2);
	b = dump_builder_stack(&m.b, frames_b, 2, 0);
	dump_builder_sample(&m.b, b, 100, 1, 1);
	make(&m, (struct report_options){ .leaks = true });
	assert_non_null(strstr(m.text, "in 1 block  exact\n      in the later part"));
	done(&m);
}

static void test_depth_cuts_frames(void **state)
{
	struct made m;

	(void)state;
	dump_builder_sampler(&m.b);
	make(&m, (struct report_options){ .depth = 1 });
	assert_non_null(strstr(m.text, "... 1 more frame"));
	assert_null(strstr(m.json, "0x2345"));
	done(&m);
}

static void test_empty_dump(void **state)
{
	struct made m;

	(void)state;
	dump_builder_init(&m.b, 524288, 8, 8, 1);
	make(&m, (struct report_options){ .symbols = true });
	assert_int_equal(m.report.rows.count, 0);
	struct estimate x = report_estimate(&m.report, &m.report.total, FIGURE_LIVE_BYTES);
	assert_true(x.value == 0 && x.low == 0 && x.high > 3 * 524288);
	assert_non_null(strstr(m.json, "\"stacks\": []"));
	done(&m);
}

static void test_losses_and_ends_are_said(void **state)
{
	struct made m;

	(void)state;
	dump_builder_sampler(&m.b);
	struct dump_header *h = dump_builder_header(&m.b);
	h->counters[2][DUMP_COUNTER_lost_live_full] = 5;
	h->counters[4][DUMP_COUNTER_lost_busy] = 2;
	h->state = DUMP_STATE_KILLED;
	h->end_detail = 9;
	make(&m, (struct report_options){ 0 });
	assert_non_null(strstr(m.text, "7 lost"));
	assert_non_null(strstr(m.text, "live figures are too low"));
	assert_non_null(strstr(m.text, "killed by signal 9 (SIGKILL)"));
	assert_non_null(strstr(m.text, "libodd.so is not seen"));
	assert_non_null(strstr(m.json, "\"lost\": 7"));
	assert_non_null(strstr(m.json, "\"ended\": \"killed\""));
	assert_non_null(strstr(m.json, "\\ufffd"));
	assert_null(strchr(m.json, '\xff'));
	done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_recorded_is_exact),
		cmocka_unit_test(test_each_sample_is_weighted_before_the_sum),
		cmocka_unit_test(test_counts_are_of_the_sizes_that_samples_show),
		cmocka_unit_test(test_equal_stacks_are_one_row),
		cmocka_unit_test(test_samples_without_a_stack_are_counted),
		cmocka_unit_test(test_order_is_that_of_the_figure),
		cmocka_unit_test(test_one_is_not_many),
		cmocka_unit_test(test_depth_cuts_frames),
		cmocka_unit_test(test_empty_dump),
		cmocka_unit_test(test_losses_and_ends_are_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
