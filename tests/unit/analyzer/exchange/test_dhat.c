/* SPDX-License-Identifier: MIT */
/* What the form of DHAT says of times: lifetimes, the peak, the end; and where it says nothing of them. */
#include "views.h"

#include "forms/outputs.h"

static char *dhat_of(const struct report *r)
{
	const struct output_style style = { .name = "x.dump" };
	const struct output_format *format;
	char *text;
	size_t size;
	struct err e;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(output_format_find("dhat", &format, &e), 0);
	assert_int_equal(output_format_write(format, r, &style, out), 0);
	fclose(out);
	return text;
}

/* A number behind the name, in the point whose total of bytes is such. */
static uint64_t value_in(const char *text, uint64_t total, const char *name)
{
	char key[64];

	snprintf(key, sizeof key, "\"tb\":%llu,", (unsigned long long)total);
	const char *point = strstr(text, key);
	if (!point)
		fail_msg("no %s in:\n%s", key, text);
	snprintf(key, sizeof key, "\"%s\":", name);
	const char *at = strstr(point, key);
	if (!at || at > strstr(point, "\"fs\""))
		fail_msg("no %s in the point of %llu in:\n%s", key, (unsigned long long)total, text);
	return strtoull(at + strlen(key), NULL, 10);
}

/* Of two stacks, one holds most in the middle, one at the end. */
static void build(struct dump_builder *b, uint32_t rate)
{
	dump_builder_init(b, rate, 64, 8, 1);
	uint32_t s = dump_builder_stack(b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(b, frames_b, 2, 0);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	for (int i = 0; i < 3; i++)
		sample(b, s, 1000, rate, 10, 12);
	sample(b, s, 1000, rate, 20, 20.5);
	sample(b, t, 700, rate, 1, 0);
	sample(b, t, 700, rate, 25, 0);
}

static void assert_is(const char *text, uint64_t total, const char *name, double value)
{
	uint64_t is = value_in(text, total, name);

	if (fabs((double)is - value) > 1 + 1e-6 * value)
		fail_msg("%s of %llu is %llu, not %g, in:\n%s", name, (unsigned long long)total, (unsigned long long)is,
		         value, text);
}

static void assert_point(const char *text, uint64_t total, double blocks, const double expected[7])
{
	static const char *const names[] = { "gb", "gbk", "eb", "ebk", "mb", "mbk", "tl" };

	assert_is(text, total, "tbk", blocks);
	for (size_t i = 0; i < 7; i++)
		assert_is(text, total, names[i], expected[i]);
}

/* Every block is recorded: the figures are those of the list above. */
static void test_exact_times(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ .times = true });
	assert_true(r.times.known);
	assert_true(r.times.peak_ns >= 10000000000u && r.times.peak_ns < 12000000000u);
	char *text = dhat_of(&r);
	assert_non_null(strstr(text, "\"bklt\": true"));
	assert_non_null(strstr(text, "\"verb\": \"Allocated\""));
	assert_non_null(strstr(text, "\"tuth\": 1000"));
	assert_point(text, 4000, 4, (double[]){ 3000, 3, 0, 0, 3000, 3, 6.5e6 });
	assert_point(text, 1400, 2, (double[]){ 700, 1, 1400, 2, 1400, 2, 29e6 + 5e6 });
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

/* Each sample counts 1 / p times, its lifetime too. */
static void test_sampled_times(void **state)
{
	double p = estimate_probability(1000, RATE);
	double q = estimate_probability(700, RATE);
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	make(&r, &b, (struct report_options){ .times = true });
	const struct report_row *s = row_with(&r, 0x400100);
	const struct report_row *t = row_with(&r, 0x400300);
	assert_true(fabs(s->times.lived - 6.5e9 / p) < 1e-6 * 6.5e9 / p);
	assert_true(fabs(t->times.lived - 34e9 / q) < 1e-6 * 34e9 / q);
	/* As --peak has it, which is of half of the samples. */
	struct report peak;
	make(&peak, &b, (struct report_options){ .peak = true });
	assert_true(r.times.peak_ns == peak.options.at_ns);
	for (int f = FIGURE_LIVE_BYTES; f <= FIGURE_LIVE_COUNT; f++)
		assert_true(fabs(r.total.times.peak[f] - peak.total.sum[f].value) <= 1e-6 * peak.total.sum[f].value);
	report_done(&peak);
	assert_true(fabs(r.total.times.lived - s->times.lived - t->times.lived) < 1);
	report_done(&r);
	/* Of what is kept, and of stacks that have become one. */
	make(&r, &b, (struct report_options){ .times = true, .filter = { .size_low = 900 } });
	assert_true(fabs(r.total.times.lived - 6.5e9 / p) < 1e-6 * 6.5e9 / p);
	report_done(&r);
	make(&r, &b, (struct report_options){ .times = true, .filter = { .hide = "." } });
	assert_int_equal(r.rows.count, 1);
	assert_true(fabs(r.rows.list[0].times.lived - 6.5e9 / p - 34e9 / q) < 1e-6 * 34e9 / q);
	/* One row stands for those that are left out. */
	report_done(&r);
	make(&r, &b, (struct report_options){ .times = true, .top = 1 });
	char *text = dhat_of(&r);
	assert_is(text, (uint64_t)round(4000 / p), "tl", 6.5e6 / p);
	assert_is(text, (uint64_t)round(1400 / q), "tl", 34e6 / q);
	free(text);
	report_done(&r);
	dump_builder_done(&b);
}

static void assert_no_times(struct dump_builder *b, struct report_options options, const char *verb)
{
	struct report r;

	make(&r, b, options);
	char *text = dhat_of(&r);
	assert_false(r.times.known);
	assert_non_null(strstr(text, "\"bklt\": false"));
	assert_non_null(strstr(text, verb));
	assert_null(strstr(text, "\"gb\""));
	assert_null(strstr(text, "\"tl\""));
	assert_null(strstr(text, "\"tg\""));
	free(text);
	report_done(&r);
}

/* Where records are gone, or the report is about another time. */
static void test_times_that_are_not_known(void **state)
{
	static const enum dump_counter lost[] = { DUMP_COUNTER_lost_history, DUMP_COUNTER_lost_live_full };
	struct dump_builder b;

	(void)state;
	build(&b, RATE);
	assert_no_times(&b, (struct report_options){ 0 }, "\"Live\"");
	assert_no_times(&b, (struct report_options){ .times = true, .at_ns = 11000000000u }, "\"Live\"");
	assert_no_times(&b, (struct report_options){ .times = true, .peak = true }, "\"Live\"");
	assert_no_times(&b, (struct report_options){ .times = true, .filter = { .older_ns = 1000 } }, "\"Live\"");
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
		dump_builder_header(&b)->counters[0][lost[i]] = 1;
		assert_no_times(&b, (struct report_options){ .times = true }, "\"Live\"");
		assert_no_times(&b, (struct report_options){ .times = true, .sort = FIGURE_ALLOCATED_BYTES },
		                "\"Allocated\"");
		dump_builder_header(&b)->counters[0][lost[i]] = 0;
	}
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_times),
		cmocka_unit_test(test_sampled_times),
		cmocka_unit_test(test_times_that_are_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
