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

	return jemalloc_extent_of(x, &e, (uint64_t[3]){ first, ADDRESS + 0x340, bytes | 7 });
}

static void test_jemalloc_reads_slabs_and_large_blocks(void **state)
{
	/* Classes: 8, 16 to 64 by 16, 80 to 128 by 16, 160, … 16 KiB, 20 KiB. */
	static const struct {
		uint64_t size_class, bytes;
	} sizes[] = { { 0, 8 }, { 1, 16 }, { 4, 64 }, { 5, 80 }, { 8, 128 }, { 9, 160 }, { 36, 16384 }, { 37, 20480 } };
	struct jemalloc_extent x;

	(void)state;
	assert_int_equal(jemalloc_element_of(element(7, 0, 1)).edata, 0x7f0011111180ull);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const uint64_t size_class = sizes[i].size_class, bytes = 5 * PAGE;
		assert_true(agree(&x, element(size_class, 0, 1), bits(size_class, 0, 1, 1), bytes));
		assert_true(x.active && x.start == ADDRESS && x.end == ADDRESS + bytes);
		assert_int_equal(x.block_bytes, sizes[i].bytes);
		assert_int_equal(x.blocks, bytes / sizes[i].bytes - 1);
	}
	/* A large block has a page more than its class, and of the last page no class is told. */
	assert_true(agree(&x, element(37, 0, 0), bits(37, 0, 0, 1023), 6 * PAGE) && x.blocks == 1);
	assert_true(agree(&x, element(232, 0, 0), bits(37, 0, 0, 0), 6 * PAGE) && x.block_bytes == 20480);
	assert_true(agree(&x, element(232, 1, 0), bits(232, 1, 0, 0), 6 * PAGE) && !x.active);
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
	uint32_t blocks[JEMALLOC_BINS_MOST];
	const size_t count = sizeof words / sizeof *words;

	(void)state;
	fill_cache(words);
	assert_int_equal(jemalloc_caches_read(words, count, blocks), BINS);
	for (unsigned i = 0; i < BINS; i++)
		assert_int_equal(blocks[i], i % 20);
	assert_int_equal(jemalloc_caches_read(words, JEMALLOC_BIN_WORDS * JEMALLOC_BINS_LEAST, blocks),
	                 JEMALLOC_BINS_LEAST);
	assert_int_equal(jemalloc_caches_read(words, JEMALLOC_BIN_WORDS * JEMALLOC_BINS_LEAST - 1, blocks), 0);
	words[JEMALLOC_BIN_WORDS * 35] += 8; /* a block fewer */
	assert_int_equal(jemalloc_caches_read(words, count, blocks), BINS);
	words[JEMALLOC_BIN_WORDS * 35] += 1ull << 16; /* a stack elsewhere */
	assert_int_equal(jemalloc_caches_read(words, count, blocks), 0);
	memset(words, 0, sizeof words);
	assert_int_equal(jemalloc_caches_read(words, count, blocks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jemalloc_reads_slabs_and_large_blocks),
		cmocka_unit_test(test_jemalloc_believes_no_lies),
		cmocka_unit_test(test_jemalloc_knows_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
