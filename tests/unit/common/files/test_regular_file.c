/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/regular_file.h"

static char directory[] = "/tmp/regular-file-test.XXXXXX";

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(directory) || chdir(directory))
		return -1;
	int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, "text", 4) != 4 || close(fd) || symlink("file", "link") ||
	       symlink("fifo", "to-fifo") || mkfifo("fifo", 0600);
}

static int take_away(void **state)
{
	(void)state;
	return unlink("file") || unlink("link") || unlink("to-fifo") || unlink("fifo") || rmdir(directory);
}

static void test_a_file_is_opened_also_through_a_link(void **state)
{
	static const char *const names[] = { "file", "link" };
	struct err e;
	char text[8];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = regular_file_open(names[i], &e);
		assert_true(fd >= 0);
		assert_int_equal(read(fd, text, sizeof text), 4);
		assert_memory_equal(text, "text", 4);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
	assert_int_equal(regular_file_open_at(AT_FDCWD, "link", O_NOFOLLOW), -ESPIPE);
}

/* Nobody writes into the FIFO: who opens it waits for ever. */
static void test_nothing_else_is_opened(void **state)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = {
		{ "fifo", ESPIPE }, { "to-fifo", ESPIPE }, { "/dev/null", ESPIPE }, { ".", EISDIR }, { "none", ENOENT }
	};
	struct err e;

	(void)state;
	alarm(60);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(regular_file_open(cases[i].name, &e), -cases[i].code);
		assert_int_equal(e.code, cases[i].code);
		assert_true(e.text[0]);
	}
	alarm(0);
}

/* A descriptor that is left open at each refusal would show here. */
static void test_descriptors_are_closed(void **state)
{
	int before = dup(0);

	(void)state;
	close(before);
	for (int i = 0; i < 10; i++)
		assert_int_equal(regular_file_open_at(AT_FDCWD, "fifo", 0), -ESPIPE);
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_is_opened_also_through_a_link),
		cmocka_unit_test(test_nothing_else_is_opened),
		cmocka_unit_test(test_descriptors_are_closed),
	};
	return cmocka_run_group_tests(tests, make, take_away);
}
