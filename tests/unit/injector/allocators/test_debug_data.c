/* SPDX-License-Identifier: MIT */
/* Packed names: unpacked while there is time for it, of all modules together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/debug_data.h"

#define BYTES (4u << 20)

static uint8_t packed[BYTES];

static size_t pack(void)
{
	uint8_t *zeros = calloc(1, BYTES);
	size_t used = 0;

	assert_non_null(zeros);
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, zeros, BYTES, packed, &used, sizeof packed),
	                 LZMA_OK);
	free(zeros);
	return used;
}

static void test_unpack_takes_of_the_time_that_is_left(void **state)
{
	const size_t bytes = pack();
	struct budget budget;
	struct stat st;

	(void)state;
	budget_start(&budget, 1, 1);
	int file = debug_data_unpack(packed, bytes, &budget);
	assert_true(file >= 0 && fstat(file, &st) == 0 && st.st_size == BYTES);
	close(file);
	assert_in_range(budget.children_ns, 1, BUDGET_CHILDREN_NS - 1);
	budget.children_ns = 1;
	file = debug_data_unpack(packed, bytes, &budget); /* the last, perhaps ended early */
	if (file >= 0)
		close(file);
	assert_int_equal(budget.children_ns, 0);
	assert_int_equal(debug_data_unpack(packed, bytes, &budget), -1);
	assert_int_equal(budget.refusal.code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unpack_takes_of_the_time_that_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
