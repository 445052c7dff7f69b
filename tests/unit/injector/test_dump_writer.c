/* SPDX-License-Identifier: MIT */
/* Room in the dump: made before it is needed, never beyond the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_writer.h"

static struct dump_writer writer;
static char directory[] = "/tmp/test_dump_writer-XXXXXX";
static char path[64];

static void open_writer(uint64_t rate, uint64_t max_bytes)
{
	const struct dump_writer_options options = { .path = path, .max_bytes = max_bytes, .rate_bytes = rate };
	struct err e = { 0 };

	assert_int_equal(dump_writer_create(&writer, &options, &e), 0);
}

static int discard_writer(void **state)
{
	(void)state;
	dump_writer_discard(&writer);
	return 0;
}

struct room {
	uint64_t entries, largest; /* of the index */
	uint64_t stored, left;     /* bytes of stacks */
};

static struct room room(void)
{
	const struct dump_header *h = writer.header;
	struct room r = { 0 };

	for (uint32_t i = 0; i < h->region_count; i++) {
		const struct dump_region *region = &h->regions[i];
		if (region->kind == DUMP_REGION_STACK_INDEX) {
			r.entries += region->entries;
			r.largest = region->entries > r.largest ? region->entries : r.largest;
		} else if (region->kind == DUMP_REGION_STACKS) {
			const struct dump_arena *arena = (const void *)((const char *)h + region->offset);
			r.stored += arena->used;
			r.left += region->bytes - sizeof *arena - arena->used;
		}
	}
	return r;
}

/* As the payload does: out of the oldest arena that has room. */
static bool store(uint64_t bytes)
{
	const struct dump_header *h = writer.header;

	for (uint32_t i = 0; i < h->region_count; i++) {
		const struct dump_region *region = &h->regions[i];
		struct dump_arena *arena = (void *)((char *)writer.header + region->offset);
		if (region->kind == DUMP_REGION_STACKS && arena->used + bytes <= region->bytes - sizeof *arena) {
			arena->used += bytes;
			return true;
		}
	}
	return false;
}

/* A new stack must find a free key in its bucket of some level, and room for its record. */
static void test_writer_makes_room_for_stacks_ahead(void **state)
{
	struct err e;

	open_writer(*(const uint64_t *)*state, 1u << 30);
	for (uint64_t stored = 0; stored < 1000000; stored++) {
		assert_true(store(128));
		if (stored % 512 != 0)
			continue;
		assert_int_equal(dump_writer_grow(&writer, &e), 0);
		struct room r = room();
		assert_true(r.left >= (r.stored < 64u << 20 ? r.stored / 4 : 16u << 20));
		assert_true(stored <= r.entries / 4);
		assert_true(r.largest < r.entries); /* more than one level */
	}
}

static void test_writer_fills_what_is_left_with_stacks(void **state)
{
	uint64_t limit = 32u << 20, stored = 0;
	struct stat st;
	struct err e;
	int fails = 0;

	(void)state;
	open_writer(1, limit);
	while (store(192)) {
		if (stored++ % 64 == 0 && dump_writer_grow(&writer, &e) < 0) {
			assert_non_null(strstr(e.text, "--max-size"));
			fails++;
		}
	}
	assert_true(fails >= 1 && fails <= 4); /* each kind says it once */
	assert_true(room().stored > limit / 2);
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_size <= limit);
	assert_true(writer.header->region_count < DUMP_REGION_MAX / 2);
}

/* Nobody records any more when the payload has found the lease run out, so the session is no longer for all that memattach lives on. */
static void test_writer_renews_no_lease_that_ran_out(void **state)
{
	struct dump_header *h;

	(void)state;
	open_writer(1, 32u << 20);
	h = writer.header;
	dump_writer_set_state(&writer, DUMP_STATE_RUNNING, 0);
	dump_writer_renew(&writer, 1000000000);
	const struct dump_clock last = h->clock_latest;
	const uint64_t lease = h->lease_stamp;
	assert_true(last.monotonic_ns > h->clock_start.monotonic_ns && lease > last.stamp);
	h->state = DUMP_STATE_ABANDONED;
	dump_writer_renew(&writer, 1000000000);
	assert_memory_equal(&h->clock_latest, &last, sizeof last);
	assert_true(h->lease_stamp == lease);
	h->state = DUMP_STATE_RUNNING;
	dump_writer_renew(&writer, 1000000000);
	assert_true(h->clock_latest.monotonic_ns > last.monotonic_ns && h->lease_stamp != lease);
}

int main(void)
{
	static uint64_t rates[] = { 1, 512 << 10 };
	const struct CMUnitTest tests[] = {
		{ "test_writer_makes_room_for_stacks_ahead, rate 1", test_writer_makes_room_for_stacks_ahead, NULL, discard_writer, &rates[0] },
		{ "test_writer_makes_room_for_stacks_ahead, rate 512k", test_writer_makes_room_for_stacks_ahead, NULL, discard_writer, &rates[1] },
		cmocka_unit_test_teardown(test_writer_fills_what_is_left_with_stacks, discard_writer),
		cmocka_unit_test_teardown(test_writer_renews_no_lease_that_ran_out, discard_writer),
	};

	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof path, "%s/dump", directory);
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return rc;
}
