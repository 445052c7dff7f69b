/* SPDX-License-Identifier: MIT */
/* census/allocators/tcmalloc.h: what its table of sizes and its spans say, and which words are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arch/address_bits.h"
#include "census/allocators/tcmalloc.h"

#define FIRST 0x12345ull
#define LAST ((1ull << ADDRESS_BITS) / TCMALLOC_PAGE - 1)
#define FREE (1ull << 24)
#define RETURNED (2ull << 24)

static struct tcmalloc_size_map map;

/* 8, 16, 32 … 256 KiB: a class for each power of two. */
static void make_map(void)
{
	map = (struct tcmalloc_size_map){ .count = 17 };
	for (unsigned i = 1; i < map.count; i++) {
		map.bytes[i] = 4 << i;
		map.move[i] = 2;
		map.pages[i] = 1 + (uint64_t)map.bytes[i] / TCMALLOC_PAGE;
	}
}

static void test_tcmalloc_knows_its_sizes(void **state)
{
	(void)state;
	make_map();
	assert_true(tcmalloc_size_map_fits(&map));
	map.bytes[9] = map.bytes[8]; /* no larger than the one before */
	assert_false(tcmalloc_size_map_fits(&map));
	make_map();
	map.count = 16; /* the last one is not 256 KiB */
	assert_false(tcmalloc_size_map_fits(&map));
	map.count = 1000;
	assert_false(tcmalloc_size_map_fits(&map));
	make_map();
	map.pages[16] = 31; /* no block fits */
	assert_false(tcmalloc_size_map_fits(&map));
	make_map();
	map.pages[5] = UINT64_MAX;
	assert_false(tcmalloc_size_map_fits(&map));
	make_map();
	map.move[5] = 0;
	assert_false(tcmalloc_size_map_fits(&map));
}

static bool is_span(struct tcmalloc_span *x, uint64_t start, uint64_t length, uint64_t last)
{
	return tcmalloc_span_of(x, &map, (uint64_t[]){ start, length, 0, 0, 0, last });
}

static void test_tcmalloc_reads_spans(void **state)
{
	struct tcmalloc_span x;

	(void)state;
	make_map();
	/* 200 of 64 bytes given out, of 256; one block of five pages; free ones, also those that were returned. */
	assert_true(is_span(&x, FIRST, 2, 200 | 4 << 16) && x.blocks == 200 && x.block_bytes == 64);
	assert_true(x.start == FIRST * 8192 && x.end == (FIRST + 2) * 8192);
	assert_true(is_span(&x, LAST, 1, 0) && x.end == 1ull << ADDRESS_BITS); /* as high as a program has memory */
	assert_false(is_span(&x, LAST + 1, 1, 0));
	assert_true(is_span(&x, FIRST, 5, 0) && x.blocks == 1 && x.block_bytes == 5 * 8192);
	assert_true(is_span(&x, FIRST, 5, FREE) && !x.block_bytes);
	assert_true(is_span(&x, FIRST, 5, RETURNED) && !x.block_bytes);
}

static void test_tcmalloc_believes_no_lies(void **state)
{
	struct tcmalloc_span x;

	(void)state;
	make_map();
	assert_false(is_span(&x, 0, 2, 0));
	assert_false(is_span(&x, FIRST, 0, 0));
	assert_false(is_span(&x, 1ull << 40, 1, 0));         /* no address */
	assert_false(is_span(&x, FIRST, 1ull << 40, 0));     /* larger than all addresses */
	assert_false(is_span(&x, FIRST, 2, 257 | 4 << 16));  /* more than fit: 256 */
	assert_false(is_span(&x, FIRST, 2, 1 | 17 << 16));   /* no class */
	assert_false(is_span(&x, FIRST, 2, FREE | 4 << 16)); /* free, of a class */
	assert_false(is_span(&x, FIRST, 2, 3ull << 24));     /* nowhere */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcmalloc_knows_its_sizes),
		cmocka_unit_test(test_tcmalloc_reads_spans),
		cmocka_unit_test(test_tcmalloc_believes_no_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
