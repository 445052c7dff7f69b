/* SPDX-License-Identifier: MIT */
/* The extents of the allocator say for each address what the table of symbols says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "debug_info/symbol_ranges.h"

#define SPAN 400u

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % limit;
}

/* As symbol_table_load leaves them: one symbol for each start, ascending, with reach. */
static void make_table(struct symbol_table *table, struct symbol *list, uint64_t *random)
{
	uint64_t reach = 0;

	*table = (struct symbol_table){ .list = list };
	for (uint64_t at = random_below(random, 30); at < SPAN - 50; at += 1 + random_below(random, 25)) {
		uint64_t end = at + (random_below(random, 4) ? random_below(random, 60) : 0);
		reach = end > reach ? end : reach;
		list[table->count++] = (struct symbol){
			.start = at, .end = end, .reach = reach, .name = "f", .allocator = !random_below(random, 4)
		};
	}
}

static void test_ranges_say_what_the_table_says(void **state)
{
	struct symbol list[SPAN];
	uint64_t random = 1;
	size_t inside = 0, most = 0;

	(void)state;
	for (int turn = 0; turn < 2000; turn++) {
		struct symbol_table table;
		struct symbol_ranges ranges;
		make_table(&table, list, &random);
		assert_int_equal(symbol_ranges_find(&ranges, &table), 0);
		assert_true(ranges.known);
		for (size_t i = 1; i < ranges.count; i++)
			assert_true(ranges.list[i].start > ranges.list[i - 1].end);
		for (uint64_t address = 0; address < SPAN + 2 * SYMBOL_LABEL_REACH;
		     address += address < SPAN ? 1 : 4095) {
			const struct symbol *s = symbol_table_find(&table, address);
			bool want = s && s->allocator;
			assert_int_equal(symbol_ranges_have(&ranges, address), want);
			inside += want;
		}
		most = ranges.count > most ? ranges.count : most;
		symbol_ranges_done(&ranges);
	}
	assert_true(inside > 1000 && most > 2);
}

static void test_a_monstrous_table_is_refused(void **state)
{
	const size_t count = 2000;
	struct symbol *list = calloc(count, sizeof *list);
	struct symbol_table table = { .list = list, .count = count };
	struct symbol_ranges ranges = { 0 };

	(void)state;
	assert_non_null(list);
	/* Each inside all others. */
	for (size_t i = 0; i < count; i++)
		list[i] = (struct symbol){
			.start = i, .end = 2 * count - i, .reach = 2 * count, .name = "malloc", .allocator = true
		};
	assert_int_equal(symbol_ranges_find(&ranges, &table), -E2BIG);
	assert_false(ranges.known);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_say_what_the_table_says),
		cmocka_unit_test(test_a_monstrous_table_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
