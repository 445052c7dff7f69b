/* SPDX-License-Identifier: MIT */
/* A live table that cannot grow: what the writer does, and that a reader sees the same before and after the removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "recording/live/thinner.h"

#define RATE 256u
#define MAX_BYTES (16u << 20)

static struct dump_writer writer;
static char directory[] = "/tmp/test_thinner-XXXXXX";
static char path[64];

static int open_writer(void **state)
{
	struct err e = { 0 };
	const struct dump_writer_options options = { .max_bytes = MAX_BYTES, .rate_bytes = RATE };

	(void)state;
	assert_int_equal(dump_writer_create(&writer, &options, &e), 0);
	/* Readers see the memory as a file. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", writer.fd);
	dump_writer_renew(&writer, 1000000000);
	return 0;
}

static int close_writer(void **state)
{
	(void)state;
	dump_writer_close(&writer);
	return 0;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint8_t *tags_of(const struct dump_region *r)
{
	return (uint8_t *)writer.shared + r->offset;
}

static struct dump_live_record *records_of(const struct dump_region *r)
{
	return (struct dump_live_record *)(tags_of(r) + DUMP_LIVE_RECORDS_AT(r->entries));
}

/* What has no record has no tag: else the payload would find no room there. */
static void assert_tags_fit(void)
{
	const struct dump_header *h = writer.shared;

	for (uint32_t n = 0; n < h->region_count; n++)
		for (uint64_t k = 0; h->regions[n].kind == DUMP_REGION_LIVE && k < h->regions[n].entries; k++)
			assert_int_equal(DUMP_KEY_IS_FREE(records_of(&h->regions[n])[k].address),
			                 tags_of(&h->regions[n])[k] == 0);
}

/* Puts a sample where the payload would: into the first free key of its bucket, the largest level first. */
static bool put(uint64_t i)
{
	const struct dump_header *h = writer.shared;
	uint64_t address = 0x10000 + 64 * i;
	struct dump_live_record record = { .address = address,
		                           .size = 16 + mix(i) % 500,
		                           .stamp = clock_dump_stamp(),
		                           .rate_bytes = RATE,
		                           .stack = i % 7 ? h->unknown_stack : (uint32_t)i,
		                           .flags = i % 5 ? 0 : DUMP_LIVE_PART,
		                           .tid = 1 };

	dump_writer_count(&writer, DUMP_COUNTER_samples_taken, 1);
	for (uint32_t n = h->region_count; n-- > 0;) {
		const struct dump_region *r = &h->regions[n];
		if (r->kind != DUMP_REGION_LIVE)
			continue;
		uint64_t number = (address >> 4) * 0x9E3779B97F4A7C15ull >> 1 >>
		                  (63 - __builtin_ctzll(r->entries / DUMP_BUCKET));
		for (uint64_t k = number * DUMP_BUCKET; k < (number + 1) * DUMP_BUCKET; k++) {
			if (!DUMP_KEY_IS_FREE(records_of(r)[k].address))
				continue;
			records_of(r)[k] = record;
			tags_of(r)[k] = 1;
			return true;
		}
	}
	dump_writer_count(&writer, DUMP_COUNTER_lost_live_full, 1);
	return false;
}

/* Until the table is crowded; the writer lets it grow as long as it can. */
static uint64_t fill(uint64_t first)
{
	struct err e;
	uint64_t i = first;

	for (; !thinner_is_needed(&writer); i++) {
		put(i);
		if (i % 64 == 0 && dump_writer_grow(&writer, &e) < 0)
			assert_non_null(strstr(e.text, "--max-size"));
		assert_true(i < first + (1u << 22));
	}
	return i;
}

struct tally {
	struct dump *dump;
	struct estimate_sum bytes;
	uint64_t records, addresses;
};

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct tally *t = arg;
	uint32_t rate = dump_live_rate(t->dump, record);

	t->records++;
	if (!rate)
		return 0;
	t->addresses += mix(record->address);
	estimate_add(&t->bytes, (double)record->size, estimate_probability(record->size, rate));
	estimate_expect(&t->bytes, rate);
	return 0;
}

static struct tally read_dump(const char *name)
{
	struct tally t = { 0 };
	struct err e;

	assert_int_equal(dump_open(name, &t.dump, &e), 0);
	assert_int_equal(dump_each_live(t.dump, on_live, &t), 0);
	assert_int_equal(dump_thinned_meanwhile(t.dump), 0);
	assert_true(dump_complete(t.dump));
	dump_close(t.dump);
	return t;
}

static void test_thinner_is_not_needed_while_the_table_can_grow(void **state)
{
	struct err e;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		put(i);
		if (i % 64 == 0)
			assert_int_equal(dump_writer_grow(&writer, &e), 0);
		assert_false(thinner_is_needed(&writer));
	}
	assert_int_equal(dump_writer_live(&writer), 20000);
}

/* Live samples of the one stack that there is, whole ones or parts. */
static uint64_t with_stack(uint16_t part)
{
	const struct dump_header *h = writer.shared;
	uint64_t n = 0;

	for (uint32_t i = 0; i < h->region_count; i++)
		for (uint64_t k = 0; h->regions[i].kind == DUMP_REGION_LIVE && k < h->regions[i].entries; k++)
			n += !DUMP_KEY_IS_FREE(records_of(&h->regions[i])[k].address) &&
			     records_of(&h->regions[i])[k].stack == h->unknown_stack &&
			     (records_of(&h->regions[i])[k].flags & DUMP_LIVE_PART) == part;
	return n;
}

static void test_thinner_makes_room(void **state)
{
	uint64_t rate, given_up, n, of_stack, parts;
	struct tally before, after;
	struct err e;

	(void)state;
	n = fill(0);
	assert_int_equal(dump_writer_counter(&writer, DUMP_COUNTER_lost_live_full), 0);
	before = read_dump(path);
	assert_int_equal(before.records, n);
	assert_tags_fit();
	of_stack = with_stack(0);
	parts = with_stack(DUMP_LIVE_PART);
	assert_true(of_stack && parts && of_stack + parts < n);
	assert_int_equal(thinner_make_room(&writer, &rate, &given_up, &e), 0);
	assert_tags_fit();
	const struct dump_stack *stack =
		(const void *)((const char *)writer.shared + (uint64_t)writer.shared->unknown_stack * DUMP_STACK_ALIGN);
	assert_int_equal(stack->unkept, of_stack - with_stack(0));
	assert_int_equal(stack->unkept_parts, parts - with_stack(DUMP_LIVE_PART));
	assert_true(rate > RATE && writer.shared->rate_bytes == rate);
	after = read_dump(path);
	assert_int_equal(after.records, n - given_up);
	assert_int_equal(after.bytes.samples, after.records);
	assert_true(after.records <= dump_writer_live_capacity(&writer) / 4);
	assert_true(after.records > dump_writer_live_capacity(&writer) / 16);
	assert_int_equal(dump_writer_live(&writer), after.records);
	assert_false(thinner_is_needed(&writer));
	/* Both estimate the same heap; the second stands for the first: 4.5 standard errors of what was given up. */
	double error = after.bytes.value - before.bytes.value;
	assert_true(error * error < 4.5 * 4.5 * after.bytes.variance);
}

/* A reader leaves out what is to be given up, whether it is gone or not. */
static void test_reader_needs_no_removal(void **state)
{
	uint64_t rate, given_up;
	struct err e;
	char copy[80];

	(void)state;
	fill(0);
	/* The table as it was, with the thinning that comes. */
	size_t size = writer.used;
	char *bytes = malloc(size);
	assert_non_null(bytes);
	memcpy(bytes, writer.shared, size);
	assert_int_equal(thinner_make_room(&writer, &rate, &given_up, &e), 0);
	struct tally removed = read_dump(path);
	snprintf(copy, sizeof copy, "%s/copy", directory);
	FILE *f = fopen(copy, "we");
	assert_non_null(f);
	for (uint32_t i = 0; i < writer.shared->region_count; i++) {
		const struct dump_region *r = &writer.shared->regions[i];
		if (r->kind == DUMP_REGION_RATES)
			memcpy(bytes + r->offset, (char *)writer.shared + r->offset, r->bytes);
	}
	((struct dump_header *)bytes)->thinnings = writer.shared->thinnings;
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
	free(bytes);
	struct tally there = read_dump(copy);
	unlink(copy);
	assert_true(there.records > removed.records);
	assert_int_equal(there.bytes.samples, removed.bytes.samples);
	assert_int_equal(there.addresses, removed.addresses);
	assert_true(there.bytes.value == removed.bytes.value && there.bytes.variance == removed.bytes.variance);
}

/* Who reads while it happens notices. */
static void test_reader_notices_a_thinning(void **state)
{
	struct tally t = { 0 };
	uint64_t rate, given_up;
	struct err e;

	(void)state;
	fill(0);
	assert_int_equal(dump_open(path, &t.dump, &e), 0);
	assert_int_equal(dump_thinned_meanwhile(t.dump), 0);
	assert_int_equal(thinner_make_room(&writer, &rate, &given_up, &e), 0);
	assert_int_equal(dump_each_live(t.dump, on_live, &t), 0);
	assert_int_equal(dump_thinned_meanwhile(t.dump), 1);
	struct tally again = { .dump = t.dump };
	assert_int_equal(dump_each_live(t.dump, on_live, &again), 0);
	assert_int_equal(dump_thinned_meanwhile(t.dump), 0);
	assert_true(again.bytes.value > 1.5 * t.bytes.value); /* weighted as what they are now */
	dump_close(t.dump);
}

/* Again and again: new samples at the old rate (a thread with a long distance) are thinned with the next. */
static void test_thinner_goes_on(void **state)
{
	uint64_t rate = 0, last = 0, given_up, next = 0;
	struct err e;

	(void)state;
	for (int i = 0; i < 5; i++) {
		next = fill(next);
		assert_int_equal(thinner_make_room(&writer, &rate, &given_up, &e), 0);
		assert_true(rate >= last);
		last = rate;
		struct tally t = read_dump(path);
		assert_int_equal(t.records, dump_writer_live(&writer));
		struct estimate x = estimate_interval(&t.bytes, 0.9999);
		double truth = 0;
		for (uint64_t k = 0; k < next; k++) {
			double size = (double)(16 + mix(k) % 500);
			truth += size / estimate_probability((uint64_t)size, RATE);
		}
		assert_true(x.low <= truth && truth <= x.high);
	}
}

int main(void)
{
#define WRITER_TEST(name) cmocka_unit_test_setup_teardown(name, open_writer, close_writer)
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_thinner_is_not_needed_while_the_table_can_grow),
		WRITER_TEST(test_thinner_makes_room),
		WRITER_TEST(test_reader_needs_no_removal),
		WRITER_TEST(test_reader_notices_a_thinning),
		WRITER_TEST(test_thinner_goes_on),
	};

	if (!mkdtemp(directory))
		return 1;
	int failed = cmocka_run_group_tests_name("thinner", tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
