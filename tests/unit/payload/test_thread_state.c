/* SPDX-License-Identifier: MIT */
/* Which thread gets which state: the near one, the same again, one of another thread; by many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trampoline_setup.h"
#include "lost_owners.h"
#include "tables_fixture.h"
#include "thread_state.h"

static void *state_worker(void *argument)
{
	(void)argument;
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t tp = (i % 50 + 1) << 12;
		int fresh;
		struct thread_state *thread = thread_state_acquire(tp, 0x1000, &fresh);

		if (!thread)
			continue;
		thread->random++; /* TSan proves the exclusion */
		if (fresh)
			thread_state_publish(thread, tp);
		thread_state_release(thread);
	}
	return NULL;
}

static void test_thread_state_acquire_excludes(void **state)
{
	(void)state;
	run_threads(state_worker);
}

static void test_first_thread_gets_the_near_state(void **state)
{
	struct thread_state *near = &trampolines_shared->near, *thread;
	int fresh;

	(void)state;
	lose_owners();
	for (uint64_t tp = 0x7000; tp < 0xa000; tp += 0x1000) {
		thread = thread_state_acquire(tp, 0x1000, &fresh);
		assert_true(thread && fresh);
		assert_int_equal(thread == near, tp == 0x7000);
		thread_state_publish(thread, tp);
		thread_state_release(thread);
	}
	/* It stays that thread's: nobody steals it, and nobody takes another while it is busy. */
	thread = thread_state_acquire(0x7000, 0x1000, &fresh);
	assert_ptr_equal(thread, near);
	assert_false(fresh);
	/* What other threads read is not what its owner writes, nor its neighbour, and comes back if it got lost. */
	assert_int_equal(trampolines_shared->near_owner, 0x7000);
	assert_true(TRAMPOLINES_NEAR - TRAMPOLINES_NEAR_OWNER >= 128 &&
	            TRAMPOLINES_SHARED_BYTES - TRAMPOLINES_NEAR >= 128); /* the prefetcher fetches pairs */
	trampolines_shared->near_owner = 0;
	assert_null(thread_state_acquire(0x7000, 0xf00, &fresh));
	thread_state_release(thread);
	assert_ptr_equal(thread_state_acquire(0x7000, 0x1000, &fresh), near);
	thread_state_show(thread, 0x7000);
	assert_int_equal(trampolines_shared->near_owner, 0x7000);
	assert_null(thread_state_acquire(0x7000, 0xf00, &fresh));
	thread_state_release(thread);
	/* Who has another one does not look at what the near one's owner writes. */
	near->owner = 0x8000;
	thread = thread_state_acquire(0x8000, 0x1000, &fresh);
	assert_true(thread && thread != near && !fresh);
	thread_state_release(thread);
	near->owner = 0x7000;
	for (uint64_t i = 0; i < 100; i++) {
		thread = thread_state_acquire(0x7000 + (i << 36), 0x1000, &fresh);
		assert_true(thread && (thread != near || i == 0));
		thread_state_publish(thread, 0x7000 + (i << 36));
		thread_state_release(thread);
	}
	lose_owners();
}

static void test_thread_state_acquire_finds_the_same_and_steals(void **state)
{
	struct thread_state *thread, *again;
	int fresh;

	(void)state;
	thread = thread_state_acquire(0x7000, 0x10000, &fresh);
	assert_true(thread && fresh);
	thread_state_publish(thread, 0x7000);
	assert_null(thread_state_acquire(0x7000, 0xf000, &fresh)); /* a signal handler: deeper in the stack */
	again = thread_state_acquire(0x7000, 0x10100, &fresh);     /* the hook's frame is gone */
	assert_ptr_equal(thread, again);
	assert_false(fresh);
	thread_state_release(thread);
	/* more owners of one home than thread states */
	for (uint64_t i = 0; i < 3 * THREAD_STATE_PROBES; i++) {
		uint64_t tp = 0x7000 + i;

		thread = thread_state_acquire(tp, 0x1000, &fresh);
		assert_non_null(thread);
		if (fresh)
			thread_state_publish(thread, tp);
		thread_state_release(thread);
		again = thread_state_acquire(tp, 0x1000, &fresh);
		assert_ptr_equal(thread, again);
		assert_false(fresh);
		thread_state_release(again);
	}
	lose_owners();
	thread = thread_state_acquire(0x7000, 0x1000, &fresh);
	assert_true(thread && fresh);
	thread_state_release(thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_thread_state_acquire_excludes),
		SESSION_TEST(test_first_thread_gets_the_near_state),
		SESSION_TEST(test_thread_state_acquire_finds_the_same_and_steals),
	};

	return cmocka_run_group_tests_name("thread_state", tests, NULL, NULL);
}
