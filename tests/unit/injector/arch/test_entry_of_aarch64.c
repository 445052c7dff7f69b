/* SPDX-License-Identifier: MIT */
/*
 * Hooks at entries on aarch64: which instruction is displaced, and functions that are run with a jump at their entry,
 * by a detour and a trampoline that passes on or tells that it was entered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/code.h"
#include "arch/detour_code.h"
#include "arch/entry_code.h"
#include "arch/function_alias.h"

#define CODE 0x400000ull
#define COUNTERS 4096u
#define MULTIPLIER 0xF1BBu
#define ALL_BYTES 0x4000u
#define DETOUR_AT 0x2000u /* and what is next: pages behind the function */

#define NOP 0xd503201fu
#define BTI_C 0xd503245fu
#define PACIASP 0xd503233fu
#define AUTIASP 0xd50323bfu
#define RET 0xd65f03c0u
#define SVC 0xd4000001u
#define UDF 0u
#define LDR_NEAR 0x58000040u               /* ldr x0, 8 further */
#define PUSH 0xa9be7bfdu                   /* stp x29, x30, [sp, #-32]! */
#define POP 0xa8c27bfdu                    /* ldp x29, x30, [sp], #32 */
#define ANSWER(n) (0xd2800000u | (n) << 5) /* mov x0, #n */
#define BL(words) (0x94000000u | ((uint32_t)(words)&0x3ffffff))
#define B(words) (0x14000000u | ((uint32_t)(words)&0x3ffffff))
#define CBZ(words) (0xb4000000u | (words) << 5)        /* x0 */
#define TBNZ_0(words) (0x37000000u | (words) << 5)     /* bit 0 of x0 */
#define ADR(words) (0x10000000u | (words) << 5)        /* x0 */
#define ADRP(pages) (0x90000000u | ((pages)&3u) << 29) /* x0, up to 3 pages further */

static struct shared {
	uint64_t near_owner;
	uint32_t mask;
	uint8_t apart[TRAMPOLINES_NEAR + THREAD_STATE_REMAINING - 12];
	int64_t remaining;
} __attribute__((packed)) shared;
static uint8_t counters[COUNTERS];
static struct trampoline trampoline;
static uint8_t *all; /* function, detour, what is next */

typedef uint64_t (*function)(uint64_t);

static struct entry_code_function function_of(const uint32_t *words, size_t count)
{
	return (struct entry_code_function){ .address = CODE, .code = (const uint8_t *)words, .bytes = 4 * count };
}

static int plan_words(struct entry_code_plan *plan, const uint32_t *words, size_t count)
{
	const struct entry_code_function f = function_of(words, count);

	return entry_code_plan_make(plan, &f, ERR_IGNORED);
}

#define PLAN(plan, ...)                                                                                                \
	plan_words(plan, (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void test_one_instruction_is_displaced(void **state)
{
	struct entry_code_plan p;

	(void)state;
	assert_int_equal(PLAN(&p, PUSH, NOP, POP, RET), 0);
	assert_true(p.kind == ENTRY_ONE && p.write_at == CODE && p.displaced_bytes == 4 && !p.undo.distance);
	assert_true(!p.repeated_bytes && !p.island && !p.crosses_line && p.write_bytes == 4);
	/* A landing pad stays where it is; what it has signed is to be undone. */
	assert_int_equal(PLAN(&p, BTI_C, PUSH, POP, RET), 0);
	assert_true(p.write_at == CODE + 4 && !p.repeated_bytes && p.code_bytes == 8);
	assert_int_equal(PLAN(&p, PACIASP, PUSH, POP, AUTIASP, RET), 0);
	assert_true(p.write_at == CODE + 4 && p.repeated_bytes == 4 && p.undo.distance);
	/* The entry may be called by the function itself. */
	assert_int_equal(PLAN(&p, PUSH, BL(-1), POP, RET), 0);
}

static void test_what_cannot_be_moved_is_refused(void **state)
{
	const uint32_t before[] = { RET, B(2), RET }, other[] = { RET, B(3), RET };
	struct entry_code_plan p;

	(void)state;
	assert_int_equal(PLAN(&p, BL(4), RET), -ENOTSUP);
	assert_int_equal(PLAN(&p, SVC, RET), -ENOTSUP);
	assert_int_equal(PLAN(&p, UDF, RET), -ENOTSUP);
	assert_int_equal(PLAN(&p, LDR_NEAR, RET, UDF, UDF), -ENOTSUP);
	assert_int_equal(PLAN(&p, BTI_C), -ENOTSUP);
	/* Jumps to the entry, and behind a landing pad. */
	assert_int_equal(PLAN(&p, NOP, CBZ(0x7ffffu), RET), -ENOTSUP);
	assert_int_equal(PLAN(&p, BTI_C, NOP, CBZ(0x7ffffu), RET), -ENOTSUP);
	const uint32_t signs[] = { PACIASP, PUSH, POP, AUTIASP, RET };
	struct entry_code_function f = function_of(signs, sizeof signs / 4);
	f.before_bytes = sizeof before;
	f.before = (const uint8_t *)before;
	assert_int_equal(entry_code_plan_make(&p, &f, ERR_IGNORED), 0);
	f.before = (const uint8_t *)other;
	assert_int_equal(entry_code_plan_make(&p, &f, ERR_IGNORED), -ENOTSUP);
	f.before = NULL;
	f.entered = CODE + 4;
	assert_int_equal(entry_code_plan_make(&p, &f, ERR_IGNORED), -ENOTSUP);
	f.entered = CODE + 8;
	assert_int_equal(entry_code_plan_make(&p, &f, ERR_IGNORED), 0);
}

static void test_a_jump_has_its_reach(void **state)
{
	struct entry_code_plan p;
	struct entry_code_patch patch;

	(void)state;
	assert_int_equal(PLAN(&p, PUSH, POP, RET), 0);
	assert_int_equal(entry_code_patch_make(&patch, &p, CODE + ENTRY_REACH, ERR_IGNORED), 0);
	assert_int_equal(entry_code_patch_make(&patch, &p, CODE + ENTRY_REACH + 4, ERR_IGNORED), -ERANGE);
}

/* ---- with a jump at the entry ---- */

static uint64_t own_thread(void)
{
	return (uint64_t)__builtin_thread_pointer();
}

/* New for each function: QEMU goes on with code that SVE has written over (7.2, -cpu max). */
static void open_code(void)
{
	all = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true((void *)all != MAP_FAILED);
}

static bool keeps; /* TRAMPOLINE_KEEPS */

/* The function, hooked; passes: what is next goes on to the original, else it returns the thread state that it got. */
static function hook(const uint32_t *words, size_t count, uint32_t id, bool decides, bool passes)
{
	const uint32_t pass_on[] = { 0xf9400630u, 0xd61f0200u }; /* ldr x16, [x17, #8]; br x16 */
	const uint32_t answer[] = { 0xaa0903e0u, RET };          /* mov x0, x9 */
	struct entry_code_function f = function_of(words, count);

	open_code();
	uint8_t *const detour = all + DETOUR_AT, *const next = detour + DETOUR_BYTES;
	struct entry_code_patch patch;
	struct entry_code_plan p;
	struct entry_code_copy copy;

	f.address = (uint64_t)all;
	memcpy(all, words, 4 * count);
	memcpy(next, passes ? pass_on : answer, sizeof answer);
	assert_int_equal(entry_code_plan_make(&p, &f, ERR_IGNORED), 0);
	assert_int_equal(entry_code_copy_make(&copy, &p, (uint64_t)detour + DETOUR_COPY, ERR_IGNORED), 0);
	assert_int_equal(
		entry_code_patch_make(&patch, &p, (uint64_t)detour + detour_code_enter_at(false, &p.undo), ERR_IGNORED),
		0);
	const struct detour_code d = { .hook = id,
		                       .decides = decides,
		                       .keeps = keeps,
		                       .undo = p.undo,
		                       .data = (uint64_t)&trampoline,
		                       .shared = (uint64_t)&shared,
		                       .filter = (uint64_t)counters,
		                       .filter_mask = COUNTERS - 1,
		                       .filter_multiplier = MULTIPLIER };
	detour_code_make(detour, &d);
	memcpy(detour + DETOUR_COPY, copy.code, copy.bytes);
	memcpy((uint8_t *)p.write_at, patch.jump, p.write_bytes);
	trampoline = (struct trampoline){ .next = (uint64_t)next, .original = (uint64_t)detour + DETOUR_COPY };
	shared.near_owner = own_thread();
	shared.remaining = 100;
	memset(counters, 0, sizeof counters);
	__builtin___clear_cache((char *)all, (char *)all + ALL_BYTES);
	return (function)(uintptr_t)all;
}

#define HOOK(id, decides, passes, ...)                                                                                 \
	hook((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4, id, decides, passes)

/* Straight on, and by way of what is next. */
static void test_functions_do_what_they_did(void **state)
{
	(void)state;
	for (unsigned decides = 0; decides < 2; decides++) {
		function f = HOOK(HOOK_malloc, decides, true, PUSH, ANSWER(3), POP, RET);
		assert_int_equal(f(5), 3);
		f = HOOK(HOOK_malloc, decides, true, CBZ(3), ANSWER(1), RET, ANSWER(2), RET);
		assert_int_equal(f(0), 2);
		assert_int_equal(f(6), 1);
		f = HOOK(HOOK_free, decides, true, TBNZ_0(3), ANSWER(1), RET, ANSWER(2), RET);
		assert_int_equal(f(6), 1);
		assert_int_equal(f(7), 2);
		f = HOOK(HOOK_malloc, decides, true, B(2), UDF, ANSWER(7), RET);
		assert_int_equal(f(1), 7);
		f = HOOK(HOOK_malloc, decides, true, ADR(2), RET);
		assert_int_equal(f(1), (uint64_t)all + 8);
		f = HOOK(HOOK_malloc, decides, true, BTI_C, ADRP(3), RET);
		assert_int_equal(f(1), (uint64_t)all + 0x3000);
		f = HOOK(HOOK_malloc, decides, true, PACIASP, PUSH, ANSWER(4), POP, AUTIASP, RET);
		assert_int_equal(f(1), 4);
	}
}

static void test_an_allocation_is_charged(void **state)
{
	(void)state;
	function f = HOOK(HOOK_malloc, true, false, NOP, ANSWER(1), RET);
	assert_int_equal(f(60), 1);
	assert_int_equal(shared.remaining, 40);
	assert_int_equal(f(0), 1);
	assert_int_equal(shared.remaining, 39);
	assert_int_equal(f(39), 1);
	assert_int_equal(shared.remaining, 0);
	assert_int_equal(f(1), (uint64_t)&shared + TRAMPOLINES_NEAR);
	assert_int_equal(shared.remaining, -1);
	/* Another thread's is not touched. */
	shared.near_owner++;
	assert_int_equal(f(60), 0);
	assert_int_equal(shared.remaining, -1);
}

/* Nothing is charged, and the original finds x9 to x15 as they were. */
static void test_registers_are_kept(void **state)
{
	(void)state;
	keeps = true;
	for (unsigned i = 0; i < 2; i++) {
		/* x0 = x9 + x10 + … + x15; the first of these is displaced */
		function f = HOOK(i ? HOOK_free : HOOK_malloc, true, true, 0x8b0a0120u, 0x8b0b0000u, 0x8b0c0000u,
		                  0x8b0d0000u, 0x8b0e0000u, 0x8b0f0000u, RET);
		register uint64_t answer __asm__("x0") = 60;
		register function to __asm__("x1") = f;
		__asm__ volatile("mov x9, #1\n mov x10, #20\n mov x11, #300\n mov x12, #4000\n mov x13, #50000\n"
		                 "mov x14, #0x100000\n mov x15, #0x2000000\n blr %1"
		                 : "+r"(answer), "+r"(to)
		                 :
		                 : "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x30", "cc", "memory");
		assert_int_equal(answer, 54321 + 0x2100000);
		assert_int_equal(shared.remaining, 100);
	}
	keeps = false;
}

static void test_a_free_asks_its_counter(void **state)
{
	const uint64_t block = 0xffff00001230;

	(void)state;
	function f = HOOK(HOOK_free, true, false, NOP, ANSWER(1), RET);
	assert_int_equal(f(block), 1);
	counters[block * MULTIPLIER >> FILTER_SHIFT & (COUNTERS - 1)] = 1;
	assert_int_equal(f(block), 0);
	f = HOOK(HOOK_calloc, true, false, NOP, ANSWER(1), RET);
	assert_int_equal(f(1), 0);
}

/* ---- which calls may be of anything ---- */

static bool calls(const uint32_t *words, size_t count)
{
	struct instruction in;
	const uint8_t *code = (const uint8_t *)words;
	const size_t at = 4 * (count - 1);

	assert_true(instruction_read(&in, code + at, 4, CODE + at) && in.calls_register && !in.calls_pointer);
	return code_calls_what_was_read(code, at);
}

#define CALLS(...) calls((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void test_calls_of_what_was_read(void **state)
{
	const uint32_t load = 0xf9400042u /* ldr x2, [x2] */, blr_2 = 0xd63f0040u, blr_1 = 0xd63f0020u;

	(void)state;
	assert_true(CALLS(load, NOP, ANSWER(1), blr_2));
	assert_false(CALLS(NOP, blr_2));                      /* from where is not told */
	assert_false(CALLS(load, B(4), blr_2));               /* other code may come here */
	assert_false(CALLS(0xf94007e2u, blr_2));              /* from the stack */
	assert_false(CALLS(load, 0x91002042u, blr_2));        /* add x2, x2, #8 */
	assert_false(CALLS(0xf9400001u, 0x91002000u, blr_1)); /* ldr x1, [x0]; add x0, x0, #8: a descriptor of TLS */
	assert_false(CALLS(0x58000042u, blr_2));              /* a number beside the code */
}

static unsigned called;

static void count_call(void)
{
	called++;
}

static void test_an_alias_is_the_function(void **state)
{
	const uint8_t around[2 * FUNCTION_ALIAS_AROUND] = { 0 };
	const uint64_t counting = (uint64_t)(uintptr_t)count_call;
	const struct function_alias a = function_alias_find(counting, around);
	const struct function_alias again = function_alias_find(a.address, around);

	(void)state;
	assert_null(function_alias_obstacle());
	assert_true(a.function == counting && a.address != counting && function_alias_place(a.address) == counting);
	assert_true(again.function == counting && again.address == a.address);
	called = 0;
	((void (*)(void))(uintptr_t)a.address)();
	assert_int_equal(called, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_instruction_is_displaced),
		cmocka_unit_test(test_what_cannot_be_moved_is_refused),
		cmocka_unit_test(test_a_jump_has_its_reach),
		cmocka_unit_test(test_functions_do_what_they_did),
		cmocka_unit_test(test_an_allocation_is_charged),
		cmocka_unit_test(test_registers_are_kept),
		cmocka_unit_test(test_a_free_asks_its_counter),
		cmocka_unit_test(test_calls_of_what_was_read),
		cmocka_unit_test(test_an_alias_is_the_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
