/* SPDX-License-Identifier: MIT */
/*
 * Detours are run: with a trampoline that only tells where it was entered, and memory in the place of its data. Those
 * that keep registers are called with known values in all that a called function may change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/detour_code.h"

#define COUNTERS 4096u
#define MULTIPLIER 0xF1BBu

enum where { AT_ORIGINAL = 1, AT_OTHER, AT_BELOW };

static struct shared {
	uint64_t near_owner;
	uint32_t mask;
	uint8_t apart[TRAMPOLINES_NEAR + THREAD_STATE_REMAINING - 12];
	int64_t remaining;
} __attribute__((packed)) shared;
static uint8_t counters[COUNTERS];
static uint8_t *code, *trampoline;
static struct trampoline data;

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

static void make_any(uint32_t hook, bool decides, bool keeps)
{
	const struct detour_code d = { .hook = hook,
		                       .decides = decides,
		                       .keeps = keeps,
		                       .data = (uint64_t)&data,
		                       .trampoline = (uint64_t)trampoline,
		                       .shared = (uint64_t)&shared,
		                       .filter = (uint64_t)counters,
		                       .filter_mask = COUNTERS - 1,
		                       .filter_multiplier = MULTIPLIER };

	detour_code_make(code, &d);
	if (keeps)
		code[DETOUR_KEEPING_COPY] = 0xc3; /* ret */
	else
		put_answer(code + DETOUR_COPY, AT_ORIGINAL);
	shared.near_owner = own_thread();
	shared.remaining = 100;
	memset(counters, 0, sizeof counters);
}

static void make(uint32_t hook, bool decides)
{
	make_any(hook, decides, false);
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
		uint32_t at = (uint32_t)((block * MULTIPLIER) >> FILTER_SHIFT) & (COUNTERS - 1);
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

/* ---- those that keep registers ---- */

enum { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, GENERAL };

/* Calls the code with these registers; what it leaves in them takes their place. */
static void call_with(uint64_t registers[GENERAL])
{
	register uint8_t *callee __asm__("r12") = code;

	__asm__ volatile("sub $128, %%rsp\n" /* the red zone */
	                 "mov 8(%%rbx), %%rcx\n mov 16(%%rbx), %%rdx\n mov 24(%%rbx), %%rsi\n"
	                 "mov 32(%%rbx), %%rdi\n mov 40(%%rbx), %%r8\n mov 48(%%rbx), %%r9\n"
	                 "mov 56(%%rbx), %%r10\n mov 64(%%rbx), %%r11\n mov (%%rbx), %%rax\n"
	                 "call *%1\n"
	                 "mov %%rcx, 8(%%rbx)\n mov %%rdx, 16(%%rbx)\n mov %%rsi, 24(%%rbx)\n"
	                 "mov %%rdi, 32(%%rbx)\n mov %%r8, 40(%%rbx)\n mov %%r9, 48(%%rbx)\n"
	                 "mov %%r10, 56(%%rbx)\n mov %%r11, 64(%%rbx)\n mov %%rax, (%%rbx)\n"
	                 "add $128, %%rsp\n"
	                 :
	                 : "b"(registers), "r"(callee)
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void assert_kept(uint64_t argument)
{
	uint64_t before[GENERAL], after[GENERAL];

	for (unsigned i = 0; i < GENERAL; i++)
		before[i] = i == RDI ? argument : 0x1111111111111111 * (i + 1);
	memcpy(after, before, sizeof after);
	call_with(after);
	assert_memory_equal(after, before, sizeof after);
}

/* What trampoline.next gets: its data in r11, in rax the near state if that was charged. */
static void assert_passed_on(uint64_t argument, uint64_t state)
{
	static const uint8_t answer[] = { 0xc3 };
	uint64_t after[GENERAL] = { 1, 2, 3, 4, argument, 6, 7, 8, 9 };

	memcpy(trampoline, answer, sizeof answer);
	data.next = (uint64_t)trampoline;
	call_with(after);
	assert_int_equal(after[RAX], state);
	assert_int_equal(after[R11], (uint64_t)&data);
	for (unsigned i = RCX; i <= R10; i++)
		assert_int_equal(after[i], i == RDI ? argument : i + 1);
	/* An inert one has the original there. */
	data.next = (uint64_t)code + DETOUR_KEEPING_RESUME;
	assert_kept(argument);
}

static void test_an_allocation_keeps_registers(void **state)
{
	(void)state;
	make_any(HOOK_malloc, true, true);
	assert_kept(60);
	assert_int_equal(shared.remaining, 40);
	assert_kept(0);
	assert_int_equal(shared.remaining, 39);
	assert_kept(39);
	assert_int_equal(shared.remaining, 0);
	assert_passed_on(1, (uint64_t)&shared + TRAMPOLINES_NEAR);
	assert_true(shared.remaining < 0);
	make_any(HOOK_malloc, true, true);
	shared.near_owner++;
	assert_passed_on(60, 0);
	assert_int_equal(shared.remaining, 100);
}

static void test_a_free_keeps_registers(void **state)
{
	(void)state;
	for (uint64_t block = 0x7f0000001230; block < 0x7f0000001230 + (1 << 16); block += 4112) {
		uint32_t at = (uint32_t)((block * MULTIPLIER) >> FILTER_SHIFT) & (COUNTERS - 1);
		make_any(HOOK_free, true, true);
		assert_kept(block);
		memset(counters, 1, sizeof counters);
		assert_passed_on(block, 0);
		counters[at] = 0;
		assert_kept(block);
	}
}

static void test_what_does_not_decide_keeps_registers(void **state)
{
	(void)state;
	make_any(HOOK_realloc, true, true);
	assert_passed_on(60, 0);
	make_any(HOOK_malloc, false, true);
	assert_passed_on(60, 0);
	make_any(HOOK_free, false, true);
	assert_passed_on(60, 0);
	assert_int_equal(shared.remaining, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_allocation_is_charged),
		cmocka_unit_test(test_another_thread_is_not_decided),
		cmocka_unit_test(test_a_free_asks_its_counter),
		cmocka_unit_test(test_others_go_to_the_trampoline),
		cmocka_unit_test(test_an_allocation_keeps_registers),
		cmocka_unit_test(test_a_free_keeps_registers),
		cmocka_unit_test(test_what_does_not_decide_keeps_registers),
	};

	return cmocka_run_group_tests(tests, open_code, NULL);
}
