/* SPDX-License-Identifier: MIT */
/* Scopes of made-up modules: which definition is found, and what many modules cost. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED 8u
#define MANY 1000u

/* Module i has the soname "lib<i>.so" and needs the NEEDED modules that follow it, by names that its string table holds
 * one after the other. */
static void make_modules(struct modules *m, uint32_t count)
{
	*m = (struct modules){ .list = calloc(count, sizeof *m->list), .count = count };
	assert_non_null(m->list);
	for (uint32_t i = 0; i < count; i++) {
		struct elf_module *e = &m->list[i];
		char name[32];

		e->strings = calloc(NEEDED, sizeof name);
		e->needed = calloc(NEEDED, sizeof *e->needed);
		snprintf(name, sizeof name, "lib%u.so", i);
		e->soname = strdup(name);
		snprintf(name, sizeof name, "/lib/lib%u.so", i);
		e->path = strdup(name);
		e->is_main = i == 0;
		e->strings_bytes = NEEDED * sizeof name - 1;
		for (uint32_t n = 0; n < NEEDED && i + n + 1 < count; n++) {
			e->needed[e->needed_count++] = n * (uint32_t)sizeof name;
			snprintf(e->strings + n * sizeof name, sizeof name, n % 2 ? "lib%u.so" : "/lib/lib%u.so",
			         i + n + 1);
		}
	}
}

/* One defined symbol. */
static void define(struct elf_module *e, const char *name, uint64_t address)
{
	Elf64_Sym *s = calloc(2, sizeof *s);

	e->strings = realloc(e->strings, e->strings_bytes + 100);
	strcpy(e->strings + e->strings_bytes + 1, name);
	s[1] = (Elf64_Sym){ .st_name = (uint32_t)e->strings_bytes + 1,
		            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		            .st_shndx = 1,
		            .st_value = address };
	e->strings_bytes += strlen(name) + 1;
	e->symbols = s;
	e->symbol_count = 2;
	e->buckets = calloc(1, sizeof *e->buckets);
	e->chain = calloc(2, sizeof *e->chain);
	e->buckets[0] = 1;
}

static void test_scope_find_follows_the_order_of_the_loader(void **state)
{
	struct modules m;
	struct elf_symbol s;

	(void)state;
	make_modules(&m, 40);
	m.list[20].needed_count = 0;
	for (uint32_t i = 13; i < 20; i++)
		m.list[i].needed_count = 20 - i; /* what the program needs ends at number 20 */
	for (uint32_t i = 12; i < 20; i++)
		if (m.list[i].needed_count > 20 - i)
			m.list[i].needed_count = 20 - i;
	define(&m.list[30], "f", 30);
	define(&m.list[35], "f", 35);
	define(&m.list[10], "g", 10);
	define(&m.list[31], "g", 31);
	struct scope *scope = scope_new(&m, NULL);
	assert_non_null(scope);
	assert_ptr_equal(scope_find(scope, NULL, "g", NULL, &s), &m.list[10]);
	assert_ptr_equal(scope_find(scope, &m.list[33], "f", NULL, &s),
	                 &m.list[35]); /* what it needs comes before what is earlier */
	assert_ptr_equal(scope_find(scope, &m.list[3], "f", NULL, &s), &m.list[30]);
	m.list[31].symbolic = true;
	assert_ptr_equal(scope_find(scope, &m.list[31], "g", NULL, &s), &m.list[31]);
	assert_null(scope_find(scope, &m.list[3], "h", NULL, &s));
	scope_free(scope);
	modules_free(&m);
}

/* A program of a thousand libraries, each with some lazy GOT entries, is far from the limit; one that needs the square
 * of that is refused. */
static void test_scope_find_stays_in_the_budget(void **state)
{
	struct modules m;
	struct elf_symbol s;
	struct budget budget;
	struct err e;

	(void)state;
	make_modules(&m, MANY);
	m.watch = NULL;
	budget_start(&budget, BUDGET_PLAN_BYTES, BUDGET_PLAN_WORK);
	struct scope *scope = scope_new(&m, &budget);
	for (uint32_t i = 0; i < MANY; i++)
		for (int k = 0; k < 5; k++)
			assert_null(scope_find(scope, &m.list[i], "malloc", NULL, &s));
	assert_int_equal(budget_check(&budget, &e), 0);
	scope_free(scope);
	budget_start(&budget, BUDGET_PLAN_BYTES, 1000);
	scope = scope_new(&m, &budget);
	assert_null(scope_find(scope, NULL, "malloc", NULL, &s));
	assert_int_equal(budget_check(&budget, &e), -E2BIG);
	scope_free(scope);
	modules_free(&m);
}

static void test_scope_stays_is_what_the_program_needs(void **state)
{
	struct modules m;

	(void)state;
	make_modules(&m, 40);
	for (uint32_t i = 12; i < 20; i++)
		m.list[i].needed_count = m.list[i].needed_count > 20 - i ? 20 - i : m.list[i].needed_count;
	m.list[20].needed_count = 0; /* what the program needs ends at number 20 */
	struct scope *scope = scope_new(&m, NULL);
	assert_non_null(scope);
	for (uint32_t i = 0; i < m.count; i++)
		assert_int_equal(scope_stays(scope, &m.list[i]), i <= 20);
	scope_free(scope);
	modules_free(&m);
}

/* The loader puts them before what the program needs; what it opens later comes last. */
static void test_scope_stays_what_is_preloaded(void **state)
{
	struct modules m;

	(void)state;
	make_modules(&m, 40);
	for (uint32_t i = 1; i < 40; i++)
		m.list[i].needed_count = 0;
	m.list[0].needed[0] = m.list[0].needed[2]; /* number 3, */
	m.list[0].needed[1] = m.list[0].needed[4]; /* and number 5 */
	m.list[0].needed_count = 2;
	m.list[2].namespace_id = 1;
	struct scope *scope = scope_new(&m, NULL);
	assert_non_null(scope);
	for (uint32_t i = 0; i < m.count; i++)
		assert_int_equal(scope_stays(scope, &m.list[i]), i == 0 || i == 1 || i == 3 || i == 5);
	m.list[0].needed_count = 0;
	assert_false(scope_stays(scope, &m.list[1]));
	scope_free(scope);
	modules_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scope_find_follows_the_order_of_the_loader),
		cmocka_unit_test(test_scope_find_stays_in_the_budget),
		cmocka_unit_test(test_scope_stays_is_what_the_program_needs),
		cmocka_unit_test(test_scope_stays_what_is_preloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
