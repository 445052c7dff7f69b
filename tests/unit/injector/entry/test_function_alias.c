/* SPDX-License-Identifier: MIT */
/* The nop in front of a function, whatever instruction its bytes belong to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/function_alias.h"

#define PLACE 0x1000u

/* The distance of the alias from the function behind the bytes, 0: there is none. */
static uint64_t in_front(const uint8_t *bytes, size_t count)
{
	uint8_t around[2 * FUNCTION_ALIAS_AROUND];

	memset(around, 0xcc, sizeof around);
	memcpy(around + FUNCTION_ALIAS_AROUND - count, bytes, count);
	const struct function_alias a = function_alias_find(PLACE, around);
	assert_int_equal(a.function, PLACE);
	return a.address ? PLACE - a.address : 0;
}

/* How far behind the pointer the function is. */
static uint64_t behind(const uint8_t *bytes, size_t count)
{
	uint8_t around[2 * FUNCTION_ALIAS_AROUND];

	memset(around, 0xcc, sizeof around);
	memcpy(around + FUNCTION_ALIAS_AROUND, bytes, count);
	const struct function_alias a = function_alias_find(PLACE, around);
	assert_int_equal(a.address, a.function > PLACE ? PLACE : 0);
	return a.function - PLACE;
}

#define BEFORE(...) in_front((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
#define SKIP(...) behind((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void test_nops_of_any_length_are_found(void **state)
{
	(void)state;
	assert_int_equal(BEFORE(0xc3, 0x90), 1);
	assert_int_equal(BEFORE(0xc3, 0x66, 0x90), 1);
	assert_int_equal(BEFORE(0xc3, 0x0f, 0x1f, 0x00), 3);
	assert_int_equal(BEFORE(0xc3, 0x0f, 0x1f, 0x40, 0x00), 4);
	assert_int_equal(BEFORE(0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00), 5);
	assert_int_equal(BEFORE(0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0), 7);
	assert_int_equal(BEFORE(0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), 8);
	assert_int_equal(BEFORE(0xb8, 0x01, 0x02, 0x03, 0x90), 1); /* the end of mov $0x90030201, %eax */
}

static void test_other_code_is_no_nop(void **state)
{
	(void)state;
	assert_int_equal(BEFORE(0xcc, 0xcc, 0xcc, 0xcc), 0);
	assert_int_equal(BEFORE(0x5b, 0x5d, 0xc3), 0);
	assert_int_equal(BEFORE(0x90, 0xeb, 0xfe), 0);
	assert_int_equal(BEFORE(0xc3), 0);
}

static void test_nops_at_the_beginning_are_skipped(void **state)
{
	(void)state;
	assert_int_equal(SKIP(0x90, 0x55), 1);
	assert_int_equal(SKIP(0x0f, 0x1f, 0x00, 0x90, 0x55), 4);
	assert_int_equal(SKIP(0x55, 0x90), 0);
	assert_int_equal(SKIP(0xf3, 0x0f, 0x1e, 0xfa, 0x90), 0);
	assert_int_equal(SKIP(0xcc, 0x90), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nops_of_any_length_are_found),
		cmocka_unit_test(test_other_code_is_no_nop),
		cmocka_unit_test(test_nops_at_the_beginning_are_skipped),
	};
	return cmocka_run_group_tests_name("function_alias", tests, NULL, NULL);
}
