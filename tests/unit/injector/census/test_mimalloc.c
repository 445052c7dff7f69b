/* SPDX-License-Identifier: MIT */
/* census/allocators/mimalloc.h: what headers and elements of segments say, and which words are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "census/allocators/mimalloc.h"

#define START 0x20000000000ull
#define COOKIE 0x1234567887654321ull

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mimalloc_reads_segments),
		cmocka_unit_test(test_mimalloc_reads_spans),
		cmocka_unit_test(test_mimalloc_believes_no_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
