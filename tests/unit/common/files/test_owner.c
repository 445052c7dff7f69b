/* SPDX-License-Identifier: MIT */
/* What is believed of SUDO_UID and SUDO_GID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/owner.h"

static void test_owner_parse_takes_numbers_of_users(void **state)
{
	(void)state;
	uid_t uid = 0;
	gid_t gid = 0;

	assert_true(owner_parse("1000", "100", &uid, &gid));
	assert_int_equal(uid, 1000);
	assert_int_equal(gid, 100);
	assert_true(owner_parse("4294967294", "0", &uid, &gid));
	assert_int_equal(uid, 4294967294u);
}

static void test_owner_parse_refuses_all_else(void **state)
{
	(void)state;
	static const char *const wrong[] = { NULL,   "",           " 1000",
		                             "-1",   "+1",         "1000x",
		                             "0x10", "4294967295", "18446744073709551616" };
	uid_t uid = 7;
	gid_t gid = 7;

	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_false(owner_parse(wrong[i], "100", &uid, &gid));
		assert_false(owner_parse("1000", wrong[i], &uid, &gid));
	}
	assert_false(owner_parse("0", "0", &uid, &gid));
	assert_int_equal(uid, 7);
	assert_int_equal(gid, 7);
}

static void test_owner_give_needs_root(void **state)
{
	(void)state;
	char path[] = "/tmp/owner-XXXXXX";
	struct stat before, after;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(setenv("SUDO_UID", "1000", 1), 0);
	assert_int_equal(setenv("SUDO_GID", "100", 1), 0);
	owner_give(fd);
	assert_int_equal(fstat(fd, &after), 0);
	if (geteuid() == 0) {
		assert_int_equal(after.st_uid, 1000);
		assert_int_equal(after.st_gid, 100);
	} else {
		assert_int_equal(after.st_uid, before.st_uid);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_parse_takes_numbers_of_users),
		cmocka_unit_test(test_owner_parse_refuses_all_else),
		cmocka_unit_test(test_owner_give_needs_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
