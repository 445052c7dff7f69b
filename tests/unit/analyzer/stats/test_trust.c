/* SPDX-License-Identifier: MIT */
/* What figures are worth: each state and threshold, from evidence and from dumps that are built to known figures. */
#include "views.h"

#define SIZE 4096u

static struct trust_evidence measured_evidence(void)
{
	return (struct trust_evidence){
		.share = { .value = 0.5, .low = 0.4, .high = 0.6, .missed_low = 1000, .pairs = TRUST_PAIRS_MIN },
		.live = 1000,
		.live_half = 399,
		.samples = 100,
	};
}

static void assert_worth(const struct trust_evidence *e, enum trust_value live, enum trust_value allocated)
{
	struct trust t = trust_decide(e);

	assert_string_equal(trust_value_name(t.live.value), trust_value_name(live));
	assert_string_equal(trust_value_name(t.allocated.value), trust_value_name(allocated));
	assert_int_equal(t.live.value == TRUST_MEASURED, !t.live.reasons);
	assert_int_equal(t.allocated.value == TRUST_MEASURED, !t.allocated.reasons);
}

/* The effect is the share of the live bytes, or the missed bytes if those are less, against half of the interval. */
static void test_missed_frees_thresholds(void **state)
{
	struct trust_evidence e = measured_evidence();

	(void)state;
	assert_worth(&e, TRUST_UPPER_BOUND, TRUST_MEASURED);
	e.share.pairs = TRUST_PAIRS_MIN - 1;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED);
	e = measured_evidence();
	e.live_half = 401;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED);
	e = measured_evidence();
	e.share.missed_low = 398;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED);
	e = measured_evidence();
	e.live_half = 0;
	e.share.low = TRUST_SHARE_MIN;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED);
	e.share.low = TRUST_SHARE_MIN * 1.01;
	assert_worth(&e, TRUST_UPPER_BOUND, TRUST_MEASURED);
}

static void test_each_reason(void **state)
{
	const struct trust_evidence none = { .samples = 10 };
	struct trust_evidence e = none;

	(void)state;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED);
	e.fit_live = 2;
	e.fit_private = 1;
	assert_worth(&e, TRUST_UPPER_BOUND, TRUST_MEASURED);
	bool *const under[] = { &e.allocator_inside, &e.not_patched, &e.memory_unseen, &e.nothing_hooked };
	for (size_t i = 0; i < sizeof under / sizeof under[0]; i++) {
		e = none;
		*under[i] = true;
		assert_worth(&e, TRUST_LOWER_BOUND, TRUST_LOWER_BOUND);
		e.samples = 0;
		assert_worth(&e, TRUST_UNKNOWN, TRUST_UNKNOWN);
		/* Both directions: the live figures are neither. */
		e.samples = 10;
		e.fit_live = 2;
		assert_worth(&e, TRUST_UNKNOWN, TRUST_LOWER_BOUND);
	}
	e = none;
	e.hooks_lost = true; /* neither frees nor allocations are seen any more */
	assert_worth(&e, TRUST_UNKNOWN, TRUST_LOWER_BOUND);
	e = none;
	e.samples = 0;
	assert_worth(&e, TRUST_MEASURED, TRUST_MEASURED); /* an idle program */
}

/* A block whose free was missed at a second, when the next one was born at its address: live, or freed itself. */
static void missed(struct dump_builder *b, uint32_t stack, uint64_t later_size, bool later_freed, double second)
{
	uint64_t history = 0;

	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		history += dump_builder_header(b)->counters[i][DUMP_COUNTER_samples_freed];
	sample(b, stack, SIZE, RATE, second / 2, second);
	history_record(b, history)->flags = DUMP_HISTORY_FREE_MISSED;
	sample(b, stack, later_size, RATE, second, later_freed ? second + 0.5 : 0);
}

static void start(struct dump_builder *b)
{
	dump_builder_init(b, RATE, 2048, 8, 64);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
}

static struct trust_share share_of(struct dump_builder *b)
{
	struct report r;

	make(&r, b, (struct report_options){ 0 });
	struct trust_share share = r.trust.share;
	report_done(&r);
	return share;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Each pair counts 1 / (p_i p_j), with the size of the later block wherever its record is. */
static void test_pairs_are_found(void **state)
{
	double p = estimate_probability(SIZE, RATE);
	double q = estimate_probability(1000, RATE);

	(void)state;
	for (int freed = 0; freed < 2; freed++) {
		struct dump_builder b;
		start(&b);
		uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
		missed(&b, s, 1000, freed, 5);
		for (int i = 0; i < 100; i++)
			sample(&b, s, SIZE, RATE, 1, 2);
		struct trust_share share = share_of(&b);
		assert_int_equal(share.pairs, 1);
		double pair = SIZE / p / q;
		double seen = 100 * SIZE / p + (freed ? 1000 / q : 0);
		assert_true(is_near(share.value, pair / (pair + seen)));
		assert_true(share.low < share.value && share.value < share.high);
		/* The later record is gone: it is taken to be like the earlier one. */
		if (freed)
			history_record(&b, 1)->allocated_stamp++;
		else
			live_record(&b, 0)->stamp++;
		pair = SIZE / p / p;
		share = share_of(&b);
		assert_int_equal(share.pairs, 1);
		assert_true(is_near(share.value, pair / (pair + seen)));
		/* … unless it may have been given up: others stand for it. */
		dump_builder_header(&b)->thinnings = 1;
		dump_builder_rate(&b, &(struct dump_rate_change){ .reason = DUMP_RATE_FULL,
		                                                  .stamp = START,
		                                                  .old_bytes = RATE,
		                                                  .new_bytes = RATE,
		                                                  .thinned_bytes = RATE });
		assert_int_equal(share_of(&b).pairs, 0);
		dump_builder_done(&b);
	}
}

/* Exact sessions: the share is a fraction, with no interval. */
static void test_exact_share(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 8);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	for (int i = 0; i < 200; i++)
		sample(&b, s, 100, 1, 1, 2);
	sample(&b, s, 100, 1, 3, 0);
	for (int i = 0; i < 2; i++)
		history_record(&b, (uint64_t)i)->flags = DUMP_HISTORY_FREE_MISSED;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(is_near(r.trust.share.value, 0.01) && r.trust.share.low == r.trust.share.high);
	assert_int_equal(r.trust.live.value, TRUST_MEASURED); /* too few, too small a share */
	assert_says(text_of(&r), ".\n\n  trust      live and allocated figures are measured\n");
	assert_says(json_of(&r), "\"reasons\": []");
	report_done(&r);
	for (int i = 0; i < 20; i++)
		history_record(&b, (uint64_t)i)->flags = DUMP_HISTORY_FREE_MISSED;
	make(&r, &b, (struct report_options){ 0 });
	assert_true(is_near(r.trust.share.value, 0.1));
	assert_int_equal(r.trust.live.value, TRUST_UPPER_BOUND);
	assert_says(text_of(&r), "frees are not seen: 10.0 % of the bytes freed at reused addresses (20 samples)");
	report_done(&r);
	dump_builder_done(&b);
}

/* A stack whose old blocks become more all through the session: a leak, were its frees seen. */
static void grow_steadily(struct dump_builder *b, uint32_t stack)
{
	for (int i = 0; i < 200; i++)
		sample(b, stack, SIZE, RATE, 0.15 * i, 0);
}

static void test_upper_bound_is_no_leak(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	start(&b);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	grow_steadily(&b, s);
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_says(text_of(&r), "   LEAK   ");
	assert_says(json_of(&r), "\"leaks\":true");
	report_done(&r);
	for (int i = 0; i < 40; i++)
		missed(&b, s, SIZE, true, 4);
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_int_equal(r.trust.live.value, TRUST_UPPER_BOUND);
	assert_says_not(text_of(&r), "LEAK");
	assert_says(text_of(&r), "no verdict: frees are missed");
	assert_says(text_of(&r), "No stack is called a leak");
	assert_says_not(json_of(&r), "\"leaks\":true");
	assert_says(json_of(&r), "\"frees_missed\":true");
	report_done(&r);
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), ".\n\n  TRUST      live figures are an UPPER BOUND, allocated ones are measured\n");
	assert_says(text_of(&r), "   upper bound\n");
	assert_says(json_of(&r), "\"value\": \"upper_bound\"");
	assert_says(json_of(&r), "\"reason\":\"frees_missed\"");
	report_done(&r);
	/* Growth since a time, the same. */
	make(&r, &b, (struct report_options){ .since_ns = 1000000000 });
	assert_says(text_of(&r), "may be frees that were not seen");
	assert_says(text_of(&r), "No stack is called grown");
	assert_says_not(json_of(&r), "\"significant\": true");
	report_done(&r);
	/* What was allocated is not in doubt. */
	make(&r, &b, (struct report_options){ .since_ns = 1000000000, .sort = FIGURE_ALLOCATED_BYTES });
	assert_says(json_of(&r), "\"significant\": true");
	report_done(&r);
	dump_builder_done(&b);
}

/* One stack's frees are missed, a small part of all: its growth is no leak, that of another one is. */
static void test_one_stack_in_doubt(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	start(&b);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	uint32_t t = dump_builder_stack(&b, frames_b, 2, 0);
	grow_steadily(&b, s);
	grow_steadily(&b, t);
	for (int i = 0; i < 4000; i++)
		sample(&b, t, SIZE, RATE, 5, 5.1);
	for (int i = 0; i < 4; i++)
		missed(&b, s, SIZE, true, 4);
	make(&r, &b, (struct report_options){ .leaks = true });
	assert_int_equal(r.trust.live.value, TRUST_MEASURED);
	assert_true(row_with(&r, 0x400100)->doubtful && !row_with(&r, 0x400100)->grown);
	assert_true(!row_with(&r, 0x400300)->doubtful && row_with(&r, 0x400300)->grown);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_diff_in_doubt(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	start(&old);
	dump_builder_stack(&old, frames_a, 2, 0);
	start(&new);
	dump_builder_header(&new)->session_id = 77;
	uint32_t s = dump_builder_stack(&new, frames_a, 2, 0);
	grow_steadily(&new, s);
	compare(&r, &old, &new);
	assert_true(r.rows.list[0].grown && r.total.grown);
	report_done(&r);
	for (int i = 0; i < 40; i++)
		missed(&new, s, SIZE, true, 4);
	compare(&r, &old, &new);
	assert_true(!r.rows.list[0].grown && !r.total.grown && r.rows.list[0].doubtful);
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

/* 1000 blocks of 4 KiB need 4 MiB at least; more than the process has, and 4 MiB on top, is not possible. */
static void test_more_than_memory(void **state)
{
	struct dump_builder b;
	struct report r;
	static const struct {
		uint64_t private_bytes, size;
		uint32_t end;
		enum trust_value value;
	} cases[] = {
		{ 1 << 20, SIZE, DUMP_STATE_DETACHED, TRUST_UPPER_BOUND },
		{ 4 << 20, TRUST_FIT_MAX, DUMP_STATE_DETACHED, TRUST_MEASURED }, /* a page of each is enough */
		{ 80 << 20, SIZE, DUMP_STATE_DETACHED, TRUST_MEASURED },
		{ 1 << 20, SIZE, DUMP_STATE_EXITED, TRUST_MEASURED }, /* it may have grown after the last look */
		{ 0, SIZE, DUMP_STATE_DETACHED, TRUST_MEASURED },
		{ 1 << 20, TRUST_FIT_MAX + 1, DUMP_STATE_DETACHED, TRUST_MEASURED }, /* may never be touched */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		start(&b);
		uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
		for (int k = 0; k < 1000; k++)
			sample(&b, s, cases[i].size, RATE, 1, 0);
		dump_builder_header(&b)->private_start_bytes = cases[i].private_bytes;
		dump_builder_header(&b)->private_latest_bytes = cases[i].private_bytes;
		dump_builder_header(&b)->state = cases[i].end;
		make(&r, &b, (struct report_options){ 0 });
		assert_int_equal(r.trust.live.value, cases[i].value);
		if (cases[i].value == TRUST_UPPER_BOUND) {
			assert_says(text_of(&r), "of memory, the process has 1.00 MiB");
			assert_says(json_of(&r), "\"private_bytes\": 1048576");
		}
		report_done(&r);
		dump_builder_done(&b);
	}
}

static void test_note_of_lost_hooks(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	start(&b);
	dump_builder_note(&b, DUMP_NOTE_HOOKS_LOST, "a sentence");
	sample(&b, dump_builder_stack(&b, frames_a, 2, 0), SIZE, RATE, 1, 0);
	make(&r, &b, (struct report_options){ 0 });
	assert_says(text_of(&r), "the program has undone hooks");
	assert_says(text_of(&r), "a sentence");
	assert_says(json_of(&r), "\"kind\": \"hooks_lost\"");
	report_done(&r);
	dump_builder_done(&b);
}

static void test_notes(void **state)
{
	static const struct {
		uint32_t kind;
		const char *reason;
	} cases[] = { { DUMP_NOTE_STATIC, "allocator_inside" }, { DUMP_NOTE_NOT_PATCHED, "not_patched" } };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		start(&b);
		dump_builder_note(&b, cases[i].kind, "a sentence");
		make(&r, &b, (struct report_options){ 0 });
		assert_says(text_of(&r), ".\n\n  TRUST      live and allocated figures are UNKNOWN\n");
		assert_says(text_of(&r), "   unknown: see trust\n");
		report_done(&r);
		sample(&b, dump_builder_stack(&b, frames_a, 2, 0), SIZE, RATE, 1, 0);
		make(&r, &b, (struct report_options){ 0 });
		assert_says(text_of(&r), ".\n\n  TRUST      live and allocated figures are a LOWER BOUND\n");
		assert_says(text_of(&r), "   lower bound\n");
		assert_says(json_of(&r), cases[i].reason);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* Without a sample an idle program is told from one whose calls go elsewhere. */
static void test_no_sample(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	start(&b);
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.trust.live.value, TRUST_UNKNOWN);
	assert_says(json_of(&r), "nothing_hooked");
	report_done(&r);
	struct dump_module *m =
		dump_builder_at(&b, dump_builder_region(&b, DUMP_REGION_MODULES)->offset + sizeof(struct dump_arena));
	m->got_entries = 3;
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.trust.live.value, TRUST_MEASURED);
	report_done(&r);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 100 << 20;
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.trust.live.value, TRUST_UNKNOWN);
	assert_says(text_of(&r),
	            "private memory grew by 99.0 MiB, seen allocations explain 236 KiB at most (mmap by hand: "
	            "memattach --mmap)");
	report_done(&r);
	dump_builder_header(&b)->session_flags = DUMP_SESSION_MMAP;
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.trust.live.value, TRUST_UNKNOWN);
	assert_says(text_of(&r), "seen allocations explain 236 KiB at most\n");
	report_done(&r);
	dump_builder_done(&b);
}

/* Every call that was seen is recorded, but not all were seen. */
static void test_counted_is_not_exact(void **state)
{
	static const uint32_t bounds[] = { DUMP_NOTE_STATIC, DUMP_NOTE_HOOKS_LOST };
	struct dump_builder b;
	struct report r;

	(void)state;
	for (size_t i = 0; i < 2 + sizeof bounds / sizeof bounds[0]; i++) {
		dump_builder_init(&b, 1, 2048, 8, 64);
		dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
		if (i >= 2)
			dump_builder_note(&b, bounds[i - 2], "a sentence");
		uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
		for (int k = 0; k < 5; k++)
			sample(&b, s, SIZE, 1, 1, k ? 0 : 2);
		const enum group_by by = i & 1 ? BY_FUNCTION : BY_STACK;
		make(&r, &b, (struct report_options){ .by = by, .verbose = i & 1 });
		char *text = text_of(&r), *json = json_of(&r);
		assert_int_equal(strstr(text, "exact") != NULL, i < 2);
		assert_int_equal(strstr(text, "as counted") != NULL, i >= 2);
		assert_non_null(strstr(json, i < 2 ? "\"exact\": true" : "\"exact\": false"));
		assert_non_null(strstr(json, "\"complete\": true"));
		free(text);
		free(json);
		report_done(&r);
		dump_builder_done(&b);
	}
}

/* What was allocated and freed again may still be in the allocator's hands: such growth is seen. */
static void test_memory_that_the_allocator_keeps(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	start(&b);
	uint32_t s = dump_builder_stack(&b, frames_a, 2, 0);
	dump_builder_header(&b)->private_start_bytes = 1 << 20;
	dump_builder_header(&b)->private_latest_bytes = 33 << 20;
	for (int i = 0; i < 100; i++)
		sample(&b, s, SIZE, RATE, 1, 2); /* 6.5 MiB */
	make(&r, &b, (struct report_options){ 0 });
	assert_int_equal(r.trust.live.value, TRUST_LOWER_BOUND);
	assert_int_equal(r.trust.allocated.reasons, 1u << TRUST_MEMORY_UNSEEN);
	report_done(&r);
	for (int i = 0; i < 300; i++)
		sample(&b, s, SIZE, RATE, 1, 2); /* 26 MiB */
	make(&r, &b, (struct report_options){ 0 });
	assert_false(r.memory.mostly_unseen);
	assert_int_equal(r.memory.verdict, KERNEL_FREED);
	assert_int_equal(r.trust.live.value, TRUST_MEASURED);
	report_done(&r);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missed_frees_thresholds),
		cmocka_unit_test(test_each_reason),
		cmocka_unit_test(test_pairs_are_found),
		cmocka_unit_test(test_exact_share),
		cmocka_unit_test(test_upper_bound_is_no_leak),
		cmocka_unit_test(test_one_stack_in_doubt),
		cmocka_unit_test(test_diff_in_doubt),
		cmocka_unit_test(test_more_than_memory),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_note_of_lost_hooks),
		cmocka_unit_test(test_no_sample),
		cmocka_unit_test(test_counted_is_not_exact),
		cmocka_unit_test(test_memory_that_the_allocator_keeps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
