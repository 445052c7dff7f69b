/* SPDX-License-Identifier: MIT */
/* Words that are patched and restored, and trampolines that lead to the original again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch.h"
#include "trampoline_setup.h"
#include "hook_fixture.h"

static void test_patch_entries(void **state)
{
	uint64_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t gone = (uint64_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct got_entry entries[5] = {
		{ .address = (uint64_t)&page[0], .old_value = 11, .trampoline = 0, .page_protection = PROT_READ },
		{ .address = (uint64_t)&page[1], .old_value = 99, .trampoline = 1, .page_protection = PROT_READ },
		{ .address = (uint64_t)&page[512],
		  .old_value = 13,
		  .trampoline = 2,
		  .page_protection = PROT_READ | PROT_WRITE },
		{ .address = (uint64_t)&page[513] + 4,
		  .old_value = 14,
		  .trampoline = 2,
		  .page_protection = PROT_READ | PROT_WRITE },
		{ .address = gone, .old_value = 0, .trampoline = 0, .page_protection = PROT_READ },
	};
	struct control_patch patch = { .channel = -1, .entry_count = 5, .entries = (uint64_t)entries };
	const struct got_entry *kept;

	(void)state;
	page[0] = 11;
	page[1] = 12;
	page[512] = 13;
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	munmap((void *)gone, 4096);
	assert_int_equal(memattach_control(CONTROL_PATCH, &patch), 0);
	assert_int_equal(entries[0].state, GOT_PATCHED);
	assert_int_equal(entries[1].state, GOT_REFUSED);
	assert_int_equal(entries[2].state, GOT_PATCHED);
	assert_int_equal(entries[3].state, GOT_REFUSED);
	assert_int_equal(entries[4].state, GOT_REFUSED);
	assert_int_equal(page[0], trampoline(0));
	assert_int_equal(page[1], 12);
	assert_int_equal(page[512], trampoline(2));
	assert_int_equal(fixture_protection((uint64_t)page), PROT_READ);
	assert_int_equal(fixture_protection((uint64_t)&page[512]), PROT_READ | PROT_WRITE);
	page[512] = 77; /* somebody else's hook */
	assert_int_equal(memattach_control(CONTROL_RESTORE, NULL), 0);
	kept = (const struct got_entry *)memattach_session.entries_address;
	assert_int_equal(kept[0].state, GOT_RESTORED);
	assert_int_equal(kept[2].state, GOT_FOREIGN);
	assert_int_equal(page[0], 11);
	assert_int_equal(page[512], 77);
	assert_int_equal(fixture_protection((uint64_t)page), PROT_READ);
	munmap(page, 8192);
}

static void test_inert_trampolines_call_the_original(void **state)
{
	const struct trampoline *trampolines =
		(const struct trampoline *)trampoline_data(memattach_session.trampolines_address, 0);

	(void)state;
	call(HOOK_malloc, 1, 0, 0, 0, 0, 0);
	assert_int_equal(trampolines_shared->near_owner, arch_thread_pointer());
	assert_int_equal(memattach_control(CONTROL_INERT, NULL), 0);
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
		EXACT(test_patch_entries),
		EXACT(test_inert_trampolines_call_the_original),
		cmocka_unit_test(test_trampoline_instructions_are_known),
	};

	return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
