/* SPDX-License-Identifier: MIT */
/* census/allocators/jemalloc.h: what elements and extents say, and which of them do not agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "census/allocators/jemalloc.h"
#include "census/allocators/jemalloc_caches.h"

#define PAGE 4096ull
#define ADDRESS 0x7f0012345000ull
#define SLAB (1ull << 12)
#define NEW (&jemalloc_layouts[0][0]) /* 5.3, and 5.2, of the usual quantum; */
#define NEW_QUANTUM_8 (&jemalloc_layouts[0][1])
#define OLD (&jemalloc_layouts[0][2])
#define OLD_QUANTUM_8 (&jemalloc_layouts[0][3])

static uint64_t element(uint64_t size_class, uint64_t state, uint64_t slab)
{
	return size_class << 48 | 0x7f0011111180ull | state << 2 | slab;
}

static uint64_t bits(uint64_t size_class, uint64_t state, uint64_t slab, uint64_t free)
{
	return slab * SLAB | state << 17 | size_class << 20 | free << 28;
}

static bool agree(struct jemalloc_extent *x, uint64_t word, uint64_t first, uint64_t bytes)
{
	const struct jemalloc_element e = jemalloc_element_of(word);

	return jemalloc_extent_of(NEW, x, &e, (uint64_t[3]){ first, ADDRESS + 0x340, bytes | 7 });
}

/* The same of 5.2. */
static uint64_t old_element(uint64_t size_class, uint64_t slab)
{
	return size_class << 48 | 0x7f0011111140ull | slab;
}

static uint64_t old_bits(uint64_t size_class, uint64_t state, uint64_t slab, uint64_t free)
{
	return slab * SLAB | state << 16 | size_class << 18 | free << 26;
}

static bool agree_old(const struct jemalloc_layout *layout, struct jemalloc_extent *x, uint64_t word, uint64_t first,
                      uint64_t bytes)
{
	const struct jemalloc_element e = jemalloc_element_of(word);

	return jemalloc_extent_of(layout, x, &e, (uint64_t[3]){ first, ADDRESS, bytes | 7 });
}

static void test_jemalloc_reads_slabs_and_large_blocks(void **state)
{
	/* Classes: 8, 16 to 64 by 16, 80 to 128 by 16, 160, … 14 KiB; of large blocks 16 KiB, 20 KiB. */
	static const struct {
		uint64_t size_class, bytes;
	} sizes[] = { { 0, 8 }, { 1, 16 }, { 4, 64 }, { 5, 80 }, { 8, 128 }, { 9, 160 }, { 35, 14336 } };
	struct jemalloc_extent x;

	(void)state;
	assert_int_equal(jemalloc_element_of(element(7, 0, 1)).edata, 0x7f0011111180ull);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const uint64_t size_class = sizes[i].size_class, bytes = 35 * PAGE;
		assert_true(agree(&x, element(size_class, 0, 1), bits(size_class, 0, 1, 1), bytes));
		assert_true(x.active && x.start == ADDRESS && x.end == ADDRESS + bytes);
		assert_int_equal(x.block_bytes, sizes[i].bytes);
		assert_int_equal(x.blocks, bytes / sizes[i].bytes - 1);
	}
	/* A large block has a page more than its class, and of the last page no class is told. */
	assert_true(agree(&x, element(37, 0, 0), bits(37, 0, 0, 1023), 6 * PAGE) && x.blocks == 1);
	assert_true(agree(&x, element(232, 0, 0), bits(37, 0, 0, 0), 6 * PAGE) && x.block_bytes == 20480);
	assert_true(agree(&x, element(232, 1, 0), bits(232, 1, 0, 0), 6 * PAGE) && !x.active);
	/* One of 96 bytes that jemalloc's own profiler has sampled. */
	assert_true(agree(&x, element(6, 0, 0), bits(6, 0, 0, 0), 5 * PAGE) && x.blocks == 1 && x.block_bytes == 96);
	/* What was a slab. */
	assert_true(agree(&x, element(20, 1, 1), bits(232, 1, 1, 0), PAGE) && !x.active && x.end == ADDRESS + PAGE);
}

static void test_jemalloc_believes_no_lies(void **state)
{
	struct jemalloc_extent x;

	(void)state;
	assert_false(agree(&x, element(5, 0, 1), bits(6, 0, 1, 0), PAGE));   /* another class */
	assert_false(agree(&x, element(5, 1, 1), bits(5, 0, 1, 0), PAGE));   /* another state */
	assert_false(agree(&x, element(5, 1, 1), bits(6, 1, 1, 0), PAGE));   /* freed, and another class */
	assert_false(agree(&x, element(5, 0, 0), bits(5, 0, 1, 0), PAGE));   /* a slab or none */
	assert_false(agree(&x, element(5, 0, 1), bits(5, 0, 1, 0), 0));      /* empty */
	assert_false(agree(&x, element(5, 0, 1), bits(5, 0, 1, 52), PAGE));  /* more free than there are: 51 of 80 */
	assert_false(agree(&x, element(37, 0, 0), bits(37, 0, 0, 0), PAGE)); /* larger than its extent */
	assert_false(agree(&x, element(233, 0, 0), bits(233, 0, 0, 0), 1ull << 46)); /* no class */
	assert_false(agree(&x, element(5, 0, 1), bits(5, 0, 1, 0), 1ull << 48));
	assert_false(agree(&x, element(5, 0, 1), bits(5, 0, 1, 0), PAGE));           /* 51.2 blocks */
	assert_false(agree(&x, element(36, 0, 1), bits(36, 0, 1, 0), 4 * PAGE));     /* a slab of a large class */
	assert_false(agree(&x, element(37, 0, 0), bits(37, 0, 0, 0), 8 * PAGE));     /* smaller than its extent */
	assert_false(agree(&x, old_element(5, 1), old_bits(5, 0, 1, 10), 5 * PAGE)); /* of 5.2 */
}

static void test_jemalloc_reads_5_2(void **state)
{
	struct jemalloc_extent x;

	(void)state;
	assert_int_equal(jemalloc_element_of(old_element(7, 1)).edata, 0x7f0011111140ull);
	assert_true(agree_old(OLD, &x, old_element(5, 1), old_bits(5, 0, 1, 10), 5 * PAGE));
	assert_true(x.active && x.blocks == 246 && x.block_bytes == 80 && x.end == ADDRESS + 5 * PAGE);
	/* The last page of a large block may have any class. */
	assert_true(agree_old(OLD, &x, old_element(37, 0), old_bits(37, 0, 0, 0), 6 * PAGE) && x.blocks == 1);
	assert_true(agree_old(OLD, &x, old_element(50, 0), old_bits(37, 0, 0, 0), 5 * PAGE) && x.block_bytes == 20480);
	/* Free: a slab before, and retained. */
	assert_true(agree_old(OLD, &x, old_element(5, 1), old_bits(232, 1, 0, 0), PAGE) && !x.active);
	assert_true(agree_old(OLD, &x, old_element(232, 0), old_bits(232, 3, 0, 0), 9 * PAGE) && !x.active);

	assert_false(agree_old(OLD, &x, old_element(6, 1), old_bits(5, 0, 1, 0), 5 * PAGE));   /* another class */
	assert_false(agree_old(OLD, &x, old_element(37, 1), old_bits(37, 0, 0, 0), 5 * PAGE)); /* a slab or none */
	assert_false(agree_old(OLD, &x, old_element(37, 0), old_bits(37, 0, 0, 0), 7 * PAGE)); /* not filled */
	assert_false(agree_old(OLD, &x, old_element(5, 1), old_bits(5, 1, 0, 0), 5 * PAGE));   /* free, with a class, */
	assert_false(agree_old(OLD, &x, old_element(5, 1), old_bits(232, 1, 1, 0), 5 * PAGE)); /* or a slab */
	assert_false(agree_old(OLD, &x, old_element(5, 1) | 4, old_bits(5, 0, 1, 0), 5 * PAGE)); /* a state */
	assert_false(agree_old(OLD, &x, element(5, 0, 1), bits(5, 0, 1, 0), 5 * PAGE));          /* of 5.3 */
}

static void test_jemalloc_tells_quanta_apart(void **state)
{
	/* Of 8 bytes: 8 to 64 by 8, 80 to 128 by 16, … 16 KiB, 20 KiB. */
	static const struct {
		unsigned size_class;
		uint64_t bytes;
	} sizes[] = { { 0, 8 }, { 3, 32 }, { 4, 40 }, { 7, 64 }, { 8, 80 }, { 12, 160 }, { 39, 16384 }, { 40, 20480 } };
	struct jemalloc_extent x;

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(jemalloc_class_bytes(OLD_QUANTUM_8, sizes[i].size_class), sizes[i].bytes);
		assert_int_equal(jemalloc_class_bytes(NEW_QUANTUM_8, sizes[i].size_class), sizes[i].bytes);
	}
	/* 96 bytes fill three pages, 160 do not; and so it is with large blocks. */
	assert_true(agree_old(OLD_QUANTUM_8, &x, old_element(9, 1), old_bits(9, 0, 1, 0), 3 * PAGE));
	assert_false(agree_old(OLD, &x, old_element(9, 1), old_bits(9, 0, 1, 0), 3 * PAGE));
	assert_true(agree_old(OLD_QUANTUM_8, &x, old_element(40, 0), old_bits(40, 0, 0, 0), 6 * PAGE));
	assert_false(agree_old(OLD, &x, old_element(40, 0), old_bits(40, 0, 0, 0), 6 * PAGE));
}

static void test_jemalloc_reads_large_pages(void **state)
{
	const struct jemalloc_layout *l = &jemalloc_layouts[1][0];
	const uint64_t page = 16 * PAGE;
	struct jemalloc_extent x;

	(void)state;
	/* Slabs of 224 KiB at most, and more blocks in each. */
	assert_int_equal(jemalloc_class_bytes(l, 51), 229376);
	assert_true(agree_old(l, &x, element(51, 0, 1), bits(51, 0, 1, 1), 7 * page));
	assert_true(x.active && x.start == (ADDRESS & ~(page - 1)) && x.end == x.start + 7 * page && x.blocks == 1);
	assert_true(agree_old(l, &x, element(0, 0, 1), bits(0, 0, 1, 8191), page) && x.blocks == 1);
	/* 320 KiB, with a page more, or two. */
	assert_true(agree_old(l, &x, element(53, 0, 0), bits(53, 0, 0, 0), 6 * page) && x.block_bytes == 5 * page);
	assert_false(agree_old(l, &x, element(53, 0, 0), bits(53, 0, 0, 0), 7 * page));
	assert_false(agree_old(l, &x, element(51, 0, 1), bits(51, 0, 1, 1), 7 * page - PAGE)); /* 6 of them */
	assert_false(agree_old(NEW, &x, element(51, 0, 1), bits(51, 0, 1, 1), 7 * page));
}

#define BINS 40u
#define STACK 0x7f0022220100ull

/* The stacks of a cache follow each other; of the first one 16 bits overflow. */
static void fill_cache(uint64_t words[JEMALLOC_BIN_WORDS * (BINS + 1)])
{
	uint64_t at = STACK - 0x110;

	memset(words, 0xff, 8ul * JEMALLOC_BIN_WORDS * (BINS + 1));
	for (uint64_t i = 0; i < BINS; i++) {
		uint64_t *bin = words + JEMALLOC_BIN_WORDS * i;
		const uint64_t full = at, empty = at + 8 * (20 + i);
		bin[0] = empty - 8 * (i % 20);
		bin[1] = 1000;
		bin[2] = (bin[0] & 0xffff) | (full & 0xffff) << 16 | (empty & 0xffff) << 32;
		at = empty;
	}
}

static void test_jemalloc_knows_caches(void **state)
{
	uint64_t words[JEMALLOC_BIN_WORDS * (BINS + 1)];
	struct jemalloc_cache c;
	const size_t count = sizeof words / sizeof *words;

	(void)state;
	fill_cache(words);
	assert_true(jemalloc_caches_read(NEW, words, count, &c));
	assert_true(c.bins == BINS && c.words == BINS * JEMALLOC_BIN_WORDS);
	for (unsigned i = 0; i < BINS; i++)
		assert_int_equal(c.blocks[i], i % 20);
	assert_true(jemalloc_caches_read(NEW, words, JEMALLOC_BIN_WORDS * NEW->small, &c) && c.bins == NEW->small);
	assert_false(jemalloc_caches_read(NEW, words, JEMALLOC_BIN_WORDS * NEW->small - 1, &c));
	assert_false(jemalloc_caches_read(OLD, words, count, &c));
	words[JEMALLOC_BIN_WORDS * 35] += 8; /* a block fewer */
	assert_true(jemalloc_caches_read(NEW, words, count, &c) && c.bins == BINS);
	words[JEMALLOC_BIN_WORDS * 35] += 1ull << 16; /* a stack elsewhere */
	assert_false(jemalloc_caches_read(NEW, words, count, &c));
	memset(words, 0, sizeof words);
	assert_false(jemalloc_caches_read(NEW, words, count, &c));
}

#define BETWEEN 15u /* words from the small bins to the large ones */
#define OLD_WORDS (JEMALLOC_BIN_WORDS * (BINS + 1) + BETWEEN)

static void fill_old_cache(uint64_t words[OLD_WORDS])
{
	const uint64_t self = 0x7f0033330010ull, small = JEMALLOC_BIN_WORDS * OLD->small;
	uint64_t at = STACK;

	memset(words, 0, 8ul * OLD_WORDS);
	for (uint64_t i = 0; i < BINS; i++) {
		uint64_t *bin = words + JEMALLOC_BIN_WORDS * i + (i < OLD->small ? 0 : BETWEEN);
		at += 8 * (i < OLD->small ? 20 + 4 * i : 20);
		bin[0] = (i % 20) << 32 | (i % 3 ? 0 : UINT32_MAX);
		bin[1] = 1000;
		bin[2] = at;
	}
	words[small + 7] = self;
	words[small + 8] = self + 8 * (small + BETWEEN);
}

static void test_jemalloc_knows_caches_of_5_2(void **state)
{
	const size_t small = JEMALLOC_BIN_WORDS * OLD->small;
	uint64_t words[OLD_WORDS], changed[OLD_WORDS];
	struct jemalloc_cache c;

	(void)state;
	fill_old_cache(words);
	assert_true(jemalloc_caches_read(OLD, words, OLD_WORDS, &c));
	assert_true(c.bins == BINS && c.words == JEMALLOC_BIN_WORDS * BINS + BETWEEN);
	for (unsigned i = 0; i < BINS; i++)
		assert_int_equal(c.blocks[i], i % 20);
	assert_true(jemalloc_caches_read(OLD, words, small + 9, &c) && c.bins == OLD->small);
	assert_false(jemalloc_caches_read(OLD, words, small + 8, &c));
	assert_false(jemalloc_caches_read(NEW, words, OLD_WORDS, &c));
	static const struct {
		unsigned at;
		uint64_t word;
	} lies[] = {
		{ 0, 201ull << 32 },            /* more blocks than any stack has, */
		{ 3, 25ull << 32 },             /* than this one, */
		{ 6, 1ull << 32 | 2 },          /* than it had at its lowest, */
		{ 6, 1ull << 63 },              /* fewer than none */
		{ 8, STACK },                   /* behind nothing */
		{ 8, 1ull << 50 },              /* no address */
		{ 36 * 3 + 7, 0 },              /* the large bins are elsewhere, */
		{ 36 * 3 + 8, 0x7f0033330010 }, /* or where the small ones are */
	};
	for (unsigned i = 0; i < sizeof lies / sizeof *lies; i++) {
		memcpy(changed, words, sizeof words);
		changed[lies[i].at] = lies[i].word;
		assert_false(jemalloc_caches_read(OLD, changed, OLD_WORDS, &c));
	}
	words[small + BETWEEN + 2] += 8; /* a large one elsewhere */
	assert_true(jemalloc_caches_read(OLD, words, OLD_WORDS, &c) && c.bins == OLD->small);
}

/* Of a slab whose second half nobody has touched. */
static void test_what_caches_hold_is_there_as_the_rest_is(void **state)
{
	static struct other_heap h;

	(void)state;
	other_heap_add(&h, 64, 100, 3200, 0);
	other_heap_add(&h, 32, 100, 3200, 0);
	other_heap_remove_cached(&h, 64, 25);
	assert_true(h.live_blocks == 175 && h.live_bytes == 75 * 64 + 3200 && h.cached_bytes == 25 * 64);
	assert_true(h.live == 2400 + 3200 && h.freed == 800);
	other_heap_remove_cached(&h, 64, 100); /* more than there are */
	assert_true(h.live_blocks == 100 && h.live == 3200 && h.freed == 3200);
	other_heap_remove_cached(&h, 64, 1);
	other_heap_remove_cached(&h, 16, 1);
	assert_true(h.live_blocks == 100 && h.live == 3200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jemalloc_reads_slabs_and_large_blocks),
		cmocka_unit_test(test_jemalloc_believes_no_lies),
		cmocka_unit_test(test_jemalloc_reads_5_2),
		cmocka_unit_test(test_jemalloc_tells_quanta_apart),
		cmocka_unit_test(test_jemalloc_reads_large_pages),
		cmocka_unit_test(test_jemalloc_knows_caches),
		cmocka_unit_test(test_jemalloc_knows_caches_of_5_2),
		cmocka_unit_test(test_what_caches_hold_is_there_as_the_rest_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
