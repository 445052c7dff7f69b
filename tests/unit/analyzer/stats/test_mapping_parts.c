/* SPDX-License-Identifier: MIT */
/*
 * Parts of mappings, which were sampled together: simulated sessions in which mappings are cut, through the whole
 * report. The intervals of each figure and view hold the truth in 92 % and more of SEEDS sessions, and no estimate has
 * a bias (4.5 standard errors). With parts as samples of their own those of bytes, but for growth, hold it in 45 to 63
 * %.
 */
#include "views.h"

#include "heap_simulation.h"
#include "hooks.h"
#include "live/live_heap.h"

enum { SEEDS = 400, MAPPINGS = 150, PARTS = 32, MOMENTS = 4 };

#define PAGE 4096u
#define SINCE 10.0 /* seconds, of 30 */

/* A part of a mapping goes at a second of the session, or stays: 0. */
struct cut {
	uint64_t bytes;
	double freed;
};

static void mark(struct dump_builder *b, const struct cut *cut, uint64_t whole, uint32_t tid, uint64_t stamp)
{
	uint64_t taken = 0;

	if (!(cut->freed > 0)) {
		struct dump_live_record *record = live_record(b, b->live_used - 1);
		record->size = cut->bytes;
		record->usable = whole;
		record->flags = DUMP_LIVE_PART;
		record->tid = tid;
		record->stamp = stamp;
		record->hook = HOOK_mmap;
		return;
	}
	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		taken += dump_builder_header(b)->counters[i][DUMP_COUNTER_samples_freed];
	struct dump_history_record *record = history_record(b, taken - 1);
	record->size = cut->bytes;
	record->usable = whole;
	record->flags = DUMP_HISTORY_PART;
	record->tid = tid;
	record->allocated_stamp = stamp;
	record->hook = HOOK_mmap;
}

/* A mapping that was sampled: one in the sums of its stack, and so many records. */
static void mapping(struct dump_builder *b, uint32_t stack, uint32_t rate, double born, uint32_t number,
                    const struct cut *cuts, size_t count)
{
	struct dump_stack *sums = dump_builder_at(b, (uint64_t)stack * DUMP_STACK_ALIGN), whole_sums;
	uint64_t whole = 0;

	for (size_t i = 0; i < count; i++)
		whole += cuts[i].bytes;
	for (size_t i = 0; i < count; i++) {
		sample(b, stack, whole, rate, born, cuts[i].freed);
		mark(b, &cuts[i], whole, 800 + number % 3, START + (uint64_t)(born * (double)SECOND) + number);
		if (!i)
			whole_sums = *sums;
		*sums = whole_sums;
	}
}

static void begin(struct dump_builder *b, uint32_t rate)
{
	dump_builder_init(b, rate, 8192, 8, 64);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	dump_builder_header(b)->session_id = 77;
	dump_builder_header(b)->session_flags = DUMP_SESSION_MMAP;
}

/* When a part of a mapping goes: a half of them stays. */
static double freed_of(unsigned mapping, unsigned part)
{
	return part % 2 ? 5 + (mapping * 7 + part * 3) % 24 : 0;
}

/* Two pages of each mapping are one part, whose size is a class of its own. */
static uint64_t bytes_of(unsigned part)
{
	return part == 8 ? 2 * PAGE : PAGE;
}

/* What there is at a second of the session: mappings come in its first four. */
static double true_bytes(double at)
{
	double sum = 0;

	for (unsigned i = 0; i < MAPPINGS; i++)
		for (unsigned k = 0; k < PARTS; k++)
			sum += !(freed_of(i, k) > 0) || freed_of(i, k) > at ? (double)bytes_of(k) : 0;
	return sum;
}

/* The state at a time: what goes later is still there. */
static void build(struct dump_builder *b, uint64_t seed, double now)
{
	struct random_source random = { seed };
	const double p = estimate_probability((PARTS + 1) * PAGE, RATE * 8);

	begin(b, RATE * 8);
	const uint32_t stack = dump_builder_stack(b, frames_a, 2, 0);
	for (unsigned i = 0; i < MAPPINGS; i++) {
		struct cut cuts[PARTS];

		for (unsigned k = 0; k < PARTS; k++)
			cuts[k] = (struct cut){ bytes_of(k), freed_of(i, k) > now ? 0 : freed_of(i, k) };
		if (random_unit(&random) < p)
			mapping(b, stack, RATE * 8, 1 + i % 4, i, cuts, PARTS);
	}
}

enum { TOTAL, COUNT, ALLOCATED, LIVE_VIEW, CLASS, GROWTH, DIFF, OLDER, MOMENT, THREAD, STATEMENTS };
static const char *const statement_names[] = { "total", "count",  "allocated", "live view", "class",
	                                       "since", "states", "at",        "moments",   "thread" };

static struct tally {
	double held, sum, squares, bias;
} tallies[STATEMENTS];

static void say(int what, struct estimate x, double truth)
{
	struct tally *t = &tallies[what];

	t->held += x.low <= truth * (1 + 1e-12) && x.high >= truth * (1 - 1e-12);
	t->sum += x.value - truth;
	t->squares += (x.value - truth) * (x.value - truth);
}

static void say_live_view(struct dump_builder *b)
{
	struct dump *dump = open_built(b);
	struct live_heap h;
	bool anew;

	assert_int_equal(live_heap_init(&h, NULL), 0);
	assert_int_equal(live_heap_look(&h, dump, &anew), 0);
	say(LIVE_VIEW, live_heap_estimate(&h, &h.total, true, 0.95), true_bytes(30));
	live_heap_done(&h);
	dump_close(dump);
}

static void say_classes(struct dump_builder *b)
{
	struct report r;

	make(&r, b, (struct report_options){ .by = BY_SIZE });
	const struct class_sum *pages = &r.classes.sizes[class_of(CLASS_SIZE, PAGE)];
	say(CLASS, report_interval(&r, &pages->sum[FIGURE_LIVE_BYTES], FIGURE_LIVE_BYTES),
	    MAPPINGS * (PARTS / 2 - 1.0) * PAGE);
	report_done(&r);
}

static void say_moments(struct dump_builder *b)
{
	struct report r;
	bool all = true;

	make(&r, b, (struct report_options){ .timeline = MOMENTS });
	for (size_t i = 0; i < MOMENTS; i++) {
		const struct timeline_point *point = &r.timeline.points[i];
		const double truth = true_bytes((double)point->ns / 1e9);
		const struct estimate x = report_at_moment(&r, &point->live, true);
		all &= x.low <= truth && truth <= x.high;
		if (i + 1 == MOMENTS)
			say(MOMENT, (struct estimate){ .value = x.value, .low = all ? 0 : INFINITY, .high = INFINITY },
			    truth);
	}
	report_done(&r);
}

static void say_all(uint64_t seed)
{
	struct dump_builder b, before;
	struct report r;

	build(&b, seed, 30);
	build(&before, seed, SINCE);
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.rows.count, 1);
	say(TOTAL, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), true_bytes(30));
	say(COUNT, report_estimate(&r, &r.total, FIGURE_LIVE_COUNT), MAPPINGS);
	say(ALLOCATED, report_estimate(&r, &r.total, FIGURE_ALLOCATED_COUNT), MAPPINGS);
	report_done(&r);
	make(&r, &b, (struct report_options){ .since_ns = (uint64_t)(SINCE * 1e9) });
	say(GROWTH, report_growth(&r, &r.rows.list[0], FIGURE_LIVE_BYTES), true_bytes(30) - true_bytes(SINCE));
	report_done(&r);
	make(&r, &b, (struct report_options){ .at_ns = (uint64_t)(SINCE * 1e9) });
	say(OLDER, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), true_bytes(SINCE));
	report_done(&r);
	make(&r, &b, (struct report_options){ .filter.thread = "801" });
	double of_thread = 0;
	for (unsigned i = 1; i < MAPPINGS; i += 3)
		for (unsigned k = 0; k < PARTS; k++)
			of_thread += freed_of(i, k) > 0 ? 0 : (double)bytes_of(k);
	say(THREAD, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), of_thread);
	report_done(&r);
	compare(&r, &before, &b);
	assert_true(r.same_session);
	say(DIFF, report_growth(&r, &r.rows.list[0], FIGURE_LIVE_BYTES), true_bytes(30) - true_bytes(SINCE));
	assert_true(report_growth(&r, &r.rows.list[0], FIGURE_LIVE_COUNT).value == 0);
	report_done(&r);
	say_live_view(&b);
	say_classes(&b);
	say_moments(&b);
	dump_builder_done(&b);
	dump_builder_done(&before);
}

static void test_intervals_hold(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		say_all(seed * 7919);
	for (int i = 0; i < STATEMENTS; i++) {
		struct tally *t = &tallies[i];
		const double mean = t->sum / SEEDS;
		t->bias = mean / sqrt((t->squares / SEEDS - mean * mean) / SEEDS);
		if (getenv("VERBOSE"))
			printf("%-10s %.3f, bias %+.2f\n", statement_names[i], t->held / SEEDS, t->bias);
	}
	for (int i = 0; i < STATEMENTS; i++) {
		assert_true(tallies[i].held >= 0.92 * SEEDS);
		assert_true(fabs(tallies[i].bias) < 4.5);
	}
}

/* A mapping of ten pages of which two and three go, between two states: exactly five pages fewer, and no mapping. */
static void build_two(struct dump_builder *b, bool later)
{
	const struct cut whole = { 10 * PAGE, 0 },
			 cuts[] = { { 2 * PAGE, 12 }, { PAGE, 0 }, { 3 * PAGE, 13 }, { 4 * PAGE, 0 } };

	begin(b, 1);
	const uint32_t stack = dump_builder_stack(b, frames_a, 2, 0);
	mapping(b, stack, 1, 5, 1, later ? cuts : &whole, later ? 4 : 1);
	if (!later) {
		live_record(b, 0)->flags = 0;
		live_record(b, 0)->usable = 0;
	}
	mapping(b, stack, 1, 6, 2, &whole, 1);
}

static void test_a_mapping_shrinks_between_two_states(void **state)
{
	struct dump_builder before, b;
	struct estimate_sum plus, minus;
	struct live_heap h;
	struct report r;
	bool anew;

	(void)state;
	build_two(&before, false);
	build_two(&b, true);
	compare(&r, &before, &b);
	assert_true(report_growth(&r, &r.rows.list[0], FIGURE_LIVE_BYTES).value == -5.0 * PAGE);
	assert_true(report_growth(&r, &r.rows.list[0], FIGURE_LIVE_COUNT).value == 0);
	report_done(&r);
	compare(&r, &b, &b);
	assert_true(report_growth(&r, &r.rows.list[0], FIGURE_LIVE_BYTES).value == 0);
	report_done(&r);
	assert_int_equal(live_heap_init(&h, NULL), 0);
	struct dump *dumps[] = { open_built(&before), open_built(&b) };
	for (int i = 0; i < 2; i++)
		assert_int_equal(live_heap_look(&h, dumps[i], &anew), 0);
	live_heap_growth(&h, &h.total, &plus, &minus);
	assert_true(plus.value == 0 && plus.samples == 0 && minus.value == 5.0 * PAGE && minus.samples == 1);
	assert_true(h.total.live[0].value == 15.0 * PAGE && h.total.live[1].value == 2);
	live_heap_done(&h);
	for (int i = 0; i < 2; i++)
		dump_close(dumps[i]);
	dump_builder_done(&b);
	dump_builder_done(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mapping_shrinks_between_two_states),
		cmocka_unit_test(test_intervals_hold),
	};

	return cmocka_run_group_tests_name("mapping_parts", tests, NULL, NULL);
}
