/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "symbols/wire.h"

static void test_what_is_put_is_taken(void **state)
{
	struct wire w = { 0 };

	(void)state;
	wire_put_number(&w, UINT64_MAX);
	wire_put_string(&w, "");
	wire_put_string(&w, NULL);
	wire_put_string(&w, "text");
	assert_int_equal(wire_take_number(&w), UINT64_MAX);
	assert_string_equal(wire_take_string(&w), "");
	assert_null(wire_take_string(&w));
	assert_string_equal(wire_take_string(&w), "text");
	assert_false(w.failed);
	assert_int_equal(wire_take_number(&w), 0);
	assert_true(w.failed);
	wire_done(&w);
}

/* A string without its end, and whatever comes after. */
static void test_what_does_not_fit_is_not_taken(void **state)
{
	struct wire w = { 0 };

	(void)state;
	wire_put(&w, "sabc", 4);
	assert_null(wire_take_string(&w));
	assert_true(w.failed);
	assert_null(wire_take(&w, 1));
	wire_clear(&w);
	wire_put(&w, "xabc", 4);
	assert_null(wire_take_string(&w));
	assert_null(wire_take(&w, SIZE_MAX));
	assert_true(w.failed);
	wire_clear(&w);
	assert_null(wire_take(&w, 1));
	wire_done(&w);
}

static void test_messages_of_any_size_but_too_large(void **state)
{
	struct wire out = { 0 }, in = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t size = 0; size < 40000; size = 3 * size + 1) {
		wire_clear(&out);
		for (size_t i = 0; i < size; i++)
			wire_put(&out, "x", 1);
		assert_true(wire_send(pair[0], &out));
		assert_true(wire_receive(pair[1], &in));
		assert_int_equal(in.used, size);
	}
	uint32_t count = WIRE_MAX_BYTES + 1;
	assert_int_equal(write(pair[0], &count, sizeof count), sizeof count);
	assert_false(wire_receive(pair[1], &in));
	close(pair[1]);
	assert_false(wire_send(pair[0], &out)); /* and no signal */
	close(pair[0]);
	wire_done(&out);
	wire_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_put_is_taken),
		cmocka_unit_test(test_what_does_not_fit_is_not_taken),
		cmocka_unit_test(test_messages_of_any_size_but_too_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
