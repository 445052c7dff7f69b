/* SPDX-License-Identifier: MIT */
/* Interned stacks: found again, in all levels of the index, by many threads, and in an arena that says anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tables/regions.h"
#include "tables/stack_hash.h"
#include "tables/stack_table.h"
#include "tables_fixture.h"

static struct dump_stack *intern_hash(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t flags,
                                      uint32_t *reference)
{
	struct stack_draft_frames stack = { .draft.hash = hash, .frames = frames, .count = count, .flags = flags };

	return stack_table_intern(&stack, reference);
}

static uint32_t intern(const uint64_t *frames, uint32_t count, uint32_t flags)
{
	uint64_t hash = 0;
	uint32_t reference;

	for (uint32_t i = 0; i < count; i++)
		hash = stack_hash_add(hash, frames[i]);
	return intern_hash(stack_hash_end(hash, count, flags), frames, count, flags, &reference) ? reference : 0;
}

static void test_stack_table_interns_once(void **state)
{
	uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
	const struct dump_stack *stack;
	uint32_t first;

	(void)state;
	assert_int_equal(intern(a, 3, 0), 0);
	fixture_regions(&fixture);
	regions_refresh();
	first = intern(a, 3, 0);
	assert_true(first);
	assert_int_equal(intern(a, 3, 0), first);
	assert_int_not_equal(intern(b, 3, 0), first);
	assert_int_not_equal(intern(a, 2, 0), first);
	assert_int_not_equal(intern(a, 3, DUMP_STACK_TRUNCATED), first);
	assert_true(intern(a, 0, DUMP_STACK_TRUNCATED));
	stack = fixture_stack(&fixture, first);
	assert_int_equal(stack->frame_count, 3);
	assert_memory_equal(stack->frames, a, sizeof(a));
	assert_true(stack->hash);
	assert_ptr_equal((uint8_t *)regions_stack(first) - (uint8_t *)memattach_session.dump_address,
	                 (uint8_t *)stack - (uint8_t *)fixture.dump);
}

/* The word of the index has half of the hash, the record the whole. */
static void test_stack_table_compares_all_of_the_hash(void **state)
{
	const uint64_t hashes[] = { 0x1234567800000001, 0x1234567900000001, 0x1234567800000002, 0x1234567800000000 };
	uint64_t frames[] = { 1, 2, 3 };
	uint32_t references[4], again;

	(void)state;
	fixture_regions(&fixture);
	regions_refresh();
	for (int i = 0; i < 4; i++) {
		struct dump_stack *stack = intern_hash(hashes[i], frames, 3, 0, &references[i]);

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
	uint64_t index = fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 4096, 8), arena, frames[] = { 1 };
	uint64_t *words = (uint64_t *)(void *)((uint8_t *)fixture.dump + index), hash = 0x1234567800000001;
	uint32_t reference;

	(void)state;
	regions_refresh();
	words[0] = DUMP_INDEX_WORD(hash, 5u);
	arena = fixture_region(&fixture, DUMP_REGION_STACKS, 4096, 0);
	words[1] = DUMP_INDEX_WORD(hash, (uint32_t)((arena + sizeof(struct dump_arena)) / DUMP_STACK_ALIGN));
	*(struct dump_stack *)(void *)((uint8_t *)fixture.dump + arena + sizeof(struct dump_arena)) =
		(struct dump_stack){ .hash = hash };
	assert_non_null(stack_table_find(hash, &reference));
	assert_int_equal(reference, DUMP_INDEX_REFERENCE(words[1]));
	assert_non_null(intern_hash(hash, frames, 1, 0, &reference));
	assert_int_equal(reference, DUMP_INDEX_REFERENCE(words[1]));
}

static void test_stack_table_is_full(void **state)
{
	uint64_t frames[DUMP_FRAMES_MAX] = { 0 };
	uint32_t stored = 0;

	(void)state;
	fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 4096, 256);
	fixture_region(&fixture, DUMP_REGION_STACKS, 8192, 0);
	regions_refresh();
	for (frames[0] = 1; frames[0] < 100; frames[0]++)
		stored += intern(frames, DUMP_FRAMES_MAX, 0) != 0;
	assert_int_equal(stored, (8192 - sizeof(struct dump_arena)) / DUMP_STACK_BYTES(DUMP_FRAMES_MAX));
	fixture_region(&fixture, DUMP_REGION_STACKS, 65536, 0);
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
		fixture_region(&fixture, DUMP_REGION_STACK_INDEX, entries * DUMP_INDEX_ENTRY_BYTES, entries);
	fixture_region(&fixture, DUMP_REGION_STACKS, 1 << 20, 0);
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
		fixture_region(&fixture, DUMP_REGION_STACK_INDEX, next * DUMP_INDEX_ENTRY_BYTES, next);
	}
}

static uint32_t references[THREADS + 1][1000];

static char no_room[] = "no room";

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
	fixture_regions(&fixture);
	fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 4096 * DUMP_INDEX_ENTRY_BYTES,
	               4096); /* one bucket of the first level may overflow */
	regions_refresh();
	run_threads(stack_worker);
	for (int t = 2; t <= THREADS; t++)
		assert_memory_equal(references[1], references[t], sizeof(references[1]));
}

/* Arena and index say anything: references are checked before they are followed. */
static void test_stack_table_survives_hostile_arena(void **state)
{
	uint64_t frames[] = { 1 };
	uint64_t arena = fixture_region(&fixture, DUMP_REGION_STACKS, 8192, 0);
	struct dump_arena *header = (struct dump_arena *)((uint8_t *)fixture.dump + arena);

	(void)state;
	fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 4096, 256);
	regions_refresh();
	header->used = UINT64_MAX - 16;
	assert_int_equal(intern(frames, 1, 0), 0);
	header->used = 13;
	assert_int_equal(intern(frames, 1, 0), 0);
	assert_null(regions_stack((uint32_t)((arena + 8192) / 16)));
	assert_null(regions_stack((uint32_t)(arena / 16)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_stack_table_interns_once),
		SESSION_TEST(test_stack_table_compares_all_of_the_hash),
		SESSION_TEST(test_stack_table_looks_for_new_arenas),
		SESSION_TEST(test_stack_table_is_full),
		SESSION_TEST(test_stack_table_finds_in_all_levels),
		SESSION_TEST(test_stack_table_serves_threads),
		SESSION_TEST(test_stack_table_survives_hostile_arena),
	};

	return cmocka_run_group_tests_name("stack_table", tests, NULL, NULL);
}
