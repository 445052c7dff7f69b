/* SPDX-License-Identifier: MIT */
/* Looking back, growth and leaks in reports: from dumps that are built to known figures. */
#include "views.h"

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
	} cases[] = { { 1, 0, 0 }, { 6, 1000, 0 }, { 16, 600, 0 }, { 25, 600, 6000 }, { 30, 600, 6000 } };
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
	/* There is no such time. */
	struct dump *dump = open_built(&b);
	struct report_options late = { .confidence = 0.95, .at_ns = 100000000000u };
	struct err e;
	assert_int_equal(report_make(&r, dump, "x", &late, &e), -EINVAL);
	assert_string_equal(e.text, "--at 100s: the session lasted for 30.0 s");
	dump_close(dump);
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
	assert_says(text_of(&r), "\nLive bytes grew by about ");
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
	dump_builder_header(&new)->private_start_bytes = 100 << 20;
	dump_builder_header(&new)->private_latest_bytes = 400 << 20;
	compare(&r, &old, &new);
	assert_false(r.same_session);
	x = report_growth(&r, row_with(&r, 0x400100), FIGURE_LIVE_BYTES);
	assert_true(x.value == 0 && x.low < 0 && x.high > 0);
	assert_says(text_of(&r), "not distinguishable from zero");
	assert_says(json_of(&r), "\"side\": \"old\"");
	/* Both began with nothing. */
	assert_true(report_has_pace(&r));
	struct report_pace before = report_pace(&r, true), now = report_pace(&r, false);
	x = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
	assert_true(before.seconds == 30 && now.live.value == x.value / 30 && now.live.high == x.high / 30);
	assert_true(fabs(before.live.value / now.live.value - 100.0 / 120) < 1e-9);
	assert_says(text_of(&r), "of live bytes in 30.0 s; private memory 100 MiB -> 400 MiB");
	assert_says(json_of(&r), "\"live_bytes_per_second\"");
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

/* Two sessions without a sample: there may have been growth, or the opposite, that none has seen. */
static void test_growth_of_nothing(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	for (unsigned rate = 1; rate <= RATE; rate += RATE - 1) {
		dump_builder_init(&old, rate, 256, 8, 2);
		dump_builder_init(&new, rate, 256, 8, 2);
		dump_builder_header(&old)->session_id = 1;
		dump_builder_header(&new)->session_id = 2;
		compare(&r, &old, &new);
		struct estimate x = report_growth(&r, &r.total, FIGURE_LIVE_BYTES);
		struct estimate y = report_estimate(&r, &r.total, FIGURE_LIVE_BYTES);
		assert_true(x.value == 0 && x.high == y.high && x.low == -y.high && x.exact == (rate == 1));
		assert_true(rate == 1 ? x.high == 0 : x.high > rate);
		report_done(&r);
		dump_builder_done(&old);
		dump_builder_done(&new);
	}
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
	assert_int_equal(r.rows.list[0].leak->count.samples, 41); /* born within the first 20 s */
	assert_int_equal(r.rows.list[0].leak->gained, 20);
	assert_says(text_of(&r), "LEAK");
	assert_says(text_of(&r), "\n1 stack leaks");
	assert_says(json_of(&r), "\"leaks\":true");
	/* Over all of them, also those in which it does not leak. */
	struct recorded_session *list = r.sessions, both[2] = { *list, *list };
	r.sessions = both;
	r.session_count = 2;
	char *text = text_of(&r);
	r.sessions = list;
	r.session_count = 1;
	assert_non_null(strstr(text, " sure) on average of 2 sessions, with "));
	free(text);
	report_done(&r);
	make(&r, &b, (struct report_options){ .leaks = true, .age_ns = 29000000000u });
	assert_int_equal(r.rows.list[0].leak->count.samples, 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_diff_of_one_session),
		cmocka_unit_test(test_growth_of_nothing),
		cmocka_unit_test(test_leaks),
		cmocka_unit_test(test_growth_allows_for_lost_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
