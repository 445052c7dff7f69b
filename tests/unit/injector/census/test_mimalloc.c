/* SPDX-License-Identifier: MIT */
/* census/allocators/mimalloc.h: what headers and elements of segments say, which words are none, and lists without an
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/allocators/mimalloc.h"
#include "census/pages/quick_scan.h"

#define START 0x20000000000ull
#define COOKIE 0x1234567887654321ull
#define SEGMENT (32ull << 20)
#define SLICE (64ull << 10)
#define BLOCKS 32768ull /* of two bytes, in each slice */

static bool is_segment(struct mimalloc_segment *s, uint64_t slices, uint64_t first, uint64_t kind, uint64_t entries)
{
	return mimalloc_segment_of(s, START, (uint64_t[]){ 3, COOKIE, slices, first, kind, entries, 77 });
}

static bool is_span(struct mimalloc_span *x, uint64_t slice, uint64_t slices, uint64_t capacity, uint64_t reserved,
                    uint64_t used, uint64_t size)
{
	const struct mimalloc_segment s = { .start = START, .slices = 512, .first = 1, .entries = 512 };

	return mimalloc_span_of(x, &s, slice,
	                        (uint64_t[]){ slices, capacity << 16 | reserved << 32 | 2, 0x1000, used | size << 32, 0,
	                                      0x2002, 0x3000 });
}

static void test_mimalloc_reads_segments(void **state)
{
	struct mimalloc_segment s;

	(void)state;
	assert_true(is_segment(&s, 512, 1, 0, 512) && !s.huge && s.key == (COOKIE ^ START) && s.first == 1);
	assert_true(is_segment(&s, 1600, 1, 1, 512) && s.huge && s.entries == 512 && s.slices == 1600);
	assert_true(is_segment(&s, 300, 1, 1, 300) && s.entries == 300);
	assert_false(is_segment(&s, 513, 1, 0, 512));        /* more than its alignment */
	assert_false(is_segment(&s, 512, 0, 0, 512));        /* no header */
	assert_false(is_segment(&s, 512, 512, 0, 512));      /* nothing but it */
	assert_false(is_segment(&s, 512, 1, 2, 512));        /* another kind */
	assert_false(is_segment(&s, 512, 1, 0, 511));        /* as if secure */
	assert_false(is_segment(&s, 1ull << 40, 1, 1, 512)); /* larger than all addresses */
	assert_false(mimalloc_segment_of(&s, START, (uint64_t[]){ 3, 0, 512, 1, 0, 512, 0 }));
	assert_false(mimalloc_segment_of(&s, START, (uint64_t[]){ 513, COOKIE, 512, 1, 0, 512, 0 }));
}

static void test_mimalloc_reads_spans(void **state)
{
	struct mimalloc_span x;

	(void)state;
	assert_true(is_span(&x, 1, 1, 60, 64, 50, 1024) && x.slices == 1 && x.blocks == 50 && x.block_bytes == 1024);
	assert_true(x.freed_by_others == 0x2000 && x.heap == 0x3000);
	assert_true(is_span(&x, 1, 511, 0, 0, 0, 0) && !x.block_bytes); /* free */
	/* One block of 3 GiB, of which the element says 2 GiB. */
	const struct mimalloc_segment huge = {
		.start = START, .slices = 49153, .first = 1, .entries = 512, .huge = true
	};
	assert_true(mimalloc_span_of(&x, &huge, 1,
	                             (uint64_t[]){ 49152, 1ull << 16 | 1ull << 32, 0, 1 | 1ull << 63, 0, 0, 0 }));
	assert_int_equal(x.block_bytes, 3ull << 30);
}

static void test_mimalloc_believes_no_lies(void **state)
{
	struct mimalloc_span x;

	(void)state;
	assert_false(is_span(&x, 1, 0, 1, 1, 1, 64));          /* goes nowhere */
	assert_false(is_span(&x, 1, 512, 1, 1, 1, 64));        /* beyond its segment */
	assert_false(is_span(&x, 1, 1ull << 32, 1, 1, 1, 64)); /* not the first of its span */
	assert_false(is_span(&x, 1, 1, 64, 60, 50, 1024));     /* more than there is room for */
	assert_false(is_span(&x, 1, 1, 50, 64, 51, 1024));     /* more in use than were made */
	assert_false(is_span(&x, 1, 1, 60, 65, 50, 1024));     /* larger than its slices */
	assert_false(is_span(&x, 1, 1, 0, 0, 0, 1));           /* being made */
}

/* As one is left that was given back: a span in no list, and nothing in use. */
static void make_empty_segment(char *segment, uint64_t key)
{
	const uint64_t header[] = { 0, key ^ (uintptr_t)segment, 512, 1, 0, 512, 0 };
	const uint64_t words[] = { 511, 2, 0, 1ull << 32, 0, 0, 0 };

	memcpy(segment + MIMALLOC_HEADER_AT, header, sizeof header);
	memcpy(segment + 264 + 80, words, sizeof words);
	memset(segment + 9 * SLICE, 1, 2 * SLICE);
}

/* Each slice of the segment is a span whose blocks are all in use; the first block of the first one leads to itself. */
static void make_heap(char *segment, const uint64_t *heap, bool list_of_span)
{
	const uint64_t block = (uintptr_t)segment + SLICE;
	const uint64_t header[] = { 511, COOKIE, 512, 1, 0, 512, 77 };

	memcpy(segment + MIMALLOC_HEADER_AT, header, sizeof header);
	for (uint64_t i = 1; i < 512; i++) {
		const uint64_t words[] = { 1,
			                   BLOCKS << 16 | BLOCKS << 32,
			                   0,
			                   BLOCKS | 2ull << 32,
			                   0,
			                   list_of_span && i == 1 ? block : 0,
			                   (uintptr_t)heap };
		memcpy(segment + 264 + 80 * i, words, sizeof words);
	}
	memcpy(segment + SLICE, &block, sizeof block);
}

static void count(struct other_heap *h, uint64_t work)
{
	struct target self = { .pid = getpid(), .tid = getpid(), .pidfd = -1 };
	struct target_memory process;
	struct census_memory memory;
	struct extents extents = { 0 };
	struct quick_scan scan;
	struct maps maps;
	struct err e;

	*h = (struct other_heap){ 0 };
	assert_int_equal(maps_read(&maps, "/proc/self/maps", &e), 0);
	assert_int_equal(quick_scan_take(&scan, &self, &maps, UINT64_MAX, &e), 0);
	assert_int_equal(target_memory_open(&process, getpid(), &e), 0);
	assert_int_equal(census_memory_open(&memory, &self, &maps, &process, &scan.pages, work, &e), 0);
	assert_int_equal(mimalloc_take(h, &maps, &memory, &extents, &e), 0);
	census_memory_close(&memory);
	target_memory_close(&process);
	quick_scan_free(&scan);
	extents_free(&extents);
	maps_free(&maps);
}

/* Of blocks that other threads have freed: of a span, or of an owner. There are 16,744,448 blocks to go round for. */
static void test_mimalloc_leaves_endless_lists(void **state)
{
	char *pages =
		mmap(NULL, 2 * SEGMENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *segment = pages + (SEGMENT - (uintptr_t)pages % SEGMENT);
	uint64_t heap[512] = { 0 };
	struct other_heap h;

	(void)state;
	assert_true((void *)pages != MAP_FAILED);
	make_heap(segment, heap, true);
	count(&h, 1 << 20);
	assert_string_equal(h.name, "mimalloc");
	assert_true(h.over);
	count(&h, 8 << 20); /* the span's list is as long as there are blocks */
	assert_false(h.over);
	assert_int_equal(h.live_blocks, 510 * BLOCKS);
	heap[2840 / 8] = (uintptr_t)segment + SLICE;
	make_heap(segment, heap, false);
	count(&h, 8 << 20);
	assert_true(h.over);
	assert_true(h.live_blocks > 510 * BLOCKS);
	munmap(pages, 2 * SEGMENT);
}

static void test_mimalloc_keeps_empty_segments(void **state)
{
	char *pages =
		mmap(NULL, 3 * SEGMENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *segment = pages + (SEGMENT - (uintptr_t)pages % SEGMENT);
	const uint64_t heap[512] = { 0 };
	struct other_heap h;
	uint64_t freed;

	(void)state;
	assert_true((void *)pages != MAP_FAILED);
	madvise(pages, 3 * SEGMENT, MADV_NOHUGEPAGE); /* a huge page would be there as a whole */
	make_heap(segment, heap, false);
	count(&h, 8 << 20);
	assert_int_equal(h.live_blocks, 511 * BLOCKS);
	freed = h.freed;
	make_empty_segment(segment + SEGMENT, COOKIE ^ (uintptr_t)segment);
	count(&h, 8 << 20);
	assert_int_equal(h.live_blocks, 511 * BLOCKS);
	assert_int_equal(h.freed - freed, 2 * SLICE);
	assert_int_equal(h.lost_bytes, 0);
	munmap(pages, 3 * SEGMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mimalloc_reads_segments),
		cmocka_unit_test(test_mimalloc_reads_spans),
		cmocka_unit_test(test_mimalloc_believes_no_lies),
		cmocka_unit_test(test_mimalloc_leaves_endless_lists),
		cmocka_unit_test(test_mimalloc_keeps_empty_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
