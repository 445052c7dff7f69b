/* SPDX-License-Identifier: MIT */
/* The reader on dumps that are whole, of each state, of other versions, or still being written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_tally.h"

static void test_whole_dump(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 20 + 5 + 1 + 1);
	assert_int_equal(t.live_bytes, 20 * 4096 + 5 * 100 + (8 << 20) + 64);
	assert_int_equal(t.history, 10);
	assert_int_equal(t.stacks, 3);
	assert_int_equal(t.frames, 5);
	assert_int_equal(t.modules, 2);
	assert_int_equal(t.threads, 1);
	assert_int_equal(t.notes, 1);
	assert_string_equal(t.text, "an allocator inside /usr/lib/libodd.so is not seen");
	assert_true(dump_complete(o.dump));
	assert_int_equal(dump_end(o.dump), DUMP_END_DETACHED);
	assert_string_equal(dump_header(o.dump)->command, "leaky");
	/* Counters are spread over the shards. */
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_samples_taken), 37);
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_samples_freed), 10);
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_stacks_truncated), 6);
	assert_int_equal(dump_duration_ns(o.dump), 30000000000ull);
	assert_int_equal(dump_stamp_realtime_ns(o.dump, 1000000), dump_header(o.dump)->clock_start.realtime_ns);
	close_opened(&o);
	dump_builder_done(&b);
}

/* The index serves the recorder: without it stacks are found one behind the other. */
static void test_stacks_without_an_index(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 1);
	for (uint32_t n = 1; n <= 3; n++)
		dump_builder_stack(&b, (const uint64_t[]){ DUMP_FRAME(1, 0x1000), DUMP_FRAME(1, n), DUMP_FRAME(1, 9) },
		                   n, 0);
	dump_builder_region(&b, DUMP_REGION_STACK_INDEX)->kind = 0xffff;
	struct opened o = open_built(&b);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.stacks, 3);
	assert_int_equal(t.frames, 1 + 2 + 3);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_several_regions_of_each_kind(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 3);
	uint32_t s = dump_builder_stack(&b, (const uint64_t[]){ DUMP_FRAME(1, 0x1000) }, 1, 0);
	for (int i = 0; i < 8; i++)
		dump_builder_sample(&b, s, 100, 1, 1);
	for (int i = 0; i < 200; i++) /* three blocks of history */
		dump_builder_sample(&b, s, 10, 1, 0);
	/* Another level of the live table at the end of the file. */
	size_t at = b.size;
	dump_builder_add(&b, DUMP_REGION_LIVE, DUMP_REGION_ALIGN, 32);
	struct dump_header *h = dump_builder_header(&b);
	h->regions[h->region_count - 1].serial = 1;
	struct dump_live_record *records = dump_builder_at(&b, at + DUMP_LIVE_RECORDS_AT(32u));
	records[31] = (struct dump_live_record){ .address = 0x5000, .size = 7, .stack = s, .rate_bytes = 1 };
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 9);
	assert_int_equal(t.live_bytes, 807);
	assert_int_equal(t.history, 200);
	assert_true(t.bytes == 2800); /* rate 1: sums are exact */
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_busy_and_torn_keys(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 0);
	uint32_t s = dump_builder_stack(&b, NULL, 0, 0);
	for (int i = 0; i < 10; i++)
		dump_builder_sample(&b, s, 100, 1, 1);
	struct dump_live_record *records = dump_builder_live(&b, 0);
	records[0].address = DUMP_KEY_BUSY; /* its writer died */
	records[1].address = DUMP_KEY_FREE; /* an old record stays after */
	records[2].address |= DUMP_KEY_GIVEN_UP;
	records[3].size = UINT64_MAX;
	records[4].rate_bytes = 0;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 5);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_busy), 1);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_live), 2);
	assert_false(dump_complete(o.dump));
	close_opened(&o);

	/* A busy key alone is what a dump of a running target always may have. */
	for (int i = 2; i < 5; i++)
		records[i].address = DUMP_KEY_FREE;
	o = open_built(&b);
	t = read_all(o.dump);
	assert_int_equal(t.live, 5);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_states(void **state)
{
	static const struct {
		uint32_t state;
		int lease; /* seconds from now */
		enum dump_end end;
	} cases[] = {
		{ DUMP_STATE_RUNNING, 60, DUMP_END_RUNNING },    { DUMP_STATE_RUNNING, -60, DUMP_END_ABANDONED },
		{ DUMP_STATE_PREPARING, 60, DUMP_END_RUNNING },  { DUMP_STATE_ABANDONED, 60, DUMP_END_ABANDONED },
		{ DUMP_STATE_DETACHED, -60, DUMP_END_DETACHED }, { DUMP_STATE_EXITED, -60, DUMP_END_EXITED },
		{ DUMP_STATE_KILLED, -60, DUMP_END_KILLED },     { DUMP_STATE_EXECED, -60, DUMP_END_EXITED },
	};
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct dump_header *h = dump_builder_header(&b);
		h->state = cases[i].state;
		h->lease_realtime_ns = (uint64_t)(time(NULL) + cases[i].lease) * 1000000000u;
		struct opened o = open_built(&b);
		assert_int_equal(o.status, 0);
		assert_int_equal(dump_end(o.dump), cases[i].end);
		close_opened(&o);
	}
	dump_builder_done(&b);
}

static void test_foreign_and_future_files(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	const struct dump_header saved = *h;

	h->magic[0] = 'X';
	struct opened o = open_built(&b);
	assert_int_equal(o.status, -EPROTO);
	close_opened(&o);
	*h = saved;
	h->version = DUMP_VERSION + 1;
	o = open_built(&b);
	assert_int_equal(o.status, -ENOTSUP);
	assert_non_null(strstr(o.error.text, "newer"));
	close_opened(&o);
	*h = saved;
	h->version = DUMP_VERSION - 1;
	o = open_built(&b);
	assert_int_equal(o.status, -ENOTSUP);
	assert_non_null(strstr(o.error.text, "older"));
	close_opened(&o);
	*h = saved;
	for (int bit = 4; bit < 64; bit++) {
		h->features |= 1ull << bit;
		o = open_built(&b);
		assert_int_equal(o.status, -ENOTSUP);
		assert_non_null(strstr(o.error.text, "unknown features"));
		close_opened(&o);
		*h = saved;
	}
	h->version = 0;
	o = open_built(&b);
	assert_int_equal(o.status, -EPROTO);
	close_opened(&o);
	dump_builder_done(&b);

	struct dump *dump;
	struct err e;
	assert_int_equal(dump_open("/nonexistent/dump", &dump, &e), -ENOENT);
	assert_int_equal(dump_open("/", &dump, &e), -EISDIR);
	assert_int_equal(dump_open("/dev/null", &dump, &e), -ESPIPE); /* is not opened */
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(dump_open_fd(pipe_fds[0], &dump, &e), -ESPIPE);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static int on_change(void *arg, const struct dump_rate_change *change)
{
	uint64_t *sum = arg;

	*sum += change->new_bytes - change->old_bytes;
	return 0;
}

static void test_changes_of_the_rate(void **state)
{
	struct dump_builder b;
	uint64_t sum = 0;

	(void)state;
	dump_builder_init(&b, 1000, 8, 16, 0);
	for (uint64_t rate = 1000; rate < 16000; rate *= 2)
		dump_builder_rate(&b, &(struct dump_rate_change){
					      .reason = DUMP_RATE_COSTLY, .old_bytes = rate, .new_bytes = 2 * rate });
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	assert_int_equal(dump_each_rate(o.dump, on_change, &sum), 0);
	assert_int_equal(sum, 15000);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	/* One that cannot be is left out and said. */
	dump_builder_rate(&b, &(struct dump_rate_change){ .old_bytes = 0, .new_bytes = 1ull << 40 });
	sum = 0;
	o = open_built(&b);
	assert_int_equal(dump_each_rate(o.dump, on_change, &sum), 0);
	assert_int_equal(sum, 15000);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_rate), 1);
	close_opened(&o);
	dump_builder_done(&b);
}

/* What a later memattach adds is passed over, and is no damage. */
static void test_region_of_a_later_kind(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	for (uint32_t i = 0; i < h->region_count; i++)
		if (h->regions[i].kind == DUMP_REGION_RATES)
			h->regions[i].kind = 77;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 27);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_dump),
		cmocka_unit_test(test_stacks_without_an_index),
		cmocka_unit_test(test_several_regions_of_each_kind),
		cmocka_unit_test(test_changes_of_the_rate),
		cmocka_unit_test(test_region_of_a_later_kind),
		cmocka_unit_test(test_busy_and_torn_keys),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_foreign_and_future_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
