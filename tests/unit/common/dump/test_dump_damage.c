/* SPDX-License-Identifier: MIT */
/*
 * The reader on dumps that are cut, damaged and hostile. Under the sanitizers "no crash" means something.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_tally.h"

static void test_every_cut(void **state)
{
	struct dump_builder b;
	uint64_t live = 0;

	(void)state;
	dump_builder_sampler(&b);
	/* A prime step hits every kind of boundary; all lengths around the start of each region. */
	for (size_t size = 0; size < b.size; size += size % DUMP_REGION_ALIGN < 80 ? 1 : 61) {
		struct opened o = open_cut(&b, size);
		if (size < offsetof(struct dump_header, regions)) {
			assert_int_equal(o.status, -EPROTO);
		} else {
			assert_int_equal(o.status, 0);
			struct tally t = read_all(o.dump);
			assert_false(dump_complete(o.dump));
			assert_true(t.live >= live); /* more of the file never shows less */
			live = t.live;
		}
		close_opened(&o);
	}
	assert_int_equal(live, 27);
	dump_builder_done(&b);
}

static void test_file_shrinks_while_open(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	assert_int_equal(ftruncate(o.fd, DUMP_HEADER_BYTES + 100), 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live + t.stacks + t.notes, 0);
	assert_true(dump_skipped(o.dump, DUMP_SKIP_short_file) > 0);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_regions(void **state)
{
	static const struct dump_region wild[] = {
		{ .kind = DUMP_REGION_LIVE, .offset = UINT64_MAX - 4095, .bytes = 8192, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1ull << 62, .bytes = 1ull << 62, .entries = 1ull << 56 },
		{ .kind = DUMP_REGION_LIVE, .offset = 0, .bytes = 4096, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 16385, .bytes = 4096, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1 << 20, .bytes = 4096, .entries = 1ull << 60 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1 << 20, .bytes = 4096, .entries = 24 },
		{ .kind = DUMP_REGION_STACK_INDEX, .offset = 1 << 20, .bytes = 4096, .entries = 4 },
		{ .kind = DUMP_REGION_HISTORY, .offset = 1 << 20, .bytes = 4096, .entries = 2 },
		{ .kind = DUMP_REGION_STACKS, .offset = 1 << 20, .bytes = 0 },
		{ .kind = 0, .offset = 1 << 20, .bytes = 4096 },
		{ .kind = DUMP_REGION_NOTES, .offset = DUMP_HEADER_BYTES, .bytes = 4096 }, /* over the first */
	};
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	uint32_t good = h->region_count;
	for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
		h->regions[good] = wild[i];
		h->region_count = good + 1;
		struct opened o = open_built(&b);
		assert_int_equal(o.status, 0);
		struct tally t = read_all(o.dump);
		assert_int_equal(t.live, 27);
		assert_int_equal(t.stacks, 3);
		assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_region), 1);
		close_opened(&o);
	}
	h->region_count = UINT32_MAX;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	read_all(o.dump);
	assert_false(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_stacks(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 65536, 8, 16, 0);
	uint32_t s = dump_builder_stack(&b, (const uint64_t[]){ 1, 2, 3 }, 3, 0);
	dump_builder_sample(&b, s, 100, 65536, 1);
	struct dump_stack *stack = dump_builder_at(&b, (uint64_t)s * DUMP_STACK_ALIGN);
	struct opened o = open_built(&b);
	struct dump_stack_copy copy;
	assert_int_equal(dump_read_stack(o.dump, s, &copy), 0);
	static const uint32_t references[] = { 0, 1, 2, UINT32_MAX, UINT32_MAX / 2, 1 << 20 };
	for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
		assert_int_equal(dump_read_stack(o.dump, references[i], &copy), -EPROTO);
	uint64_t arena = dump_builder_region(&b, DUMP_REGION_STACKS)->offset / DUMP_STACK_ALIGN;
	assert_int_equal(dump_read_stack(o.dump, (uint32_t)arena, &copy), -EPROTO); /* the head of the arena */
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_stack), 7);
	close_opened(&o);

	static const double sums[] = { -1, NAN, INFINITY, 1e300 };
	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
		stack->variance_bytes = sums[i];
		o = open_built(&b);
		assert_int_equal(dump_read_stack(o.dump, s, &copy), 0);
		assert_true(copy.stack.variance_bytes == 0 && copy.stack.excess_bytes == 0 &&
		            copy.stack.taken_bytes == 0);
		assert_int_equal(copy.stack.frame_count, 3);
		assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_sums), 1);
		close_opened(&o);
	}
	stack->frame_count = DUMP_FRAMES_MAX + 1;
	o = open_built(&b);
	assert_int_equal(dump_read_stack(o.dump, s, &copy), -EPROTO);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_arenas(void **state)
{
	static const uint32_t kinds[] = { DUMP_REGION_MODULES, DUMP_REGION_THREADS, DUMP_REGION_NOTES,
		                          DUMP_REGION_RATES,   DUMP_REGION_PATHS,   DUMP_REGION_JAVA };
	static const uint32_t lengths[] = { 1, 5, 15, 4096, 65536, 65537, UINT32_MAX, UINT32_MAX - 15 };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
			struct dump_builder b;
			dump_builder_sampler(&b);
			dump_builder_path(&b, "/srv");
			dump_builder_java_method(&b, 1, 0, "A.b", "A.java");
			struct dump_region *region = dump_builder_region(&b, kinds[k]);
			uint32_t *bytes = dump_builder_at(&b, region->offset + sizeof(struct dump_arena));
			struct dump_arena *arena = dump_builder_at(&b, region->offset);
			*bytes = lengths[i];
			arena->used = i % 2 ? UINT64_MAX : arena->used;
			struct opened o = open_built(&b);
			assert_int_equal(o.status, 0);
			read_all(o.dump);
			close_opened(&o);
			dump_builder_done(&b);
		}
	}
}

static void test_clock_that_stands_half_written(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	h->lease_sequence = 3;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	read_all(o.dump);
	close_opened(&o);
	h->clock_latest = (struct dump_clock){ 5, 5, 5 };
	o = open_built(&b);
	assert_int_equal(dump_duration_ns(o.dump), 0);
	assert_int_equal(dump_stamp_realtime_ns(o.dump, 77), 0);
	close_opened(&o);
	dump_builder_done(&b);
}

/* Every bit of the header that is in use, one at a time, on the same file. */
static void test_bit_flips_of_the_header(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	int fd = dump_builder_fd(&b, b.size);
	size_t end = offsetof(struct dump_header, regions) +
	             (dump_builder_header(&b)->region_count + 1) * sizeof(struct dump_region);
	for (size_t i = 0; i < end; i++) {
		for (int bit = 0; bit < 8; bit += 1 + (i > offsetof(struct dump_header, counters) && i % 7)) {
			unsigned char flipped = b.bytes[i] ^ (unsigned char)(1u << bit);
			struct dump *dump;
			struct err e;
			assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
			int r = dump_open_fd(fd, &dump, &e);
			assert_true(!r || r == -EPROTO || r == -ENOTSUP);
			if (!r) {
				read_all(dump);
				dump_close(dump);
			}
		}
		assert_int_equal(pwrite(fd, &b.bytes[i], 1, (off_t)i), 1);
	}
	close(fd);
	dump_builder_done(&b);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static void test_random_damage(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct dump_builder b;
		dump_builder_sampler(&b);
		for (int i = 0; i < 1 + round / 4; i++)
			b.bytes[16 + next_random(&x) % (b.size - 16)] ^= (unsigned char)(1u << (next_random(&x) % 8));
		struct opened o = open_built(&b);
		if (!o.status)
			read_all(o.dump);
		close_opened(&o);
		dump_builder_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_file_shrinks_while_open),
		cmocka_unit_test(test_wild_regions),
		cmocka_unit_test(test_wild_stacks),
		cmocka_unit_test(test_wild_arenas),
		cmocka_unit_test(test_clock_that_stands_half_written),
		cmocka_unit_test(test_bit_flips_of_the_header),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
