/* SPDX-License-Identifier: MIT */
/* Which functions use all registers: those of targets/register_use.c, by their names, and those of real allocators. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "allocators/allocator_find.h"

static const char *const names[] = {
	"no_leaf",       "no_leaf_below",  "no_itself",       "no_register",     "no_large_model", "no_stack",
	"no_descriptor", "no_retpoline",   "no_return_thunk", "no_switch",       "no_system_call", "no_noreturn",
	"no_state",      "no_state_below", "no_saves_all",    "yes_stub",        "yes_got",        "yes_tail",
	"yes_condition", "yes_below",      "yes_stub_below",  "yes_ibt",         "yes_cold",       "always_pointer",
	"always_table",  "always_slot",    "always_below",    "always_below_it",
};
#define NAMES (sizeof names / sizeof names[0])

struct look {
	struct victim victim;
	struct view view;
	struct allocators found;
};

static void look_open(struct look *l, const char *program, const struct given_name *given, size_t given_count)
{
	struct err e;

	victim_start(&l->victim, program, NULL, NULL);
	view_open(&l->view, l->victim.pid, true);
	const struct allocators_input in = { &l->view.modules, &l->view.libc, &l->view.plans, &l->view.tm,
		                             &l->view.maps,    given,         given_count };
	if (allocators_find(&l->found, &in, &e))
		fail_msg("%s", e.text);
}

static void look_close(struct look *l)
{
	allocators_free(&l->found);
	view_close(&l->view);
	victim_end(&l->victim);
}

static const struct allocator_function *function(const struct look *l, const char *name)
{
	for (size_t i = 0; i < l->found.function_count; i++)
		if (!strcmp(l->found.functions[i].name, name))
			return &l->found.functions[i];
	fail_msg("%s was not found", name);
	return NULL;
}

static void look_at_named(struct look *l, const char *program)
{
	static struct given_name given[NAMES];

	for (size_t i = 0; i < NAMES; i++) {
		char text[GIVEN_NAME_MAX];
		snprintf(text, sizeof text, "%s=malloc", names[i]);
		assert_true(given_name_parse(text, &given[i]));
	}
	look_open(l, program, given, NAMES);
}

static void assert_uses_all(const struct look *l, const char *name, bool expected)
{
	if (function(l, name)->uses_all != expected)
		fail_msg("%s: %s", name, expected ? "nothing was found" : "registers are taken for used");
}

static void test_calls_that_leave_the_file_are_found(void **state)
{
	struct look l;

	(void)state;
	look_at_named(&l, "victim_registers");
	for (size_t i = 0; i < NAMES; i++)
		assert_uses_all(&l, names[i], strncmp(names[i], "no_", 3) != 0);
	look_close(&l);
}

/* There calls of the C library are direct ones, and functions are known by symbols alone. */
static void test_in_a_static_program(void **state)
{
	struct look l;

	(void)state;
	look_at_named(&l, "victim_registers_static");
	for (size_t i = 0; i < NAMES; i++)
		if (strncmp(names[i], "yes_", 4) != 0)
			assert_uses_all(&l, names[i], names[i][0] == 'a');
	assert_uses_all(&l, "malloc", true);
	assert_uses_all(&l, "free", true);
	look_close(&l);
}

/* .eh_frame describes the start code alone: what stands in the function itself is seen, up to the end of its symbol. */
static void test_where_functions_are_not_described(void **state)
{
	struct look l;

	(void)state;
	look_at_named(&l, "victim_registers_undescribed");
	for (size_t i = 0; i < NAMES; i++)
		if (!strncmp(names[i], "no_", 3))
			assert_uses_all(&l, names[i], false);
	assert_uses_all(&l, "always_pointer", true);
	assert_uses_all(&l, "always_table", true);
	assert_uses_all(&l, "yes_got", true);
	look_close(&l);
}

/* Their hooks cost nothing more. */
static void test_the_c_library_uses_all(void **state)
{
	struct look l;

	(void)state;
	look_open(&l, "victim_now", NULL, 0);
	assert_uses_all(&l, "malloc", true);
	assert_uses_all(&l, "free", true);
	assert_uses_all(&l, "calloc", true);
	assert_uses_all(&l, "realloc", true);
	look_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_that_leave_the_file_are_found),
		cmocka_unit_test(test_in_a_static_program),
		cmocka_unit_test(test_where_functions_are_not_described),
		cmocka_unit_test(test_the_c_library_uses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
