/* SPDX-License-Identifier: MIT */
/*
 * The search for copied addresses, in a child of this program. The addresses are made up after the fork, so that no
 * copy is in the child but those that a test puts into memory that both share.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "escape.h"

#define PAGE 4096u
#define RESERVED_BYTES (8ull << 40)
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)

static struct target target;
static struct target_memory memory;
static uint64_t *shared; /* at the same address in the child */
static uint8_t *pages;   /* of the child: 8 of them, private */
static char *reserved;
static struct escape x;

static int open_child(void **state)
{
	struct err e;

	(void)state;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reserved =
		mmap(NULL, RESERVED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(shared != MAP_FAILED && pages != MAP_FAILED && reserved != MAP_FAILED);
	shared[0] = 0;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pages[0] = *(volatile uint8_t *)&pages[3 * PAGE] + 1; /* there; and one of zeros, only read */
		madvise(pages + 5 * PAGE, PAGE, GUARD_INSTALL);
		((volatile uint64_t *)shared)[1] = 1;
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	while (!((volatile uint64_t *)shared)[1])
		usleep(1000);
	target = (struct target){ .pid = pid, .tid = pid, .pidfd = -1 };
	assert_int_equal(target_memory_open(&memory, pid, &e), 0);
	static uint64_t start =
		0x123456780080; /* another one for each child, which inherits what is left of the last */
	start += 64 * TRAMPOLINE_CODE_BYTES;
	x = (struct escape){ .start = start, .end = start + 32 * TRAMPOLINE_CODE_BYTES };
	return 0;
}

static int close_child(void **state)
{
	(void)state;
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	target_memory_close(&memory);
	munmap(shared, PAGE);
	munmap(pages, 8 * PAGE);
	munmap(reserved, RESERVED_BYTES);
	return 0;
}

static struct escape_result search(struct page_scan *scan)
{
	struct escape_result result;
	struct err e;

	assert_int_equal(escape_search(&x, &target, &memory, scan, &result, &e), 0);
	page_scan_close(scan);
	return result;
}

static struct page_scan of_child(void)
{
	struct page_scan scan;
	struct err e;

	assert_int_equal(page_scan_open(&scan, &target, &e), 0);
	return scan;
}

static void by_reading(struct page_scan *scan)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/pagemap", target.pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	page_scan_by_reading(scan, dup(fileno(f)));
	fclose(f);
}

/* A page map in which only one page is there. */
static void made_up(struct page_scan *scan, const void *page, uint64_t entry)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)((uint64_t)page / PAGE * sizeof entry), SEEK_SET), 0);
	assert_int_equal(fwrite(&entry, sizeof entry, 1, f), 1);
	assert_int_equal(fflush(f), 0);
	page_scan_by_reading(scan, dup(fileno(f)));
	fclose(f);
}

static void test_search_proves_that_there_is_no_copy(void **state)
{
	struct page_scan scan = of_child();

	(void)state;
	assert_int_equal(search(&scan).verdict, ESCAPE_NONE);
}

static void test_search_finds_a_copy(void **state)
{
	struct page_scan scan = of_child();
	const uint64_t copies[] = { x.start, x.start + TRAMPOLINE_CODE_BYTES + TRAMPOLINE_RELEASE };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		shared[7] = copies[i];
		if (i)
			scan = of_child();
		struct escape_result result = search(&scan);
		assert_int_equal(result.verdict, ESCAPE_FOUND);
		assert_int_equal(result.found, (uint64_t)&shared[7]);
	}
	x.guard = 0x5a5a1234567890;
	x.has_guard = true;
	shared[7] = (x.start ^ x.guard) << 17 | (x.start ^ x.guard) >> 47;
	scan = of_child();
	assert_int_equal(search(&scan).found, (uint64_t)&shared[7]);
}

static void test_search_does_not_read_swapped_pages(void **state)
{
	struct page_scan scan;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* the page map of a sanitizer's 20 TiB is not read in the time of a search */
#endif
	shared[7] = x.start;
	made_up(&scan, shared, ENTRY_PRESENT);
	assert_int_equal(search(&scan).verdict, ESCAPE_FOUND);
	made_up(&scan, shared, ENTRY_SWAPPED);
	struct escape_result result = search(&scan);
	assert_int_equal(result.verdict, ESCAPE_UNPROVEN);
	assert_non_null(strstr(result.why, "swapped out"));
}

/* Which of the child's eight pages are there, as a mask. */
static unsigned pages_there(struct page_scan *scan)
{
	unsigned there = 0;

	for (uint64_t at = (uint64_t)pages; at < (uint64_t)(pages + 8 * PAGE);) {
		assert_true(page_scan_step(scan, &at, (uint64_t)(pages + 8 * PAGE)));
		for (size_t i = 0; i < scan->count; i++)
			for (uint64_t page = scan->runs[i].start; page < scan->runs[i].end; page += PAGE)
				there |= 1u << ((page - (uint64_t)pages) / PAGE);
	}
	page_scan_close(scan);
	return there;
}

static void test_scan_tells_pages_that_are_there(void **state)
{
	struct page_scan scan = of_child(), other;

	(void)state;
	by_reading(&other);
	if (!scan.by_reading)
		assert_int_equal(pages_there(&scan), 1); /* neither the page of zeros nor the guard */
	else
		page_scan_close(&scan);
	assert_int_equal(pages_there(&other) & ~(1u << 3), 1); /* the page map does not tell zeros */
}

/* Work, not time: terabytes that are only reserved take a handful of system calls. */
static void test_scan_takes_few_steps_for_reserved_memory(void **state)
{
	struct page_scan scan = of_child();
	unsigned steps = 0;

	(void)state;
	if (scan.by_reading) {
		struct maps maps;
		struct err e;
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/maps", target.pid);
		assert_int_equal(maps_read(&maps, path, &e), 0);
		page_scan_prepare(&scan, &target, &maps);
		maps_free(&maps);
	}
	for (uint64_t at = (uint64_t)reserved; at < (uint64_t)reserved + RESERVED_BYTES; steps++) {
		assert_true(page_scan_step(&scan, &at, (uint64_t)reserved + RESERVED_BYTES));
		assert_int_equal(scan.count, 0);
	}
	assert_in_range(steps, 1, 64);
	page_scan_close(&scan);
}

/* An older kernel has no other way than the page map; what is large and empty is told by smaps. */
static void test_scan_passes_over_what_smaps_calls_empty(void **state)
{
	struct page_scan scan;
	struct maps maps;
	struct err e;
	char path[64];
	unsigned steps = 0;

	(void)state;
	by_reading(&scan);
	snprintf(path, sizeof path, "/proc/%d/maps", target.pid);
	assert_int_equal(maps_read(&maps, path, &e), 0);
	page_scan_prepare(&scan, &target, &maps);
	maps_free(&maps);
	for (uint64_t at = (uint64_t)reserved; at < (uint64_t)reserved + RESERVED_BYTES; steps++)
		assert_true(page_scan_step(&scan, &at, (uint64_t)reserved + RESERVED_BYTES));
	assert_int_equal(steps, 1);
	page_scan_close(&scan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_search_proves_that_there_is_no_copy, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_search_finds_a_copy, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_search_does_not_read_swapped_pages, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_tells_pages_that_are_there, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_takes_few_steps_for_reserved_memory, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_passes_over_what_smaps_calls_empty, open_child, close_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
