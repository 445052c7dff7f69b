/* SPDX-License-Identifier: MIT */
/* Counters, history and the descriptors of regions, as the hooks use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tables/counters.h"
#include "tables/history.h"
#include "tables/regions.h"
#include "tables_fixture.h"
#include "thread_state.h"

/* The first threads get rows of their own; all others share, and what is added together is the same. */
static void test_counters_add_up_over_the_rows(void **state)
{
	struct thread_state threads[2 * DUMP_COUNTER_SHARDS];
	uint32_t owned = 0;

	(void)state;
	memset(threads, 0, sizeof(threads));
	for (uint32_t i = 0; i < 2 * DUMP_COUNTER_SHARDS; i++) {
		struct counter_row row;

		thread_state_equip(&threads[i], 1);
		thread_state_equip(&threads[i], 1);
		row = counter_row(&threads[i], 0x1000ull * i);
		owned += row.owned;
		assert_true(row.words >= payload.dump->counters[row.owned ? COUNTER_ROWS_SHARED : 0]);
		assert_true(row.words < payload.dump->counters[row.owned ? DUMP_COUNTER_SHARDS : COUNTER_ROWS_SHARED]);
		counter_add(&row, DUMP_COUNTER_samples_taken, i);
	}
	assert_int_equal(owned, DUMP_COUNTER_SHARDS - COUNTER_ROWS_SHARED);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken),
	                 (2 * DUMP_COUNTER_SHARDS - 1) * DUMP_COUNTER_SHARDS);
}

static void test_history_append_wraps(void **state)
{
	struct thread_state thread = { 0 };
	struct dump_live_record record = record_of(0x1000);
	struct counter_row counters = counter_row(NULL, 0);
	uint64_t n = 4 * DUMP_HISTORY_RECORDS + 10;
	struct dump_history_record past;

	(void)state;
	history_append(&thread, &counters, &record, 5, 0);
	history_append(NULL, &counters, &record, 5, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_history), 2);
	fixture_region(&fixture, DUMP_REGION_HISTORY, 3 * 4096, 3);
	regions_refresh();
	for (uint64_t i = 0; i < n; i++) {
		record.size = i;
		history_append(&thread, &counters, &record, 100 + i, DUMP_HISTORY_FREE_MISSED);
	}
	assert_int_equal(fixture.dump->history_next, 5);
	assert_int_equal(fixture_history_count(&fixture), 2 * DUMP_HISTORY_RECORDS + 10);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_history), 2 + 2 * DUMP_HISTORY_RECORDS);
	assert_true(fixture_history(&fixture, 0, &past)); /* block 3 is in place 0 */
	assert_int_equal(past.size, 3 * DUMP_HISTORY_RECORDS);
	assert_int_equal(past.freed_stamp, 100 + 3 * DUMP_HISTORY_RECORDS);
	assert_int_equal(past.flags, DUMP_HISTORY_FREE_MISSED);
}

static void test_history_append_leaves_a_block_that_was_overtaken(void **state)
{
	struct thread_state slow = { 0 }, fast = { 0 };
	struct counter_row counters = counter_row(NULL, 0);
	struct dump_live_record record = record_of(0x1000);

	(void)state;
	fixture_region(&fixture, DUMP_REGION_HISTORY, 2 * 4096, 2);
	regions_refresh();
	history_append(&slow, &counters, &record, 1, 0);
	for (unsigned i = 0; i < 2 * DUMP_HISTORY_RECORDS; i++)
		history_append(&fast, &counters, &record, 2, 0);
	history_append(&slow, &counters, &record, 3, 0);
	assert_int_equal(fixture.dump->history_next, 4);
	assert_int_not_equal(slow.history_page, 0);
}

static void hostile(uint32_t kind, uint64_t offset, uint64_t bytes, uint64_t entries)
{
	uint32_t n = fixture.dump->region_count;

	fixture.dump->regions[n] =
		(struct dump_region){ .kind = kind, .offset = offset, .bytes = bytes, .entries = entries };
	fixture.dump->region_count = n + 1;
}

static void test_regions_refresh_refuses_hostile_descriptors(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 12; kind++) {
		hostile(kind, 0, 4096, 8);                     /* the header */
		hostile(kind, DUMP_HEADER_BYTES + 1, 4096, 8); /* not aligned */
		hostile(kind, DUMP_HEADER_BYTES, 4095, 8);
		hostile(kind, DUMP_HEADER_BYTES, 0, 0);     /* empty */
		hostile(kind, FIXTURE_DUMP_BYTES, 4096, 8); /* after the end */
		hostile(kind, FIXTURE_DUMP_BYTES - 4096, 8192, 8);
		hostile(kind, UINT64_MAX - 4095, 8192, 8); /* wraps */
		hostile(kind, DUMP_HEADER_BYTES, UINT64_MAX - 4095, 8);
	}
	hostile(DUMP_REGION_LIVE, DUMP_HEADER_BYTES, 4096, 128);         /* 128 entries need 6272 bytes */
	hostile(DUMP_REGION_LIVE, DUMP_HEADER_BYTES, 65536, 24);         /* no power of two */
	hostile(DUMP_REGION_LIVE, DUMP_HEADER_BYTES, 65536, 4);          /* less than a bucket */
	hostile(DUMP_REGION_LIVE, DUMP_HEADER_BYTES, 65536, 1ull << 62); /* the product wraps */
	hostile(DUMP_REGION_STACK_INDEX, DUMP_HEADER_BYTES, 4096, 1024);
	hostile(DUMP_REGION_HISTORY, DUMP_HEADER_BYTES, 4096, 2);
	hostile(DUMP_REGION_HISTORY, DUMP_HEADER_BYTES, 4096, 0);
	regions_refresh();
	assert_int_equal(regions_count(REGIONS_LIVE), 0);
	assert_int_equal(regions_count(REGIONS_STACK_INDEX), 0);
	assert_int_equal(regions_count(REGIONS_STACKS), 0);
	assert_int_equal(regions_count(REGIONS_HISTORY), 0);
	fixture_region(&fixture, DUMP_REGION_LIVE, 4096, 8);
	fixture.dump->region_count = UINT32_MAX;
	regions_refresh();
	assert_int_equal(regions_count(REGIONS_LIVE), 1);
	assert_null(regions_stack(0));
	assert_null(regions_stack(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_counters_add_up_over_the_rows),
		SESSION_TEST(test_history_append_wraps),
		SESSION_TEST(test_history_append_leaves_a_block_that_was_overtaken),
		SESSION_TEST(test_regions_refresh_refuses_hostile_descriptors),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
