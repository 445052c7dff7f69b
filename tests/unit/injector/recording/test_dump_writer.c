/* SPDX-License-Identifier: MIT */
/* Room in the dump: made before it is needed, never beyond the limit. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/dump_writer.h"
#include "recording/session_share.h"

static struct dump_writer writer;

static void open_writer(uint64_t rate, uint64_t max_bytes)
{
	const struct dump_writer_options options = { .max_bytes = max_bytes, .rate_bytes = rate };
	struct err e = { 0 };

	assert_int_equal(dump_writer_create(&writer, &options, &e), 0);
}

static int close_writer(void **state)
{
	(void)state;
	dump_writer_close(&writer);
	return 0;
}

struct room {
	uint64_t entries, largest; /* of the index */
	uint64_t stored, left;     /* bytes of stacks */
};

static struct room room(void)
{
	const struct dump_header *h = writer.shared;
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
	const struct dump_header *h = writer.shared;

	for (uint32_t i = 0; i < h->region_count; i++) {
		const struct dump_region *region = &h->regions[i];
		struct dump_arena *arena = (void *)((char *)writer.shared + region->offset);
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
	assert_int_equal(fstat(writer.fd, &st), 0);
	assert_true((uint64_t)st.st_size <= limit && (uint64_t)st.st_blocks * 512 <= limit && writer.used <= limit);
	assert_true(writer.shared->region_count < DUMP_REGION_MAX / 2);
}

/* Nobody records any more when the payload has found the lease run out, so the session is no longer for all that
 * memattach lives on. */
static void test_writer_renews_no_lease_that_ran_out(void **state)
{
	struct dump_header *h;

	(void)state;
	open_writer(1, 32u << 20);
	h = writer.shared;
	dump_writer_set_state(&writer, DUMP_STATE_RUNNING, 0);
	dump_writer_renew(&writer, 1000000000);
	const struct dump_clock last = h->clock_latest;
	const uint64_t lease = h->lease_stamp;
	assert_true(last.monotonic_ns > h->clock_start.monotonic_ns && lease > last.stamp);
	h->state = DUMP_STATE_ABANDONED;
	dump_writer_renew(&writer, 1000000000);
	assert_memory_equal(&h->clock_latest, &last, sizeof last);
	assert_true(h->lease_stamp == lease);
	const uint64_t recorded_ns = dump_writer_end_with_lease(&writer);
	assert_int_equal(recorded_ns, last.monotonic_ns - h->clock_start.monotonic_ns + 1000000000);
	assert_true(h->clock_latest.stamp == lease && h->clock_latest.realtime_ns == h->lease_realtime_ns);
	assert_int_equal(h->clock_latest.monotonic_ns, last.monotonic_ns + 1000000000);
	h->state = DUMP_STATE_RUNNING;
	dump_writer_renew(&writer, 1000000000);
	assert_true(h->clock_latest.monotonic_ns > last.monotonic_ns && h->lease_stamp != lease);
}

static uint64_t random_word(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* What the target can do to the memory: any word of it, at any time. */
static void scribble(uint64_t *state)
{
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t value = random_word(state), *words = (uint64_t *)writer.shared;
		uint64_t region = random_word(state) % (writer.own->region_count + 1);
		uint64_t at = region < writer.own->region_count ? writer.own->regions[region].offset / 8 : 0;
		words[at + random_word(state) % 512] = random_word(state) % 3 ? value : value & 0xffff;
	}
}

/* Whatever the target writes, regions stay what memattach has made, and nothing beyond the limit is touched (the
 * sanitizers see that). */
static void test_writer_believes_nothing_of_the_target(void **state)
{
	const uint64_t limit = 16u << 20;
	uint64_t random = 88172645463325252ull;
	char name[] = "/lib/x.so";
	struct elf_module module = { .id = 1, .start = 4096, .end = 8192, .path = name };
	struct dump_region before[DUMP_REGION_MAX];
	struct err e;

	(void)state;
	open_writer(65536, limit);
	dump_writer_set_state(&writer, DUMP_STATE_RUNNING, 0);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t count = writer.own->region_count;
		const struct dump_rate_change change = {
			.stamp = i, .old_bytes = 65536, .new_bytes = 65536, .reason = DUMP_RATE_COSTLY
		};
		memcpy(before, writer.own->regions, sizeof before);
		scribble(&random);
		if (dump_writer_grow(&writer, &e) < 0)
			assert_int_equal(e.code, ENOSPC);
		dump_writer_renew(&writer, 1000000000);
		dump_writer_unkept(&writer, &(struct dump_live_record){ .stack = (uint32_t)random_word(&random) });
		dump_writer_live(&writer);
		module.id = i + 1;
		if (dump_writer_module(&writer, &module, 1, 1, 0, &e) < 0 ||
		    dump_writer_note(&writer, DUMP_NOTE_OTHER, "a note", &e) < 0 ||
		    dump_writer_thread(&writer, i, "thread", &e) < 0 || dump_writer_rate(&writer, &change, &e) < 0)
			assert_int_equal(e.code, ENOSPC);
		if (i % 2)
			dump_writer_module_gone(&writer, i);
		assert_true(dump_writer_rate_changes_left(&writer) <= 4096);
		assert_memory_equal(before, writer.own->regions, count * sizeof before[0]);
		assert_true(writer.used <= limit);
		assert_int_equal(writer.own->rate_bytes, 65536);
	}
}

/* The descriptor that the target gets allows nothing that could raise SIGBUS here or there. */
static void test_writer_seals_its_memory(void **state)
{
	(void)state;
	open_writer(65536, 16u << 20);
	assert_int_equal(ftruncate(writer.fd, 0), -1);
	assert_int_equal(ftruncate(writer.fd, 32u << 20), -1);
	assert_int_equal(fallocate(writer.fd, 0, 16u << 20, 4096), -1);
	assert_int_equal(pwrite(writer.fd, "x", 1, 16u << 20), -1);
	assert_int_equal(fcntl(writer.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	/* A hole can be punched; it is memory again as soon as it is touched. */
	assert_int_equal(fallocate(writer.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, DUMP_HEADER_BYTES), 0);
	dump_writer_renew(&writer, 1000000000);
	assert_int_equal(writer.shared->region_count, 0);
	assert_true(writer.own->region_count > 0);
}

#define SHARED_MAX 64u

/* Many dumps out of one room: none takes what is not there, and one that grows leaves what is kept back for others. */
static void test_share_bounds_all_dumps(void **state)
{
	(void)state;
	const int64_t all = 8 << 20;
	struct shared_room room = { .left = all, .kept_back = all / 2 };
	static struct session_share shares[SHARED_MAX];
	struct dump_writer writers[SHARED_MAX];
	uint64_t taken = 0;
	struct err e = { 0 };
	unsigned count = 0;

	for (int rc = 0; count < SHARED_MAX; count++) {
		shares[count].room = &room;
		const struct dump_writer_options options = { .max_bytes = 1u << 30,
			                                     .rate_bytes = 512u << 10,
			                                     .share = &shares[count] };
		rc = dump_writer_create(&writers[count], &options, &e);
		if (rc < 0) {
			assert_int_equal(rc, -ENOMEM);
			break;
		}
		assert_int_equal(shares[count].bytes, writers[count].allocated);
		taken += writers[count].allocated;
	}
	assert_in_range(count, 4, SHARED_MAX - 1);
	assert_true(taken <= (uint64_t)all);
	dump_writer_count(&writers[0], DUMP_COUNTER_samples_taken, 1000000);
	uint64_t before = writers[0].allocated;
	assert_int_equal(dump_writer_grow(&writers[0], &e), -ENOMEM);
	assert_int_equal(writers[0].allocated, before);
	room.left = all; /* as when others have ended */
	writers[0].short_until_ns = 1;
	assert_int_equal(dump_writer_grow(&writers[0], &e), 0);
	assert_true(writers[0].allocated > before);
	for (unsigned i = 0; i < count; i++)
		dump_writer_close(&writers[i]);
}

int main(void)
{
	static uint64_t rates[] = { 1, 512 << 10 };
	const struct CMUnitTest tests[] = {
		{ "test_writer_makes_room_for_stacks_ahead, rate 1", test_writer_makes_room_for_stacks_ahead, NULL,
		  close_writer, &rates[0] },
		{ "test_writer_makes_room_for_stacks_ahead, rate 512k", test_writer_makes_room_for_stacks_ahead, NULL,
		  close_writer, &rates[1] },
		cmocka_unit_test_teardown(test_writer_fills_what_is_left_with_stacks, close_writer),
		cmocka_unit_test_teardown(test_writer_renews_no_lease_that_ran_out, close_writer),
		cmocka_unit_test_teardown(test_writer_believes_nothing_of_the_target, close_writer),
		cmocka_unit_test_teardown(test_writer_seals_its_memory, close_writer),
		cmocka_unit_test(test_share_bounds_all_dumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
