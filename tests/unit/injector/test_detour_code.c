/* SPDX-License-Identifier: MIT */
/* Detours are run: with a trampoline that only tells where it was entered, and memory in the place of its data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "detour_code.h"

#define COUNTERS 4096u

enum where { AT_ORIGINAL = 1, AT_OTHER, AT_BELOW };

static struct shared {
	uint64_t near_owner;
	uint32_t mask;
	uint8_t apart[TRAMPOLINES_NEAR + THREAD_STATE_REMAINING - 12];
	int64_t remaining;
} __attribute__((packed)) shared;
static uint8_t counters[COUNTERS];
static uint8_t *code, *trampoline;

/* mov $where, %eax; ret */
static void put_answer(uint8_t *at, enum where where)
{
	const uint8_t answer[] = { 0xb8, (uint8_t)where, 0, 0, 0, 0xc3 };

	memcpy(at, answer, sizeof answer);
}

static uint64_t own_thread(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static void make(uint32_t hook, bool decides)
{
	const struct detour_code d = { .hook = hook,
		                       .decides = decides,
		                       .trampoline = (uint64_t)trampoline,
		                       .shared = (uint64_t)&shared,
		                       .filter = (uint64_t)counters,
		                       .filter_mask = COUNTERS - 1 };

	detour_code_make(code, &d);
	put_answer(code + DETOUR_COPY, AT_ORIGINAL);
	shared.near_owner = own_thread();
	shared.remaining = 100;
	memset(counters, 0, sizeof counters);
}

static int open_code(void **state)
{
	(void)state;
	/* As far apart as they are in a target. */
	code = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	trampoline = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || trampoline == MAP_FAILED)
		return -1;
	put_answer(trampoline + TRAMPOLINE_OTHER, AT_OTHER);
	put_answer(trampoline + TRAMPOLINE_BELOW, AT_BELOW);
	return 0;
}

static enum where call(uint64_t argument)
{
	return ((enum where(*)(uint64_t))(uintptr_t)code)(argument);
}

static void test_an_allocation_is_charged(void **state)
{
	(void)state;
	make(HOOK_malloc, true);
	assert_int_equal(call(60), AT_ORIGINAL);
	assert_int_equal(shared.remaining, 40);
	assert_int_equal(call(0), AT_ORIGINAL);
	assert_int_equal(shared.remaining, 39);
	assert_int_equal(call(39), AT_ORIGINAL);
	assert_int_equal(shared.remaining, 0);
	assert_int_equal(call(1), AT_BELOW);
	assert_int_equal(shared.remaining, -1);
}

static void test_another_thread_is_not_decided(void **state)
{
	(void)state;
	make(HOOK_new, true);
	shared.near_owner++;
	assert_int_equal(call(60), AT_OTHER);
	assert_int_equal(shared.remaining, 100);
}

static void test_a_free_asks_its_counter(void **state)
{
	unsigned decided_by = 0;

	(void)state;
	for (uint64_t block = 0x7f0000001230; block < 0x7f0000001230 + (1 << 16); block += 4112) {
		uint32_t at = (uint32_t)((block * FILTER_MULTIPLIER) >> FILTER_SHIFT) & (COUNTERS - 1);
		make(HOOK_free, true);
		assert_int_equal(call(block), AT_ORIGINAL);
		memset(counters, 1, sizeof counters);
		assert_int_equal(call(block), AT_OTHER);
		counters[at] = 0;
		assert_int_equal(call(block), AT_ORIGINAL);
		decided_by += at != 0;
	}
	assert_true(decided_by > 0);
	assert_int_equal(shared.remaining, 100);
}

static void test_others_go_to_the_trampoline(void **state)
{
	(void)state;
	make(HOOK_realloc, true);
	assert_int_equal(call(60), AT_OTHER);
	make(HOOK_malloc, false);
	assert_int_equal(call(60), AT_OTHER);
	make(HOOK_free, false);
	assert_int_equal(call(60), AT_OTHER);
	assert_int_equal(shared.remaining, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_allocation_is_charged),
		cmocka_unit_test(test_another_thread_is_not_decided),
		cmocka_unit_test(test_a_free_asks_its_counter),
		cmocka_unit_test(test_others_go_to_the_trampoline),
	};

	return cmocka_run_group_tests(tests, open_code, NULL);
}
