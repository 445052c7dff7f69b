/* SPDX-License-Identifier: MIT */
/* The ranges of mappings, by several threads at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tables/mappings.h"

#define PAGE 4096u
#define THREADS 4u
#define PAGES 32u /* of each thread */
#define STEPS 20000u

static uint64_t address_of(uint64_t thread, uint64_t page)
{
	return 0x100000 + (thread * PAGES + page) * PAGE;
}

static bool stays_sampled(void *arg, const struct mapping *was, uint64_t start, uint64_t end)
{
	uint64_t *taken = arg;

	for (uint64_t at = was->start > start ? was->start : start; at < was->end && at < end; at += PAGE)
		++*taken;
	return true;
}

struct worker {
	pthread_t thread;
	uint64_t number, random, wrong;
	uint8_t pages[PAGES]; /* 0: nobody's, 1: memory, 2: of a file */
};

static uint64_t next_random(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % below;
}

static bool find(uint64_t at, struct mapping *m)
{
	return mappings_find(at, at + 1, m);
}

static void look(struct worker *w)
{
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t at = address_of(w->number, page);
		struct mapping m;
		bool found = find(at, &m);

		w->wrong += found != (w->pages[page] != 0);
		w->wrong += found && (m.start > at || m.end <= at || m.file != (w->pages[page] == 2) || !m.sampled);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t from = next_random(&w->random, PAGES), count = 1 + next_random(&w->random, PAGES - from);
		uint8_t kind = (uint8_t)next_random(&w->random, 3);
		struct mapping m = { address_of(w->number, from), address_of(w->number, from + count), kind == 2, true,
			             false };
		uint64_t taken = 0, there = 0;

		for (uint64_t page = from; page < from + count; page++) {
			there += w->pages[page] != 0;
			w->pages[page] = kind;
		}
		mappings_take(m.start, m.end, stays_sampled, &taken);
		w->wrong += taken != there;
		w->wrong += kind && !mappings_add(&m);
		if (i % 100 == 0)
			look(w);
	}
	look(w);
	return NULL;
}

static void test_threads_change_mappings_of_their_own(void **state)
{
	struct worker workers[THREADS] = { 0 };

	(void)state;
	mappings_init();
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].random = 4711 + i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		look(&workers[i]);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].wrong, 0);
}

static bool is_gone(void *arg, const struct mapping *was, uint64_t start, uint64_t end)
{
	(void)arg, (void)was, (void)start, (void)end;
	return false;
}

/* What has no sample is kept where it is a file's, and its whole end is known. */
static void test_what_is_left_of_what_is_not_sampled(void **state)
{
	const struct mapping memory = { 0x10000, 0x20000, false, true, false },
			     file = { 0x30000, 0x40000, true, true, false };
	struct mapping m;

	(void)state;
	mappings_init();
	assert_true(mappings_add(&memory) && mappings_add(&file));
	assert_false(find(0x20000, &m) || find(0xffff, &m));
	mappings_take(0x18000, 0x38000, is_gone, NULL);
	assert_false(find(0x10000, &m) || find(0x37fff, &m));
	assert_true(find(0x38000, &m));
	assert_true(m.start == 0x38000 && m.end == 0x40000 && m.file && !m.sampled);
	mappings_take(0x38000, 0x40000, is_gone, NULL);
	assert_false(find(0x38000, &m));
	mappings_init();
}

static void test_there_is_a_limit(void **state)
{
	struct mapping m = { 0x10000, 0x11000, true, false, false };

	(void)state;
	mappings_init();
	uint64_t count = 0;
	for (; mappings_add(&m); count++, m.start += 0x1000, m.end += 0x1000)
		;
	assert_in_range(count, MAPPINGS_MAX * 3 / 4, MAPPINGS_MAX);
	assert_false(mappings_add(&m));
	assert_true(find(m.start - 1, &m));
	mappings_take(m.start, m.end, is_gone, NULL);
	assert_true(mappings_add(&m));
	assert_false(mappings_add(&m));
	mappings_init();
	assert_false(find(0x12000, &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_change_mappings_of_their_own),
		cmocka_unit_test(test_what_is_left_of_what_is_not_sampled),
		cmocka_unit_test(test_there_is_a_limit),
	};

	return cmocka_run_group_tests_name("mappings", tests, NULL, NULL);
}
