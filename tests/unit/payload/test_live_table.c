/* SPDX-License-Identifier: MIT */
/* The live table, alone and by many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tables/filter.h"
#include "trampoline_setup.h"
#include "tables/live_table.h"
#include "tables/regions.h"
#include "tables_fixture.h"

static bool insert(const struct dump_live_record *record)
{
	struct live_entry entry;
	enum live_reserved reserved = live_table_reserve(record->address, &entry);

	assert_int_not_equal(reserved, LIVE_PRESENT);
	if (reserved == LIVE_RESERVED)
		live_table_publish(&entry, record);
	return reserved == LIVE_RESERVED;
}

static void test_live_table_insert_and_take(void **state)
{
	struct dump_live_record record = record_of(0x1000), seen;
	struct live_entry entry;

	(void)state;
	assert_false(insert(&record)); /* no region yet */
	fixture_regions(&fixture);
	regions_refresh();
	assert_true(insert(&record));
	assert_true(filter_maybe(0x1000));
	assert_true(fixture_live(&fixture, (void *)0x1000, &seen));
	assert_memory_equal(&seen, &record, sizeof(seen));
	assert_false(live_table_take(0x2000, &entry));
	assert_false(live_table_take(0, &entry));
	assert_false(live_table_take(1, &entry));
	assert_true(live_table_take(0x1000, &entry));
	assert_false(fixture_live(&fixture, (void *)0x1000, &seen));
	assert_false(live_table_take(0x1000, &entry));
	live_table_put_back(&entry);
	assert_true(fixture_live(&fixture, (void *)0x1000, &seen));
	assert_true(live_table_take(0x1000, &entry));
	live_table_drop(&entry);
	assert_false(filter_maybe(0x1000));
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* As memattach does it from outside. */
static void give_up(uint64_t address)
{
	for (uint32_t i = 0; i < fixture.dump->region_count; i++) {
		const struct dump_region *region = &fixture.dump->regions[i];
		uint8_t *tags = (uint8_t *)fixture.dump + region->offset;
		struct dump_live_record *records = (void *)(tags + DUMP_LIVE_RECORDS_AT(region->entries));

		for (uint64_t k = 0; region->kind == DUMP_REGION_LIVE && k < region->entries; k++)
			if (records[k].address == address) {
				tags[k] = 0;
				records[k].address |= DUMP_KEY_GIVEN_UP;
			}
	}
}

/* The filter forgets a sample that was given up when its place is taken, or when its block is freed. */
static void test_live_table_forgets_what_was_given_up(void **state)
{
	struct dump_live_record record = record_of(0x1000);
	struct live_entry entry;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	assert_true(insert(&record));
	give_up(0x1000);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_true(filter_maybe(0x1000));
	fixture.dump->thinnings = 1;
	assert_false(live_table_take(0x1000, &entry));
	assert_false(filter_maybe(0x1000));
	/* At its address another block is sampled. */
	assert_true(insert(&record));
	give_up(0x1000);
	assert_true(insert(&record));
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_true(live_table_take(0x1000, &entry));
	live_table_drop(&entry);
	assert_false(filter_maybe(0x1000));
	/* Others find room where it stood, however many they are; the filter knows no more than the table has places.
	 */
	uint64_t known = 0;
	for (uint64_t a = 1; a <= 20000; a++) {
		assert_true(insert(&(struct dump_live_record){ .address = a << 4 }));
		give_up(a << 4);
	}
	for (uint64_t a = 1; a <= 20000; a++)
		known += filter_maybe(a << 4);
	assert_true(known < 20000);
}

static void test_live_table_insert_finds_what_is_present(void **state)
{
	struct dump_live_record first = record_of(0x1000), second = record_of(0x1000);
	struct live_entry present;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	second.size = 5;
	assert_true(insert(&first));
	assert_int_equal(live_table_reserve(second.address, &present), LIVE_PRESENT);
	assert_int_equal(present.address, first.address);
	assert_int_equal(present.record->size, first.size);
	live_table_drop(&present);
	assert_true(insert(&second));
	assert_int_equal(fixture_live_count(&fixture), 1);
}

static void test_live_table_hides_what_is_about_to_go(void **state)
{
	struct dump_live_record first = record_of(0x1000), second = record_of(0x1000);
	struct live_entry hidden, found;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	second.size = 5;
	assert_false(live_table_hide(0x1000, &hidden));
	assert_true(insert(&first));
	assert_true(live_table_hide(0x1000, &hidden));
	assert_false(live_table_hide(0x1000, &found));
	assert_false(live_table_take(0x1000, &found));
	assert_int_equal(fixture_live_count(&fixture), 1); /* for readers it is there still */
	assert_true(insert(&second));
	assert_int_equal(fixture_live_count(&fixture), 2);
	assert_true(live_table_take_hidden(&hidden));
	assert_int_equal(hidden.record->size, first.size);
	live_table_drop(&hidden);
	assert_true(live_table_take(0x1000, &found));
	assert_int_equal(found.record->size, second.size);
	live_table_drop(&found);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* memattach may have the record in its hands when the block is freed: it gives it up, or puts it back, and then it must
 * not be lost. */
static void test_live_table_hides_what_memattach_holds(void **state)
{
	struct dump_live_record record = record_of(0x1000);
	struct live_entry hidden, found;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	assert_true(insert(&record));
	assert_true(live_table_hide(0x1000, &hidden));
	hidden.record->address = DUMP_KEY_BUSY;
	assert_false(live_table_take_hidden(&hidden));
	hidden.record->address = 0x1000;
	assert_true(live_table_take(0x1000, &found));
	live_table_put_back(&found);
	assert_true(live_table_hide(0x1000, &hidden));
	give_up(0x1000);
	assert_false(live_table_take_hidden(&hidden));
	assert_int_equal(*hidden.tag, 0);
}

static void test_live_table_fills_its_levels(void **state)
{
	struct live_entry entry;
	uint64_t stored = 0, after;

	(void)state;
	fixture_region(&fixture, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(8u), 8);
	regions_refresh();
	for (uint64_t a = 1; a <= 20; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored += insert(&record);
	}
	assert_int_equal(stored, 8);
	fixture_region(&fixture, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(64u), 64);
	regions_refresh();
	for (uint64_t a = 21; a <= 40; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored += insert(&record);
	}
	assert_true(stored > 20);
	assert_int_equal(fixture_live_count(&fixture), stored);
	after = stored;
	for (uint64_t a = 1; a <= 40; a++) {
		if (!live_table_take(a * 64, &entry))
			continue;
		assert_int_equal(entry.record->size, a * 64 * 3);
		live_table_drop(&entry);
		after--;
	}
	assert_int_equal(after, 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* A session that begins with all levels, as those of memattach do. */
static int open_session_with_levels(void **state)
{
	(void)state;
	fixture_open(&fixture, 64, "/proc/self/exe");
	for (uint64_t entries = 8; entries <= 32; entries *= 2)
		fixture_region(&fixture, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(entries), entries);
	assert_int_equal(memattach_control(CONTROL_START, &fixture.start), 0);
	return 0;
}

static void assert_takes(uint64_t address)
{
	struct live_entry entry;

	assert_true(live_table_take(address, &entry));
	assert_int_equal(entry.address, address);
	assert_int_equal(entry.record->size, 3 * address);
	live_table_drop(&entry);
	assert_false(live_table_take(address, &entry));
}

static void test_live_table_finds_what_had_no_room(void **state)
{
	bool stored[200] = { false };
	uint64_t count = 0;

	(void)state;
	for (uint64_t a = 1; a < 100; a++) {
		struct dump_live_record record = record_of(a * 64);

		count += stored[a] = insert(&record);
	}
	assert_int_equal(count, 8 + 16 + 32);
	for (uint64_t a = 1; a < 100; a += 2)
		if (stored[a]) {
			assert_takes(a * 64);
			stored[a] = false;
		}
	/* With a younger level what is in all others is found still. */
	fixture_region(&fixture, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(64u), 64);
	regions_refresh();
	for (uint64_t a = 100; a < 200; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored[a] = insert(&record);
	}
	for (uint64_t a = 1; a < 200; a++)
		if (stored[a])
			assert_takes(a * 64);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

static char full[] = "full", lost[] = "lost";

static void *live_worker(void *argument)
{
	uint64_t base = (uint64_t)argument << 32;

	for (uint64_t round = 0; round < 30; round++) {
		for (uint64_t i = 1; i <= 300; i++) {
			struct dump_live_record record = record_of(base + i * 16);

			if (!insert(&record))
				return full;
		}
		for (uint64_t i = 1; i <= 300; i++) {
			struct live_entry entry;
			uint64_t a = base + i * 16;

			if (!live_table_take(a, &entry) || entry.record->size != a * 3)
				return lost;
			live_table_drop(&entry);
		}
	}
	return NULL;
}

static void test_live_table_serves_threads(void **state)
{
	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	run_threads(live_worker);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_live_table_insert_and_take),
		SESSION_TEST(test_live_table_forgets_what_was_given_up),
		SESSION_TEST(test_live_table_insert_finds_what_is_present),
		SESSION_TEST(test_live_table_hides_what_is_about_to_go),
		SESSION_TEST(test_live_table_hides_what_memattach_holds),
		SESSION_TEST(test_live_table_fills_its_levels),
		cmocka_unit_test_setup_teardown(test_live_table_finds_what_had_no_room, open_session_with_levels,
		                                close_session),
		SESSION_TEST(test_live_table_serves_threads),
	};

	return cmocka_run_group_tests_name("live_table", tests, NULL, NULL);
}
