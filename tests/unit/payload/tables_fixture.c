/* SPDX-License-Identifier: MIT */
/* The session around a test of the tables. */
#include "tables_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture fixture;

int open_session(void **state)
{
	(void)state;
	fixture_open(&fixture, 64, "/proc/self/exe");
	assert_int_equal(memattach_control(CONTROL_START, &fixture.start), 0);
	return 0;
}

int close_session(void **state)
{
	(void)state;
	fixture_inert(&memattach_session);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	fixture_close(&fixture);
	return 0;
}

struct dump_live_record record_of(uint64_t address)
{
	return (struct dump_live_record){ .address = address, .size = address * 3, .usable = ~address };
}

void run_threads(void *(*function)(void *))
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
