/* SPDX-License-Identifier: MIT */
/* Reading memory, with this process as its own target, and the search for the tid. */
#include "fixture.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/tid_offset.h"

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void test_target_read_is_all_or_nothing(void **state)
{
	struct target_memory tm;
	struct err e;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buffer[200];

	(void)state;
	assert_int_equal(target_memory_open(&tm, getpid(), &e), 0);
	memset(pages, 'x', 4096);
	assert_int_equal(munmap(pages + 4096, 4096), 0);
	assert_int_equal(target_read(&tm, address_of(pages) + 3996, buffer, 100, &e), 0);
	assert_int_equal(buffer[99], 'x');
	assert_int_equal(target_read(&tm, address_of(pages) + 3997, buffer, 100, &e), -EFAULT);
	assert_int_equal(target_read(&tm, UINT64_MAX - 4, buffer, 100, &e), -EFAULT);
	assert_int_equal(target_read(&tm, UINT64_MAX, NULL, 0, &e), 0);
	/* A string that ends with its page, and one that does not end. */
	pages[4095] = 0;
	assert_int_equal(target_read_string(&tm, address_of(pages) + 4090, buffer, sizeof buffer, &e), 0);
	assert_string_equal(buffer, "xxxxx");
	assert_int_equal(target_read_string(&tm, address_of(pages), buffer, sizeof buffer, &e), -ENAMETOOLONG);
	pages[4095] = 'x';
	assert_int_equal(target_read_string(&tm, address_of(pages) + 4090, buffer, sizeof buffer, &e), -EFAULT);
	munmap(pages, 4096);
	target_memory_close(&tm);
}

static void test_target_read_sees_unreadable_pages(void **state)
{
	struct target_memory tm;
	struct err e;
	uint64_t value = 0;
	uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	*page = 42;
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
	assert_int_equal(target_memory_open(&tm, getpid(), &e), 0);
	assert_int_equal(target_read_u64(&tm, address_of(page), &value, &e), 0);
	assert_int_equal(value, 42);
	munmap(page, 4096);
	target_memory_close(&tm);
}

static void test_target_read_batch_takes_many(void **state)
{
	static uint32_t source[5000], copy[5000];
	static struct target_piece pieces[5000];
	struct target_memory tm;
	struct err e;

	(void)state;
	assert_int_equal(target_memory_open(&tm, getpid(), &e), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		source[i] = i * 7;
		pieces[i] = (struct target_piece){ address_of(&source[i]), 4, &copy[i] };
	}
	assert_int_equal(target_read_batch(&tm, pieces, 5000, &e), 0);
	assert_memory_equal(source, copy, sizeof source);
	pieces[4000].address = 8;
	assert_int_equal(target_read_batch(&tm, pieces, 5000, &e), -EFAULT);
	target_memory_close(&tm);
}

static void test_target_memory_open_of_nobody(void **state)
{
	struct target_memory tm;
	struct err e;

	(void)state;
	assert_int_equal(target_memory_open(&tm, 0x7fffff00, &e), -ESRCH);
}

static void put(const struct tid_pair *pair, uint32_t distance, int32_t word)
{
	*(int32_t *)(uintptr_t)thread_block_at(pair->thread_pointer, distance) = word;
}

static void test_tid_offset_finds_own_tid(void **state)
{
	static int32_t block[2][2 * TID_OFFSET_LIMIT / 4 + 4]; /* the thread pointer is in the middle */
	struct target_memory tm;
	struct err e;
	struct tid_pair pairs[2] = { { address_of(block[0]) + TID_OFFSET_LIMIT, 111 },
		                     { address_of(block[1]) + TID_OFFSET_LIMIT, 222 } };

	(void)state;
	assert_int_equal(target_memory_open(&tm, getpid(), &e), 0);
	put(&pairs[0], 80, 111); /* chance: only in the first */
	put(&pairs[0], 720, 111);
	put(&pairs[1], 720, 222);
	assert_int_equal(tid_offset_find(&tm, pairs, 2), 720);
	assert_int_equal(tid_offset_find(&tm, pairs, 1), 80);
	assert_int_equal(tid_offset_find(&tm, pairs, 0), 0);
	put(&pairs[1], 720, 0);
	assert_int_equal(tid_offset_find(&tm, pairs, 2), 0);
	/* The real one. */
	struct tid_pair real = { address_of(__builtin_thread_pointer()), (int32_t)gettid() };
	uint32_t offset = tid_offset_find(&tm, &real, 1);
	assert_int_not_equal(offset, 0);
	target_memory_close(&tm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_read_is_all_or_nothing),
		cmocka_unit_test(test_target_read_sees_unreadable_pages),
		cmocka_unit_test(test_target_read_batch_takes_many),
		cmocka_unit_test(test_target_memory_open_of_nobody),
		cmocka_unit_test(test_tid_offset_finds_own_tid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
