/* SPDX-License-Identifier: MIT */
/* The dump on disk: whole copies under one name, whatever happens to the name, the disk and the process that writes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_file_fixture.h"
#include "dump/dump_reader.h"
#include "touch/threads/tracee.h"

static void test_name_that_exists_is_refused(void **state)
{
	struct dump_file other;
	struct err e;

	(void)state;
	assert_int_equal(dump_file_create(&other, path, &e), -EEXIST);
	assert_non_null(strstr(e.text, "exists"));
}

/* A reader of the copy before keeps that one whole. */
static void test_next_copy_takes_the_place_of_the_one_before(void **state)
{
	struct dump *before;
	struct err e;

	(void)state;
	assert_int_equal(write_now(&e), 0);
	assert_int_equal(dump_open(path, &before, &e), 0);
	put_live(123456);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 1);
	uint64_t sum = 0;
	assert_int_equal(dump_each_live(before, sum_addresses, &sum), 0);
	assert_int_equal(sum, 0);
	assert_true(dump_complete(before));
	dump_close(before);
	assert_int_equal(count_files(), 1);
}

static void test_truncated_and_deleted_files_come_back(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 0);
	assert_int_equal(unlink(path), 0);
	put_live(99);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 1);
	assert_int_equal(count_files(), 1);
}

/* The kernel gives the inode number out again at once; what tells the files apart is when they were made, in ticks of
 * its clock. */
static void remove_ours(void)
{
	usleep(20000);
	assert_int_equal(unlink(path), 0);
}

static void put_foreign(void)
{
	remove_ours();
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
}

static void assert_foreign(void)
{
	char text[8] = "";
	int fd = open(path, O_RDONLY);

	assert_int_equal(read(fd, text, sizeof text), 4);
	assert_memory_equal(text, "mine", 4);
	close(fd);
}

/* What somebody else has put under the name is neither written over nor removed. */
static void test_file_of_somebody_else_stays(void **state)
{
	char beside[160];
	struct err e;

	(void)state;
	snprintf(beside, sizeof beside, "%s.1", path);
	put_foreign();
	assert_int_equal(write_now(&e), 0);
	assert_foreign();
	assert_string_equal(file.path, beside);
	assert_dump(beside, 0);
	assert_int_equal(write_now(&e), 0);
	assert_int_equal(count_files(), 2);
	dump_file_discard(&file);
	assert_foreign();
	assert_int_equal(count_files(), 1);
}

static void test_symbolic_link_is_not_followed(void **state)
{
	char victim[160], beside[160];
	struct stat st;
	struct err e;

	(void)state;
	snprintf(victim, sizeof victim, "%s/victim", directory);
	snprintf(beside, sizeof beside, "%s.1", path);
	remove_ours();
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(write_now(&e), 0);
	assert_int_equal(lstat(victim, &st), -1);
	assert_dump(beside, 0);
}

/* RLIMIT_FSIZE: the signal ends nobody, and the copy before stays. */
static void test_limit_of_file_sizes_is_an_error(void **state)
{
	struct rlimit old, few = { 20000, 0 };
	struct err e;

	(void)state;
	assert_int_equal(write_now(&e), 0);
	put_live(77);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	int rc = write_now(&e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rc, -EFBIG);
	assert_dump(path, 0);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 1);
	assert_int_equal(count_files(), 1);
}

static void test_directory_that_cannot_be_written_is_an_error(void **state)
{
	struct err e;

	(void)state;
	if (geteuid() == 0) { /* root may write everywhere but on a file system that is mounted read-only */
		if (mount("none", directory, "tmpfs", 0, "size=1m") < 0)
			skip();
		struct dump_file small;
		char name[160];
		snprintf(name, sizeof name, "%s/b.dump", directory);
		assert_int_equal(dump_file_create(&small, name, &e), 0);
		assert_int_equal(mount("none", directory, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
		struct dump_source source;
		unsigned calls = 0;
		dump_source_of_writer(&source, &writer);
		assert_int_equal(dump_file_write(&small, &source, &(struct patience){ patient, &calls }, &e), -EROFS);
		dump_file_close(&small);
		assert_int_equal(umount(directory), 0);
		return;
	}
	assert_int_equal(chmod(directory, 0500), 0);
	assert_int_equal(write_now(&e), -EACCES);
	assert_int_equal(chmod(directory, 0700), 0);
}

/* As a user who may have no process more. */
static int write_without_processes(void)
{
	const struct rlimit none = { 0, 0 };
	struct err e;

	if ((geteuid() == 0 && setuid(65534) < 0) || setrlimit(RLIMIT_NPROC, &none) < 0)
		return 2;
	if (fork() >= 0)
		return 3;
	return write_now(&e) == 0 ? 0 : 1;
}

/* A limit on processes: the last copy is written all the same. */
static void test_last_copy_needs_no_process(void **state)
{
	int status;

	(void)state;
	put_live(5);
	assert_int_equal(chmod(directory, 0777), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(write_without_processes());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_dump(path, 1);
}

static void part_name(char name[160], pid_t pid)
{
	snprintf(name, 160, "%s/.memattach-%d.part", directory, (int)pid);
}

/* Files beside the dump are not memattach's, even if they are named after the process that will write. */
static void test_files_beside_stay(void **state)
{
	enum { AHEAD = 400 };
	pid_t first = getpid() + 1;
	char name[160];
	struct err e = { 0 };

	(void)state;
	for (pid_t pid = first; pid < first + AHEAD; pid++) {
		part_name(name, pid);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
	int rc = write_now(&e);
	put_live(7);
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	dump_file_abort(&file);
	unsigned files = count_files();
	for (pid_t pid = first; pid < first + AHEAD; pid++) {
		part_name(name, pid);
		unlink(name);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(files, AHEAD + 1);
}

static void test_name_of_a_directory_is_refused(void **state)
{
	struct dump_file other;
	struct err e;
	char name[160];

	(void)state;
	snprintf(name, sizeof name, "%s/new/", directory);
	assert_int_equal(dump_file_create(&other, name, &e), -EISDIR);
	assert_int_equal(dump_file_create(&other, "", &e), -EISDIR);
	assert_int_equal(count_files(), 1);
}

static bool impatient(void *context, double done)
{
	(void)context, (void)done;
	return false;
}

/* A child that is ended in the middle, at any moment, leaves the copy before or the new one, and nothing else. */
static void test_copy_that_is_ended_leaves_a_whole_one(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(write_now(&e), 0);
	for (unsigned i = 0; i < 100; i++) {
		put_live(1000 + i);
		file.due_ns = 0;
		assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
		assert_true(file.child > 0);
		usleep(i * 40);
		dump_file_abort(&file);
		assert_int_equal(count_files(), 1);
		struct dump *dump;
		assert_int_equal(dump_open(path, &dump, &e), 0);
		assert_true(dump_complete(dump));
		dump_close(dump);
	}
	struct dump_source source;
	dump_source_of_writer(&source, &writer);
	int rc = dump_file_write(&file, &source, &(struct patience){ impatient, NULL }, &e);
	assert_true(rc == 0 || rc == -EINTR);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 100);
	assert_int_equal(count_files(), 1);
}

static int wait_for_copy(struct err *e)
{
	int rc;

	while ((rc = dump_file_tick(&file, &writer, e)) == 0 && file.child)
		usleep(1000);
	return rc;
}

static void test_copies_come_when_something_has_changed(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	assert_int_equal(wait_for_copy(&e), 1);
	assert_true(file.due_ns > 0 && file.interval_ns >= 2000000000ull);
	file.due_ns = clock_monotonic_ns();
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	assert_int_equal(file.child, 0); /* nothing has changed */
	put_live(5);
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	assert_true(file.child > 0);
	assert_int_equal(wait_for_copy(&e), 1);
	assert_dump(path, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(test_name_that_exists_is_refused),
		WITH_FILE(test_next_copy_takes_the_place_of_the_one_before),
		WITH_FILE(test_truncated_and_deleted_files_come_back),
		WITH_FILE(test_file_of_somebody_else_stays),
		WITH_FILE(test_symbolic_link_is_not_followed),
		WITH_FILE(test_limit_of_file_sizes_is_an_error),
		WITH_FILE(test_directory_that_cannot_be_written_is_an_error),
		WITH_FILE(test_last_copy_needs_no_process),
		WITH_FILE(test_files_beside_stay),
		WITH_FILE(test_name_of_a_directory_is_refused),
		WITH_FILE(test_copy_that_is_ended_leaves_a_whole_one),
		WITH_FILE(test_copies_come_when_something_has_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
