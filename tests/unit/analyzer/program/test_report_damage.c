/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "damage.h"
#include "dump_builder.h"

/*
 * Damaged dumps through the whole of memanalyze. What is asserted is little: it neither crashes nor hangs (the
 * sanitizers look on), a file that opens gives a report, and what was damaged is not called complete where that can be
 * known.
 */

static void test_every_cut_gives_a_report_or_an_error(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	for (size_t size = 0; size < b.size; size += 509) {
		int got = damage_report(b.bytes, size);
		assert_int_equal(got, size < offsetof(struct dump_header, regions) ? DAMAGE_REFUSED : DAMAGE_PARTIAL);
	}
	assert_int_equal(damage_report(b.bytes, b.size), DAMAGE_NONE);
	dump_builder_done(&b);
}

/* Each bit, or one of so many: with 3, two or three of each byte. */
static void flip_bits(struct dump_builder *b, size_t start, size_t end, size_t step)
{
	for (size_t bit = 8 * start; bit < 8 * end; bit += step) {
		b->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		damage_report(b->bytes, b->size);
		b->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

static void test_bits_of_the_header(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	flip_bits(&b, 0, offsetof(struct dump_header, command), 3);
	flip_bits(&b, offsetof(struct dump_header, clock_start), offsetof(struct dump_header, counters), 3);
	flip_bits(&b, offsetof(struct dump_header, regions),
	          offsetof(struct dump_header, regions) + 8 * sizeof(struct dump_region), 3);
	dump_builder_done(&b);
}

/* The first 320 bytes of each region hold its arena header and its first records. */
static void test_bits_of_the_records(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	for (uint32_t kind = DUMP_REGION_LIVE; kind <= DUMP_REGION_NOTES; kind++) {
		size_t start = dump_builder_region(&b, kind)->offset;
		flip_bits(&b, start, start + 320, 3);
	}
	size_t records = (size_t)((unsigned char *)dump_builder_live(&b, 0) - b.bytes);
	flip_bits(&b, records, records + 2 * sizeof(struct dump_live_record), 1);
	dump_builder_done(&b);
}

static void test_runs_of_random_bytes(void **state)
{
	struct dump_builder whole;
	uint64_t random = 42;

	(void)state;
	dump_builder_sampler(&whole);
	unsigned char *bytes = malloc(whole.size);
	assert_non_null(bytes);
	for (int round = 0; round < 1500; round++) {
		memcpy(bytes, whole.bytes, whole.size);
		for (int run = 0; run < 1 + round % 4; run++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			size_t at = (size_t)(random >> 20) % (whole.size - 64);
			for (size_t i = 0; i < 1 + (random >> 8) % 64; i++)
				bytes[at + i] = random & 1 ? 0xff : (unsigned char)(random >> (i % 56));
		}
		damage_report(bytes, whole.size);
	}
	free(bytes);
	dump_builder_done(&whole);
}

/* test_report_damage [FILTER]: so that the parts can run at the same time. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut_gives_a_report_or_an_error),
		cmocka_unit_test(test_bits_of_the_header),
		cmocka_unit_test(test_bits_of_the_records),
		cmocka_unit_test(test_runs_of_random_bytes),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
