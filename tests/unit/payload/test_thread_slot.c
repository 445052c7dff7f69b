/* SPDX-License-Identifier: MIT */
/* Which thread gets which state: the near one, the same again, one of another thread; by many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate.h"
#include "lost_owners.h"
#include "tables_fixture.h"
#include "thread_slot.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_thread_slot_acquire_excludes),
		SESSION_TEST(test_first_thread_gets_the_near_slot),
		SESSION_TEST(test_thread_slot_acquire_finds_the_same_and_steals),
	};

	return cmocka_run_group_tests_name("thread_slot", tests, NULL, NULL);
}
