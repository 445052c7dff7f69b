/* SPDX-License-Identifier: MIT */
/*
 * Every hook: arguments and results pass unchanged, the dump holds what the shape of the function says, whatever the
 * originals do, and signal handlers too.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cmocka.h>

#include "trampoline_setup.h"
#include "hook_fixture.h"
#include "payload.h"
#include "thread_state.h"

/* All six arguments and the result, on the fast and the slow path, for each hook. */
static void test_hook_passes_arguments_and_result(void **state)
{
	const uint64_t every = 1, seldom = 1ull << 30;
	uint64_t word;

	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		for (int slow = 0; slow < 2; slow++) {
			uint64_t first = (uint64_t)&word, wanted[] = { first, 20 + i, 30 + i, 0x22, 50 + i, 60 + i };

			order_at_once(slow ? every : seldom);
			answer = facts[i].shape == SHAPE_OUT ? 0x1100000000ull + (uint32_t)EINVAL
			                                     : 0x7000000 + 4096 * i;
			memset(seen, 0, sizeof(seen));
			assert_int_equal(call(i, first, 20 + i, 30 + i, 0x22, 50 + i, 60 + i), answer);
			assert_memory_equal(seen, wanted, sizeof(seen));
		}
	}
}

static uint64_t size_of(uint32_t hook, const uint64_t *a)
{
	switch (facts[hook].size) {
	case SIZE_ARG0: return a[0];
	case SIZE_ARG1: return a[1];
	case SIZE_ARG2: return a[2];
	case SIZE_ARG0_X_ARG1: return a[0] * a[1];
	default: return a[1] * a[2];
	}
}

static bool releases(uint32_t hook)
{
	return facts[hook].shape == SHAPE_FREE || facts[hook].shape == SHAPE_UNMAP ||
	       facts[hook].shape == SHAPE_POOL_FREE;
}

/* A call that is only counted goes on to the original. */
static void test_hook_counts_deallocations_of_code(void **state)
{
	extern volatile uint64_t code_deallocations[]; /* of known_code.c: the count comes first */
	const uint64_t before = code_deallocations[0];

	(void)state;
	answer = 7;
	assert_int_equal(call(HOOK_python_code, 1, 2, 3, 4, 5, 6), 7);
	assert_int_equal(call(HOOK_python_code, 1, 2, 3, 4, 5, 6), 7);
	assert_int_equal(code_deallocations[0], before + 2);
	assert_int_equal(fixture_live_count(&fixture), 0);
}

/* What makes blocks makes a record with the size that was asked for; a failure makes none. */
static void test_hook_records_new_blocks(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		uint64_t block = 0x10000000 + 4096ull * i, out = 0;
		uint64_t a[4] = { 40, 50, 6, MAP_ANONYMOUS };
		struct dump_live_record record;
		uint64_t taken = fixture_counter(&fixture, DUMP_COUNTER_samples_taken);

		if (releases(i) || facts[i].shape == SHAPE_RESIZE || facts[i].shape == SHAPE_COUNT)
			continue;
		if (facts[i].shape == SHAPE_OUT)
			a[0] = (uint64_t)&out;
		if (facts[i].shape == SHAPE_REMAP)
			a[1] = 0; /* once more */
		store_out = facts[i].shape == SHAPE_OUT;
		answer = store_out                                                      ? ENOMEM
		         : facts[i].shape == SHAPE_MAP || facts[i].shape == SHAPE_REMAP ? UINT64_MAX
		                                                                        : 0;
		out_value = block;
		call(i, a[0], a[1], a[2], a[3], 0, 0);
		assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), taken);
		answer = store_out ? 0 : block;
		call(i, a[0], a[1], a[2], a[3], 0, 0);
		store_out = false;
		if (!fixture_live(&fixture, (void *)block, &record))
			fail_msg("%s: no record", facts[i].name);
		assert_int_equal(record.hook, i);
		assert_int_equal(record.size, size_of(i, a));
		assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), taken + 1);
	}
}

static void make(uint64_t block, uint64_t size)
{
	answer = block;
	call(HOOK_malloc, size, 0, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)block, NULL));
}

static uint64_t watched;

/* As another thread to which the allocator gives the block while the original still works. */
static void get_it_again(void)
{
	inside = NULL;
	answer = watched;
	call(HOOK_malloc, 20, 0, 0, 0, 0, 0);
	answer = 0; /* as munmap says that it did */
}

/* The block that a free is about may be somebody else's before the original returns: each of the two has its own
 * record. */
static void test_hook_leaves_the_next_block_alone(void **state)
{
	struct dump_live_record record;
	struct dump_history_record past;
	uint64_t freed = 0;

	(void)state;
	watched = 0x5000;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		if (!releases(i))
			continue;
		make(watched, 10);
		inside = get_it_again;
		if (facts[i].shape == SHAPE_POOL_FREE)
			call(i, 1, watched, 2, 3, 4, 5);
		else
			call(i, watched, 1, 2, 3, 4, 5);
		assert_null(inside);
		assert_true(fixture_live(&fixture, (void *)watched, &record));
		assert_int_equal(record.size, 20);
		assert_true(fixture_history(&fixture, freed++, &past));
		assert_int_equal(past.size, 10);
		call(HOOK_free, watched, 0, 0, 0, 0, 0);
		assert_int_equal(fixture_live_count(&fixture), 0);
		assert_true(fixture_history(&fixture, freed++, &past));
		assert_int_equal(past.size, 20);
	}
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), freed);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_freed), freed);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
	assert_int_equal(fixture_history_count(&fixture), freed);
}

static void test_realloc_semantics(void **state)
{
	struct dump_live_record record;

	(void)state;
	make(0x1000, 10);
	answer = 0; /* failed: the block is as it was */
	call(HOOK_realloc, 0x1000, 20, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)0x1000, &record));
	assert_int_equal(record.size, 10);
	answer = 0x1000; /* in place */
	call(HOOK_realloc, 0x1000, 30, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)0x1000, &record));
	assert_int_equal(record.size, 30);
	answer = 0x2000; /* moved */
	call(HOOK_reallocarray, 0x1000, 8, 5, 0, 0, 0);
	assert_false(fixture_live(&fixture, (void *)0x1000, &record));
	assert_true(fixture_live(&fixture, (void *)0x2000, &record));
	assert_int_equal(record.size, 40);
	answer = 0; /* the product overflows: refused, though it wraps to 0 */
	call(HOOK_reallocarray, 0x2000, 1ull << 63, 2, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)0x2000, &record));
	call(HOOK_realloc, 0x2000, 0, 0, 0, 0, 0); /* freed */
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 0);
	assert_int_equal(fixture_history_count(&fixture), 3);
	answer = UINT64_MAX; /* mremap to 0 bytes is an error, not a free */
	make(0x3000, 4096);
	answer = UINT64_MAX;
	call(HOOK_mremap, 0x3000, 4096, 0, 0, 0, 0);
	assert_int_equal(fixture_live_count(&fixture), 1);
}

static void test_xallocx_semantics(void **state)
{
	struct dump_live_record record;

	(void)state;
	make(0x1000, 10);
	answer = 16; /* did not grow */
	call(HOOK_xallocx, 0x1000, 100, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)0x1000, &record));
	assert_int_equal(record.size, 10);
	answer = 112;
	call(HOOK_xallocx, 0x1000, 100, 0, 0, 0, 0);
	assert_true(fixture_live(&fixture, (void *)0x1000, &record));
	assert_int_equal(record.size, 100);
}

static void test_calloc_overflow_records_nothing(void **state)
{
	(void)state;
	answer = 0;
	call(HOOK_calloc, 1ull << 33, 1ull << 33, 0, 0, 0, 0);
	call(HOOK_malloc, UINT64_MAX, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 0);
}

static void test_no_bytes_count_as_one(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		uint64_t block = 0x7000000 + 4096 * i, taken = fixture_counter(&fixture, DUMP_COUNTER_samples_taken),
			 out = 0;

		if (facts[i].size == SIZE_NONE || facts[i].shape == SHAPE_RESIZE || facts[i].shape == SHAPE_POOL)
			continue;
		store_out = facts[i].shape == SHAPE_OUT;
		out_value = block;
		answer = store_out ? 0 : block;
		call(i, store_out ? (uint64_t)&out : 0, 0, 0, 0x22, 0, 0);
		assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), taken + 1);
	}
	store_out = false;
}

static void test_missed_free_is_noticed(void **state)
{
	struct dump_history_record past;

	(void)state;
	make(0x1000, 10);
	make(0x1000, 20);
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_frees_missed), 1);
	assert_true(fixture_history(&fixture, 0, &past));
	assert_int_equal(past.flags, DUMP_HISTORY_FREE_MISSED);
	assert_int_equal(past.size, 10);
}

static uint64_t calls_of_other;

static uint64_t other_original(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)g;
	return 0x6660 + 0x1000 * ++calls_of_other;
}

/* Two allocators in one process: each trampoline calls its own, the blocks of both are recorded, and either's free
 * finds them. */
static void test_trampolines_of_two_allocators(void **state)
{
	struct trampoline *trampolines = (struct trampoline *)trampoline_data(memattach_session.trampolines_address, 0);

	(void)state;
	trampolines[HOOK_malloc].original = (uint64_t)other_original;
	calls_of_other = 0;
	answer = 0x5550;
	for (int i = 0; i < 10; i++) {
		answer += 0x1000;
		assert_int_equal(call(HOOK_malloc, 10, 0, 0, 0, 0, 0), 0x6660 + 0x1000 * (uint64_t)(i + 1));
		assert_int_equal(call(HOOK_calloc, 1, 20, 0, 0, 0, 0), answer);
	}
	assert_int_equal(calls_of_other, 10);
	assert_int_equal(fixture_live_count(&fixture), 20);
	for (uint64_t i = 0; i < 10; i++) {
		call(HOOK_free, 0x7660 + 0x1000 * i, 0, 0, 0, 0, 0);
		call(HOOK_cfree, 0x6550 + 0x1000 * i, 0, 0, 0, 0, 0);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_history_count(&fixture), 20);
}

static void *free_blocks(void *unused)
{
	for (uint64_t i = 0; i < 10; i++)
		call(HOOK_free, 0x1000 * (i + 1), 0, 0, 0, 0, 0);
	return unused;
}

/* A thread that only frees, as one that takes messages out of a queue, has never been charged. */
static void test_a_thread_that_only_frees_has_history(void **state)
{
	pthread_t thread;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		make(0x1000 * (i + 1), 40);
	assert_int_equal(pthread_create(&thread, NULL, free_blocks, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_history), 0);
	assert_int_equal(fixture_history_count(&fixture), 10);
	make(0x1000, 40);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_busy), 0);
}

static uint64_t usable_of(uint64_t block)
{
	return block == 0x7770 ? 48 : 1000;
}

/* An allocator may do anything before it tells a size, even call itself: that is counted as lost, and the record is
 * what it would have been. */
static uint64_t usable_by_allocating(uint64_t block)
{
	struct dump_live_record record;

	assert_false(fixture_live(&fixture, (void *)block, &record));
	answer = 0x5000;
	call(HOOK_malloc, 7, 0, 0, 0, 0, 0);
	answer = block;
	return 48;
}

static void test_usable_size_is_asked_for_last(void **state)
{
	struct dump_live_record record;

	(void)state;
	payload.usable_size = (uint64_t)usable_by_allocating;
	make(0x1000, 40);
	assert_true(fixture_live(&fixture, (void *)0x1000, &record));
	assert_int_equal(record.usable, 48);
	assert_int_equal(record.size, 40);
	assert_int_equal(fixture_live_count(&fixture), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_busy), 1);
}

/* A free of a block without a record is counted, with its size; NULL, munmap and recorded blocks are not. */
static void test_frees_of_unseen_blocks_are_counted(void **state)
{
	(void)state;
	payload.usable_size = (uint64_t)usable_of;
	make(0x1000, 10);
	call(HOOK_free, 0x1000, 0, 0, 0, 0, 0);
	call(HOOK_free, 0, 0, 0, 0, 0, 0);
	call(HOOK_munmap, 0x9000, 4096, 0, 0, 0, 0);
	assert_int_equal(fixture.dump->frees_unseen, 0);
	call(HOOK_free, 0x7770, 0, 0, 0, 0, 0);
	call(HOOK_free_sized, 0x8880, 0, 0, 0, 0, 0);
	call(HOOK_delete, 0x9990, 0, 0, 0, 0, 0);
	assert_int_equal(fixture.dump->frees_unseen, 3);
	assert_int_equal(fixture.dump->frees_unseen_bytes, 1048);
	assert_int_equal(fixture_history_count(&fixture), 1);
}

static int open_empty(void **state)
{
	(void)state;
	start(1, false);
	return 0;
}

static void test_hook_without_regions_counts_losses(void **state)
{
	(void)state;
	answer = 0x1000;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	call(HOOK_free, 0x1000, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_samples_taken), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_live_full), 1);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_stack_full), 1);
}

static void test_hook_counts_what_has_no_room(void **state)
{
	const struct dump_region *index = &fixture.dump->regions[0];
	uint64_t unkept = 0;

	(void)state;
	fixture_region(&fixture, DUMP_REGION_STACK_INDEX, 4096, 8);
	fixture_region(&fixture, DUMP_REGION_STACKS, 4096, 0);
	for (uint64_t i = 1; i <= 3; i++) {
		answer = 0x1000 * i;
		call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	}
	const uint64_t *words = (const uint64_t *)(const void *)((const uint8_t *)fixture.dump + index->offset);
	for (uint32_t k = 0; k < 8; k++)
		if (words[k]) {
			const struct dump_stack *stack = fixture_stack(&fixture, DUMP_INDEX_REFERENCE(words[k]));

			assert_int_equal(stack->unkept, stack->taken_count);
			unkept += stack->unkept;
		}
	assert_int_equal(unkept, 3);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_live_full), 3);
	assert_int_equal(fixture_counter(&fixture, DUMP_COUNTER_lost_stack_full), 0);
}

static void test_lease_that_ran_out_ends_the_recording(void **state)
{
	(void)state;
	fixture.dump->lease_stamp = 1;
	answer = 0x1000;
	call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
	assert_int_equal(fixture_live_count(&fixture), 0);
	assert_int_equal(fixture.dump->state, DUMP_STATE_ABANDONED);
	assert_int_equal(*(uint32_t *)memattach_session.switch_address, 0);
	assert_int_equal(call(HOOK_malloc, 10, 0, 0, 0, 0, 0), 0x1000);
}

static volatile sig_atomic_t signals;

static uint64_t quiet_original(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)g;
	return 0x40000000 + (uint64_t)signals % 1000 * 16;
}

static void handler(int number)
{
	(void)number;
	signals++;
	call(HOOK_valloc, 64, 0, 0, 0, 0, 0);
	call(HOOK_cfree, 0x40000000 + (uint64_t)signals % 1000 * 16, 0, 0, 0, 0, 0);
}

/* A timer interrupts hooks wherever they are; its handler calls hooks. */
static void test_signal_handlers_may_call_hooks(void **state)
{
	struct sigaction action = { .sa_handler = handler }, old;
	struct timeval step = { .tv_usec = 200 };
	struct itimerval timer = { step, step }, off = { 0 };
	struct trampoline *trampolines = (struct trampoline *)trampoline_data(memattach_session.trampolines_address, 0);

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("skipped: ThreadSanitizer puts signal handlers off until the next system call\n");
	skip();
#endif
	trampolines[HOOK_valloc].original = trampolines[HOOK_cfree].original = (uint64_t)quiet_original;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	for (uint64_t i = 0; signals < 300 && i < 200000000; i++) {
		answer = 0x10000 + i % 4096 * 64;
		call(HOOK_malloc, 10, 0, 0, 0, 0, 0);
		call(HOOK_free, 0x10000 + i % 4096 * 64, 0, 0, 0, 0, 0);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(fixture_live_count(&fixture) <= 1001);
	assert_true(fixture_counter(&fixture, DUMP_COUNTER_samples_taken) > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT_IN_EACH_STATE(test_hook_passes_arguments_and_result),
		EXACT_IN_EACH_STATE(test_hook_records_new_blocks),
		EXACT(test_hook_counts_deallocations_of_code),
		EXACT(test_hook_leaves_the_next_block_alone),
		EXACT_IN_EACH_STATE(test_realloc_semantics),
		EXACT(test_xallocx_semantics),
		EXACT_IN_EACH_STATE(test_calloc_overflow_records_nothing),
		EXACT_IN_EACH_STATE(test_no_bytes_count_as_one),
		EXACT(test_missed_free_is_noticed),
		EXACT(test_usable_size_is_asked_for_last),
		EXACT_IN_EACH_STATE(test_a_thread_that_only_frees_has_history),
		EXACT(test_frees_of_unseen_blocks_are_counted),
		EXACT(test_trampolines_of_two_allocators),
		EXACT(test_lease_that_ran_out_ends_the_recording),
		EXACT(test_signal_handlers_may_call_hooks),
		cmocka_unit_test_setup_teardown(test_hook_without_regions_counts_losses, open_empty, close_session),
		cmocka_unit_test_setup_teardown(test_hook_counts_what_has_no_room, open_empty, close_session),
	};

	return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
