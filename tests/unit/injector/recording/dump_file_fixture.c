/* SPDX-License-Identifier: MIT */
/* See dump_file_fixture.h. */
#include "dump_file_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump/dump_reader.h"

struct dump_writer writer;
struct dump_file file;
char directory[64], path[128];

int open_all(void **state)
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

int close_all(void **state)
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

bool patient(void *context, double done)
{
	unsigned *calls = context;

	assert_true(done >= 0 && done <= 1);
	return ++*calls < 600;
}

int write_now(struct err *e)
{
	struct dump_source source;
	unsigned calls = 0;

	dump_source_of_writer(&source, &writer);
	return dump_file_write(&file, &source, &(struct patience){ patient, &calls }, e);
}

/* On a busy machine a file is removed by a child that nobody waits for any more. */
static void wait_for_children(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

unsigned count_files(void)
{
	wait_for_children();
	unsigned files = 0;
	DIR *dir = opendir(directory);

	for (struct dirent *entry; (entry = readdir(dir));)
		files += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(dir);
	return files;
}

void assert_dump(const char *name, uint64_t taken)
{
	struct dump *dump = NULL;
	struct err e = { 0 };

	assert_int_equal(dump_open(name, &dump, &e), 0);
	assert_true(dump_complete(dump));
	assert_int_equal(dump_counter(dump, DUMP_COUNTER_samples_taken), taken);
	dump_close(dump);
}

void put_live(uint64_t address)
{
	const struct dump_region *r = writer.own->regions;

	assert_int_equal(r->kind, DUMP_REGION_LIVE);
	struct dump_live_record *records =
		(void *)((char *)writer.shared + r->offset + DUMP_LIVE_RECORDS_AT(r->entries));
	records[address % r->entries] =
		(struct dump_live_record){ .address = address, .size = 100, .rate_bytes = RATE, .stamp = 1 };
	dump_writer_count(&writer, DUMP_COUNTER_samples_taken, 1);
}

int sum_addresses(void *arg, const struct dump_live_record *record)
{
	*(uint64_t *)arg += record->address;
	return 0;
}
