/* SPDX-License-Identifier: MIT */
/* How start code is read: that of C libraries, and what must not be taken for it. A file stands in for the memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/start_code.h"

#define ENTRY 0x401760u
#define STACK 0x800000u
#define ARGC 3u

#define TO_ARGUMENTS /* xor ebp; mov rdx, r9; pop rsi; mov rsp, rdx; and -16, rsp; push rax, rsp */                    \
	0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54
#define ARGUMENTS_BYTES 15

/* As in musl's rcrt1.o. xor rbp; mov rdi, rsp; and rsp, -16; call +0; mov r8, rdi; xor eax */
#define TO_LOOP                                                                                                        \
	0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 0, 0, 0, 0, 0x49, 0x89, 0xf8, 0x31, 0xc0
#define LOOP_AT 20
#define LOOP /* inc rax; cmp [r8 + 8 * rax], 0; jne */ 0x48, 0xff, 0xc0, 0x49, 0x83, 0x3c, 0xc0, 0x00, 0x75, 0xf6
#define TO_FUNCTION /* lea rax, [rip + 5]; mov rsi, r8; jmp rax */                                                     \
	0x48, 0x8d, 0x05, 5, 0, 0, 0, 0x4c, 0x89, 0xc6, 0xff, 0xe0
#define WITH_MAIN /* lea rdx, [rsi + 8]; mov esi, [rsi]; lea rdi, [rip - 0x100]; jmp */                                \
	0x48, 0x8d, 0x56, 0x08, 0x8b, 0x36, 0x48, 0x8d, 0x3d, 0x00, 0xff, 0xff, 0xff, 0xe9, 1, 2, 3, 4

struct program {
	const char *what;
	uint8_t code[80];
	uint64_t entry;      /* 0: ENTRY */
	uint64_t operand_at; /* behind the entry, 0: it is no start code */
	uint64_t main_address;
};

static bool read_program(const struct program *p, struct start_code *code)
{
	const uint64_t entry = p->entry ? p->entry : ENTRY;
	const struct start_arguments a = { .entry = entry, .sp = STACK, .argc = ARGC, .argv = STACK + 8 };
	const uint64_t argc = ARGC;
	int mem = memfd_create("program", MFD_CLOEXEC);

	assert_int_equal(ftruncate(mem, STACK + 0x1000), 0);
	assert_int_equal(pwrite(mem, p->code, sizeof p->code, (off_t)entry), sizeof p->code);
	assert_int_equal(pwrite(mem, &argc, sizeof argc, STACK), sizeof argc);
	bool found = start_code_read(code, mem, &a);
	close(mem);
	return found;
}

static void test_start_code_read_finds_main(void **state)
{
	(void)state;
	static const struct program programs[] = {
		{ .what = "glibc, a fixed address",
		  .code = { TO_ARGUMENTS, 0x45, 0x31, 0xc0, 0x31, 0xc9, 0x48, 0xc7, 0xc7, 0x80, 0x15, 0x40, 0x00, 0x67,
		            0xe8, 0x9f, 0x15, 0x00, 0x00 },
		  .operand_at = ARGUMENTS_BYTES + 8,
		  .main_address = 0x401580 },
		{ .what = "glibc, any address, endbr64, the call through the GOT",
		  .code = { 0xf3, 0x0f, 0x1e, 0xfa, TO_ARGUMENTS, 0x48, 0x8d, 0x3d, 0x00, 0xff, 0xff, 0xff, 0xff, 0x15,
		            1, 2, 3, 4 },
		  .operand_at = ARGUMENTS_BYTES + 7,
		  .main_address = ENTRY + ARGUMENTS_BYTES + 11 - 0x100 },
		{ .what = "musl: a call to a function that ends with a jump",
		  .code = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 0xc0, 0xed, 0xbf, 0xff, 0x48, 0x83,
		            0xe4, 0xf0, 0xe8, 0x02, 0x00, 0x00, 0x00, 0xcc, 0xcc, 0x8b, 0x37, 0x48, 0x8d, 0x57, 0x08,
		            0x45, 0x31, 0xc9, 0xbf, 0x50, 0x10, 0x40, 0x00, 0xe9, 0xad, 0x07, 0x00, 0x00 },
		  .operand_at = 34,
		  .main_address = 0x401050 },
		{ .what = "musl, any address: a loop, then a function by its address",
		  .code = { TO_LOOP, LOOP, TO_FUNCTION, WITH_MAIN },
		  .operand_at = LOOP_AT + 10 + 12 + 9,
		  .main_address = ENTRY + LOOP_AT + 10 + 12 + 13 - 0x100 },
	};
	struct start_code code;
	uint8_t bytes[START_CODE_BYTES];
	uint32_t operand, moved;

	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		const struct program *p = &programs[i];
		if (!read_program(p, &code))
			fail_msg("%s", p->what);
		assert_int_equal(code.main_address, p->main_address);
		assert_int_equal(code.place, ENTRY + p->operand_at);
		assert_int_equal(code.length, sizeof operand);
		assert_memory_equal(code.bytes, p->code + p->operand_at, sizeof operand);
		assert_true(start_code_for(&code, code.main_address + 0x1234, bytes));
		memcpy(&operand, code.bytes, sizeof operand);
		memcpy(&moved, bytes, sizeof moved);
		assert_int_equal(moved, operand + 0x1234);
		assert_false(start_code_for(&code, code.main_address + 0x100000000, bytes));
	}
}

static void test_start_code_read_claims_nothing_else(void **state)
{
	(void)state;
	static const struct program programs[] = {
		{ .what = "no main", .code = { TO_ARGUMENTS, 0xe8, 0x00, 0x00, 0x00, 0x00, 0xf4 } },
		{ .what = "main from a register",
		  .code = { TO_ARGUMENTS, 0xb8, 0x50, 0x10, 0x40, 0x00, 0x48, 0x89, 0xc7, 0xff, 0xd0 } },
		{ .what = "main that is changed",
		  .code = { TO_ARGUMENTS, 0xbf, 0x50, 0x10, 0x40, 0x00, 0x83, 0xc7, 0x01, 0xff, 0xd0 } },
		{ .what = "no argv", .code = { 0x5e, 0x31, 0xd2, 0xbf, 0x50, 0x10, 0x40, 0x00, 0xff, 0xd0 } },
		{ .what = "an argc of its own",
		  .code = { 0x5e, 0x48, 0x89, 0xe2, 0xbe, 0x04, 0, 0, 0, 0xbf, 0x50, 0x10, 0x40, 0, 0xff, 0xd0 } },
		{ .what = "what it has written itself",
		  .code = { 0x50, 0x5e, 0x48, 0x89, 0xe2, 0xbf, 0x50, 0x10, 0x40, 0, 0xff, 0xd0 } },
		{ .what = "a condition",
		  .code = { TO_ARGUMENTS, 0xbf, 0x50, 0x10, 0x40, 0x00, 0x74, 0x00, 0xff, 0xd0 } },
		{ .what = "a system call",
		  .code = { TO_ARGUMENTS, 0xbf, 0x50, 0x10, 0x40, 0x00, 0x0f, 0x05, 0xff, 0xd0 } },
		{ .what = "a write",
		  .code = { TO_ARGUMENTS, 0xbf, 0x50, 0x10, 0x40, 0x00, 0x89, 0x3c, 0x24, 0xff, 0xd0 } },
		{ .what = "arguments that the loop changes",
		  .code = { TO_LOOP, 0x49, 0xff, 0xc0, 0x49, 0x83, 0x3c, 0xc0, 0x00, 0x75, 0xf6, TO_FUNCTION,
		            WITH_MAIN } },
		{ .what = "a function that only one way has the address of",
		  .code = { TO_LOOP, 0xa8, 0x01, 0x75, 0x0a, 0x48, 0x8d, 0x05, 5, 0, 0, 0, 0x4c, 0x89, 0xc6, 0xff, 0xe0,
		            WITH_MAIN } },
		{ .what = "a jump out of the loop", .code = { TO_LOOP, 0x75, 0x20, LOOP, TO_FUNCTION, WITH_MAIN } },
		{ .what = "a jump back to before it",
		  .code = { TO_LOOP, 0xa8, 0x01, 0x75, 0xf0, TO_FUNCTION, WITH_MAIN } },
		{ .what = "a call behind the loop",
		  .code = { TO_LOOP, LOOP, 0xe8, 1, 2, 3, 4, TO_FUNCTION, WITH_MAIN } },
		{ .what = "main from before the loop",
		  .code = { TO_LOOP, 0x48, 0x8d, 0x3d, 0x00, 0xff, 0xff, 0xff, LOOP, 0x49, 0x8d, 0x50, 0x08, 0x41, 0x8b,
		            0x30, 0xff, 0xd0 } },
		{ .what = "a second loop, behind the jump",
		  .code = { TO_LOOP, LOOP, TO_FUNCTION, 0x74, 0x00, WITH_MAIN } },
		{ .what = "no end", .code = { 0xeb, 0xfe } },
		{ .what = "a branch into nowhere", .code = { 0xe9, 0x00, 0x00, 0x00, 0x7f } },
		{ .what = "no instruction", .code = { 0x06 } },
		{ .what = "an address across two pages",
		  .code = { TO_ARGUMENTS, 0xbf, 0x50, 0x10, 0x40, 0x00, 0xff, 0xd0 },
		  .entry = 0x402000 - ARGUMENTS_BYTES - 3 },
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
		cmocka_unit_test(test_start_code_read_claims_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
