/* SPDX-License-Identifier: MIT */
/* A session at 64 bytes without any region, for the tests of what the hooks keep in the dump. */
#pragma once

#include "fixture.h"

#define THREADS 4

extern struct fixture fixture;

int open_session(void **state);
int close_session(void **state);
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)

/* A record whose size tells its address. */
struct dump_live_record record_of(uint64_t address);
/* THREADS times at once, with the numbers from 1 as argument; the test fails with what one of them returns. */
void run_threads(void *(*function)(void *));
