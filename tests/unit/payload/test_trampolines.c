/* SPDX-License-Identifier: MIT */
/* Trampolines that lead to the original again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "trampoline_setup.h"
#include "hook_fixture.h"

static void test_inert_trampolines_call_the_original(void **state)
{
	const struct trampoline *trampolines =
		(const struct trampoline *)trampoline_data(memattach_session.trampolines_address, 0);

	(void)state;
	call(HOOK_malloc, 1, 0, 0, 0, 0, 0);
	assert_int_equal(trampolines_shared->near_owner, arch_thread_pointer());
	fixture_inert(&memattach_session);
	assert_int_equal(trampolines_shared->near_owner, 0);
	for (uint32_t i = 0; i < HOOK_COUNT; i++) {
		assert_int_equal(trampolines[i].next, trampolines[i].original);
		answer = i;
		assert_int_equal(call(i, 1, 2, 3, 4, 5, 6), i);
	}
	assert_int_equal(fixture_live_count(&fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(test_inert_trampolines_call_the_original),
	};

	return cmocka_run_group_tests_name("trampolines", tests, NULL, NULL);
}
