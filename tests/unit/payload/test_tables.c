/* SPDX-License-Identifier: MIT */
/* The tables of the dump as the hooks use them: regions, live table, filter, interned stacks, history; alone and by
 * many threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter.h"
#include "fixture.h"
#include "gate.h"
#include "history.h"
#include "live_table.h"
#include "lost_owners.h"
#include "regions.h"
#include "stack_hash.h"
#include "stack_table.h"
#include "thread_slot.h"

#define THREADS 4

static struct fixture f;

static int open_session(void **state)
{
	(void)state;
	fixture_open(&f, 64, "/proc/self/exe");
	assert_int_equal(memattach_control(CONTROL_START, &f.start), 0);
	return 0;
}

static uint32_t intern(const uint64_t *frames, uint32_t count, uint32_t flags)
{
	uint64_t hash = 0;
	uint32_t reference;

	for (uint32_t i = 0; i < count; i++)
		hash = stack_hash_add(hash, frames[i]);
	return stack_table_intern(stack_hash_end(hash, count, flags), frames, count, flags, &reference) ? reference : 0;
}

static bool insert(const struct dump_live_record *record)
{
	struct live_entry entry;
	enum live_reserved reserved = live_table_reserve(record->address, &entry);

	assert_int_not_equal(reserved, LIVE_PRESENT);
	if (reserved == LIVE_RESERVED)
		live_table_publish(&entry, record);
	return reserved == LIVE_RESERVED;
}

static int close_session(void **state)
{
	(void)state;
	assert_int_equal(memattach_control(CONTROL_INERT, NULL), 0);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	fixture_close(&f);
	return 0;
}

static struct dump_live_record record_of(uint64_t address)
{
	return (struct dump_live_record){ .address = address, .size = address * 3, .usable = ~address };
}

static void test_live_table_insert_and_take(void **state)
{
	struct dump_live_record record = record_of(0x1000), seen;
	struct live_entry entry;

	(void)state;
	assert_false(insert(&record)); /* no region yet */
	fixture_regions(&f);
	regions_refresh();
	assert_true(insert(&record));
	assert_true(filter_maybe(0x1000));
	assert_true(fixture_live(&f, (void *)0x1000, &seen));
	assert_memory_equal(&seen, &record, sizeof(seen));
	assert_false(live_table_take(0x2000, &entry));
	assert_false(live_table_take(0, &entry));
	assert_false(live_table_take(1, &entry));
	assert_true(live_table_take(0x1000, &entry));
	assert_false(fixture_live(&f, (void *)0x1000, &seen));
	assert_false(live_table_take(0x1000, &entry));
	live_table_put_back(&entry);
	assert_true(fixture_live(&f, (void *)0x1000, &seen));
	assert_true(live_table_take(0x1000, &entry));
	live_table_drop(&entry);
	assert_false(filter_maybe(0x1000));
	assert_int_equal(fixture_live_count(&f), 0);
}

/* As memattach does it from outside. */
static void give_up(uint64_t address)
{
	for (uint32_t i = 0; i < f.dump->region_count; i++) {
		const struct dump_region *region = &f.dump->regions[i];
		uint8_t *tags = (uint8_t *)f.dump + region->offset;
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
	fixture_regions(&f);
	regions_refresh();
	assert_true(insert(&record));
	give_up(0x1000);
	assert_int_equal(fixture_live_count(&f), 0);
	assert_true(filter_maybe(0x1000));
	f.dump->thinnings = 1;
	assert_false(live_table_take(0x1000, &entry));
	assert_false(filter_maybe(0x1000));
	/* At its address another block is sampled. */
	assert_true(insert(&record));
	give_up(0x1000);
	assert_true(insert(&record));
	assert_int_equal(fixture_live_count(&f), 1);
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
	fixture_regions(&f);
	regions_refresh();
	second.size = 5;
	assert_true(insert(&first));
	assert_int_equal(live_table_reserve(second.address, &present), LIVE_PRESENT);
	assert_int_equal(present.address, first.address);
	assert_int_equal(present.record->size, first.size);
	live_table_drop(&present);
	assert_true(insert(&second));
	assert_int_equal(fixture_live_count(&f), 1);
}

static void test_live_table_hides_what_is_about_to_go(void **state)
{
	struct dump_live_record first = record_of(0x1000), second = record_of(0x1000);
	struct live_entry hidden, found;

	(void)state;
	fixture_regions(&f);
	regions_refresh();
	second.size = 5;
	assert_false(live_table_hide(0x1000, &hidden));
	assert_true(insert(&first));
	assert_true(live_table_hide(0x1000, &hidden));
	assert_false(live_table_hide(0x1000, &found));
	assert_false(live_table_take(0x1000, &found));
	assert_int_equal(fixture_live_count(&f), 1); /* for readers it is there still */
	assert_true(insert(&second));
	assert_int_equal(fixture_live_count(&f), 2);
	assert_true(live_table_take_hidden(&hidden));
	assert_int_equal(hidden.record->size, first.size);
	live_table_drop(&hidden);
	assert_true(live_table_take(0x1000, &found));
	assert_int_equal(found.record->size, second.size);
	live_table_drop(&found);
	assert_int_equal(fixture_live_count(&f), 0);
}

/* memattach may have the record in its hands when the block is freed: it gives it up, or puts it back, and then it must
 * not be lost. */
static void test_live_table_hides_what_memattach_holds(void **state)
{
	struct dump_live_record record = record_of(0x1000);
	struct live_entry hidden, found;

	(void)state;
	fixture_regions(&f);
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
	fixture_region(&f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(8u), 8);
	regions_refresh();
	for (uint64_t a = 1; a <= 20; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored += insert(&record);
	}
	assert_int_equal(stored, 8);
	fixture_region(&f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(64u), 64);
	regions_refresh();
	for (uint64_t a = 21; a <= 40; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored += insert(&record);
	}
	assert_true(stored > 20);
	assert_int_equal(fixture_live_count(&f), stored);
	after = stored;
	for (uint64_t a = 1; a <= 40; a++) {
		if (!live_table_take(a * 64, &entry))
			continue;
		assert_int_equal(entry.record->size, a * 64 * 3);
		live_table_drop(&entry);
		after--;
	}
	assert_int_equal(after, 0);
	assert_int_equal(fixture_live_count(&f), 0);
}

/* A session that begins with all levels, as those of memattach do. */
static int open_session_with_levels(void **state)
{
	(void)state;
	fixture_open(&f, 64, "/proc/self/exe");
	for (uint64_t entries = 8; entries <= 32; entries *= 2)
		fixture_region(&f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(entries), entries);
	assert_int_equal(memattach_control(CONTROL_START, &f.start), 0);
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
	/* With a younger level what stands in all others is found still. */
	fixture_region(&f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(64u), 64);
	regions_refresh();
	for (uint64_t a = 100; a < 200; a++) {
		struct dump_live_record record = record_of(a * 64);

		stored[a] = insert(&record);
	}
	for (uint64_t a = 1; a < 200; a++)
		if (stored[a])
			assert_takes(a * 64);
	assert_int_equal(fixture_live_count(&f), 0);
}

static char full[] = "full", lost[] = "lost", no_room[] = "no room";

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

static void run_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];
	const char *complaint = NULL;

	for (uint64_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, function, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		void *one;

		pthread_join(threads[i], &one);
		complaint = one ? one : complaint;
	}
	if (complaint)
		fail_msg("%s", complaint);
}

static void test_live_table_serves_threads(void **state)
{
	(void)state;
	fixture_regions(&f);
	regions_refresh();
	run_threads(live_worker);
	assert_int_equal(fixture_live_count(&f), 0);
}

static void test_filter_sticks_at_its_limit(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++)
		filter_add(0x5000);
	for (int i = 0; i < 300; i++)
		filter_remove(0x5000);
	assert_true(filter_maybe(0x5000));
	filter_remove(0x123450); /* was never there: no underflow */
	assert_false(filter_maybe(0x123450));
}

/* Of a thousand samples some 1.5 % of all other addresses share the first counter: 1 % of those share the second, too.
 */
static void test_filter_knows_addresses_by_two_counters(void **state)
{
	uint64_t maybe = 0;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++)
		filter_add(0x10000000 + i * 9136);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_true(filter_maybe(0x10000000 + i * 9136));
	for (uint64_t i = 1; i <= 100000; i++)
		maybe += filter_maybe(0x7f0000000000 + i * 272);
	assert_true(maybe < 300);
	for (uint64_t i = 1; i <= 1000; i++)
		filter_remove(0x10000000 + i * 9136);
	for (uint32_t i = 0; i <= filter_mask; i++)
		assert_int_equal(filter_counters[i], 0);
}

/* Nothing is spared where every block is recorded, and nothing is counted. */
static void test_filter_says_maybe_in_exact_mode(void **state)
{
	(void)state;
	filter_make_exact();
	assert_true(filter_maybe(0x123450));
	filter_add(0x123450);
	filter_remove(0x123450);
	filter_remove(0x123450);
	for (uint64_t a = 0x1000; a < 0x100000; a += 16)
		assert_true(filter_maybe(a));
}

/* The first threads get rows of their own; all others share, and what is added together is the same. */
static void test_counters_add_up_over_the_rows(void **state)
{
	struct thread_slot slots[2 * DUMP_COUNTER_SHARDS];
	uint32_t owned = 0;

	(void)state;
	memset(slots, 0, sizeof(slots));
	for (uint32_t i = 0; i < 2 * DUMP_COUNTER_SHARDS; i++) {
		struct counter_row row;

		thread_slot_equip(&slots[i], 1);
		thread_slot_equip(&slots[i], 1);
		row = counter_row(&slots[i], 0x1000ull * i);
		owned += row.owned;
		assert_true(row.words >= payload.dump->counters[row.owned ? COUNTER_ROWS_SHARED : 0]);
		assert_true(row.words < payload.dump->counters[row.owned ? DUMP_COUNTER_SHARDS : COUNTER_ROWS_SHARED]);
		counter_add(&row, DUMP_COUNTER_samples_taken, i);
	}
	assert_int_equal(owned, DUMP_COUNTER_SHARDS - COUNTER_ROWS_SHARED);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_samples_taken),
	                 (2 * DUMP_COUNTER_SHARDS - 1) * DUMP_COUNTER_SHARDS);
}

static void test_stack_table_interns_once(void **state)
{
	uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
	const struct dump_stack *stack;
	uint32_t first;

	(void)state;
	assert_int_equal(intern(a, 3, 0), 0);
	fixture_regions(&f);
	regions_refresh();
	first = intern(a, 3, 0);
	assert_true(first);
	assert_int_equal(intern(a, 3, 0), first);
	assert_int_not_equal(intern(b, 3, 0), first);
	assert_int_not_equal(intern(a, 2, 0), first);
	assert_int_not_equal(intern(a, 3, DUMP_STACK_TRUNCATED), first);
	assert_true(intern(a, 0, DUMP_STACK_TRUNCATED));
	stack = fixture_stack(&f, first);
	assert_int_equal(stack->frame_count, 3);
	assert_memory_equal(stack->frames, a, sizeof(a));
	assert_true(stack->hash);
	assert_ptr_equal((uint8_t *)regions_stack(first) - (uint8_t *)memattach_session.dump_address,
	                 (uint8_t *)stack - (uint8_t *)f.dump);
}

/* The word of the index has half of the hash, the record the whole. */
static void test_stack_table_compares_all_of_the_hash(void **state)
{
	const uint64_t hashes[] = { 0x1234567800000001, 0x1234567900000001, 0x1234567800000002, 0x1234567800000000 };
	uint64_t frames[] = { 1, 2, 3 };
	uint32_t references[4], again;

	(void)state;
	fixture_regions(&f);
	regions_refresh();
	for (int i = 0; i < 4; i++) {
		struct dump_stack *stack = stack_table_intern(hashes[i], frames, 3, 0, &references[i]);

		assert_non_null(stack);
		assert_ptr_equal(regions_stack(references[i]), stack);
		assert_true(stack->hash == hashes[i]);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(references[i], references[k]);
	}
	for (int i = 0; i < 4; i++) {
		assert_non_null(stack_table_find(hashes[i], &again));
		assert_int_equal(again, references[i]);
	}
	assert_null(stack_table_find(0x1234567a00000001, &again));
}

/* Another thread may have stored a stack in an arena that this one has not seen yet; what leads nowhere is passed over.
 */
static void test_stack_table_looks_for_new_arenas(void **state)
{
	uint64_t index = fixture_region(&f, DUMP_REGION_STACK_INDEX, 4096, 8), arena, frames[] = { 1 };
	uint64_t *words = (uint64_t *)(void *)((uint8_t *)f.dump + index), hash = 0x1234567800000001;
	uint32_t reference;

	(void)state;
	regions_refresh();
	words[0] = DUMP_INDEX_WORD(hash, 5u);
	arena = fixture_region(&f, DUMP_REGION_STACKS, 4096, 0);
	words[1] = DUMP_INDEX_WORD(hash, (uint32_t)((arena + sizeof(struct dump_arena)) / DUMP_STACK_ALIGN));
	*(struct dump_stack *)(void *)((uint8_t *)f.dump + arena + sizeof(struct dump_arena)) =
		(struct dump_stack){ .hash = hash };
	assert_non_null(stack_table_find(hash, &reference));
	assert_int_equal(reference, DUMP_INDEX_REFERENCE(words[1]));
	assert_non_null(stack_table_intern(hash, frames, 1, 0, &reference));
	assert_int_equal(reference, DUMP_INDEX_REFERENCE(words[1]));
}

static void test_stack_table_is_full(void **state)
{
	uint64_t frames[DUMP_FRAMES_MAX] = { 0 };
	uint32_t stored = 0;

	(void)state;
	fixture_region(&f, DUMP_REGION_STACK_INDEX, 4096, 256);
	fixture_region(&f, DUMP_REGION_STACKS, 8192, 0);
	regions_refresh();
	for (frames[0] = 1; frames[0] < 100; frames[0]++)
		stored += intern(frames, DUMP_FRAMES_MAX, 0) != 0;
	assert_int_equal(stored, (8192 - sizeof(struct dump_arena)) / DUMP_STACK_BYTES(DUMP_FRAMES_MAX));
	fixture_region(&f, DUMP_REGION_STACKS, 65536, 0);
	regions_refresh();
	frames[0] = 1000;
	assert_true(intern(frames, DUMP_FRAMES_MAX, 0));
}

/* What the writer gives at the start (dump_writer.c), at the load at which it adds another level, and again after that.
 */
static void test_stack_table_finds_in_all_levels(void **state)
{
	static uint32_t seen[4 * 7 * 64];
	uint64_t n = 0;

	(void)state;
	for (uint32_t entries = 64; entries <= 256; entries *= 2)
		fixture_region(&f, DUMP_REGION_STACK_INDEX, entries * DUMP_INDEX_ENTRY_BYTES, entries);
	fixture_region(&f, DUMP_REGION_STACKS, 1 << 20, 0);
	for (uint32_t capacity = 7 * 64, next = 512; next <= 2048; capacity += next, next *= 2) {
		regions_refresh();
		for (; n < capacity / 4; n++) {
			uint64_t frames[] = { n, 0x5555 + n * 16, 7 };

			seen[n] = intern(frames, 3, 0);
			assert_true(seen[n]);
		}
		for (uint64_t i = 0; i < n; i++) {
			uint64_t frames[] = { i, 0x5555 + i * 16, 7 };

			assert_int_equal(intern(frames, 3, 0), seen[i]);
		}
		fixture_region(&f, DUMP_REGION_STACK_INDEX, next * DUMP_INDEX_ENTRY_BYTES, next);
	}
}

static uint32_t references[THREADS + 1][1000];

static void *stack_worker(void *argument)
{
	uint32_t *mine = references[(uint64_t)argument];

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t frames[] = { i, i * i, 7 };

		mine[i] = intern(frames, 3, 0);
		if (!mine[i])
			return no_room;
	}
	return NULL;
}

static void test_stack_table_serves_threads(void **state)
{
	(void)state;
	fixture_regions(&f);
	fixture_region(&f, DUMP_REGION_STACK_INDEX, 4096 * DUMP_INDEX_ENTRY_BYTES,
	               4096); /* one bucket of the first level may overflow */
	regions_refresh();
	run_threads(stack_worker);
	for (int t = 2; t <= THREADS; t++)
		assert_memory_equal(references[1], references[t], sizeof(references[1]));
}

static void test_history_append_wraps(void **state)
{
	struct thread_slot slot = { 0 };
	struct dump_live_record record = record_of(0x1000);
	struct counter_row counters = counter_row(NULL, 0);
	uint64_t n = 4 * DUMP_HISTORY_RECORDS + 10;
	struct dump_history_record past;

	(void)state;
	history_append(&slot, &counters, &record, 5, 0);
	history_append(NULL, &counters, &record, 5, 0);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_history), 2);
	fixture_region(&f, DUMP_REGION_HISTORY, 3 * 4096, 3);
	regions_refresh();
	for (uint64_t i = 0; i < n; i++) {
		record.size = i;
		history_append(&slot, &counters, &record, 100 + i, DUMP_HISTORY_FREE_MISSED);
	}
	assert_int_equal(f.dump->history_next, 5);
	assert_int_equal(fixture_history_count(&f), 2 * DUMP_HISTORY_RECORDS + 10);
	assert_int_equal(fixture_counter(&f, DUMP_COUNTER_lost_history), 2 + 2 * DUMP_HISTORY_RECORDS);
	assert_true(fixture_history(&f, 0, &past)); /* block 3 stands in place 0 */
	assert_int_equal(past.size, 3 * DUMP_HISTORY_RECORDS);
	assert_int_equal(past.freed_stamp, 100 + 3 * DUMP_HISTORY_RECORDS);
	assert_int_equal(past.flags, DUMP_HISTORY_FREE_MISSED);
}

static void test_history_append_leaves_a_block_that_was_overtaken(void **state)
{
	struct thread_slot slow = { 0 }, fast = { 0 };
	struct counter_row counters = counter_row(NULL, 0);
	struct dump_live_record record = record_of(0x1000);

	(void)state;
	fixture_region(&f, DUMP_REGION_HISTORY, 2 * 4096, 2);
	regions_refresh();
	history_append(&slow, &counters, &record, 1, 0);
	for (unsigned i = 0; i < 2 * DUMP_HISTORY_RECORDS; i++)
		history_append(&fast, &counters, &record, 2, 0);
	history_append(&slow, &counters, &record, 3, 0);
	assert_int_equal(f.dump->history_next, 4);
	assert_int_not_equal(slow.history_page, 0);
}

static void hostile(uint32_t kind, uint64_t offset, uint64_t bytes, uint64_t entries)
{
	uint32_t n = f.dump->region_count;

	f.dump->regions[n] = (struct dump_region){ .kind = kind, .offset = offset, .bytes = bytes, .entries = entries };
	f.dump->region_count = n + 1;
}

static void test_regions_refresh_refuses_hostile_descriptors(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 12; kind++) {
		hostile(kind, 0, 4096, 8);                     /* the header */
		hostile(kind, DUMP_HEADER_BYTES + 1, 4096, 8); /* not aligned */
		hostile(kind, DUMP_HEADER_BYTES, 4095, 8);
		hostile(kind, DUMP_HEADER_BYTES, 0, 0);     /* empty */
		hostile(kind, FIXTURE_DUMP_BYTES, 4096, 8); /* behind the end */
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
	fixture_region(&f, DUMP_REGION_LIVE, 4096, 8);
	f.dump->region_count = UINT32_MAX;
	regions_refresh();
	assert_int_equal(regions_count(REGIONS_LIVE), 1);
	assert_null(regions_stack(0));
	assert_null(regions_stack(UINT32_MAX));
}

/* Arena and index say anything: references are checked before they are followed. */
static void test_stack_table_survives_hostile_arena(void **state)
{
	uint64_t frames[] = { 1 };
	uint64_t arena = fixture_region(&f, DUMP_REGION_STACKS, 8192, 0);
	struct dump_arena *header = (struct dump_arena *)((uint8_t *)f.dump + arena);

	(void)state;
	fixture_region(&f, DUMP_REGION_STACK_INDEX, 4096, 256);
	regions_refresh();
	header->used = UINT64_MAX - 16;
	assert_int_equal(intern(frames, 1, 0), 0);
	header->used = 13;
	assert_int_equal(intern(frames, 1, 0), 0);
	assert_null(regions_stack((uint32_t)((arena + 8192) / 16)));
	assert_null(regions_stack((uint32_t)(arena / 16)));
}

static void *slot_worker(void *argument)
{
	(void)argument;
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t tp = (i % 50 + 1) << 12;
		int fresh;
		struct thread_slot *slot = thread_slot_acquire(tp, 0x1000, &fresh);

		if (!slot)
			continue;
		slot->random++; /* TSan proves the exclusion */
		if (fresh)
			thread_slot_publish(slot, tp);
		thread_slot_release(slot);
	}
	return NULL;
}

static void test_thread_slot_acquire_excludes(void **state)
{
	(void)state;
	run_threads(slot_worker);
}

static void test_first_thread_gets_the_near_slot(void **state)
{
	struct thread_slot *near = &gates_shared->near, *slot;
	int fresh;

	(void)state;
	lose_owners();
	for (uint64_t tp = 0x7000; tp < 0xa000; tp += 0x1000) {
		slot = thread_slot_acquire(tp, 0x1000, &fresh);
		assert_true(slot && fresh);
		assert_int_equal(slot == near, tp == 0x7000);
		thread_slot_publish(slot, tp);
		thread_slot_release(slot);
	}
	/* It stays that thread's: nobody steals it, and nobody takes another while it is busy. */
	slot = thread_slot_acquire(0x7000, 0x1000, &fresh);
	assert_ptr_equal(slot, near);
	assert_false(fresh);
	/* What other threads read is not what its owner writes, nor its neighbour, and comes back if it got lost. */
	assert_int_equal(gates_shared->near_owner, 0x7000);
	assert_true(GATES_NEAR - GATES_NEAR_OWNER >= 128 &&
	            GATES_SHARED_BYTES - GATES_NEAR >= 128); /* the prefetcher fetches pairs */
	gates_shared->near_owner = 0;
	assert_null(thread_slot_acquire(0x7000, 0xf00, &fresh));
	thread_slot_release(slot);
	assert_ptr_equal(thread_slot_acquire(0x7000, 0x1000, &fresh), near);
	thread_slot_show(slot, 0x7000);
	assert_int_equal(gates_shared->near_owner, 0x7000);
	assert_null(thread_slot_acquire(0x7000, 0xf00, &fresh));
	thread_slot_release(slot);
	/* Who has another one does not look at what the near one's owner writes. */
	near->owner = 0x8000;
	slot = thread_slot_acquire(0x8000, 0x1000, &fresh);
	assert_true(slot && slot != near && !fresh);
	thread_slot_release(slot);
	near->owner = 0x7000;
	for (uint64_t i = 0; i < 100; i++) {
		slot = thread_slot_acquire(0x7000 + (i << 36), 0x1000, &fresh);
		assert_true(slot && (slot != near || i == 0));
		thread_slot_publish(slot, 0x7000 + (i << 36));
		thread_slot_release(slot);
	}
	lose_owners();
}

static void test_thread_slot_acquire_finds_the_same_and_steals(void **state)
{
	struct thread_slot *slot, *again;
	int fresh;

	(void)state;
	slot = thread_slot_acquire(0x7000, 0x10000, &fresh);
	assert_true(slot && fresh);
	thread_slot_publish(slot, 0x7000);
	assert_null(thread_slot_acquire(0x7000, 0xf000, &fresh)); /* a signal handler: deeper in the stack */
	again = thread_slot_acquire(0x7000, 0x10100, &fresh);     /* the hook's frame is gone */
	assert_ptr_equal(slot, again);
	assert_false(fresh);
	thread_slot_release(slot);
	/* more owners of one home than slots */
	for (uint64_t i = 0; i < 3 * THREAD_SLOT_PROBES; i++) {
		uint64_t tp = 0x7000 + i;

		slot = thread_slot_acquire(tp, 0x1000, &fresh);
		assert_non_null(slot);
		if (fresh)
			thread_slot_publish(slot, tp);
		thread_slot_release(slot);
		again = thread_slot_acquire(tp, 0x1000, &fresh);
		assert_ptr_equal(slot, again);
		assert_false(fresh);
		thread_slot_release(again);
	}
	lose_owners();
	slot = thread_slot_acquire(0x7000, 0x1000, &fresh);
	assert_true(slot && fresh);
	thread_slot_release(slot);
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)

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
		SESSION_TEST(test_filter_sticks_at_its_limit),
		SESSION_TEST(test_filter_knows_addresses_by_two_counters),
		SESSION_TEST(test_filter_says_maybe_in_exact_mode),
		SESSION_TEST(test_counters_add_up_over_the_rows),
		SESSION_TEST(test_stack_table_interns_once),
		SESSION_TEST(test_stack_table_compares_all_of_the_hash),
		SESSION_TEST(test_stack_table_looks_for_new_arenas),
		SESSION_TEST(test_stack_table_is_full),
		SESSION_TEST(test_stack_table_finds_in_all_levels),
		SESSION_TEST(test_stack_table_serves_threads),
		SESSION_TEST(test_history_append_wraps),
		SESSION_TEST(test_history_append_leaves_a_block_that_was_overtaken),
		SESSION_TEST(test_regions_refresh_refuses_hostile_descriptors),
		SESSION_TEST(test_stack_table_survives_hostile_arena),
		SESSION_TEST(test_thread_slot_acquire_excludes),
		SESSION_TEST(test_first_thread_gets_the_near_slot),
		SESSION_TEST(test_thread_slot_acquire_finds_the_same_and_steals),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
