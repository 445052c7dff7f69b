/* SPDX-License-Identifier: MIT */
/* What --every is made of: times that do not drift, dumps of which the latest are kept, a seed for each session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "recording/kept_dumps.h"
#include "run/repeat.h"
#include "host/session_seed.h"

#define SECOND 1000000000ull

static void test_schedule_next_does_not_drift(void **state)
{
	struct schedule s = { .first_ns = 7 * SECOND, .period_ns = 10 * SECOND };
	uint64_t now = s.first_ns, missed;

	(void)state;
	for (unsigned i = 1; i <= 1000; i++) {
		uint64_t next = schedule_next(&s, now, &missed);
		assert_int_equal(next, 7 * SECOND + i * 10 * SECOND);
		assert_int_equal(missed, 0);
		now = next + (i * 7919) % (9 * SECOND); /* what a session takes, and the wait too long */
	}
}

static void test_schedule_next_leaves_out_what_is_past(void **state)
{
	struct schedule s = { .first_ns = 7 * SECOND, .period_ns = 10 * SECOND };
	uint64_t missed;

	(void)state;
	assert_int_equal(schedule_next(&s, 38 * SECOND, &missed), 47 * SECOND);
	assert_int_equal(missed, 3);
	/* Woken a moment too early: not the same time again. */
	assert_int_equal(schedule_next(&s, 47 * SECOND - 1, &missed), 57 * SECOND);
	assert_int_equal(missed, 0);
	assert_int_equal(schedule_next(&s, 57 * SECOND, &missed), 67 * SECOND);
	assert_int_equal(missed, 0);
}

static void test_session_seed_is_of_the_session(void **state)
{
	uint64_t seen[400];
	unsigned count = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++)
		for (uint64_t ordinal = 0; ordinal < 100; ordinal++) {
			uint64_t own = session_seed(seed, ordinal);
			assert_int_equal(own, session_seed(seed, ordinal));
			assert_int_not_equal(own, 0);
			for (unsigned i = 0; i < count; i++)
				assert_int_not_equal(own, seen[i]);
			seen[count++] = own;
		}
	assert_int_equal(session_seed(7, 0), 7);
	assert_int_equal(session_seed(0, 5), 0);
}

static struct file_identity make_file(const char *name)
{
	struct file_identity identity;
	int fd = open(name, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_identity_read(fd, "", &identity), 0);
	close(fd);
	return identity;
}

static const char *number_name(unsigned i, char name[16])
{
	snprintf(name, 16, "%u.dump", i);
	return name;
}

/* 0.dump up to last.dump: only those from first on are there. */
static void assert_there(unsigned first, unsigned last)
{
	char name[16];

	for (unsigned i = 0; i <= last; i++)
		assert_int_equal(access(number_name(i, name), F_OK), i < first ? -1 : 0);
}

static void test_kept_dumps_add_removes_the_oldest(void **state)
{
	char name[16];
	struct err e;

	(void)state;
	for (unsigned limit = 1; limit <= 33; limit += 4) {
		struct kept_dumps k = { .limit = limit };
		for (unsigned i = 0; i < 70; i++) {
			struct file_identity identity = make_file(number_name(i, name));
			assert_int_equal(kept_dumps_add(&k, name, &identity, &e), 0);
			assert_there(i < limit ? 0 : i + 1 - limit, i);
		}
		kept_dumps_free(&k);
		assert_there(70 - limit, 69); /* at the end all that is kept stays */
		for (unsigned i = 70 - limit; i < 70; i++)
			assert_int_equal(unlink(number_name(i, name)), 0);
	}
}

static void test_kept_dumps_add_leaves_what_is_not_ours(void **state)
{
	struct kept_dumps k = { .limit = 1 };
	struct file_identity first = make_file("first"), second = make_file("second"), third = make_file("third");
	struct err e;

	(void)state;
	assert_int_equal(kept_dumps_add(&k, "first", &first, &e), 0);
	assert_int_equal(rename("first", "moved"), 0);
	make_file("first");
	assert_int_equal(kept_dumps_add(&k, "second", &second, &e), 0);
	assert_int_equal(access("first", F_OK), 0);
	assert_int_equal(access("moved", F_OK), 0);
	assert_int_equal(unlink("second"), 0); /* somebody else has removed it */
	assert_int_equal(kept_dumps_add(&k, "third", &third, &e), 0);
	assert_int_equal(k.count, 1);
	kept_dumps_free(&k);
	assert_int_equal(unlink("first") | unlink("moved") | unlink("third"), 0);
}

static int enter_directory(void **state)
{
	static char name[] = "/tmp/memattach-repeat-XXXXXX";

	*state = name;
	return mkdtemp(name) && chdir(name) == 0 ? 0 : -1;
}

static int leave_directory(void **state)
{
	return chdir("/") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session_seed_is_of_the_session),
		cmocka_unit_test(test_schedule_next_does_not_drift),
		cmocka_unit_test(test_schedule_next_leaves_out_what_is_past),
		cmocka_unit_test(test_kept_dumps_add_removes_the_oldest),
		cmocka_unit_test(test_kept_dumps_add_leaves_what_is_not_ours),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
