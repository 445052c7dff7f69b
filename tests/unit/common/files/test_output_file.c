/* SPDX-License-Identifier: MIT */
/* Where an output file goes, and that nobody who may write in its directory can have it go, or destroy, elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/output_file.h"

#define STRANGER 12345

static char directory[] = "/tmp/output-file-XXXXXX";

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *name, const char *text)
{
	char there[100] = "";
	int fd = open(name, O_RDONLY | O_NOFOLLOW);

	assert_true(fd >= 0);
	assert_true(read(fd, there, sizeof there - 1) >= 0);
	close(fd);
	assert_string_equal(there, text);
}

static int write_for(const char *path, enum output_use use, struct err *e)
{
	struct output_file f;

	int rc = output_file_open(&f, path, use, e);
	if (rc)
		return rc;
	fputs("new", f.stream);
	rc = output_file_finish(&f, e);
	output_file_done(&f);
	return rc;
}

static int write_new(const char *path, struct err *e)
{
	return write_for(path, OUTPUT_OF_SESSION, e);
}

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return !mkdtemp(directory) || chdir(directory) || mkdir("shared", 0777) || mkdir("elsewhere", 0755) ||
	       chmod("shared", 0777);
}

static int remove_directory(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return chdir("/") || system(command);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode & 07777;
}

static void test_output_file_takes_the_name_when_it_is_whole(void **state)
{
	(void)state;
	struct output_file f;
	struct err e;

	put("report", "old");
	assert_int_equal(chmod("report", 0640), 0);
	assert_int_equal(output_file_open(&f, "report", OUTPUT_OF_COMMAND, &e), 0);
	fputs("half", f.stream);
	output_file_done(&f);
	assert_holds("report", "old");
	assert_int_equal(write_new("report", &e), 0);
	assert_holds("report", "new");
	assert_int_equal(mode_of("report"), 0640);
	assert_int_equal(write_new("./shared/../another", &e), 0);
	assert_holds("another", "new");
	assert_int_equal(write_new("none/report", &e), -ENOENT);
	assert_int_equal(write_new("shared/", &e), -EISDIR);
	assert_int_equal(write_new("shared", &e), -EISDIR);
	assert_int_equal(write_new("report/below", &e), -ENOTDIR);
}

static void test_output_file_follows_links_of_ours(void **state)
{
	(void)state;
	struct err e;

	assert_int_equal(symlink("../elsewhere/report", "shared/report"), 0);
	assert_int_equal(symlink("elsewhere", "way"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(write_new("shared/report", &e), 0);
	assert_holds("elsewhere/report", "new");
	assert_int_equal(write_new("way/other", &e), 0);
	assert_holds("elsewhere/other", "new");
	assert_int_equal(write_new("loop", &e), -ELOOP);
	assert_null(strstr(e.text, "another user"));
	assert_int_equal(write_new("/dev/null", &e), 0);
}

/* Between the opening and the end of the writing. */
static void test_output_file_stays_where_it_was_opened(void **state)
{
	(void)state;
	struct output_file f;
	struct err e;

	put("elsewhere/report", "precious");
	assert_int_equal(output_file_open(&f, "shared/report", OUTPUT_OF_COMMAND, &e), 0);
	fputs("new", f.stream);
	assert_int_equal(symlink("../elsewhere/report", "shared/report"), 0);
	assert_int_equal(rename("shared", "moved"), 0);
	assert_int_equal(symlink("elsewhere", "shared"), 0);
	assert_int_equal(output_file_finish(&f, &e), 0);
	output_file_done(&f);
	assert_holds("elsewhere/report", "precious");
	assert_holds("moved/report", "new");
}

static void test_output_file_follows_no_links_of_others(void **state)
{
	(void)state;
	struct err e;

	if (geteuid() != 0)
		skip(); /* nobody else can be the owner of anything */
	put("elsewhere/report", "precious");
	assert_int_equal(symlink("../elsewhere/report", "shared/report"), 0);
	assert_int_equal(symlink("elsewhere", "way"), 0);
	assert_int_equal(lchown("shared/report", STRANGER, STRANGER), 0);
	assert_int_equal(lchown("way", STRANGER, STRANGER), 0);
	assert_int_equal(write_new("shared/report", &e), -ELOOP);
	assert_non_null(strstr(e.text, "report is a symbolic link of another user"));
	assert_int_equal(write_new("way/report", &e), -ELOOP);
	assert_non_null(strstr(e.text, "way is a symbolic link of another user"));
	assert_int_equal(write_new("way/new", &e), -ELOOP);
	assert_holds("elsewhere/report", "precious");
	assert_int_not_equal(access("elsewhere/new", F_OK), 0);
	/* Under sudo it may be his who typed that. */
	assert_int_equal(setenv("SUDO_UID", "12345", 1), 0);
	assert_int_equal(setenv("SUDO_GID", "12345", 1), 0);
	assert_int_equal(write_new("way/new", &e), 0);
	assert_int_equal(unsetenv("SUDO_UID"), 0);
}

static void test_output_file_gives_nothing_to_others(void **state)
{
	(void)state;
	struct err e;

	if (geteuid() != 0)
		skip();
	umask(022);
	put("shared/report", "old");
	put("elsewhere/precious", "precious");
	assert_int_equal(chmod("shared/report", 0666), 0);
	assert_int_equal(chown("shared/report", STRANGER, STRANGER), 0);
	assert_int_equal(write_for("shared/report", OUTPUT_OF_COMMAND, &e), 0);
	assert_int_equal(mode_of("shared/report"), 0644);
	assert_int_equal(write_new("shared/of_session", &e), 0);
	assert_int_equal(mode_of("shared/of_session"), 0600);
	/* Another name of a file that is elsewhere. */
	assert_int_equal(link("elsewhere/precious", "shared/linked"), 0);
	assert_int_equal(write_new("shared/linked", &e), 0);
	assert_holds("elsewhere/precious", "precious");
	assert_int_equal(mkfifo("shared/fifo", 0666), 0);
	assert_int_equal(write_new("shared/fifo", &e), -ENXIO); /* and does not wait for a reader */
	assert_int_equal(chown("shared/fifo", STRANGER, STRANGER), 0);
	assert_int_equal(write_new("shared/fifo", &e), -EACCES);
	/* As in /tmp. */
	put("shared/theirs", "old");
	assert_int_equal(chown("shared/theirs", STRANGER, STRANGER), 0);
	assert_int_equal(chown("shared", STRANGER + 1, STRANGER), 0);
	assert_int_equal(chmod("shared", 01777), 0);
	assert_int_equal(write_new("shared/theirs", &e), -EACCES);
	assert_holds("shared/theirs", "old");
	assert_int_equal(write_new("shared/report", &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_output_file_takes_the_name_when_it_is_whole, make_directory,
		                                remove_directory),
		cmocka_unit_test_setup_teardown(test_output_file_follows_links_of_ours, make_directory,
		                                remove_directory),
		cmocka_unit_test_setup_teardown(test_output_file_stays_where_it_was_opened, make_directory,
		                                remove_directory),
		cmocka_unit_test_setup_teardown(test_output_file_follows_no_links_of_others, make_directory,
		                                remove_directory),
		cmocka_unit_test_setup_teardown(test_output_file_gives_nothing_to_others, make_directory,
		                                remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
