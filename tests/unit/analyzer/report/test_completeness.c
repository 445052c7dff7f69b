/* SPDX-License-Identifier: MIT */
/* What reports say of lost samples, of several dumps, and of sessions without an end. */
#include "hooks.h"
#include "views.h"

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

/* A part of a mapping that had no room is in no sum of samples: those that the history has dropped were freed. */
static void test_lost_parts_are_no_samples(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	for (uint32_t parts = 0; parts < 2; parts++) {
		dump_builder_init(&b, 1, 64, 8, 1);
		uint32_t a = dump_builder_stack(&b, frames_a, 2, 0);
		for (int i = 0; i < 10; i++)
			sample(&b, a, 100, 1, 1, i < 5 ? 5 : 0);
		struct dump_stack *stack = dump_builder_at(&b, (uint64_t)a * DUMP_STACK_ALIGN);
		stack->taken_count += 2;
		stack->taken_bytes += 200;
		stack->unkept = parts ? 0 : 2;
		stack->unkept_parts = parts ? 2 : 0;
		dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_live_full] = 2;
		make(&r, &b, (struct report_options){ .leaks = true });
		assert_int_equal(r.rows.list[0].leak->dropped, parts ? 2 : 0);
		struct estimate live = report_estimate(&r, &r.rows.list[0], FIGURE_LIVE_BYTES);
		assert_true(live.low == 500 && live.high > 599);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Aligned operator new of the library of C++ asks for a multiple of the alignment: that is not what was asked of it. */
static void test_rounded_sizes_are_not_exact(void **state)
{
	static const char *const libraries[] = { "/usr/lib/libstdc++.so.6.0.30", "/usr/bin/main" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		static const uint64_t frames[] = { DUMP_FRAME(2, 0x700100), DUMP_FRAME(1, 0x400200) };
		struct dump_builder b;
		struct report r;
		dump_builder_init(&b, 1, 64, 8, 1);
		dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/usr/bin/main", NULL, 0, 0);
		dump_builder_module(&b, 2, 0, 0x700000, 0x800000, libraries[i], NULL, 0, 0);
		uint32_t a = dump_builder_stack(&b, frames, 2, 0);
		for (int k = 0; k < 3; k++) {
			dump_builder_sample(&b, a, 128, 1, 1);
			live_record(&b, b.live_used - 1)->hook = HOOK_aligned_alloc;
		}
		make(&r, &b, (struct report_options){ 0 });
		bool said = !i;
		assert_true(report_exact(&r) == !said && report_complete(&r) && r.rounded == (said ? 3 : 0));
		assert_true(report_estimate(&r, &r.total, FIGURE_LIVE_BYTES).exact == !said);
		assert_true(report_estimate(&r, &r.total, FIGURE_LIVE_COUNT).exact);
		char *text = text_of(&r);
		assert_true(!strstr(text, "3 samples are of aligned operator new") == !said);
		free(text);
		assert_says(json_of(&r), said ? "\"rounded_up\": 3" : "\"rounded_up\": 0");
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Two hosts, other load addresses, other rates: the same stack is one row, figures and variances add up. */
static void test_merge(void **state)
{
	static const uint64_t biases[] = { 0x555500000000, 0x7f1000000000, 0x400000 };
	static const uint32_t rates[] = { 4096, 65536, 1 };
	struct report_options options = { .confidence = 0.95, .verbose = true };
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
		cmocka_unit_test(test_lost_samples_are_not_exact),  cmocka_unit_test(test_lost_parts_are_no_samples),
		cmocka_unit_test(test_rounded_sizes_are_not_exact), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_samples_without_a_stack),     cmocka_unit_test(test_session_without_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
