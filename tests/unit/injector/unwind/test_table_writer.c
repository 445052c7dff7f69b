/* SPDX-License-Identifier: MIT */
/* The file of tables, read back as the payload reads it. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/table_writer.h"

#define TABLES_BYTES (64u << 20)

static const struct unwind_index *index_of(const uint8_t *base)
{
	const struct unwind_header *h = (const struct unwind_header *)(const void *)base;

	assert_int_equal(h->magic, UNWIND_MAGIC);
	assert_true(h->index_offset && h->index_offset % 8 == 0 && h->index_offset < TABLES_BYTES);
	return (const struct unwind_index *)(const void *)(base + h->index_offset);
}

static void test_unwind_tables_update_publishes_an_index(void **state)
{
	struct victim v;
	struct view view;
	struct unwind_tables t;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	assert_int_equal(unwind_tables_create(&t, TABLES_BYTES, &e), 0);
	assert_int_equal(t.header->index_offset, 0);
	struct unwind_coverage *coverage = calloc(view.modules.count, sizeof *coverage);
	assert_non_null(coverage);
	assert_int_equal(unwind_tables_update(&t, &view.modules, &view.tm, &view.maps, coverage, &e), 0);
	const uint8_t *base = mmap(NULL, TABLES_BYTES, PROT_READ, MAP_SHARED, t.fd, 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	const struct unwind_index *index = index_of(base);
	const struct unwind_module *modules = (const struct unwind_module *)(const void *)(index + 1);
	const struct unwind_range *ranges = (const struct unwind_range *)(const void *)(modules + index->module_count);
	assert_int_equal(index->generation, 1);
	assert_int_equal(index->module_count, view.modules.count);
	for (uint32_t i = 0; i < index->module_count; i++) {
		const uint32_t *pc = (const uint32_t *)(const void *)(base + modules[i].rows_offset);
		assert_true(i == 0 || modules[i].start >= modules[i - 1].end);
		assert_true(modules[i].id > 0 && modules[i].row_count > 0 && modules[i].rows_offset % 8 == 0);
		assert_int_equal(pc[0], 0);
		for (uint32_t k = 1; k < modules[i].row_count; k++)
			assert_true(pc[k] > pc[k - 1] && pc[k] < modules[i].end - modules[i].start);
		assert_int_equal(modules_find(&view.modules, modules[i].start, true)->exec_start, modules[i].start);
	}
	bool stack = false;
	for (uint32_t i = 0; i < index->range_count; i++) {
		assert_true(ranges[i].start < ranges[i].end && ranges[i].flags);
		assert_true(i == 0 || ranges[i].start >= ranges[i - 1].end);
		const struct mapping *m = maps_find(&view.maps, ranges[i].start);
		stack |= ranges[i].flags == UNWIND_RANGE_STACK && m && !strcmp(m->path, "[stack]");
	}
	assert_true(stack);
	/* Once more: nothing is compiled again, the old index stays as it was. */
	uint64_t first_rows = coverage[0].rows;
	assert_int_equal(unwind_tables_update(&t, &view.modules, &view.tm, &view.maps, coverage, &e), 0);
	assert_true(coverage[0].reused && coverage[0].rows == first_rows);
	assert_int_equal(index->generation, 1);
	assert_int_equal(index_of(base)->generation, 2);
	munmap((void *)(uintptr_t)base, TABLES_BYTES);
	free(coverage);
	unwind_tables_close(&t);
	view_close(&view);
	victim_end(&v);
}

/* Neighbours are merged; what is reserved behind anonymous code is room for more of it, nothing else that is reserved.
 */
static void test_ranges(void **state)
{
	static const char text[] = "1000-2000 rw-p 00000000 00:00 0 \n"
				   "2000-3000 rw-p 00000000 00:00 0 [heap]\n"
				   "3000-4000 ---p 00000000 00:00 0 \n"
				   "5000-6000 rwxp 00000000 00:00 0 \n"
				   "6000-9000 ---p 00000000 00:00 0 \n"
				   "9000-a000 ---p 00000000 00:00 0 \n"
				   "b000-c000 r-xp 00000000 08:01 7 /lib/a.so\n"
				   "c000-d000 ---p 00000000 08:01 7 /lib/a.so\n"
				   "d000-e000 r-xp 00000000 08:01 7 /lib/a.so\n"
				   "e000-f000 ---p 00000000 00:00 0 \n"
				   "10000-11000 rwxp 00000000 00:00 0 \n"
				   "12000-13000 ---p 00000000 00:00 0 \n"
				   "13000-14000 r--s 00000000 08:01 8 /data\n"
				   "14000-15000 rw-s 00000000 08:01 9 /data.2\n"
				   "15000-16000 rw-p 00000000 08:01 9 /data.2\n"
				   "16000-17000 rw-p 00000000 00:00 0 \n"
				   "17000-18000 rw-s 00000000 00:01 3 /dev/zero (deleted)\n"
				   "18000-19000 r--p 00000000 08:01 10 /lib/b.so\n"
				   "19000-1a000 r-xp 00000000 08:01 10 /lib/b.so\n";
	static const struct unwind_range expected[] = {
		{ 0x1000, 0x3000, UNWIND_RANGE_STACK, 0 },
		{ 0x5000, 0x6000, UNWIND_RANGE_STACK | UNWIND_RANGE_EXEC, 0 },
		{ 0x6000, 0x9000, UNWIND_RANGE_EXEC, 0 },
		{ 0xb000, 0xc000, UNWIND_RANGE_EXEC, 0 },
		{ 0xd000, 0xe000, UNWIND_RANGE_EXEC, 0 },
		{ 0x10000, 0x11000, UNWIND_RANGE_STACK | UNWIND_RANGE_EXEC, 0 },
		{ 0x13000, 0x15000, UNWIND_RANGE_FILE, 0 },
		{ 0x15000, 0x16000, UNWIND_RANGE_STACK | UNWIND_RANGE_FILE, 0 },
		{ 0x16000, 0x17000, UNWIND_RANGE_STACK, 0 },
		{ 0x19000, 0x1a000, UNWIND_RANGE_EXEC, 0 },
	};
	struct unwind_range *ranges;
	struct maps maps;
	uint32_t count;
	struct err e;

	(void)state;
	assert_int_equal(maps_parse(&maps, text, sizeof text - 1, &e), 0);
	assert_int_equal(unwind_ranges(&maps, &ranges, &count, &e), 0);
	assert_int_equal(count, sizeof expected / sizeof expected[0]);
	assert_memory_equal(ranges, expected, sizeof expected);
	free(ranges);
	maps_free(&maps);
}

static void test_unwind_tables_are_sealed_and_bounded(void **state)
{
	struct unwind_tables t;
	struct err e;
	uint32_t words[4000] = { 0 };
	struct unwind_rows rows = { .pc = words, .rule = words, .count = 4000 };
	uint64_t offset;

	(void)state;
	assert_int_equal(unwind_tables_create(&t, 4096, &e), -EINVAL);
	assert_int_equal(unwind_tables_create(&t, 40960, &e), 0);
	assert_int_equal(ftruncate(t.fd, 4096), -1);
	assert_int_equal(ftruncate(t.fd, 1 << 20), -1);
	assert_int_equal(unwind_tables_append(&t, &rows, &offset, &e), 0);
	assert_int_equal(offset % 8, 0);
	assert_int_equal(unwind_tables_append(&t, &rows, &offset, &e), -ENOSPC);
	rows.count = 1;
	assert_int_equal(unwind_tables_append(&t, &rows, &offset, &e), 0);
	unwind_tables_close(&t);
}

/* What a program can try with a descriptor that it keeps, also when it opens the file anew with more rights. */
static void test_unwind_tables_allow_the_target_to_read_only(void **state)
{
	struct unwind_tables t;
	struct err e;
	char path[64];

	(void)state;
	assert_int_equal(unwind_tables_create(&t, 1 << 20, &e), 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", t.fd);
	const int ways[] = { t.fd, open(path, O_RDWR | O_CLOEXEC) };
	for (unsigned i = 0; i < 2; i++) {
		if (ways[i] < 0)
			continue; /* refused: as good */
		assert_int_equal(pwrite(ways[i], "x", 1, 0), -1);
		assert_int_equal(ftruncate(ways[i], 0), -1);
		assert_int_equal(ftruncate(ways[i], 2 << 20), -1);
		assert_int_equal(fallocate(ways[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
		assert_int_equal(fallocate(ways[i], 0, 0, 2 << 20), -1);
		assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ways[i], 0), MAP_FAILED);
		void *readable = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ways[i], 0);
		assert_ptr_not_equal(readable, MAP_FAILED);
		assert_int_equal(mprotect(readable, 4096, PROT_READ | PROT_WRITE), -1);
		assert_int_equal(madvise(readable, 4096, MADV_REMOVE), -1);
		munmap(readable, 4096);
		assert_int_equal(fcntl(ways[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
	}
	if (ways[1] >= 0)
		close(ways[1]);
	assert_int_equal(t.header->magic, UNWIND_MAGIC);
	unwind_tables_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unwind_tables_update_publishes_an_index),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_unwind_tables_are_sealed_and_bounded),
		cmocka_unit_test(test_unwind_tables_allow_the_target_to_read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
