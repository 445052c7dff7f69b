/* SPDX-License-Identifier: MIT */
/* Trampolines that lead to the original again, and where their instructions are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/x86_64/arch.h"
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

/* The list of include/trampolines.h is that of the assembler. */
static void test_trampoline_instructions_are_known(void **state)
{
	extern const uint8_t trampoline_instructions[];
	extern const uint32_t trampoline_instruction_count;
	uint32_t found = 0;

	(void)state;
	for (uint64_t offset = 0; offset < TRAMPOLINE_CODE_BYTES; offset++)
		found += trampoline_instruction_at(offset);
	assert_int_equal(found, trampoline_instruction_count);
	for (uint32_t i = 0; i < trampoline_instruction_count; i++)
		assert_true(trampoline_instruction_at(trampoline_instructions[i]));
	assert_true(trampoline_instruction_at(TRAMPOLINE_ALLOCATE) && trampoline_instruction_at(TRAMPOLINE_RELEASE) &&
	            trampoline_instruction_at(TRAMPOLINE_OTHER) &&
	            trampoline_instruction_at(TRAMPOLINE_POOL_ALLOCATE) &&
	            trampoline_instruction_at(TRAMPOLINE_POOL_RELEASE));
	/* Behind the jump to the original. */
	assert_int_equal(trampoline_instructions[8], TRAMPOLINE_BELOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(test_inert_trampolines_call_the_original),
		cmocka_unit_test(test_trampoline_instructions_are_known),
	};

	return cmocka_run_group_tests_name("trampolines", tests, NULL, NULL);
}
