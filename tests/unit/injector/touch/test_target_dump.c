/* SPDX-License-Identifier: MIT */
/* The dump in the memory of the target, which is this program: what is written there, and that nothing is where it is
 * not the dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump_format.h"
#include "recording/dump_writer.h"
#include "touch/patches/target_dump.h"

#define DUMP_BYTES (64u << 10)
#define SESSION_ID 0x1234u
#define LATER UINT64_MAX

static struct dump_header *dump;
static struct memattach_session block;
static struct target_memory memory;
static struct changes changes;
static struct target_writer writer;

static void map_dump(int sharing)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, DUMP_BYTES), 0);
	dump = mmap(NULL, DUMP_BYTES, PROT_READ | PROT_WRITE, sharing, fd, 0);
	assert_ptr_not_equal(dump, MAP_FAILED);
	close(fd);
	memcpy(dump->magic, DUMP_MAGIC, sizeof dump->magic);
	dump->session_id = SESSION_ID;
	dump->lease_stamp = dump->lease_realtime_ns = LATER;
	block = (struct memattach_session){ .session_id = SESSION_ID,
		                            .dump_address = (uint64_t)dump,
		                            .dump_bytes = DUMP_BYTES };
	assert_int_equal(target_memory_open(&memory, getpid(), &e), 0);
	writer = (struct target_writer){ .fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), .changes = &changes };
	assert_true(writer.fd >= 0);
	changes_made(&changes, CHANGE_RECORDING);
}

static int open_shared(void **state)
{
	(void)state;
	map_dump(MAP_SHARED);
	return 0;
}

static int open_private(void **state)
{
	(void)state;
	map_dump(MAP_PRIVATE);
	return 0;
}

static int close_dump(void **state)
{
	(void)state;
	target_memory_close(&memory);
	target_writer_close(&writer);
	munmap(dump, DUMP_BYTES);
	return 0;
}

static int end_lease(void)
{
	struct maps maps = { 0 };
	struct err e;

	assert_int_equal(maps_read(&maps, "/proc/self/maps", &e), 0);
	int rc = target_dump_end_lease(&(struct target_dump){ &block, &maps, &memory }, &writer, &e);
	maps_free(&maps);
	return rc;
}

static void assert_untouched(void)
{
	assert_int_equal(end_lease(), 0);
	assert_int_equal(dump->lease_stamp, LATER);
	assert_int_equal(dump->lease_realtime_ns, LATER);
}

static void test_the_lease_ends_now(void **state)
{
	struct dump_header before = *dump;
	struct dump_clock first = clock_dump_now();

	(void)state;
	assert_int_equal(end_lease(), 0);
	struct dump_clock last = clock_dump_now();
	assert_in_range(dump->lease_stamp, first.stamp, last.stamp);
	assert_in_range(dump->lease_realtime_ns, first.realtime_ns, last.realtime_ns);
	before.lease_stamp = dump->lease_stamp;
	before.lease_realtime_ns = dump->lease_realtime_ns;
	assert_memory_equal(&before, dump, sizeof before);
}

static void test_one_that_has_ended_stays(void **state)
{
	(void)state;
	dump->lease_stamp = 1;
	assert_int_equal(end_lease(), 0);
	assert_int_equal(dump->lease_stamp, 1);
	assert_int_equal(dump->lease_realtime_ns, LATER);
}

static void test_another_session_is_left_alone(void **state)
{
	(void)state;
	block.session_id++;
	assert_untouched();
}

static void test_another_file_is_left_alone(void **state)
{
	(void)state;
	dump->magic[0]++;
	assert_untouched();
}

static void test_another_place_is_left_alone(void **state)
{
	(void)state;
	block.dump_bytes -= 4096;
	assert_untouched();
	block.dump_bytes += 4096;
	block.dump_address += 4096;
	assert_untouched();
	block.dump_address = 0;
	assert_untouched();
}

static void test_private_memory_is_left_alone(void **state)
{
	(void)state;
	assert_untouched();
}

static void test_a_write_that_fails_is_an_error(void **state)
{
	(void)state;
	target_writer_close(&writer);
	assert_int_equal(end_lease(), -EBADF);
	assert_int_equal(dump->lease_stamp, LATER);
}

#define SHARED(name) cmocka_unit_test_setup_teardown(name, open_shared, close_dump)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARED(test_the_lease_ends_now),
		SHARED(test_one_that_has_ended_stays),
		SHARED(test_another_session_is_left_alone),
		SHARED(test_another_file_is_left_alone),
		SHARED(test_another_place_is_left_alone),
		cmocka_unit_test_setup_teardown(test_private_memory_is_left_alone, open_private, close_dump),
		SHARED(test_a_write_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
