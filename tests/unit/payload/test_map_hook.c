/* SPDX-License-Identifier: MIT */
/* What is recorded of mappings, whatever part of them mmap and munmap are about. */
#include "map_calls.h"

static void test_files_have_stacks_of_their_own(void **state)
{
	struct dump_live_record records[4];

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		map(AT(i), PAGE, i % 2 ? MAP_PRIVATE : ANONYMOUS);
		assert_true(fixture_live(&fixture, (void *)AT(i), &records[i]));
		assert_int_equal(is_file(AT(i)), i % 2);
	}
	assert_int_equal(records[0].stack, records[2].stack);
	assert_int_equal(records[1].stack, records[3].stack);
	const struct dump_stack *memory = fixture_stack(&fixture, records[0].stack),
				*file = fixture_stack(&fixture, records[1].stack);
	assert_int_not_equal(memory->hash, file->hash);
	assert_int_equal(memory->frame_count, file->frame_count);
	assert_memory_equal(memory->frames, file->frames, memory->frame_count * sizeof memory->frames[0]);
	assert_int_equal(memory->flags | DUMP_STACK_FILE, file->flags);
	map(AT(9), PAGE, MAP_SHARED);
	call(HOOK_mmap64, AT(10), PAGE, 3, MAP_SHARED_VALIDATE, 5, 0);
	assert_true(is_file(AT(9)));
}

static void test_a_failure_makes_nothing(void **state)
{
	(void)state;
	map(AT(0), 4 * PAGE, MAP_SHARED);
	answer = UINT64_MAX;
	call(HOOK_mmap, AT(0), 2 * PAGE, 3, MAP_SHARED | MAP_FIXED, 5, 0);
	call(HOOK_mmap, 0, 2 * PAGE, 3, MAP_SHARED, 5, 0);
	call(HOOK_mremap, AT(0), 4 * PAGE, 8 * PAGE, 0, 0, 0);
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(size_at(AT(0)), 4 * PAGE);
	unmap(AT(1), PAGE); /* it is known as before */
	assert_int_equal(size_at(AT(0)), PAGE);
	assert_int_equal(size_at(AT(2)), 2 * PAGE);
	unmap(AT(2) + 1, PAGE); /* the kernel refuses these */
	unmap(AT(2), 0);
	unmap(AT(2), UINT64_MAX);
	assert_int_equal(size_at(AT(2)), 2 * PAGE);
}

/* What depends on no rate is no cost of sampling. */
static void test_following_is_no_sampling(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		map(AT(0), PAGE, i % 2 ? MAP_SHARED : ANONYMOUS);
		if (size_at(AT(0)) != UINT64_MAX)
			continue;
		uint64_t sampling = fixture_counter(&fixture, DUMP_COUNTER_slow_cycles),
			 following = fixture.dump->mapping_cycles;
		unmap(AT(0), PAGE);
		map(AT(5), 0, MAP_SHARED);
		assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_slow_cycles), sampling);
		assert_true(fixture.dump->mapping_cycles > following);
	}
}

static void unmap_fails(uint64_t at, uint64_t bytes)
{
	answer = UINT64_MAX;
	call(HOOK_munmap, at, bytes, 0, 0, 0, 0);
}

/* What could not be unmapped, for want of room for more mappings, is there. */
static void test_an_unmap_that_fails_changes_nothing(void **state)
{
	(void)state;
	for (uint64_t kind = 0; kind < 2; kind++) {
		const uint64_t at = AT(100 * kind), past = fixture_history_count(&fixture);

		map(at, 8 * PAGE, kind ? MAP_SHARED : ANONYMOUS);
		unmap_fails(at, 8 * PAGE);
		assert_int_equal(size_at(at), 8 * PAGE);
		unmap_fails(at + 2 * PAGE, 3 * PAGE);
		assert_int_equal(size_at(at), 2 * PAGE);
		assert_int_equal(size_at(at + 2 * PAGE), 3 * PAGE);
		assert_int_equal(size_at(at + 5 * PAGE), 3 * PAGE);
		assert_int_equal(is_file(at + 2 * PAGE), kind);
		assert_int_equal(fixture_history_count(&fixture), past);
		unmap(at + PAGE, 6 * PAGE); /* and is known as before */
		assert_int_equal(size_at(at), PAGE);
		assert_int_equal(size_at(at + 7 * PAGE), PAGE);
		unmap(at, 8 * PAGE);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken),
	                 fixture_counter(&fixture, DUMP_COUNTER_samples_freed));
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_mappings), 0);
	/* Of many some are not followed any more, which is said. */
	for (uint64_t i = 0; i < 20; i++)
		map(AT(i), PAGE, ANONYMOUS);
	unmap_fails(AT(0), 20 * PAGE);
	assert_int_equal(fixture_live_count(&fixture) + fixture_counter(&fixture, DUMP_COUNTER_lost_mappings), 20);
}

/* An allocator's block at the beginning of a mapping that has gone unseen is none of it. */
static void test_blocks_are_no_mappings(void **state)
{
	struct dump_live_record before, after;

	(void)state;
	map(AT(0), 8 * PAGE, ANONYMOUS);
	answer = AT(0);
	call(HOOK_malloc, 5 * PAGE, 0, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)AT(0), &before));
	assert_int_equal(before.hook, HOOK_malloc);
	unmap(AT(1), 7 * PAGE);
	assert_true(fixture_live(&fixture, (void *)AT(0), &after));
	assert_memory_equal(&after, &before, sizeof before);
	call(HOOK_free, AT(0), 0, 0, 0, 0, 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* Of a part that goes the history has what has gone, and the record what is left: the bytes that were asked for. */
static void test_parts_are_unmapped(void **state)
{
	struct dump_live_record record;
	struct dump_history_record past;

	(void)state;
	for (uint64_t kind = 0; kind < 2; kind++) {
		uint64_t at = AT(100 * kind), before = fixture_history_count(&fixture);

		map(at, 9 * PAGE + 100, kind ? MAP_SHARED : ANONYMOUS);
		unmap(at, PAGE); /* the first page */
		assert_int_equal(size_at(at), UINT64_MAX);
		assert_int_equal(size_at(at + PAGE), 8 * PAGE + 100);
		unmap(at + 8 * PAGE, PAGE + 1); /* the last two, of which one is not whole */
		assert_int_equal(size_at(at + PAGE), 7 * PAGE);
		unmap(at + 3 * PAGE, 2 * PAGE); /* some in the middle */
		assert_int_equal(size_at(at + PAGE), 2 * PAGE);
		assert_int_equal(size_at(at + 5 * PAGE), 3 * PAGE);
		assert_int_equal(is_file(at + 5 * PAGE), kind);
		assert_true(fixture_live(&fixture, (void *)(at + 5 * PAGE), &record));
		assert_int_equal(record.usable, 9 * PAGE + 100);
		assert_int_equal(record.flags, DUMP_LIVE_PART);
		assert_int_equal(fixture_stack(&fixture, record.stack)->taken_count, 1); /* there was one */
		assert_int_equal(fixture_stack(&fixture, record.stack)->taken_bytes, 9 * PAGE + 100);
		unmap(at, 20 * PAGE); /* and all */
		assert_int_equal(fixture_live_count(&fixture), 0);
		for (uint64_t i = 0; i < 5; i++) {
			static const uint64_t sizes[] = { PAGE, PAGE + 100, 2 * PAGE, 2 * PAGE, 3 * PAGE };

			assert_true(fixture_history(&fixture, before + i, &past));
			assert_int_equal(past.flags, DUMP_HISTORY_PART);
			assert_int_equal(past.usable, 9 * PAGE + 100);
			assert_int_equal(past.allocated_stamp, record.stamp);
			assert_int_equal(past.rate_bytes, 1);
			assert_true(past.size == sizes[i] || i > 2);
		}
		assert_int_equal(fixture_history_count(&fixture), before + 5);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 4);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_freed), 4);
}

static void test_fixed_mappings_replace_others(void **state)
{
	(void)state;
	map(AT(0), 10 * PAGE, ANONYMOUS);
	map(AT(20), 4 * PAGE, MAP_SHARED);
	map(AT(2), 3 * PAGE, MAP_SHARED | MAP_FIXED);
	map(AT(9), 12 * PAGE, ANONYMOUS | MAP_FIXED);
	assert_int_equal(size_at(AT(0)), 2 * PAGE);
	assert_int_equal(size_at(AT(2)), 3 * PAGE);
	assert_int_equal(size_at(AT(5)), 4 * PAGE);
	assert_int_equal(size_at(AT(9)), 12 * PAGE);
	assert_int_equal(size_at(AT(21)), 3 * PAGE);
	assert_true(is_file(AT(2)) && is_file(AT(21)) && !is_file(AT(0)) && !is_file(AT(5)) && !is_file(AT(9)));
	assert_int_equal(fixture_live_count(&fixture), 5);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* The kernel does not give out a place twice. */
static void test_what_is_mapped_over_has_gone_unseen(void **state)
{
	struct dump_history_record past;

	(void)state;
	map(AT(0), 10 * PAGE, MAP_SHARED);
	map(AT(5), PAGE, ANONYMOUS);
	assert_int_equal(size_at(AT(0)), 5 * PAGE);
	assert_int_equal(size_at(AT(6)), 4 * PAGE);
	assert_true(fixture_history(&fixture, 0, &past));
	assert_int_equal(past.flags, DUMP_HISTORY_FREE_MISSED | DUMP_HISTORY_PART);
	assert_int_equal(past.size, PAGE);
}

static uint64_t next_random(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % below;
}

#define MODEL_PAGES 64u

/* Of each page, whose it is: 0 nobody's, 1 memory, 2 of a file. Of what is recorded. */
static void check_model(const uint8_t *model)
{
	struct dump_live_record live[MODEL_PAGES];
	uint8_t found[MODEL_PAGES] = { 0 };
	const uint64_t count = fixture_all_live(&fixture, live, MODEL_PAGES);

	assert_true(count <= MODEL_PAGES);
	for (uint64_t k = 0; k < count; k++) {
		const uint64_t page = (live[k].address - AT(0)) / PAGE;

		for (uint64_t i = page; i < page + live[k].size / PAGE; i++) {
			assert_in_range(i, 0, MODEL_PAGES - 1);
			assert_int_equal(found[i], 0);
			found[i] = fixture_stack(&fixture, live[k].stack)->flags & DUMP_STACK_FILE ? 2 : 1;
		}
	}
	assert_memory_equal(found, model, sizeof found);
}

static void test_any_calls_leave_what_is_there(void **state)
{
	uint8_t model[MODEL_PAGES] = { 0 };
	uint64_t random = 4711;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t from = next_random(&random, MODEL_PAGES), pages = 1 + next_random(&random, MODEL_PAGES - from);
		uint64_t to = next_random(&random, MODEL_PAGES - pages + 1);
		uint8_t kind = (uint8_t)(1 + next_random(&random, 2));

		switch (next_random(&random, 5)) {
		case 0:
			map(AT(from), pages * PAGE, (kind == 1 ? ANONYMOUS : MAP_SHARED) | MAP_FIXED);
			memset(model + from, kind, pages);
			break;
		case 1:
			unmap(AT(from), pages * PAGE);
			memset(model + from, 0, pages);
			break;
		case 2: /* some of it, of whatever is there */
			remap(AT(from), pages * PAGE, AT(from), (1 + to % pages) * PAGE, MREMAP_MAYMOVE);
			memset(model + from + 1 + to % pages, 0, pages - 1 - to % pages);
			break;
		case 3: remap_fails(AT(from), pages * PAGE, 0, 2 * pages * PAGE, MREMAP_MAYMOVE); break;
		default: /* only what is of one kind can be moved, to where nothing of it is */
			for (uint64_t k = 0; k < pages; k++)
				if (model[from + k] != kind || (from + k >= to && from + k < to + pages))
					kind = 0;
			if (!kind)
				break;
			remap(AT(from), pages * PAGE, AT(to), pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
			memset(model + from, 0, pages);
			memset(model + to, kind, pages);
		}
		check_model(model);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* How many are live, of at most 8192, and what they say of the bytes. */
static uint64_t live_of(double *bytes)
{
	static struct dump_live_record live[8192];
	const uint64_t blocks = fixture_all_live(&fixture, live, 8192);

	assert_true(blocks <= 8192);
	*bytes = 0;
	for (uint64_t i = 0; i < blocks; i++)
		*bytes += (double)live[i].size /
		          -expm1(-(double)DUMP_SAMPLED_BYTES(&live[i], DUMP_LIVE_PART) / (double)live[i].rate_bytes);
	return blocks;
}

/* What is left of mappings that were cut in two is estimated without bias. 4.5 standard errors. */
static void test_parts_keep_their_probability(void **state)
{
	enum { COUNT = 4000, PAGES = 16 };
	const double p = -expm1(-(double)PAGES * PAGE / 100000);
	double bytes;

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++) {
		map(AT(PAGES * i), PAGES * PAGE, MAP_SHARED);
		unmap(AT(PAGES * i + 3), 6 * PAGE);
	}
	uint64_t blocks = live_of(&bytes);
	assert_int_equal(blocks % 2, 0);
	assert_true(fabs((double)blocks / 2 - COUNT * p) < 4.5 * sqrt(COUNT * p * (1 - p)));
	assert_true(fabs(bytes - COUNT * 10.0 * PAGE) < 4.5 * 10 * PAGE * sqrt(COUNT * (1 - p) / p));
	for (uint64_t i = 0; i < COUNT; i++)
		unmap(AT(PAGES * i), PAGES * PAGE);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* More mappings than are kept as ranges are known by where they begin. */
static void test_no_room_for_ranges(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < MAPPINGS_MAX + 100; i++)
		map(AT(4 * i), 2 * PAGE, MAP_SHARED);
	assert_in_range(fixture_counter(&fixture, DUMP_COUNTER_lost_mappings), 100, 4000);
	unmap(AT(4 * 7), PAGE);
	assert_int_equal(size_at(AT(4 * 7 + 1)), PAGE);
	unmap_fails(AT(4 * (MAPPINGS_MAX + 50)), 2 * PAGE);
	assert_int_equal(size_at(AT(4 * (MAPPINGS_MAX + 50))), 2 * PAGE);
	remap(AT(4 * (MAPPINGS_MAX + 50)), 2 * PAGE, AT(4 * (MAPPINGS_MAX + 50)), 3 * PAGE, 0);
	assert_int_equal(size_at(AT(4 * (MAPPINGS_MAX + 50))), 3 * PAGE);
	assert_true(is_file(AT(4 * (MAPPINGS_MAX + 50))));
	for (uint64_t i = 0; i < MAPPINGS_MAX + 100; i++)
		unmap(AT(4 * i), 3 * PAGE);
	assert_int_equal(fixture_live_count(&fixture), 0);
	map(AT(0), 2 * PAGE, MAP_SHARED);
	unmap(AT(1), PAGE); /* there is room again */
	assert_int_equal(size_at(AT(0)), PAGE);
}

/* Who maps and unmaps beside thousands of others does not look at them all, also once they have gone. */
static void test_a_search_is_short(void **state)
{
	enum { COUNT = 8000 };

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++) /* of many sizes, with holes */
		map(AT(80 * i), (1 + i * i % 60) * PAGE, MAP_SHARED);
	for (uint64_t gone = 0; gone < 2; gone++) {
		uint64_t before = mappings_looked_at;

		for (uint64_t i = 0; i < 1000; i++) {
			map(AT(80 * (i * 7 % COUNT) + 70), (1 + i % 8) * PAGE, MAP_SHARED);
			remap(AT(80 * (i * 7 % COUNT) + 70), (1 + i % 8) * PAGE, AT(80 * (i * 7 % COUNT) + 60),
			      10 * PAGE, MREMAP_MAYMOVE);
			unmap(AT(80 * (i * 7 % COUNT) + 60), 10 * PAGE);
		}
		assert_true((mappings_looked_at - before) / 1000 < 3000);
		for (uint64_t i = 0; i < COUNT; i++)
			unmap(AT(80 * i), (1 + i * i % 60) * PAGE);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* Thousands of pieces of few large mappings have room. */
static void test_pieces_have_room(void **state)
{
	enum { COUNT = 150, PAGES = 64 };

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++) {
		map(AT(PAGES * i), PAGES * PAGE, MAP_SHARED);
		for (uint64_t page = 1; page < PAGES; page += 2)
			unmap(AT(PAGES * i + page), PAGE);
	}
	assert_int_equal(fixture_live_count(&fixture), COUNT * PAGES / 2);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_mappings), 0);
	for (uint64_t page = 0; page < COUNT * PAGES; page += 2)
		assert_int_equal(size_at(AT(page)), PAGE);
}

static int open_small(void **state)
{
	(void)state;
	place = NEAR;
	start(1, false);
	fixture_region(&fixture, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(64u), 64);
	fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 64 * DUMP_INDEX_ENTRY_BYTES, 64);
	fixture_region(&fixture, DUMP_REGION_STACKS, 1 << 20, 0);
	fixture_region(&fixture, DUMP_REGION_HISTORY, 64 * 4096, 64);
	return 0;
}

/* How many samples have records, of which a mapping is one; of the stack of the first. */
static uint64_t samples_with_records(uint32_t *stack)
{
	enum { MOST = 4096 };
	static struct dump_live_record live[MOST];
	static uint64_t stamps[MOST];
	struct dump_history_record past;
	uint64_t count = fixture_all_live(&fixture, live, MOST), samples = 0;

	assert_in_range(count, 1, MOST);
	*stack = live[0].stack;
	for (uint64_t i = 0; i < count; i++)
		stamps[i] = live[i].stamp;
	for (uint64_t n = 0; fixture_history(&fixture, n, &past); n++) {
		assert_in_range(count, 1, MOST - 1);
		stamps[count++] = past.allocated_stamp;
	}
	for (uint64_t i = 0, k; i < count; i++) {
		for (k = 0; k < i && stamps[k] != stamps[i];)
			k++;
		samples += k == i;
	}
	return samples;
}

/* As many are unkept as have no record at all, also where mappings are cut, or moves of them fail. */
static void test_samples_have_room_or_not(void **state)
{
	uint32_t reference;

	(void)state;
	map_hook_ask = ask;
	gone_to = 0;
	for (uint64_t i = 0; i < 100; i++)
		map(AT(20 * i), 9 * PAGE, ANONYMOUS);
	for (uint64_t i = 0; i < 100; i++)
		unmap(AT(20 * i + 1 + i % 7), PAGE);
	for (uint64_t i = 0; i < 100; i++)
		remap_fails(AT(20 * i + i % 4), (2 + i % 3) * PAGE, 0, 10 * PAGE, MREMAP_MAYMOVE);
	const uint64_t samples = samples_with_records(&reference);
	const struct dump_stack *stack = fixture_stack(&fixture, reference);
	assert_int_equal(stack->taken_count, 100);
	assert_int_equal(stack->unkept, 100 - samples);
	assert_true(stack->unkept && stack->unkept_parts);
	assert_int_equal(stack->unkept + stack->unkept_parts, fixture_counter(&fixture, DUMP_COUNTER_lost_live_full));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT_IN_EACH_STATE(test_files_have_stacks_of_their_own),
		EXACT(test_a_failure_makes_nothing),
		EXACT(test_an_unmap_that_fails_changes_nothing),
		EXACT(test_blocks_are_no_mappings),
		EXACT(test_parts_are_unmapped),
		EXACT(test_fixed_mappings_replace_others),
		EXACT(test_what_is_mapped_over_has_gone_unseen),
		EXACT(test_any_calls_leave_what_is_there),
		EXACT(test_no_room_for_ranges),
		EXACT(test_a_search_is_short),
		EXACT(test_pieces_have_room),
		cmocka_unit_test_setup_teardown(test_samples_have_room_or_not, open_small, close_session),
		cmocka_unit_test_setup_teardown(test_following_is_no_sampling, open_rate, close_session),
		cmocka_unit_test_setup_teardown(test_parts_keep_their_probability, open_rate, close_session),
	};

	return cmocka_run_group_tests_name("map_hook", tests, NULL, NULL);
}
