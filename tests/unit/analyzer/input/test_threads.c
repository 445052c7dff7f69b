/* SPDX-License-Identifier: MIT */
/* Live blocks by thread: from dumps that are built to known figures. */
#include "views.h"

static void thread_sample(struct dump_builder *b, uint32_t stack, uint32_t tid, uint64_t size, uint32_t rate)
{
	dump_builder_sample(b, stack, size, rate, 1);
	live_record(b, b->live_used - 1)->tid = tid;
}

static const struct group *thread_of(const struct report *r, uint32_t tid)
{
	for (size_t i = 0; i < r->groups.count; i++)
		if (r->groups.list[i].tid == tid && !r->groups.list[i].others)
			return &r->groups.list[i];
	fail_msg("no thread %u", tid);
	return NULL;
}

static void assert_holds(const struct report *r, uint32_t tid, double bytes, double blocks)
{
	const struct report_row row = report_thread(r, thread_of(r, tid));
	struct estimate x = report_estimate(r, &row, FIGURE_LIVE_BYTES);
	struct estimate y = report_estimate(r, &row, FIGURE_LIVE_COUNT);

	assert_true(x.value == bytes && x.low == bytes && x.high == bytes && x.exact);
	assert_true(y.value == blocks && y.low == blocks && y.high == blocks && y.exact);
}

/* Two threads with a name, one without, one that nobody knows; stacks do not matter. */
static void build_threads(struct dump_builder *b, uint32_t rate)
{
	dump_builder_init(b, rate, 64, 8, 1);
	uint32_t s = dump_builder_stack(b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(b, frames_b, 2, 0);
	dump_builder_thread(b, 11, "early");
	dump_builder_thread(b, 12, "wor\033ker");
	dump_builder_thread(b, 13, "holds nothing");
	dump_builder_thread(b, 11, "late");
	for (int i = 0; i < 4; i++) {
		thread_sample(b, s, 11, 1000, rate);
		thread_sample(b, i % 2 ? s : t, 12, 100, rate);
	}
	thread_sample(b, t, 14, 10, rate);
	thread_sample(b, t, 0, 1, rate);
	live_record(b, 0)->usable = 1016;
	/* Was freed: of no thread any more. */
	dump_builder_sample(b, s, 5000, rate, 0);
}

static void test_threads_hold_what_they_allocated(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build_threads(&b, 1);
	make(&r, &b, (struct report_options){ .by = BY_THREAD, .symbols = true });
	assert_int_equal(r.groups.count, 4);
	assert_holds(&r, 11, 4000, 4);
	assert_holds(&r, 12, 400, 4);
	assert_holds(&r, 14, 10, 1);
	assert_holds(&r, 0, 1, 1);
	assert_string_equal(thread_of(&r, 11)->name, "late");
	assert_true(thread_of(&r, 11)->slack_inclusive.sum.value == 16);
	assert_ptr_equal(&r.groups.list[0], thread_of(&r, 11));
	assert_ptr_equal(&r.groups.list[3], thread_of(&r, 0));
	assert_null(r.symbols); /* nobody needs any */
	assert_says(text_of(&r), "      3.91 KiB  exact                       90.7 %  late (tid 11)\n      in 4 "
	                         "blocks  exact   4 samples\n");
	assert_says(text_of(&r), "  wor?ker (tid 12)\n");
	assert_says(text_of(&r), "  (tid 14, no name recorded)\n");
	assert_says(text_of(&r), "  (thread not known)\n");
	assert_says(text_of(&r), "what threads have allocated in all is not kept");
	assert_says(json_of(&r), "\"by\": \"thread\"");
	assert_says(json_of(&r),
	            "\"thread\": \"late\",\n      \"tid\": 11,\n      \"pid\": 812,\n      \"others\": false,\n");
	assert_says(json_of(&r), "\"thread\": null,\n      \"tid\": null,\n");
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_THREAD, .sort = FIGURE_LIVE_COUNT, .top = 1 });
	assert_int_equal(report_shown(&r), 1);
	assert_says(text_of(&r), "Threads by live blocks");
	report_done(&r);
	dump_builder_done(&b);
}

/* The intervals are those of the stacks: a thread may have unseen samples, and all that were lost. */
static void test_threads_have_intervals(void **state)
{
	double p = estimate_probability(1000, RATE);
	struct dump_builder b;
	struct report r;

	(void)state;
	build_threads(&b, RATE);
	make(&r, &b, (struct report_options){ .by = BY_THREAD });
	struct report_row row = report_thread(&r, thread_of(&r, 11));
	double listed = report_estimate(&r, &row, FIGURE_LIVE_BYTES).low;
	assert_true(row.part[0] > 0 && row.part[0] < 1);
	memset(row.part, 0, sizeof row.part); /* by itself, whatever it was chosen for */
	struct estimate x = report_estimate(&r, &row, FIGURE_LIVE_BYTES);
	struct estimate y = report_estimate(&r, &row, FIGURE_LIVE_COUNT);
	assert_true(listed < x.low && listed >= 4000);
	/* Garwood's interval of 4 is 1.09 .. 10.24. */
	assert_true(fabs(x.value / (4000 / p) - 1) < 1e-9 && x.low > 1.08 * RATE && x.high > 10.2 * RATE);
	assert_true(fabs(y.value / (4 / p) - 1) < 1e-9 && y.low > 1.05 / p && y.high > 10 / p && y.high < 10.3 / p);
	assert_true(y.unseen == report_unseen_blocks(&r) && y.unseen > 0);
	report_done(&r);
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_live_full] = 2;
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_stack_full] = 5;
	make(&r, &b, (struct report_options){ .by = BY_THREAD });
	row = report_thread(&r, thread_of(&r, 11));
	double more = report_estimate(&r, &row, FIGURE_LIVE_BYTES).high - x.high;
	const struct estimate_sum *all = &r.total.sum[FIGURE_ALLOCATED_BYTES];
	assert_true(fabs(more / (2 * all->value / (double)all->samples) - 1) < 1e-9);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_threads_at_a_time(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	sample(&b, s, 100, 1, 5, 15);
	history_record(&b, 0)->tid = 7;
	sample(&b, s, 1000, 1, 10, 0);
	live_record(&b, 0)->tid = 8;
	make(&r, &b, (struct report_options){ .by = BY_THREAD, .at_ns = 12000000000u });
	assert_int_equal(r.groups.count, 2);
	assert_holds(&r, 7, 100, 1);
	assert_holds(&r, 8, 1000, 1);
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_THREAD, .at_ns = 7000000000u });
	assert_int_equal(r.groups.count, 1);
	report_done(&r);
	dump_builder_done(&b);
}

/* The threads of several processes are not the same, whatever their ids are. */
static void test_threads_of_two_dumps(void **state)
{
	struct report_options options = { .confidence = 0.95, .by = BY_THREAD };
	struct report r;
	struct err e;

	(void)state;
	assert_int_equal(report_init(&r, &options, &e), 0);
	for (int i = 0; i < 2; i++) {
		struct dump_builder b;
		build_threads(&b, 1);
		dump_builder_header(&b)->pid = 100 + i;
		struct dump *dump = open_built(&b);
		assert_int_equal(report_add(&r, dump, "one.dump", &e), 0);
		dump_close(dump);
		dump_builder_done(&b);
	}
	assert_int_equal(report_finish(&r, &e), 0);
	assert_int_equal(r.groups.count, 8);
	assert_holds(&r, 11, 4000, 4);
	assert_says(text_of(&r), "  late (tid 11 of PID 100)\n");
	assert_says(text_of(&r), "  late (tid 11 of PID 101)\n");
	report_done(&r);
}

/* A dump may name any number of threads; the memory for them has a limit, the figures have none. */
static void test_more_threads_than_are_kept(void **state)
{
	enum { MORE = 1000 };
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 1 << 17, 8, 1);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	for (uint32_t i = 0; i < THREADS_MAX + MORE; i++)
		thread_sample(&b, s, 1 + i, 100, 1);
	make(&r, &b, (struct report_options){ .by = BY_THREAD });
	assert_int_equal(r.groups.count, THREADS_MAX + 1);
	assert_true(r.groups.list[0].others && r.groups.list[0].inclusive[FIGURE_LIVE_BYTES].value == 100 * MORE);
	assert_says(json_of(&r), "\"others\": true");
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_THREAD, .top = 3 });
	assert_says(text_of(&r), "  (all other threads)\n");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_no_thread(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, RATE, 64, 8, 1);
	make(&r, &b, (struct report_options){ .by = BY_THREAD });
	assert_int_equal(r.groups.count, 0);
	assert_says(text_of(&r), "\n      none\n");
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_hold_what_they_allocated),
		cmocka_unit_test(test_threads_have_intervals),
		cmocka_unit_test(test_threads_at_a_time),
		cmocka_unit_test(test_threads_of_two_dumps),
		cmocka_unit_test(test_more_threads_than_are_kept),
		cmocka_unit_test(test_no_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
