/* SPDX-License-Identifier: MIT */
/* The parts of a look at the resident memory: free lists of malloc, and pages within a time. This process is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/heap/free_lists.h"
#include "census/memory_look.h"
#include "census/pages/quick_scan.h"
#include "process/live_thread.h"
#include "recording/live/live_residency.h"

#define HEAP_BYTES 65536u
#define CHUNK(n) (heap + 0x400ull * (n))
#define FREE_BYTES 0x200u
#define MIB (1u << 20)

static const struct glibc_layout layout = {
	.fastbins = 0x10, .top = 0x60, .bins = 0x70, .next = 0x870, .system_bytes = 0x888, .bytes = 0x898
};
static struct target self;
static struct target_memory memory;
static struct maps maps;
static uint64_t arena, heap; /* pages of this process */
static struct resident_pages pages;
static struct census_memory census;
static struct heap_segment segment;
static struct glibc_heap g;

static void put(uint64_t address, uint64_t word)
{
	memcpy((void *)(uintptr_t)address, &word, sizeof word);
}

static uint64_t head_of(unsigned bin)
{
	return arena + layout.bins + 16 * bin - 16;
}

/* A circle of chunks in a bin. */
static void set_bin(unsigned bin, const uint64_t *chunks, unsigned count)
{
	const uint64_t head = head_of(bin);

	put(head + 16, count ? chunks[0] : head);
	put(head + 24, count ? chunks[count - 1] : head);
	for (unsigned i = 0; i < count; i++) {
		put(chunks[i] + 8, FREE_BYTES | 1);
		put(chunks[i] + 16, i + 1 < count ? chunks[i + 1] : head);
		put(chunks[i] + 24, i ? chunks[i - 1] : head);
	}
}

static void make_heap(void)
{
	memset((void *)(uintptr_t)heap, 0, HEAP_BYTES);
	memset((void *)(uintptr_t)arena, 0, 4096);
	for (unsigned i = 0; i < 127; i++)
		set_bin(i, NULL, 0);
	set_bin(0, (uint64_t[]){ CHUNK(3), CHUNK(1) }, 2);
	set_bin(40, (uint64_t[]){ CHUNK(7) }, 1);
	put(arena + layout.fastbins + 8 * 2, CHUNK(9)); /* of 64 bytes; the next one is hidden behind its place */
	put(CHUNK(9) + 16, (CHUNK(9) + 16) >> 12 ^ CHUNK(11));
	put(CHUNK(11) + 16, (CHUNK(11) + 16) >> 12);
	put(arena + layout.top, heap + HEAP_BYTES - 0x1000);
}

static void *pages_of(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	memset(at, 0, bytes);
	return at;
}

static int set_up(void **state)
{
	struct err e;

	(void)state;
	self = (struct target){ .pid = getpid(), .tid = getpid(), .pidfd = -1 };
	arena = (uint64_t)(uintptr_t)pages_of(4096);
	heap = (uint64_t)(uintptr_t)pages_of(HEAP_BYTES);
	const struct page_run runs[] = { { .start = arena, .end = arena + 4096 },
		                         { .start = heap, .end = heap + HEAP_BYTES } };
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(resident_pages_add(&pages, &runs[arena < heap ? i : 1 - i], &e), 0);
	segment = (struct heap_segment){ .start = heap, .end = heap + HEAP_BYTES, .arena = arena, .main = true };
	g = (struct glibc_heap){ .glibc = { .layout = &layout, .release = 36, .main_arena = arena },
		                 .segments = &segment,
		                 .segment_count = 1 };
	return maps_read(&maps, "/proc/self/maps", &e) || target_memory_open(&memory, getpid(), &e) ||
	       census_memory_open(&census, &self, &maps, &memory, &pages, MIB, &e);
}

static int tear_down(void **state)
{
	(void)state;
	census_memory_close(&census);
	target_memory_close(&memory);
	resident_pages_free(&pages);
	maps_free(&maps);
	return 0;
}

static void test_free_lists_sum_is_what_is_free(void **state)
{
	uint64_t freed = 0;

	(void)state;
	make_heap();
	assert_true(free_lists_sum(&g, &census, &freed));
	assert_int_equal(freed, 3 * FREE_BYTES + 2 * 64 + 0x1000);
	g.glibc.release = 0; /* fastbins are not followed: they differ between releases */
	assert_true(free_lists_sum(&g, &census, &freed));
	assert_int_equal(freed, 3 * FREE_BYTES + 0x1000);
	g.glibc.release = 36;
}

/* Each word that a process can forge: no figure, and an end. */
static void test_free_lists_sum_believes_no_lies(void **state)
{
	const struct {
		uint64_t place, word;
	} lies[] = {
		{ CHUNK(3) + 16, CHUNK(3) },             /* a circle that does not come back to its bin */
		{ CHUNK(1) + 16, CHUNK(3) },             /* the same */
		{ CHUNK(1) + 24, CHUNK(7) },             /* another one is said to be before it */
		{ CHUNK(3) + 8, 17 },                    /* less than any chunk has */
		{ CHUNK(3) + 8, UINT64_MAX },            /* beyond its heap */
		{ CHUNK(7) + 8, HEAP_BYTES },            /* the same */
		{ CHUNK(3) + 16, CHUNK(1) + 8 },         /* no multiple of 16 */
		{ head_of(70) + 16, 0 },                 /* nowhere */
		{ head_of(70) + 16, arena - (1 << 30) }, /* not there */
		{ head_of(70) + 16, arena },             /* in no heap */
		{ CHUNK(9) + 16, 12345 },                /* a fastbin that leads elsewhere */
		{ CHUNK(11) + 16,
		  (CHUNK(11) + 16) >> 12 ^ CHUNK(11) }, /* in a circle: until its time, or what may be read, is over */
	};
	uint64_t freed = 77;

	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		make_heap();
		put(lies[i].place, lies[i].word);
		census.until_ns = 0;
		census.time_is_up = i + 1 == sizeof lies / sizeof *lies;
		assert_false(free_lists_sum(&g, &census, &freed));
		assert_int_equal(freed, 77);
	}
	census.time_is_up = false;
	make_heap();
	census.until_ns = 1;
	assert_false(free_lists_sum(&g, &census, &freed));
	census.until_ns = 0;
	census.time_is_up = false;
}

static void test_quick_scan_finds_pages_in_order(void **state)
{
	const size_t bytes = 64u << 20;
	volatile char *large =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uint64_t start = (uint64_t)(uintptr_t)large;
	struct quick_scan q;
	struct maps now;
	struct err e;

	(void)state;
	assert_true((void *)large != MAP_FAILED);
	madvise((void *)(uintptr_t)start, bytes, MADV_NOHUGEPAGE);
	large[0] = large[8192] = large[bytes - 1] = 1;
	assert_int_equal(maps_read(&now, "/proc/self/maps", &e), 0);
	assert_int_equal(quick_scan_take(&q, &self, &now, UINT64_MAX, &e), 0);
	assert_int_equal(q.unfinished_count, 0);
	assert_int_equal(resident_pages_sum(&q.pages, start, start + bytes), 3 * 4096);
	for (size_t i = 1; i < q.pages.count; i++)
		assert_true(q.pages.runs[i - 1].end <= q.pages.runs[i].start);
	quick_scan_free(&q);
	assert_int_equal(quick_scan_take(&q, &self, &now, 0, &e), 0);
	assert_true(q.unfinished_count > 0 && q.pages.count == 0);
	quick_scan_free(&q);
	maps_free(&now);
	munmap((void *)(uintptr_t)start, bytes);
}

/* Each byte is in a row, also where no page was looked at: then the kernel's sums are. */
static void test_memory_look_sums_up_to_rss(void **state)
{
	struct memory_look *look = calloc(1, sizeof *look);
	struct err e;

	(void)state;
	assert_non_null(look);
	for (int none = 0; none < 2; none++) {
		uint64_t sum = 0;
		const struct memory_look_wish wish = { .pages_ns = none ? 0 : UINT64_MAX / 4 };
		assert_int_equal(memory_look_take(look, &self, &wish, &e), 0);
		for (uint32_t i = 0; i < look->count; i++) {
			sum += look->rows[i].row.resident;
			assert_true(look->rows[i].row.kind > DUMP_MEMORY_LOOK &&
			            look->rows[i].row.kind < DUMP_MEMORY_KINDS);
		}
		assert_in_range(sum, look->look.rss - MIB, look->look.rss + MIB);
		assert_int_equal((look->look.flags & DUMP_LOOK_PAGES_CUT) != 0, none);
		assert_true(!none || !(look->look.flags & DUMP_LOOK_MALLOC));
	}
	free(look);
}

/* Of blocks that lie in pages that are there, in swap, not there, and across. */
static void test_live_residency_of_blocks(void **state)
{
	const uint64_t base = 1ull << 40;
	const struct page_run runs[] = { { .start = base, .end = base + 8192 },
		                         { .start = base + 8192, .end = base + 16384, .swapped = true } };
	struct resident_pages p = { 0 };
	struct err e;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(resident_pages_add(&p, &runs[i], &e), 0);
	assert_int_equal(live_residency_of(&p, base + 100, 200), DUMP_LIVE_RESIDENCY(100, 0));
	assert_int_equal(live_residency_of(&p, base + 100, 0), DUMP_LIVE_RESIDENCY(100, 0));
	assert_int_equal(live_residency_of(&p, base + 10000, 5000), DUMP_LIVE_RESIDENCY(0, 100));
	assert_int_equal(live_residency_of(&p, base, 32768), DUMP_LIVE_RESIDENCY(25, 25));
	assert_int_equal(live_residency_of(&p, base + 20000, 1 << 20), DUMP_LIVE_RESIDENCY(0, 0));
	assert_int_equal(live_residency_of(&p, base + 16384 - 16, 1 << 20), DUMP_LIVE_RESIDENCY(0, 0)); /* a header */
	assert_int_equal(live_residency_of(&p, UINT64_MAX - 10, 1 << 20), 0);
	resident_pages_free(&p);
}

/* The time is up within shared memory; of the larger mapping behind it no page was found, so none was looked into. */
static void test_memory_look_says_what_it_has_not_looked_into(void **state)
{
	struct memory_look *look = calloc(1, sizeof *look);
	const size_t shared_bytes = 384u << 20, private_bytes = 400u << 20, there = 8u << 20;
	void *shared = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *private = mmap(NULL, private_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct err e;

	(void)state;
	assert_true(look && shared != MAP_FAILED && (void *)private != MAP_FAILED);
	memset(shared, 1, shared_bytes);
	memset(private + private_bytes - there, 1, there); /* where pages are found last */
	for (uint64_t ns = 1000000; ns <= 40000000; ns += ns / 2) {
		assert_int_equal(memory_look_take(look, &self, &(struct memory_look_wish){ .pages_ns = ns }, &e), 0);
		if (look->look.flags & DUMP_LOOK_PAGES_CUT)
			assert_true(look->look.flags & DUMP_LOOK_CONTENT_CUT);
	}
	for (uint32_t i = 0; i < look->count; i++) /* /dev/zero is no name */
		if (look->rows[i].row.kind == DUMP_MEMORY_SHARED && look->rows[i].row.resident >= shared_bytes)
			assert_string_equal(look->rows[i].name, "");
	munmap(shared, shared_bytes);
	munmap(private, private_bytes);
	free(look);
}

/* 60 ms for those who have little, more for each GiB, and not for ever. */
static void test_memory_look_has_time_by_what_is_there(void **state)
{
	(void)state;
	assert_int_equal(memory_look_pages_ns(MIB), 60000000);
	assert_int_equal(memory_look_pages_ns(20ull << 30), 260000000);
	assert_int_equal(memory_look_pages_ns(1ull << 43), 800000000);
}

/* Nobody can map anything while the kernel counts. */
static void test_resident_exact_of_few_page_tables(void **state)
{
	const size_t bytes = 4ull << 30, table = 2u << 20; /* 8 MiB of page tables, with a page each */
	char *sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_ptr_not_equal(sparse, MAP_FAILED);
	assert_true(target_resident_exact(&self) > 0);
	(void)madvise(sparse, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += table)
		sparse[i] = 1;
	assert_int_equal(target_resident_exact(&self), 0);
	assert_int_equal(munmap(sparse, bytes), 0);
	assert_true(target_resident_exact(&self) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_lists_sum_is_what_is_free),
		cmocka_unit_test(test_free_lists_sum_believes_no_lies),
		cmocka_unit_test(test_quick_scan_finds_pages_in_order),
		cmocka_unit_test(test_memory_look_sums_up_to_rss),
		cmocka_unit_test(test_live_residency_of_blocks),
		cmocka_unit_test(test_memory_look_has_time_by_what_is_there),
		cmocka_unit_test(test_memory_look_says_what_it_has_not_looked_into),
		cmocka_unit_test(test_resident_exact_of_few_page_tables),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
