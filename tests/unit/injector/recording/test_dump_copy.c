/* SPDX-License-Identifier: MIT */
/* What a copy of the dump holds, while the target records and memattach adds regions. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_file_fixture.h"
#include "dump/dump_reader.h"

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

static const struct dump_region *youngest(uint32_t kind)
{
	const struct dump_region *found = NULL;

	for (uint32_t i = 0; i < writer.own->region_count; i++)
		if (writer.own->regions[i].kind == kind)
			found = &writer.own->regions[i];
	return found;
}

/* A block of the history that was full is given to another thread, which writes its first record, before its sequence
 * is read again. */
static int read_before_reuse(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes,
                             struct err *e)
{
	static bool once;
	const uint64_t history = *(const uint64_t *)source->context;
	struct dump_history_block *block = (void *)((char *)writer.shared + history);

	(void)e;
	memcpy(buffer, (const char *)writer.shared + offset, bytes);
	if (!once && offset == history) {
		once = true;
		block->sequence = 8;
		block->used = 1;
		block->records[0].size = 5;
	}
	return 0;
}

static int sum_history(void *arg, const struct dump_history_record *record)
{
	*(uint64_t *)arg += record->size;
	return 0;
}

static void test_block_of_the_history_that_was_taken_again_is_read_again(void **state)
{
	const uint64_t history = youngest(DUMP_REGION_HISTORY)->offset;
	struct dump_history_block *block = (void *)((char *)writer.shared + history);
	struct dump_source source;
	struct dump *dump;
	uint64_t sum = 0;
	struct err e;

	(void)state;
	*block = (struct dump_history_block){ .sequence = 7, .used = 2 };
	for (int i = 0; i < 2; i++)
		block->records[i] = (struct dump_history_record){ .size = 100, .rate_bytes = RATE };
	dump_source_of_writer(&source, &writer);
	source.read = read_before_reuse;
	source.context = &history;
	source.update = NULL;
	int fd = open(path, O_RDWR | O_TRUNC);
	assert_int_equal(dump_copy(&source, fd, &e), 0);
	close(fd);
	assert_int_equal(dump_open(path, &dump, &e), 0);
	assert_int_equal(dump_each_history(dump, sum_history, &sum), 0);
	assert_int_equal(sum, 5);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(test_copy_holds_what_the_memory_holds),
		WITH_FILE(test_record_whose_address_was_used_again_is_read_again),
		WITH_FILE(test_block_of_the_history_that_was_taken_again_is_read_again),
		WITH_FILE(test_no_more_is_live_than_was_taken),
		WITH_FILE(test_regions_that_come_meanwhile_are_in_the_copy),
		WITH_FILE(test_what_was_never_touched_is_not_read),
		WITH_FILE(test_source_of_a_stranger_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
