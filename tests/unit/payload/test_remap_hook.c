/* SPDX-License-Identifier: MIT */
/* What is recorded of mappings that mremap changes, or does not. */
#include <pthread.h>

#include "map_calls.h"

/* Where a part may not grow, nothing has gone. */
static void test_a_part_grows_or_stays(void **state)
{
	(void)state;
	for (uint64_t kind = 0; kind < 2; kind++) {
		uint64_t at = AT(100 * kind), past = fixture_history_count(&fixture);

		map(at, 8 * PAGE, kind ? MAP_SHARED : ANONYMOUS);
		answer = UINT64_MAX;
		call(HOOK_mremap, at, 4 * PAGE, 6 * PAGE, 0, 0, 0);
		call(HOOK_mremap, at + 2 * PAGE, 2 * PAGE, 6 * PAGE, 0, 0, 0);
		assert_int_equal(size_at(at), 8 * PAGE);
		assert_int_equal(fixture_history_count(&fixture), past);
		remap(at + 6 * PAGE, 2 * PAGE, at + 6 * PAGE, 3 * PAGE, 0);
		assert_int_equal(size_at(at), 6 * PAGE);
		assert_int_equal(size_at(at + 6 * PAGE), 3 * PAGE);
		assert_int_equal(is_file(at + 6 * PAGE), kind);
		assert_int_equal(fixture_history_count(&fixture), past + 1);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* A call that fails and may have moved pages leaves all as it was: what was taken out is a part by itself. */
static void test_a_move_that_fails_changes_nothing(void **state)
{
	(void)state;
	gone_to = 0;
	for (uint64_t kind = 0; kind < 2; kind++) {
		uint64_t at = AT(100 * kind), past = fixture_history_count(&fixture);

		map(at, 8 * PAGE, kind ? MAP_SHARED : ANONYMOUS);
		remap_fails(at, 8 * PAGE, 0, 20 * PAGE, MREMAP_MAYMOVE);
		assert_int_equal(size_at(at), 8 * PAGE);
		remap_fails(at + 2 * PAGE, 3 * PAGE, 0, 20 * PAGE, MREMAP_MAYMOVE);
		assert_int_equal(size_at(at), 2 * PAGE);
		assert_int_equal(size_at(at + 2 * PAGE), 3 * PAGE);
		assert_int_equal(size_at(at + 5 * PAGE), 3 * PAGE);
		assert_int_equal(is_file(at + 2 * PAGE), kind);
		remap_fails(at, 8 * PAGE, 0, 3 * PAGE, 0); /* of two */
		assert_int_equal(size_at(at) + size_at(at + 2 * PAGE) + size_at(at + 3 * PAGE), 5 * PAGE);
		assert_int_equal(fixture_history_count(&fixture), past);
		unmap(at + PAGE, 6 * PAGE);
		assert_int_equal(size_at(at), PAGE);
		assert_int_equal(size_at(at + 7 * PAGE), PAGE);
		unmap(at, 8 * PAGE);
		assert_int_equal(size_at(at + 7 * PAGE), UINT64_MAX);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken),
	                 fixture_counter(&fixture, DUMP_COUNTER_samples_freed));
}

/* Nor where it is about more mappings than can be put back. */
static void test_a_move_of_many_that_fails_changes_nothing(void **state)
{
	(void)state;
	gone_to = 0;
	for (uint64_t i = 0; i < 20; i++)
		map(AT(i), PAGE, i % 2 ? MAP_SHARED : ANONYMOUS);
	remap_fails(AT(0), 20 * PAGE, 0, 40 * PAGE, MREMAP_MAYMOVE);
	remap_fails(AT(0), 20 * PAGE, 0, PAGE, MREMAP_MAYMOVE);
	assert_int_equal(fixture_live_count(&fixture), 20);
	assert_int_equal(fixture_history_count(&fixture), 0);
	remap(AT(0), 20 * PAGE, AT(0), 3 * PAGE, 0);
	assert_int_equal(fixture_live_count(&fixture), 3);
	remap(AT(0), 3 * PAGE, AT(50), 20 * PAGE, MREMAP_MAYMOVE);
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(size_at(AT(50)), 20 * PAGE);
}

/* MREMAP_FIXED has unmapped what was there when it fails; or not, as the kernel says. */
static void test_what_a_failure_unmaps_has_gone(void **state)
{
	(void)state;
	for (uint64_t gone = 0; gone < 3; gone++) {
		uint64_t at = AT(1000 * gone), to = at + 100 * PAGE;

		map(at, 8 * PAGE, ANONYMOUS);
		map(to, 2 * PAGE, MAP_SHARED);
		map(to + 3 * PAGE, 4 * PAGE, ANONYMOUS);
		gone_from = gone == 1 ? to : at + 4 * PAGE;
		gone_to = gone ? gone_from + 4 * PAGE : 0;
		remap_fails(at, 8 * PAGE, to, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
		assert_int_equal(size_at(to), gone == 1 ? UINT64_MAX : 2 * PAGE);
		assert_int_equal(size_at(to + 3 * PAGE), gone == 1 ? UINT64_MAX : 4 * PAGE);
		assert_int_equal(size_at(to + 4 * PAGE), gone == 1 ? 3 * PAGE : UINT64_MAX);
		assert_int_equal(size_at(at), gone == 2 ? 4 * PAGE : 8 * PAGE);
	}
}

/* Where a file was before nothing is known to be mapped. */
static void test_a_gap_is_no_answer(void **state)
{
	const struct unwind_module module = { 0 };
	const struct unwind_range range = { AT(0), AT(100), UNWIND_RANGE_FILE, 0 };

	(void)state;
	fixture_index(&fixture, &module, 0, &range, 1);
	map(AT(0), 16 * PAGE, MAP_SHARED);
	unmap(AT(0), PAGE);
	gone_from = AT(0);
	gone_to = AT(1);
	remap_fails(AT(0), 4 * PAGE, AT(50), 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
	remap_fails(AT(50), 4 * PAGE, AT(0), 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
	assert_int_equal(size_at(AT(1)), 3 * PAGE);
	assert_int_equal(size_at(AT(4)), 12 * PAGE);
}

/* Several mappings are moved as they are, and what was at the destination goes; or only one of them, and then it fails.
 */
static void test_several_mappings_move(void **state)
{
	struct dump_live_record before, after;

	(void)state;
	for (uint64_t some = 0; some < 2; some++) {
		uint64_t at = AT(1000 * some), to = at + 100 * PAGE;

		map(at, 4 * PAGE, ANONYMOUS);
		map(at + 4 * PAGE, 5 * PAGE, MAP_SHARED);
		map(to, 8 * PAGE, ANONYMOUS);
		assert_true(fixture_live(&fixture, (void *)at, &before));
		gone_from = at;
		gone_to = at + 4 * PAGE;
		if (some)
			remap_fails(at, 8 * PAGE, to, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
		else
			remap(at, 8 * PAGE, to, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED);
		assert_int_equal(size_at(at), UINT64_MAX);
		assert_int_equal(size_at(at + 8 * PAGE), PAGE);
		assert_true(fixture_live(&fixture, (void *)to, &after));
		if (some) {
			assert_int_equal(size_at(at + 4 * PAGE), 4 * PAGE);
			continue; /* the kernel says that something is still there */
		}
		assert_int_equal(after.stamp, before.stamp);
		assert_int_equal(size_at(to), 4 * PAGE);
		assert_int_equal(size_at(to + 4 * PAGE), 4 * PAGE);
		assert_true(!is_file(to) && is_file(to + 4 * PAGE) && is_file(at + 8 * PAGE));
	}
	assert_int_equal(fixture_live_count(&fixture), 3 + 3);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* What is left of several mappings is theirs. */
static void test_shrinking_is_unmapping(void **state)
{
	struct dump_live_record before, after;

	(void)state;
	map(AT(0), 4 * PAGE, ANONYMOUS);
	map(AT(4), 4 * PAGE, MAP_SHARED);
	assert_true(fixture_live(&fixture, (void *)AT(4), &before));
	remap(AT(0), 8 * PAGE, AT(0), 6 * PAGE, 0);
	assert_int_equal(size_at(AT(0)), 4 * PAGE);
	assert_int_equal(size_at(AT(4)), 2 * PAGE);
	assert_true(!is_file(AT(0)) && is_file(AT(4)));
	assert_true(fixture_live(&fixture, (void *)AT(4), &after));
	assert_int_equal(after.stamp, before.stamp);
	remap(AT(0), 6 * PAGE, AT(0), 6 * PAGE - 100, MREMAP_MAYMOVE); /* nothing */
	assert_int_equal(size_at(AT(4)), 2 * PAGE);
	remap(AT(0), 6 * PAGE, AT(0), PAGE + 1, MREMAP_MAYMOVE);
	assert_int_equal(size_at(AT(0)), 2 * PAGE);
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(fixture_history_count(&fixture), 3);
	/* Of one mapping it is the bytes that count. */
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t at = AT(100 + i * 200), to = i ? at + 100 * PAGE : at;
		const int flags = i ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
		map(at, 3 * PAGE - 100, ANONYMOUS);
		remap(at, 3 * PAGE - 100, to, 3 * PAGE - 1, flags);
		assert_int_equal(size_at(to), 3 * PAGE - 1);
		remap(to, 3 * PAGE - 1, at, 2 * PAGE + 7, flags);
		assert_int_equal(size_at(at), 2 * PAGE + 7);
		remap(at, 2 * PAGE + 7, to, 2 * PAGE, flags);
		assert_int_equal(size_at(to), 2 * PAGE);
		unmap(to, 2 * PAGE);
	}
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

static void test_mremap_keeps_the_kind(void **state)
{
	(void)state;
	for (uint64_t kind = 0; kind < 2; kind++) {
		uint64_t at = AT(1000 * kind);

		map(at, 4 * PAGE, kind ? MAP_SHARED : ANONYMOUS);
		remap(at, 4 * PAGE, at, 6 * PAGE, 0); /* in place */
		assert_int_equal(size_at(at), 6 * PAGE);
		remap(at, 6 * PAGE, at + 100 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
		assert_int_equal(size_at(at), UINT64_MAX);
		assert_int_equal(size_at(at + 100 * PAGE), 8 * PAGE);
		remap(at + 102 * PAGE, 2 * PAGE, at, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED); /* a part of it */
		assert_int_equal(size_at(at + 100 * PAGE), 2 * PAGE);
		assert_int_equal(size_at(at), 3 * PAGE);
		assert_int_equal(size_at(at + 104 * PAGE), 4 * PAGE);
		remap(at, 0, at + 200 * PAGE, PAGE, MREMAP_MAYMOVE); /* once more */
		assert_int_equal(size_at(at), 3 * PAGE);
		for (uint64_t page = 0; page <= 200; page++)
			if (size_at(at + page * PAGE) != UINT64_MAX)
				assert_int_equal(is_file(at + page * PAGE), kind);
		assert_int_equal(fixture_live_count(&fixture), 4 * (kind + 1));
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
}

/* A file that was mapped before the session is one when it is resized; not what is mapped there now. */
static void test_files_of_before_the_session(void **state)
{
	const struct unwind_module module = { 0 };
	const struct unwind_range ranges[] = { { AT(0), AT(1000), UNWIND_RANGE_FILE, 0 },
		                               { AT(1000), AT(2000), UNWIND_RANGE_STACK, 0 } };
	uint64_t seen_plain = 0;

	(void)state;
	fixture_index(&fixture, &module, 0, ranges, 2);
	for (uint64_t i = 0; i < 100; i++) {
		remap(AT(10 * i), PAGE, AT(3000 + 400 * i), 300 * PAGE, MREMAP_MAYMOVE);
		remap(AT(1000 + i), PAGE, AT(53000 + 400 * i), 300 * PAGE, MREMAP_MAYMOVE);
		assert_true(is_file(AT(3000 + 400 * i)) && !is_file(AT(53000 + 400 * i)));
		unmap(AT(10 * i + 5), PAGE);
		map(AT(10 * i + 5), PAGE, ANONYMOUS);
		seen_plain += size_at(AT(10 * i + 5)) == UINT64_MAX;
		remap(AT(10 * i + 5), PAGE, AT(103000 + 400 * i), 300 * PAGE, MREMAP_MAYMOVE);
		assert_false(is_file(AT(103000 + 400 * i)));
	}
	assert_true(seen_plain > 50);
}

/* A file of before the session that goes page by page takes no room from what comes. */
static void test_a_file_that_goes_in_pages(void **state)
{
	const struct unwind_module module = { 0 };
	const struct unwind_range range = { AT(0), AT(40000), UNWIND_RANGE_FILE, 0 };

	(void)state;
	fixture_index(&fixture, &module, 0, &range, 1);
	for (uint64_t i = 0; i < 20000; i++) {
		unmap(AT(i), PAGE);
		unmap(AT(39999 - i), PAGE);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_mappings), 0);
	assert_int_equal(mappings_count(AT(0), AT(40000), 10), 1);
	for (uint64_t i = 0; i < 100; i++) {
		map(AT(300 * i), 8 * PAGE, ANONYMOUS);
		unmap(AT(300 * i + 4), 4 * PAGE);
		assert_int_equal(size_at(AT(300 * i)), 4 * PAGE);
		remap(AT(300 * i + 100), PAGE, AT(100000 + 10 * i), 8 * PAGE, MREMAP_MAYMOVE);
		assert_false(is_file(AT(100000 + 10 * i)));
	}
}

/* A file that could not be unmapped is there. */
static void test_a_file_that_stays(void **state)
{
	const struct unwind_module module = { 0 };
	const struct unwind_range range = { AT(0), AT(100), UNWIND_RANGE_FILE, 0 };

	(void)state;
	fixture_index(&fixture, &module, 0, &range, 1);
	answer = UINT64_MAX;
	call(HOOK_munmap, AT(0), PAGE, 0, 0, 0, 0);
	remap(AT(0), PAGE, AT(3000), 8 * PAGE, MREMAP_MAYMOVE);
	assert_true(is_file(AT(3000)));
}

static void *unmap_meanwhile(void *of)
{
	(void)of;
	call(HOOK_munmap, AT(0), 8 * PAGE, 0, 0, 0, 0);
	return NULL;
}

static void unmap_inside(void)
{
	pthread_t thread;

	inside = NULL;
	answer = 0;
	assert_int_equal(pthread_create(&thread, NULL, unmap_meanwhile, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	answer = UINT64_MAX;
}

/* Two threads change one range: who comes second fails, and what it has taken is not there any more. */
static void test_a_range_of_two_threads(void **state)
{
	(void)state;
	map(AT(0), 8 * PAGE, ANONYMOUS);
	gone_from = AT(0);
	gone_to = AT(8);
	inside = unmap_inside;
	remap_fails(AT(0), 8 * PAGE, 0, 20 * PAGE, MREMAP_MAYMOVE);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_history_count(&fixture), 1);
	assert_int_equal(mappings_count(AT(0), AT(8), 10), 0);
}

/* Whoever was not sampled and grows is of the kind that it was made as. */
static void test_kinds_of_what_is_not_sampled(void **state)
{
	uint64_t found = 0;

	(void)state;
	for (uint64_t i = 0; i < 4000; i++) {
		uint64_t at = AT(32 * i);

		map(at, PAGE, i % 2 ? MAP_SHARED : ANONYMOUS);
		remap(at, PAGE, at + PAGE, 20 * PAGE, MREMAP_MAYMOVE);
		if (size_at(at + PAGE) == UINT64_MAX)
			continue;
		assert_int_equal(is_file(at + PAGE), i % 2);
		found++;
		unmap(at + PAGE, 20 * PAGE);
	}
	assert_true(found > 1000);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(test_a_part_grows_or_stays),
		EXACT(test_a_move_that_fails_changes_nothing),
		EXACT(test_a_move_of_many_that_fails_changes_nothing),
		EXACT(test_what_a_failure_unmaps_has_gone),
		EXACT(test_a_gap_is_no_answer),
		EXACT(test_several_mappings_move),
		EXACT(test_shrinking_is_unmapping),
		EXACT_IN_EACH_STATE(test_mremap_keeps_the_kind),
		EXACT(test_a_file_that_goes_in_pages),
		EXACT(test_a_file_that_stays),
		EXACT(test_a_range_of_two_threads),
		cmocka_unit_test_setup_teardown(test_files_of_before_the_session, open_rate, close_session),
		cmocka_unit_test_setup_teardown(test_kinds_of_what_is_not_sampled, open_rate, close_session),
	};

	return cmocka_run_group_tests_name("remap_hook", tests, NULL, NULL);
}
