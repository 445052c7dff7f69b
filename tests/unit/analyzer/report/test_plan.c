/* SPDX-License-Identifier: MIT */
/* What --plan says comes true. */
#include "views.h"

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

/* Stacks that differ in frames which are hidden are one row, with one plan. */
static void test_rows_that_are_one_have_one_plan(void **state)
{
	struct dump_builder b;
	struct report r;
	uint32_t stacks[2];

	(void)state;
	dump_builder_init(&b, RATE, 1 << 14, 8, 1);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/usr/bin/main", NULL, 0, 0);
	stacks[0] = dump_builder_stack(&b, frames_a, 2, 0);
	stacks[1] = dump_builder_stack(&b, frames_b, 2, 0);
	for (uint64_t i = 0; i < 400; i++)
		dump_builder_sample(&b, stacks[i % 2], 64, RATE, 1);
	make(&r, &b, (struct report_options){ .plan = 0.05, .filter = { .hide = "." } });
	assert_int_equal(r.rows.count, 1);
	struct report_plan plan = report_plan(&r, &r.rows.list[0]);
	assert_true(plan.rate > RATE * 0.24 && plan.rate < RATE * 0.26);
	assert_true(plan.seconds > 30 * 3.85 && plan.seconds < 30 * 4.15);
	report_done(&r);
	dump_builder_done(&b);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_rows_that_are_one_have_one_plan),
		cmocka_unit_test(test_plan_comes_true),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
