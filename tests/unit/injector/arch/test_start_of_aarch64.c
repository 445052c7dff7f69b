/* SPDX-License-Identifier: MIT */
/* How start code of aarch64 is read: that of C libraries, and what must not be taken for it. A file stands in for the
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/start_code.h"

#define ENTRY 0x401580u
#define STACK 0x800000u
#define ARGC 3u
#define WORDS 20

#define BTI_C 0xd503245fu
#define NO_CALLERS 0xd280001du, 0xd280001eu /* mov x29, #0; mov x30, #0 */
#define ARGUMENTS 0xf94003e1u, 0x910023e2u  /* ldr x1, [sp]; add x2, sp, #8 */
#define MAIN_PAGE 0x90000000u               /* adrp x0 */
#define MAIN_REST 0x9116d000u               /* add x0, x0, #0x5b4 */
#define MAIN_ADDRESS 0x4015b4u
#define CALL 0x94000086u

#define TABLE 0x41ff80u /* a word of it has main */

struct program {
	const char *what;
	uint32_t code[WORDS];
	uint64_t entry; /* 0: ENTRY */
	unsigned pair;  /* the word that the pair begins with */
	unsigned last;  /* or the only one that changes, 0: there is a pair */
};

static bool read_program(const struct program *p, struct start_code *code)
{
	const uint64_t entry = p->entry ? p->entry : ENTRY, argc = ARGC, function = MAIN_ADDRESS;
	const struct start_arguments a = { .entry = entry, .sp = STACK, .argc = ARGC, .argv = STACK + 8 };
	int mem = memfd_create("program", MFD_CLOEXEC);

	assert_int_equal(ftruncate(mem, STACK + 0x1000), 0);
	assert_int_equal(pwrite(mem, p->code, sizeof p->code, (off_t)entry), sizeof p->code);
	assert_int_equal(pwrite(mem, &argc, sizeof argc, STACK), sizeof argc);
	assert_int_equal(pwrite(mem, &function, sizeof function, TABLE), sizeof function);
	bool found = start_code_read(code, mem, &a);
	close(mem);
	return found;
}

static const int64_t ways_of_pair[] = { -0x3ffe77, -4, 4, 0x1234, 0x1234567, 0x7ffff000, 0xfffff000 };
static const int64_t ways_of_one[] = { -0xf8000, -0x1004, -4, 4, 0x1234, 0xfe000 };

/* What it becomes is start code of the other function. */
static void check_exchange(const struct program *p, const struct start_code *code, int64_t way)
{
	const unsigned at = p->last ? p->last : p->pair;
	struct program moved = *p;
	uint8_t bytes[START_CODE_BYTES];
	struct start_code again;

	assert_true(start_code_for(code, MAIN_ADDRESS + (uint64_t)way, bytes));
	memcpy(moved.code + at, bytes, code->length);
	assert_true(read_program(&moved, &again));
	assert_int_equal(again.main_address, MAIN_ADDRESS + (uint64_t)way);
}

static void check(const struct program *p)
{
	const unsigned at = p->last ? p->last : p->pair;
	const int64_t *ways = p->last ? ways_of_one : ways_of_pair;
	const unsigned count = p->last ? sizeof ways_of_one / sizeof *ways : sizeof ways_of_pair / sizeof *ways;
	const uint64_t far = p->last ? 0x110000 : 0x100000000;
	uint8_t bytes[START_CODE_BYTES];
	struct start_code code;

	if (!read_program(p, &code))
		fail_msg("%s", p->what);
	assert_int_equal(code.main_address, MAIN_ADDRESS);
	assert_int_equal(code.place, (p->entry ? p->entry : ENTRY) + 4 * at);
	assert_int_equal(code.length, p->last ? 4 : 8);
	assert_memory_equal(code.bytes, p->code + at, code.length);
	for (unsigned i = 0; i < count; i++)
		check_exchange(p, &code, ways[i]);
	assert_false(start_code_for(&code, MAIN_ADDRESS + far, bytes));
	assert_false(start_code_for(&code, MAIN_ADDRESS - far - 0x1000, bytes));
}

static void test_start_code_read_finds_main(void **state)
{
	(void)state;
	static const struct program programs[] = {
		{ .what = "glibc 2.36", /* mov x5, x0 before the arguments, mov x6, sp and two zeros behind them */
		  .code = { 0xd503201fu, NO_CALLERS, 0xaa0003e5u, ARGUMENTS, 0x910003e6u, MAIN_PAGE, MAIN_REST,
		            0xd2800003u, 0xd2800004u, CALL },
		  .pair = 7 },
		{ .what = "glibc with a landing pad",
		  .code = { BTI_C, NO_CALLERS, ARGUMENTS, MAIN_PAGE, MAIN_REST, CALL },
		  .pair = 5 },
		{ .what = "a function that main is handed to by a jump", /* mov x0, sp; and sp, x0, #-16; b +8; ldr w1,
		                                                           [x0]; add x2, x0, #8 */
		  .code = { NO_CALLERS, 0x910003e0u, 0x927cec1fu, 0x14000002u, 0, 0xb9400001u, 0x91002002u, MAIN_PAGE,
		            MAIN_REST, 0x14000000u },
		  .pair = 8 },
	};
	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++)
		check(&programs[i]);
}

/* The last instruction that makes the address may be anywhere behind the first one, and reaches less far. */
static void test_start_code_read_finds_main_that_is_apart(void **state)
{
	(void)state;
	static const struct program programs[] = {
		{ .what = "musl 1.2.3", /* mov x0, sp; adrp x1, .; add x1, x1, #0; and sp, x0, #-16; b +4; mov x2, x0;
		                           two pages, the one of main's word, loads of all; ldr x1, [x2], #8; b */
		  .code = { NO_CALLERS, 0x910003e0u, 0x90000001u, 0x91000021u, 0x927cec1fu, 0x14000001u, 0xaa0003e2u,
		            0xf00000e4u, 0xf00000e3u, 0xd00000e0u, 0xf947e884u, 0xd2800005u, 0xf947d463u, 0xf947c000u,
		            0xf8408441u, 0x140000dfu },
		  .last = 14 },
		{ .what = "the rest elsewhere", .code = { MAIN_PAGE, ARGUMENTS, MAIN_REST, CALL }, .last = 3 },
		{ .what = "made by one, as lld does",
		  .code = { NO_CALLERS, 0xaa0003e5u, ARGUMENTS, 0x910003e6u, 0xd503201fu, 0x100000a0u, CALL },
		  .entry = MAIN_ADDRESS - 0x14 - 7 * 4,
		  .last = 7 },
		{ .what = "a pair with the page in another register",
		  .code = { ARGUMENTS, 0x90000003u, 0x9116d060u, CALL },
		  .last = 3 },
	};

	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++)
		check(&programs[i]);
}

static void test_start_code_read_claims_nothing_else(void **state)
{
	(void)state;
	static const struct program programs[] = {
		{ .what = "no main", .code = { NO_CALLERS, ARGUMENTS, CALL } },
		{ .what = "main from another register",
		  .code = { ARGUMENTS, 0x90000003u, 0x9116d063u, 0xaa0303e0u, CALL } },
		{ .what = "main that is changed", .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, 0x91000400u, CALL } },
		{ .what = "main from a word that cannot be read",
		  .code = { ARGUMENTS, 0xb0ffff80u, 0xf947ec00u, CALL },
		  .entry = 0x1000 },
		{ .what = "four bytes of main from the GOT", .code = { ARGUMENTS, 0xd00000e0u, 0xb94f8000u, CALL } },
		{ .what = "main that another register was loaded with",
		  .code = { ARGUMENTS, 0xd00000e3u, 0xf947c063u, 0xaa0303e0u, CALL } },
		{ .what = "a load that moves another register on", /* ldr x0, [x3], #8 */
		  .code = { ARGUMENTS, 0xd00000e3u, 0xf8408460u, CALL } },
		{ .what = "only the page", .code = { ARGUMENTS, MAIN_PAGE, CALL } },
		{ .what = "no argv", .code = { 0xf94003e1u, 0xd2800002u, MAIN_PAGE, MAIN_REST, CALL } },
		{ .what = "an argc of its own", .code = { 0xd2800081u, 0x910023e2u, MAIN_PAGE, MAIN_REST, CALL } },
		{ .what = "a condition", .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, 0xb4000040u, CALL } },
		{ .what = "a system call", .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, 0xd4000001u, CALL } },
		{ .what = "a store", .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, 0xf90003e0u, CALL } },
		{ .what = "a pair that moves the stack pointer",
		  .code = { 0xa9bf7bfdu, ARGUMENTS, MAIN_PAGE, MAIN_REST, CALL } },
		{ .what = "a return", .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, 0xd65f03c0u } },
		{ .what = "no end", .code = { 0x14000000u } },
		{ .what = "a branch into nowhere", .code = { 0x15000000u } },
		{ .what = "no instruction", .code = { 0x00000000u } },
		{ .what = "a pair across two pages",
		  .code = { ARGUMENTS, MAIN_PAGE, MAIN_REST, CALL },
		  .entry = 0x402000 - 3 * 4 },
	};
	struct start_code code;

	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++)
		if (read_program(&programs[i], &code))
			fail_msg("%s", programs[i].what);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_code_read_finds_main),
		cmocka_unit_test(test_start_code_read_finds_main_that_is_apart),
		cmocka_unit_test(test_start_code_read_claims_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
