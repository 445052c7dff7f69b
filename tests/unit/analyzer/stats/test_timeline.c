/* SPDX-License-Identifier: MIT */
/* The timeline and the peak say what a report for that time says. */
#include "views.h"

#include "heap_simulation.h"
#include "base/index_list.h"

enum { SAMPLES = 500 };

/* A heap that grows until the middle of the session, and shrinks from then on. */
static void build(struct dump_builder *b, uint32_t rate)
{
	struct random_source random = { 11 };
	const uint64_t library[] = { DUMP_FRAME(2, 0x400300), DUMP_FRAME(1, 0x400200) };

	dump_builder_init(b, rate, 1024, 16, 8);
	uint32_t s = dump_builder_stack(b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(b, library, 2, 0);
	dump_builder_module(b, 1, 0, 0x400000, 0x400280, "/usr/bin/a", NULL, 0, 0);
	dump_builder_module(b, 2, 0, 0x400280, 0x500000, "/usr/lib/b.so", NULL, 0, 0);
	for (int i = 0; i < SAMPLES; i++) {
		double born = 15 * random_unit(&random);
		double freed = i % 10 ? 15 + 14 * random_unit(&random) : 0;
		sample(b, i % 3 ? s : t, 1 + exponential_random(&random) % 50000, rate, born, freed);
	}
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b))))
		fail_msg("%.17g is not %.17g", a, b);
}

static void assert_same(struct estimate a, struct estimate b)
{
	assert_near(a.value, b.value);
	assert_near(a.error, b.error);
	assert_near(a.low, b.low);
	assert_near(a.high, b.high);
}

/* As one of thirteen moments, of which all intervals hold together. */
static struct estimate of_thirteen(const struct report *r)
{
	return estimate_interval(&r->total.sum[FIGURE_LIVE_BYTES], 1 - (1 - r->options.confidence) / 13);
}

static void test_each_moment_is_its_report(void **state)
{
	static const uint32_t rates[] = { 1, RATE };
	static const struct filter_options filters[] = { { 0 },
		                                         { .size_low = 1000, .size_high = 20000 },
		                                         { .older_ns = 3000000000u } };

	(void)state;
	for (size_t k = 0; k < 6; k++) {
		struct dump_builder b;
		struct report r, at;
		double allocated = 0;
		build(&b, rates[k % 2]);
		make(&r, &b, (struct report_options){ .timeline = 13, .filter = filters[k / 2] });
		assert_int_equal(r.timeline.count, 13);
		for (size_t i = 0; i < 13; i++) {
			const struct timeline_point *point = &r.timeline.points[i];
			make(&at, &b, (struct report_options){ .at_ns = point->ns, .filter = filters[k / 2] });
			assert_true(point->live.samples == at.total.sum[FIGURE_LIVE_BYTES].samples &&
			            !point->incomplete);
			assert_same(report_at_moment(&r, &point->live, true), of_thirteen(&at));
			allocated += point->allocated.value;
			assert_near(allocated, at.total.sum[FIGURE_ALLOCATED_BYTES].value);
			report_done(&at);
		}
		/* The last moment is the end. */
		make(&at, &b, (struct report_options){ .filter = filters[k / 2] });
		assert_same(report_at_moment(&r, &r.timeline.points[12].live, true), of_thirteen(&at));
		assert_near(allocated, at.total.sum[FIGURE_ALLOCATED_BYTES].value);
		report_done(&at);
		report_done(&r);
		dump_builder_done(&b);
	}
}

static void test_peak_is_the_largest_moment(void **state)
{
	struct dump_builder b;
	struct report line, peak;
	double most = 0;

	(void)state;
	build(&b, RATE);
	make(&line, &b, (struct report_options){ .timeline = REPORT_PEAK_MOMENTS });
	make(&peak, &b, (struct report_options){ .peak = true });
	for (size_t i = 0; i < line.timeline.count; i++)
		most = fmax(most, line.timeline.points[i].live.value);
	/* By one half of the samples, of the other half. */
	assert_true(fabs(peak.total.sum[FIGURE_LIVE_BYTES].value - most) < 0.2 * most);
	assert_int_equal(peak.largest_rate, 2 * RATE);
	assert_true(peak.total.sum[FIGURE_LIVE_COUNT].samples < 0.7 * SAMPLES);
	assert_true(peak.options.at_ns > 14000000000u && peak.options.at_ns < 16000000000u);
	assert_true(most > 3 * line.timeline.points[line.timeline.count - 1].live.value);
	assert_says(json_of(&peak), "\"peak\": true");
	report_done(&peak);
	/* Of what is kept. */
	make(&peak, &b, (struct report_options){ .peak = true, .filter = { .focus = "b.so" } });
	assert_int_equal(peak.rows.count, 1);
	assert_true(peak.total.sum[FIGURE_LIVE_BYTES].value < most / 2);
	report_done(&peak);
	/* Of blocks that are old then: as the report for that time has them. */
	const struct filter_options older = { .older_ns = 5000000000u };
	struct report at;
	make(&peak, &b, (struct report_options){ .peak = true, .filter = older });
	make(&at, &b, (struct report_options){ .at_ns = peak.options.at_ns, .filter = older });
	double then = at.total.sum[FIGURE_LIVE_BYTES].value;
	assert_true(fabs(peak.total.sum[FIGURE_LIVE_BYTES].value - then) < 0.2 * then);
	assert_true(peak.total.sum[FIGURE_LIVE_BYTES].value > most / 2 &&
	            peak.total.sum[FIGURE_LIVE_BYTES].value < most);
	report_done(&at);
	report_done(&peak);
	report_done(&line);
	dump_builder_done(&b);
	/* Where all is recorded both halves are the whole. */
	build(&b, 1);
	make(&line, &b, (struct report_options){ .timeline = REPORT_PEAK_MOMENTS });
	make(&peak, &b, (struct report_options){ .peak = true });
	assert_near(peak.total.sum[FIGURE_LIVE_BYTES].value, report_highest(&line).high);
	report_done(&peak);
	report_done(&line);
	dump_builder_done(&b);
}

static void test_what_the_history_lacks_is_said(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, RATE);
	dump_builder_header(&b)->counters[0][DUMP_COUNTER_lost_history] = 3;
	/* The oldest record that is left. */
	history_record(&b, 0)->allocated_stamp = START + 10 * SECOND;
	history_record(&b, 0)->freed_stamp = START + 20 * SECOND;
	make(&r, &b, (struct report_options){ .timeline = 30 });
	for (size_t i = 0; i < r.timeline.count; i++) {
		const struct timeline_point *point = &r.timeline.points[i];
		assert_int_equal(point->incomplete, point->ns < 20000000000u);
	}
	assert_says(text_of(&r), "the history has dropped what was freed early");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_times_that_make_no_sense(void **state)
{
	static const uint64_t durations[] = { 0, 1, 12, 999999, 10000000, 3600000000007u, UINT64_MAX / 2, UINT64_MAX };
	struct timeline t;

	(void)state;
	for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
		assert_int_equal(timeline_init(&t, 7, durations[i]), 0);
		for (size_t k = 0; k < 7; k++) {
			assert_true(!k || durations[i] > UINT64_MAX / 2 || t.points[k].ns >= t.points[k - 1].ns);
			t.points[k].stamp = t.points[k].ns;
		}
		timeline_add(&t, 100, 0.5, 3, 2, 0); /* freed before it was born */
		timeline_add(&t, 100, 0.5, 0, UINT64_MAX, 0);
		timeline_add(&t, 100, 0.5, UINT64_MAX, 0, 0);
		timeline_finish(&t, 1024, UINT64_MAX);
		assert_true(timeline_peak(&t)->live.value >= 0);
		timeline_done(&t);
	}
}

static void test_it_is_drawn(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b, 1);
	make(&r, &b, (struct report_options){ .timeline = 3 });
	char *text = text_of(&r);
	assert_non_null(strstr(text, "live bytes "));
	assert_non_null(strstr(text, "\n        10 s "));
	assert_non_null(strstr(text, "\n        30 s "));
	assert_null(strstr(text, "Stacks by"));
	free(text);
	assert_says(json_of(&r), "\"timeline\": [");
	report_done(&r);
	dump_builder_done(&b);
	dump_builder_init(&b, RATE, 8, 8, 0);
	make(&r, &b, (struct report_options){ .timeline = 3 });
	assert_says(text_of(&r), "\n  highest:   0 B .. ");
	report_done(&r);
	dump_builder_done(&b);
}

/* What came until the end of each step of eight moments and went after it. */
static void assert_spans(const struct spans *s, const double *live, size_t moments)
{
	assert_int_equal(s->step & (s->step - 1), 0);
	for (size_t step = 0; step < spans_steps(s); step++) {
		size_t last = (step + 1) * s->step < moments ? (step + 1) * s->step - 1 : moments - 1;
		double sum = 0;
		for (size_t i = 0; i < s->count; i++)
			if (s->cells[i].born <= step &&
			    (s->cells[i].freed == SPAN_LIVE || s->cells[i].freed > step + 1))
				sum += s->cells[i].bytes.value;
		assert_near(sum, live[last]);
	}
}

static void test_steps_grow_with_the_cells(void **state)
{
	enum { MOMENTS = 90 };
	static double live[MOMENTS + 1];
	struct random_source random = { 5 };
	struct spans s;
	uint64_t listed = 0, added = 0;

	(void)state;
	spans_init(&s, MOMENTS);
	for (uint32_t i = 0; i < 600000; i++) {
		size_t born = exponential_random(&random) % (MOMENTS + 1);
		size_t freed = i % 8 ? born + exponential_random(&random) % (MOMENTS + 1 - born) : SIZE_MAX;
		uint64_t size = 1 + exponential_random(&random) % 1000;
		assert_int_equal(spans_add(&s, 1 + i % 1000, born, freed, size, 0.25, 0), 0);
		for (size_t m = born < MOMENTS ? born : MOMENTS - 1; m < MOMENTS && (freed == SIZE_MAX || m < freed);
		     m++)
			live[m] += (double)size * 4;
		added++;
	}
	assert_true(s.step > 1 && s.step < MOMENTS && s.count < SPANS_MAX);
	assert_spans(&s, live, MOMENTS);
	/* Each cell is in the list of its stack; lists can be joined. */
	uint32_t all = 0;
	for (uint32_t stack = 0; stack <= 1000; stack++)
		index_list_join(s.cells, &all, spans_of(&s, stack));
	for (uint32_t i = all; i; i = s.cells[i - 1].next)
		listed += s.cells[i - 1].count.samples;
	assert_int_equal(listed, added);
	spans_done(&s);
	/* More stacks than cells: there are none. */
	spans_init(&s, 3);
	for (uint32_t i = 0; i < SPANS_MAX + 2; i++)
		assert_int_equal(spans_add(&s, i, i % 3, SIZE_MAX, 8, 1, 0), 0);
	assert_int_equal(spans_steps(&s), 0);
	assert_int_equal(s.count, 0);
	spans_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_grow_with_the_cells),
		cmocka_unit_test(test_each_moment_is_its_report),
		cmocka_unit_test(test_peak_is_the_largest_moment),
		cmocka_unit_test(test_what_the_history_lacks_is_said),
		cmocka_unit_test(test_times_that_make_no_sense),
		cmocka_unit_test(test_it_is_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
