/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "census/heap/chunk_walk.h"
#include "census/reach/reach.h"
#include "census/reach/reach_roots.h"
#include "census/reach/reach_settle.h"

#define BASE 0x7f0000000000ull
#define HEAP_BYTES (1ull << 20)

/* A page is the same as long as no bit of it differs from all that was read of it. */
static void test_page_sums_see_each_bit(void **state)
{
	static uint8_t data[3 * CENSUS_PAGE];
	const struct page_run runs[] = { { BASE, BASE + sizeof data, false, false, false } };
	struct resident_pages pages = { 0 };
	struct page_sums s;
	struct err e;

	(void)state;
	assert_int_equal(resident_pages_add(&pages, &runs[0], &e), 0);
	assert_int_equal(page_sums_open(&s, &pages, &e), 0);
	assert_false(page_sums_same(&s, BASE + 2 * CENSUS_PAGE, data + 2 * CENSUS_PAGE)); /* not read yet */
	page_sums_close(&s);
	assert_int_equal(page_sums_open(&s, &pages, &e), 0);
	page_sums_note(&s, BASE, data, sizeof data);
	page_sums_note(&s, BASE - CENSUS_PAGE, data, 2 * CENSUS_PAGE); /* of the first one nothing is kept */
	for (unsigned i = 0; i < 3; i++)
		assert_true(page_sums_same(&s, BASE + i * CENSUS_PAGE, data + i * CENSUS_PAGE));
	assert_false(page_sums_same(&s, BASE - CENSUS_PAGE, data));
	assert_false(page_sums_same(&s, BASE + sizeof data, data));
	for (unsigned bit = 0; bit < 8 * CENSUS_PAGE; bit++) {
		const uint64_t before = page_sum(data);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(page_sum(data) != before);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	data[CENSUS_PAGE + 17] = 1;
	page_sums_note(&s, BASE + CENSUS_PAGE, data + CENSUS_PAGE, CENSUS_PAGE);
	assert_false(page_sums_same(&s, BASE + CENSUS_PAGE, data + CENSUS_PAGE)); /* both contents were used */
	data[17] = 1;
	assert_false(page_sums_same(&s, BASE, data));
	data[17] = 0;
	assert_false(page_sums_same(&s, BASE, data)); /* for ever */
	assert_true(page_sums_same(&s, BASE + 2 * CENSUS_PAGE, data + 2 * CENSUS_PAGE));
	page_sums_forget(&s, BASE - CENSUS_PAGE, BASE + 2 * CENSUS_PAGE + 16); /* a page that a part of is meant, too */
	assert_false(page_sums_same(&s, BASE + 2 * CENSUS_PAGE, data + 2 * CENSUS_PAGE));
	page_sums_close(&s);
	resident_pages_free(&pages);
}

static void test_blocks_are_reached_from_any_place(void **state)
{
	struct heap_segment segment = { .start = BASE + 16, .end = BASE + HEAP_BYTES, .top = BASE + 4096, .arena = 1 };
	struct extent mapped[] = { { BASE + HEAP_BYTES, BASE + HEAP_BYTES + 8192, REGION_MAPPED, "", 0 },
		                   { BASE + HEAP_BYTES + 8192, BASE + HEAP_BYTES + 16384, REGION_MAPPED, "", 0 } };
	const struct census_heap heap = { .glibc = { .segments = &segment, .segment_count = 1 },
		                          .extents = { mapped, 2 } };
	struct block_space b;
	struct block block;
	struct err e;
	uint32_t numbers[5], n;

	(void)state;
	assert_int_equal(heap_marks_open(&segment.marks, segment.start, segment.end, &e), 0);
	heap_marks_begin(&segment.marks, BASE + 16, false);
	heap_marks_begin(&segment.marks, BASE + 48, true);
	heap_marks_begin(&segment.marks, BASE + 96, false);
	assert_int_equal(block_space_open(&b, &heap, &e), 0);
	assert_false(block_space_near(&b, BASE - (64ull << 20)) || block_space_near(&b, UINT64_MAX));
	assert_true(block_space_near(&b, BASE + 200));
	assert_false(block_space_reach(&b, BASE + 16, &n));                /* a header, and none before it */
	assert_true(block_space_reach(&b, BASE + 55, &numbers[0]));        /* within the first one */
	assert_false(block_space_reach(&b, BASE + 56 + 7, &n));            /* its end: it was reached before */
	assert_false(block_space_reach(&b, BASE + 70, &n));                /* free */
	assert_true(block_space_reach(&b, BASE + 4096 + 15, &numbers[1])); /* the end of the last one */
	assert_false(block_space_reach(&b, BASE + 4096 + 16, &n));         /* the top */
	assert_true(block_space_reach(&b, mapped[1].start, &numbers[2]));  /* the end of the one before */
	assert_true(block_space_reach(&b, mapped[1].start + 16, &numbers[3]));
	assert_false(block_space_reach(&b, mapped[1].end - 1, &n));
	block = block_space_block(&b, numbers[0]);
	assert_int_equal(block.start, BASE + 32);
	assert_int_equal(block.end, BASE + 56);
	block = block_space_block(&b, numbers[1]);
	assert_int_equal(block.start, BASE + 112);
	assert_int_equal(block.end, BASE + 4096 + 8);
	assert_int_equal(block_space_block(&b, numbers[2]).start, mapped[0].start + 16);
	assert_int_equal(block_space_block(&b, numbers[3]).end, mapped[1].end);
	assert_true(block_space_is_reached(&b, numbers[3]));
	assert_true(block_space_next(&b.parts[0], BASE + 16, &block) && block.start == BASE + 32);
	assert_true(block_space_next(&b.parts[0], BASE + 56, &block) && block.start == BASE + 112);
	assert_false(block_space_next(&b.parts[0], BASE + 4096 + 8, &block));
	segment.top = segment.end; /* there is no top: the last block ends with the part */
	assert_true(block_space_next(&b.parts[0], BASE + 4096 + 8, &block) && block.end == segment.end);
	assert_false(block_space_next(&b.parts[0], block.end, &block));
	b.parts[2].gone = true;
	assert_false(block_space_reach(&b, mapped[1].start + 100, &n));
	block_space_close(&b);
	heap_marks_close(&segment.marks);
}

#define WALK_BYTES (64u << 10)
#define CHUNK_BYTES 64u

static void count_new(void *context, uint64_t chunk)
{
	(void)chunk;
	++*(unsigned *)context;
}

/* A heap of this process: all chunks are in use but each fourth; two that were one are new; and it ends in time. */
static void test_walk_again_finds_new_chunks(void **state)
{
	static const struct glibc_layout layout = { .top = 0x60 };
	uint64_t *heap = aligned_alloc(CENSUS_PAGE, WALK_BYTES + CENSUS_PAGE);
	const uint64_t base = (uint64_t)(uintptr_t)heap, arena = base + WALK_BYTES, top = base + WALK_BYTES - 256;
	struct heap_segment s = { .start = base, .end = base + WALK_BYTES, .arena = arena, .main = true, .top = top };
	struct glibc_heap h = { .glibc = { .layout = &layout }, .segments = &s, .segment_count = 1 };
	const struct target_memory self = { .pid = getpid(), .mem_fd = -1 };
	const struct target target = { .pid = getpid() };
	const struct page_run run = { base, base + WALK_BYTES + CENSUS_PAGE, false, false, false };
	struct resident_pages pages = { 0 };
	struct maps maps = { 0 };
	struct census_memory memory;
	unsigned new = 0;
	struct err e;

	(void)state;
	assert_non_null(heap);
	memset(heap, 0, WALK_BYTES + CENSUS_PAGE);
	for (uint64_t at = base, n = 0; at <= top; at += CHUNK_BYTES, n++) {
		heap[(at - base) / 8] = n % 4 == 0 ? CHUNK_BYTES : 0; /* of the one before, where that is free */
		heap[(at - base) / 8 + 1] = CHUNK_BYTES | (n % 4 != 0 || !n);
	}
	heap[(arena + layout.top - base) / 8] = top;
	assert_int_equal(resident_pages_add(&pages, &run, &e), 0);
	assert_int_equal(census_memory_open(&memory, &target, &maps, &self, &pages, 1 << 24, &e), 0);
	assert_int_equal(heap_marks_open(&s.marks, s.start, s.end, &e), 0);
	h.again_until_ns = UINT64_MAX;
	assert_int_equal(
		chunk_walk_again(&h, &memory, (struct chunk_range){ &s, base, base + WALK_BYTES }, count_new, &new, &e),
		0);
	const unsigned chunks = (unsigned)((top - base) / CHUNK_BYTES), in_use = chunks - chunks / 4;
	assert_int_equal(new, in_use);
	assert_int_equal(s.top, top);
	assert_int_equal(h.lost_bytes, 0);
	for (uint64_t at = base, n = 0; at < top; at += CHUNK_BYTES, n++)
		assert_int_equal(heap_marks_is_free(&s.marks, at), n % 4 == 3);
	new = 0;
	assert_int_equal(
		chunk_walk_again(&h, &memory, (struct chunk_range){ &s, base, base + WALK_BYTES }, count_new, &new, &e),
		0);
	assert_int_equal(new, 0);
	heap[(base + CENSUS_PAGE - base) / 8 + 1] = 32 | 0; /* the chunk in front of it is free still */
	heap[(base + CENSUS_PAGE + 32 - base) / 8 + 1] = 32 | 1;
	census_memory_refresh(&memory);
	assert_int_equal(chunk_walk_again(&h, &memory,
	                                  (struct chunk_range){ &s, base + CENSUS_PAGE, base + 2 * CENSUS_PAGE },
	                                  count_new, &new, &e),
	                 0);
	assert_int_equal(new, 1);
	assert_true(heap_marks_begins(&s.marks, base + CENSUS_PAGE + 32));
	h.again_until_ns = 1;
	assert_int_equal(
		chunk_walk_again(&h, &memory, (struct chunk_range){ &s, base, base + WALK_BYTES }, count_new, &new, &e),
		-ETIME);
	census_memory_close(&memory);
	heap_marks_close(&s.marks);
	resident_pages_free(&pages);
	free(h.tcaches);
	free(heap);
}

/* A heap of this process in which one block became many: nothing is said of these, also where a first look at it failed
 * after it was walked. */
static void test_new_blocks_stay_new_after_a_failure(void **state)
{
	static const struct glibc_layout layout = { .fastbins = 0x10, .top = 0x60, .bytes = 0x898 };
	uint64_t *words = aligned_alloc(CENSUS_PAGE, WALK_BYTES + CENSUS_PAGE);
	const uint64_t base = (uint64_t)(uintptr_t)words, arena = base + WALK_BYTES, top = arena - 256;
	struct heap_segment s = { .start = base, .end = arena, .arena = arena, .main = true, .top = top };
	struct census_heap heap = { .glibc = { .glibc = { .layout = &layout, .main_arena = arena, .release = 36 },
		                               .segments = &s,
		                               .segment_count = 1 } };
	const struct target_memory self = { .pid = getpid(), .mem_fd = -1 };
	const struct target target = { .pid = getpid() };
	const struct page_run run = { base, arena + CENSUS_PAGE, false, false, false };
	const struct reach_stop stop = { 0 };
	struct resident_pages pages = { 0 };
	struct census_memory memory;
	struct page_sums sums;
	struct maps maps;
	struct reach r;
	char line[80];
	struct err e;

	(void)state;
	assert_non_null(words);
	memset(words, 0, WALK_BYTES + CENSUS_PAGE);
	for (uint64_t at = 0; at <= top - base; at += CHUNK_BYTES)
		words[at / 8 + 1] = CHUNK_BYTES | 1;
	words[(arena + layout.top - base) / 8] = top;
	words[(arena + layout.fastbins - base) / 8] = base + 8; /* no chunk */
	const int n = snprintf(line, sizeof line, "%lx-%lx rw-p 00000000 00:00 0 [heap]\n", base, arena + CENSUS_PAGE);
	assert_int_equal(maps_parse(&maps, line, (size_t)n, &e), 0);
	assert_int_equal(resident_pages_add(&pages, &run, &e), 0);
	assert_int_equal(page_sums_open(&sums, &pages, &e), 0);
	assert_int_equal(census_memory_open(&memory, &target, &maps, &self, &pages, 1 << 24, &e), 0);
	assert_int_equal(heap_marks_open(&s.marks, s.start, s.end, &e), 0);
	heap_marks_begin(&s.marks, base, false);
	assert_int_equal(reach_open(&r, &heap, &memory, &maps, &sums, &e), 0);
	assert_int_equal(reach_settle(&r, &maps, &pages, &stop, &e), -EBUSY);
	words[(arena + layout.fastbins - base) / 8] = 0;
	assert_int_equal(reach_settle(&r, &maps, &pages, &stop, &e), 0);
	assert_int_equal(reach_count(&r).live_blocks, (top - base) / CHUNK_BYTES);
	assert_int_equal(reach_count(&r).lost_blocks, 1); /* the one that was there before */
	reach_close(&r);
	census_memory_close(&memory);
	heap_marks_close(&s.marks);
	page_sums_close(&sums);
	resident_pages_free(&pages);
	maps_free(&maps);
	free(words);
}

/* It is passed over at once, however long it is: the process may stand still meanwhile. A word across two others, or
 * with a tag, is put off, so that it does not hide who holds the block; where nobody else does it leads there. */
static void test_what_is_not_there_takes_no_time(void **state)
{
	const uint64_t far = 1ull << 46;
	uint64_t *words = aligned_alloc(CENSUS_PAGE, CENSUS_PAGE);
	const uint64_t base = (uint64_t)(uintptr_t)words;
	const struct target_memory self = { .pid = getpid(), .mem_fd = -1 };
	const struct target target = { .pid = getpid() };
	const struct page_run run = { base, base + CENSUS_PAGE, false, false, false };
	struct extent mapped[] = { { far, far + CENSUS_PAGE, REGION_MAPPED, "", 0 },
		                   { far + CENSUS_PAGE, far + 2 * CENSUS_PAGE, REGION_MAPPED, "", 0 } };
	struct census_heap heap = { .extents = { mapped, 2 } };
	struct resident_pages pages = { 0 };
	struct census_memory memory;
	struct maps maps = { 0 };
	struct reach r;
	struct err e;

	(void)state;
	assert_non_null(words);
	memset(words, 0, CENSUS_PAGE);
	words[40] = 1ull << 63 | (far + 80);
	memcpy((char *)words + 404, &(uint64_t){ far + 60 }, 8);
	memcpy((char *)words + 604, &(uint64_t){ far + CENSUS_PAGE + 60 }, 8);
	words[100] = far + 50;
	assert_int_equal(resident_pages_add(&pages, &run, &e), 0);
	assert_int_equal(census_memory_open(&memory, &target, &maps, &self, &pages, 1 << 24, &e), 0);
	assert_int_equal(reach_open(&r, &heap, &memory, &maps, NULL, &e), 0);
	r.puts_off = true;
	reach_range(&r, CENSUS_PAGE, 1ull << 47, 4);
	assert_int_equal(r.queued, 1);
	assert_int_equal(r.roots[0], base + 800);
	reach_odd_words(&r);
	assert_int_equal(r.queued, 2);
	assert_int_equal(r.roots[1], base + 604);
	assert_false(r.over);
	reach_close(&r);
	census_memory_close(&memory);
	resident_pages_free(&pages);
	free(words);
}

static void test_words_that_are_put_off_have_an_end(void **state)
{
	const uint64_t far = 1ull << 46;
	uint64_t *words = aligned_alloc(CENSUS_PAGE, CENSUS_PAGE);
	const uint64_t base = (uint64_t)(uintptr_t)words;
	const struct target_memory self = { .pid = getpid(), .mem_fd = -1 };
	const struct target target = { .pid = getpid() };
	const struct page_run run = { base, base + CENSUS_PAGE, false, false, false };
	struct extent mapped = { far, far + CENSUS_PAGE, REGION_MAPPED, "", 0 };
	struct census_heap heap = { .extents = { &mapped, 1 } };
	struct resident_pages pages = { 0 };
	struct census_memory memory;
	struct maps maps = { 0 };
	struct reach r;
	struct err e;

	(void)state;
	assert_non_null(words);
	for (size_t i = 0; i < CENSUS_PAGE / 8; i++)
		words[i] = 1ull << 63 | (far + 80);
	assert_int_equal(resident_pages_add(&pages, &run, &e), 0);
	assert_int_equal(census_memory_open(&memory, &target, &maps, &self, &pages, 1 << 24, &e), 0);
	assert_int_equal(reach_open(&r, &heap, &memory, &maps, NULL, &e), 0);
	r.puts_off = true;
	for (size_t seen = 0; seen <= REACH_ODD_MAX; seen += CENSUS_PAGE / 8)
		reach_range(&r, base, base + CENSUS_PAGE, 8);
	assert_int_equal(r.odd_count, REACH_ODD_MAX);
	assert_int_equal(r.queued, 1);
	assert_false(r.over);
	reach_close(&r);
	census_memory_close(&memory);
	resident_pages_free(&pages);
	free(words);
}

static void test_huge_pages_may_hide_pointers(void **state)
{
	static const char text[] = "7f0000000000-7f0000200000 rw-p 00000000 00:10 77 %s\n";
	static const struct {
		const char *path;
		bool hide;
	} files[] = { { "/anon_hugepage (deleted)", true },
		      { "/dev/hugepages/rtemap_0", true },
		      { "/dev/dri/card0", false },
		      { "/mnt/hugepages/a", false }, /* is looked at */
		      { "[heap]", false } };

	(void)state;
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		struct maps maps = { 0 };
		char line[160];
		struct err e;
		const int n = snprintf(line, sizeof line, text, files[i].path);
		assert_int_equal(maps_parse(&maps, line, (size_t)n, &e), 0);
		assert_int_equal(reach_roots_have_huge_pages(&maps), files[i].hide);
		maps_free(&maps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_sums_see_each_bit),
		cmocka_unit_test(test_blocks_are_reached_from_any_place),
		cmocka_unit_test(test_walk_again_finds_new_chunks),
		cmocka_unit_test(test_new_blocks_stay_new_after_a_failure),
		cmocka_unit_test(test_what_is_not_there_takes_no_time),
		cmocka_unit_test(test_words_that_are_put_off_have_an_end),
		cmocka_unit_test(test_huge_pages_may_hide_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
