/* SPDX-License-Identifier: MIT */
/* What a memattach --system leaves beside its dumps; and what killed ones have left there. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "system/roster.h"

static char directory[] = "/tmp/test_roster.XXXXXX";

static ino_t file_number(const struct roster *r)
{
	struct stat st;

	assert_int_equal(stat(r->path, &st), 0);
	return st.st_ino;
}

/* Every ten seconds, on machines that run for months. A new file is another file. */
static void test_write_leaves_alone_what_has_not_changed(void **state)
{
	(void)state;
	struct unseen u = { 0 };
	struct roster r = { 0 };
	struct err e;

	assert_int_equal(roster_begin(&r, directory, &e), 0);
	unseen_add(&u, "a", 1, "it is stopped");
	assert_int_equal(roster_write(&r, 3, &u, &e), 0);
	ino_t first = file_number(&r);
	assert_int_equal(roster_write(&r, 3, &u, &e), 0);
	assert_int_equal(file_number(&r), first);
	unseen_add(&u, "a", 2, "it is stopped");
	assert_int_equal(roster_write(&r, 3, &u, &e), 0);
	assert_int_not_equal(file_number(&r), first);
	first = file_number(&r);
	assert_int_equal(roster_write(&r, 4, &u, &e), 0);
	assert_int_not_equal(file_number(&r), first);
	unlink(r.path); /* whoever removes files that have not changed for days */
	assert_int_equal(roster_write(&r, 4, &u, &e), 0);
	assert_int_equal(unlink(r.path), 0);
	roster_free(&r);
	unseen_free(&u);
}

/* One that failed is tried again. */
static void test_write_is_tried_again(void **state)
{
	(void)state;
	struct unseen u = { 0 };
	struct roster r = { 0 };
	struct err e;

	assert_int_equal(roster_begin(&r, directory, &e), 0);
	assert_int_equal(mkdir(r.path, 0700), 0);
	assert_true(roster_write(&r, 3, &u, &e) < 0);
	assert_int_equal(rmdir(r.path), 0);
	assert_int_equal(roster_write(&r, 3, &u, &e), 0);
	assert_int_equal(unlink(r.path), 0);
	roster_free(&r);
}

static void make(const char *name, time_t age)
{
	const struct timespec times[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(utimensat(-1, path, times, 0), 0);
}

/* Whether it is there; it is not afterwards. */
static bool took(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return unlink(path) == 0;
}

static void test_begin_removes_what_was_left_half_written(void **state)
{
	(void)state;
	static const char *const others[] = { ".memattach-0123456789abcde.part", ".memattach-0123456789abcdef0.part",
		                              ".memattach-0123456789abcdeg.part", ".memattach-0123456789abcdef.par",
		                              "memattach-0123456789abcdef.part" };
	const size_t count = sizeof others / sizeof others[0];
	struct roster r = { 0 };
	struct err e;

	make(".memattach-0123456789abcdef.part", 2 * 3600);
	make(".memattach-0123456789abcde0.part", 60); /* somebody may be writing to it */
	for (size_t i = 0; i < count; i++)
		make(others[i], 2 * 3600);
	assert_int_equal(roster_begin(&r, directory, &e), 0);
	assert_false(took(".memattach-0123456789abcdef.part"));
	assert_true(took(".memattach-0123456789abcde0.part"));
	for (size_t i = 0; i < count; i++)
		assert_true(took(others[i]));
	roster_free(&r);
}

/* A directory may be of several users, and anything may have such a name. */
static void test_begin_leaves_alone_what_is_not_its_own(void **state)
{
	(void)state;
	static const char linked[] = ".memattach-00000000000000aa.part", strange[] = ".memattach-00000000000000bb.part";
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct roster r = { 0 };
	char path[128];
	struct err e;

	snprintf(path, sizeof path, "%s/%s", directory, linked);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(utimensat(-1, path, old, AT_SYMLINK_NOFOLLOW), 0);
	make(strange, 2 * 3600);
	snprintf(path, sizeof path, "%s/%s", directory, strange);
	bool others = geteuid() == 0 && chown(path, 65534, 65534) == 0;
	assert_int_equal(roster_begin(&r, directory, &e), 0);
	assert_true(took(linked));
	assert_true(took(strange) == others);
	roster_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_leaves_alone_what_has_not_changed),
		cmocka_unit_test(test_write_is_tried_again),
		cmocka_unit_test(test_begin_removes_what_was_left_half_written),
		cmocka_unit_test(test_begin_leaves_alone_what_is_not_its_own),
	};

	if (!mkdtemp(directory))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
