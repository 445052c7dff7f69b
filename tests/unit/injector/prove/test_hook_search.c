/* SPDX-License-Identifier: MIT */
/* The search for hooks that are alive, in a child of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "prove/hook_search.h"
#include "elf/tid_offset.h"

#define PAGE 4096u
#define RESERVED_BYTES (8ull << 40)
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)

/* Words of the shared page by which test and child talk. */
enum { THREAD = 16, THREAD_POINTER, LEFT, HOOK };
enum { THREAD_NONE, THREAD_LIVES, THREAD_ENDS };
/* Of a thread that waits; MERGED: 1, the guard of its stack shall be no mapping of its own; 2, it waits. */
enum { SP = 24, TP, MERGED };

static struct target target;
static struct target_memory memory;
static volatile uint64_t *shared; /* at the same address in the child */
static uint8_t *pages;            /* of the child: 8 of them, private */
static char *reserved;
static struct hook_search x;

/* Makes the guard below the stack a part of the stack's mapping, as it is since glibc 2.42. */
static void merge_guard(void)
{
	pthread_attr_t attributes;
	size_t bytes, guard_bytes;
	void *start;

	if (pthread_getattr_np(pthread_self(), &attributes) == 0 &&
	    pthread_attr_getstack(&attributes, &start, &bytes) == 0 &&
	    pthread_attr_getguardsize(&attributes, &guard_bytes) == 0)
		mprotect((char *)start - guard_bytes, guard_bytes, PROT_READ | PROT_WRITE);
}

/* A hook's marker, in a frame that is gone when it returns. */
static __attribute__((noinline)) void leave_below(void)
{
	volatile uint64_t words[64];

	for (unsigned i = 0; i < 64; i++)
		words[i] = 0;
	words[16] = HOOK_LIVE_MAGIC ^ (uint64_t)&words[16];
	shared[LEFT] = (uint64_t)&words[16];
}

static __attribute__((noinline)) void *wait_above(void *argument)
{
	volatile uint64_t here[512];

	merge_guard();
	here[0] = 0;
	leave_below();
	shared[SP] = (uint64_t)&here[0];
	shared[TP] = (uint64_t)__builtin_thread_pointer();
	__atomic_store_n(&shared[MERGED], 2, __ATOMIC_RELEASE);
	while (shared[THREAD] == THREAD_LIVES)
		;
	return argument;
}

/* Leaves a marker on its stack. */
static __attribute__((noinline)) void *leave_marker(void *argument)
{
	volatile uint64_t words[16];

	for (unsigned i = 0; i < 16; i++)
		words[i] = 0;
	words[8] = HOOK_LIVE_MAGIC ^ (uint64_t)&words[8];
	shared[TP] = (uint64_t)__builtin_thread_pointer();
	shared[LEFT] = (uint64_t)&words[8];
	while (shared[THREAD] == THREAD_LIVES)
		usleep(1000);
	return argument;
}

/* In the child: another thread when the test asks for it. */
static void serve(void)
{
	pthread_t thread;
	bool lives = false;

	for (;; usleep(1000)) {
		if (shared[THREAD] == THREAD_LIVES && !lives)
			lives = pthread_create(&thread, NULL, shared[MERGED] ? wait_above : leave_marker, NULL) == 0;
		if (shared[THREAD] == THREAD_ENDS && lives) {
			pthread_join(thread, NULL);
			lives = false;
			shared[THREAD] = THREAD_NONE;
		}
	}
}

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
		shared[THREAD_POINTER] = (uint64_t)__builtin_thread_pointer();
		shared[1] = 1;
		serve();
	}
	assert_true(pid > 0);
	while (!shared[1])
		usleep(1000);
	target = (struct target){ .pid = pid, .tid = pid, .pidfd = -1 };
	assert_int_equal(target_memory_open(&memory, pid, &e), 0);
	x = (struct hook_search){ 0 };
	return 0;
}

static int close_child(void **state)
{
	(void)state;
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	target_memory_close(&memory);
	munmap((void *)shared, PAGE);
	munmap(pages, 8 * PAGE);
	munmap(reserved, RESERVED_BYTES);
	return 0;
}

/* The marker that is found, 0 none. */
static uint64_t search(struct page_scan *scan)
{
	uint64_t found;
	struct err e;

	assert_int_equal(hook_search(&x, &target, &memory, scan, &found, &e), 0);
	page_scan_close(scan);
	return found;
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
static void made_up(struct page_scan *scan, const volatile void *page, uint64_t entry)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)((uint64_t)page / PAGE * sizeof entry), SEEK_SET), 0);
	assert_int_equal(fwrite(&entry, sizeof entry, 1, f), 1);
	assert_int_equal(fflush(f), 0);
	page_scan_by_reading(scan, dup(fileno(f)));
	fclose(f);
}

static uint64_t search_again(void)
{
	struct page_scan scan = of_child();

	return search(&scan);
}

static void end_thread(void)
{
	shared[THREAD] = THREAD_ENDS;
	while (shared[THREAD] != THREAD_NONE)
		usleep(1000);
}

/* What a thread has left on its stack counts as long as it lives. */
static void test_search_passes_over_stacks_of_ended_threads(void **state)
{
	const struct tid_pair thread = { shared[THREAD_POINTER], target.pid };

	(void)state;
	if (!THREAD_BLOCK_SELF)
		skip(); /* nothing tells such a stack */
	x.tid_offset = tid_offset_find(&memory, &thread, 1);
	assert_int_not_equal(x.tid_offset, 0);
	shared[THREAD] = THREAD_LIVES;
	while (!shared[LEFT])
		usleep(1000);
	const uint64_t where = shared[LEFT];
	assert_int_equal(search_again(), where);
	end_thread();
	assert_int_equal(search_again(), 0);
#ifndef __SANITIZE_ADDRESS__ /* whose frames are so large that glibc gives the page back */
	x.tid_offset = 0;    /* it is there all the same */
	assert_int_equal(search_again(), where);
#endif
}

/* Stacks in one mapping, with their guards: what is below the stack pointer of a thread that was walked does not count,
 * nor what one that has ended has left. */
static void test_search_tells_stacks_that_share_a_mapping(void **state)
{
	const struct tid_pair thread = { shared[THREAD_POINTER], target.pid };

	(void)state;
	if (!THREAD_BLOCK_SELF)
		skip(); /* nothing tells such a stack */
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its stacks are its own */
#endif
	x.tid_offset = tid_offset_find(&memory, &thread, 1);
	shared[MERGED] = 1;
	shared[THREAD] = THREAD_LIVES;
	while (shared[MERGED] != 2)
		usleep(1000);
	const uint64_t where = shared[LEFT];
	struct stack_position positions[] = { { shared[SP], shared[TP], true, 0 },
		                              { shared[SP] + 8, shared[TP], true, 0 } };
	assert_int_equal(search_again(), where);
	x.stacks = positions;
	x.stack_count = 2;
	assert_int_equal(search_again(), 0);
	positions[0] =
		(struct stack_position){ shared[SP], shared[TP], false, 0 }; /* what is below may be alive, too */
	assert_int_equal(search_again(), where);
	positions[0] = (struct stack_position){ where - 64, shared[THREAD_POINTER], true, 0 }; /* another thread's */
	assert_int_equal(search_again(), where);
	x.stack_count = 0;
	end_thread();
	assert_int_equal(search_again(), 0);
	x.tid_offset = 0;
	assert_int_equal(search_again(), where);
}

static void test_search_finds_a_hook_that_is_alive(void **state)
{
	const uint64_t where = (uint64_t)&shared[HOOK];

	(void)state;
	assert_int_equal(search_again(), 0);
	shared[HOOK] = HOOK_LIVE_MAGIC ^ (where + 8); /* moved: it was another frame's */
	assert_int_equal(search_again(), 0);
	shared[HOOK] = HOOK_LIVE_MAGIC ^ where;
	assert_int_equal(search_again(), where);
	assert_true(hook_search_lives(&memory, where));
	shared[HOOK] = 0;
	assert_false(hook_search_lives(&memory, where));
	assert_int_equal(search_again(), 0);
}

static void test_search_does_not_read_swapped_pages(void **state)
{
	const uint64_t where = (uint64_t)&shared[HOOK];
	struct page_scan scan;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* the page map of a sanitizer's 20 TiB is not read in the time of a search */
#endif
	shared[HOOK] = HOOK_LIVE_MAGIC ^ where;
	made_up(&scan, shared, ENTRY_PRESENT);
	assert_int_equal(search(&scan), where);
	made_up(&scan, shared, ENTRY_SWAPPED);
	assert_int_equal(search(&scan), 0);
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
		cmocka_unit_test_setup_teardown(test_search_passes_over_stacks_of_ended_threads, open_child,
		                                close_child),
		cmocka_unit_test_setup_teardown(test_search_tells_stacks_that_share_a_mapping, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_search_finds_a_hook_that_is_alive, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_search_does_not_read_swapped_pages, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_tells_pages_that_are_there, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_takes_few_steps_for_reserved_memory, open_child, close_child),
		cmocka_unit_test_setup_teardown(test_scan_passes_over_what_smaps_calls_empty, open_child, close_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
