/* SPDX-License-Identifier: MIT */
/* The dump on disk: whole copies under one name, whatever happens to the name, the disk and the process that writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dump_file.h"
#include "dump_reader.h"
#include "tracee.h"

#define RATE 65536u
#define MAX_BYTES (16u << 20)

static struct dump_writer writer;
static struct dump_file file;
static char directory[64], path[128];

static int open_all(void **state)
{
	const struct dump_writer_options options = { .max_bytes = MAX_BYTES, .rate_bytes = RATE };
	struct err e;

	(void)state;
	snprintf(directory, sizeof directory, "/tmp/test_dump_file-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/a.dump", directory);
	assert_int_equal(dump_writer_create(&writer, &options, &e), 0);
	dump_writer_set_state(&writer, DUMP_STATE_RUNNING, 0);
	assert_int_equal(dump_file_create(&file, path, &e), 0);
	return 0;
}

static int close_all(void **state)
{
	char name[400];

	(void)state;
	dump_file_close(&file);
	dump_writer_close(&writer);
	DIR *dir = opendir(directory);
	for (struct dirent *entry; (entry = readdir(dir));) {
		snprintf(name, sizeof name, "%s/%s", directory, entry->d_name);
		unlink(name);
	}
	closedir(dir);
	rmdir(directory);
	return 0;
}

static bool patient(void *context, double done)
{
	unsigned *calls = context;

	assert_true(done >= 0 && done <= 1);
	return ++*calls < 600;
}

static int write_now(struct err *e)
{
	struct dump_source source;
	unsigned calls = 0;

	dump_source_of_writer(&source, &writer);
	return dump_file_write(&file, &source, patient, &calls, e);
}

static unsigned count_files(void)
{
	unsigned files = 0;
	DIR *dir = opendir(directory);

	for (struct dirent *entry; (entry = readdir(dir));)
		files += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(dir);
	return files;
}

/* A dump that is whole, with so many samples taken. */
static void assert_dump(const char *name, uint64_t taken)
{
	struct dump *dump = NULL;
	struct err e = { 0 };

	assert_int_equal(dump_open(name, &dump, &e), 0);
	assert_true(dump_complete(dump));
	assert_int_equal(dump_counter(dump, DUMP_COUNTER_samples_taken), taken);
	dump_close(dump);
}

static void put_live(uint64_t address)
{
	const struct dump_region *r = writer.own->regions;

	assert_int_equal(r->kind, DUMP_REGION_LIVE);
	struct dump_live_record *records =
		(void *)((char *)writer.shared + r->offset + DUMP_LIVE_RECORDS_AT(r->entries));
	records[address % r->entries] =
		(struct dump_live_record){ .address = address, .size = 100, .rate_bytes = RATE, .stamp = 1 };
	dump_writer_count(&writer, DUMP_COUNTER_samples_taken, 1);
}

static int sum_addresses(void *arg, const struct dump_live_record *record)
{
	*(uint64_t *)arg += record->address;
	return 0;
}

static void test_copy_holds_what_the_memory_holds(void **state)
{
	struct dump *dump;
	struct err e;
	uint64_t sum = 0, expected = 0;
	struct stat st;

	(void)state;
	for (uint64_t i = 1; i <= 1000; expected += i++ + 1000000)
		put_live(i + 1000000);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 1000);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	assert_int_equal(dump_each_live(dump, sum_addresses, &sum), 0);
	assert_int_equal(sum, expected);
	dump_close(dump);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, writer.used);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(st.st_blocks * 512 < st.st_size / 2); /* what is zero is a hole */
	assert_int_equal(count_files(), 1);
}

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
		assert_int_equal(dump_file_write(&small, &source, patient, &calls, &e), -EROFS);
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
	int rc = dump_file_write(&file, &source, impatient, NULL, &e);
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
	file.due_ns = monotonic_ns();
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	assert_int_equal(file.child, 0); /* nothing has changed */
	put_live(5);
	assert_int_equal(dump_file_tick(&file, &writer, &e), 0);
	assert_true(file.child > 0);
	assert_int_equal(wait_for_copy(&e), 1);
	assert_dump(path, 1);
}

/* The first record that is read is the first half of a block that is freed, and the second of the next one at its
 * address. */
static int read_torn(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes, struct err *e)
{
	static bool once;
	const struct dump_region *r = &source->header.regions[0];
	struct dump_live_record *record = buffer;

	(void)e;
	memcpy(buffer, (const char *)writer.shared + offset, bytes);
	if (!once && offset == r->offset + DUMP_LIVE_RECORDS_AT(r->entries)) {
		once = true;
		record[5].size = 999999;
	}
	return 0;
}

static int sum_sizes(void *arg, const struct dump_live_record *record)
{
	*(uint64_t *)arg += record->size;
	return 0;
}

static void test_record_whose_address_was_used_again_is_read_again(void **state)
{
	struct dump_source source;
	struct dump *dump;
	uint64_t sum = 0;
	struct err e;

	(void)state;
	put_live(writer.own->regions[0].entries * 1000 + 5);
	dump_source_of_writer(&source, &writer);
	source.read = read_torn;
	int fd = open(path, O_RDWR | O_TRUNC);
	assert_int_equal(dump_copy(&source, fd, &e), 0);
	close(fd);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	assert_int_equal(dump_each_live(dump, sum_sizes, &sum), 0);
	assert_int_equal(sum, 100);
	dump_close(dump);
}

/* A block is allocated between the begin of the copy and the moment when its record is read. */
static int read_while_recording(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes,
                                struct err *e)
{
	static bool once;

	(void)source, (void)e;
	if (!once)
		put_live(4242);
	once = true;
	memcpy(buffer, (const char *)writer.shared + offset, bytes);
	return 0;
}

static void test_no_more_is_live_than_was_taken(void **state)
{
	struct dump_source source;
	struct dump *dump;
	uint64_t sum = 0;
	struct err e;

	(void)state;
	dump_source_of_writer(&source, &writer);
	source.read = read_while_recording;
	source.sparse = false; /* that it is asked though all is empty */
	int fd = open(path, O_RDWR | O_TRUNC);
	assert_int_equal(dump_copy(&source, fd, &e), 0);
	close(fd);
	assert_dump(path, 1);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	assert_int_equal(dump_each_live(dump, sum_addresses, &sum), 0);
	assert_int_equal(sum, 4242);
	dump_close(dump);
}

static int asks[2], answers[2]; /* pipes between a child that copies and this process */

/* Lets the other process go on once, in the middle of the copy. */
static int read_and_wait(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes, struct err *e)
{
	static bool once;
	char byte = 'x';

	(void)source, (void)e;
	if (!once && (write(asks[1], &byte, 1) != 1 || read(answers[0], &byte, 1) != 1))
		_exit(2);
	once = true;
	memcpy(buffer, (const char *)writer.shared + offset, bytes);
	return 0;
}

static int copy_slowly(void)
{
	struct dump_source source;
	struct err e;

	dump_source_of_writer(&source, &writer);
	source.read = read_and_wait;
	source.sparse = false;
	int fd = open(path, O_RDWR | O_TRUNC);
	return dump_copy(&source, fd, &e) == 0 ? 0 : 1;
}

static const struct dump_region *youngest(uint32_t kind)
{
	const struct dump_region *found = NULL;

	for (uint32_t i = 0; i < writer.own->region_count; i++)
		if (writer.own->regions[i].kind == kind)
			found = &writer.own->regions[i];
	return found;
}

/* A table and an arena of stacks that memattach adds while its child copies: records in the one refer to the other. */
static void grow_and_record(void)
{
	const struct dump_region *live = youngest(DUMP_REGION_LIVE), *stacks = youngest(DUMP_REGION_STACKS);
	struct err e;

	((struct dump_arena *)(void *)((char *)writer.shared + stacks->offset))->used = stacks->bytes;
	dump_writer_count(&writer, DUMP_COUNTER_samples_taken, 1000000);
	assert_int_equal(dump_writer_grow(&writer, &e), 0);
	dump_writer_count(&writer, DUMP_COUNTER_samples_freed, 999999);
	assert_ptr_not_equal(youngest(DUMP_REGION_LIVE), live);
	assert_ptr_not_equal(youngest(DUMP_REGION_STACKS), stacks);
	live = youngest(DUMP_REGION_LIVE);
	stacks = youngest(DUMP_REGION_STACKS);
	struct dump_stack *stack = (void *)((char *)writer.shared + stacks->offset + sizeof(struct dump_arena));
	*stack = (struct dump_stack){ .hash = 77, .taken_count = 1 };
	struct dump_live_record *records =
		(void *)((char *)writer.shared + live->offset + DUMP_LIVE_RECORDS_AT(live->entries));
	records[3] = (struct dump_live_record){ .address = 64,
		                                .size = 100,
		                                .rate_bytes = RATE,
		                                .stamp = 1,
		                                .stack = (uint32_t)((stacks->offset + sizeof(struct dump_arena)) /
		                                                    DUMP_STACK_ALIGN) };
}

static int find_stack(void *arg, const struct dump_live_record *record)
{
	struct dump_stack_copy copy;

	assert_int_equal(dump_read_stack(arg, record->stack, &copy), 0);
	assert_int_equal(copy.stack.hash, 77);
	return 1;
}

static void test_regions_that_come_meanwhile_are_in_the_copy(void **state)
{
	struct dump *dump;
	struct err e;
	char byte;
	int status;

	(void)state;
	assert_int_equal(pipe(asks), 0);
	assert_int_equal(pipe(answers), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(copy_slowly());
	assert_int_equal(read(asks[0], &byte, 1), 1);
	grow_and_record();
	assert_int_equal(write(answers[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_dump(path, 1000000);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	assert_int_equal(dump_each_live(dump, find_stack, dump), 1);
	dump_close(dump);
	for (unsigned i = 0; i < 2; i++) {
		close(asks[i]);
		close(answers[i]);
	}
}

/* The places where nothing was ever written are not even read: each read of such a page would make it. */
static void test_what_was_never_touched_is_not_read(void **state)
{
	struct stat before, after;
	struct err e;
	uint64_t data = 0, bytes = 0;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		put_live(1000003 * (i + 1));
	assert_int_equal(fstat(writer.fd, &before), 0);
	assert_int_equal(write_now(&e), 0);
	assert_dump(path, 5);
	for (off_t at = 0; (at = lseek(writer.fd, at, SEEK_DATA)) >= 0;) {
		off_t hole = lseek(writer.fd, at, SEEK_HOLE);
		bytes += (uint64_t)(hole - at);
		at = hole;
		data++;
	}
	assert_int_equal(fstat(writer.fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_in_range(data, 5, 40);
	assert_true(bytes < writer.used / 4);
}

/* Regions of a recording that the target holds: they may be anything. */
static void test_source_of_a_stranger_is_checked(void **state)
{
	struct dump_source source;
	struct err e;

	(void)state;
	dump_source_of_writer(&source, &writer);
	assert_int_equal(dump_source_check(&source, writer.used, &e), 0);
	assert_int_equal(dump_source_check(&source, writer.used - 4096, &e), -EPROTO);
	source.header.regions[1].offset = source.header.regions[0].offset;
	assert_int_equal(dump_source_check(&source, writer.used, &e), -EPROTO);
	dump_source_of_writer(&source, &writer);
	source.header.regions[0].bytes = UINT64_MAX & ~4095ull;
	assert_int_equal(dump_source_check(&source, writer.used, &e), -EPROTO);
	dump_source_of_writer(&source, &writer);
	source.header.regions[0].entries = UINT64_MAX / 48;
	assert_int_equal(dump_source_check(&source, writer.used, &e), -EPROTO);
	dump_source_of_writer(&source, &writer);
	source.header.region_count = 0xfffffff0u;
	assert_int_equal(dump_source_check(&source, writer.used, &e), -EPROTO);
}

#define WITH_FILE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(test_copy_holds_what_the_memory_holds),
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
		WITH_FILE(test_record_whose_address_was_used_again_is_read_again),
		WITH_FILE(test_no_more_is_live_than_was_taken),
		WITH_FILE(test_regions_that_come_meanwhile_are_in_the_copy),
		WITH_FILE(test_what_was_never_touched_is_not_read),
		WITH_FILE(test_source_of_a_stranger_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
