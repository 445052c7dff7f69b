/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>
#include <sys/mman.h>

#include "entry_code.h"
#include "instruction.h"

#define AT 0x7f0000001000ull
#define NEAR (AT + 0x10000)

/* A function of these bytes at AT. */
#define FUNCTION(...)                                                                                                  \
	{                                                                                                              \
		.address = AT, .code = (const uint8_t[]){ __VA_ARGS__ }, .bytes = sizeof(uint8_t[])                    \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}

static const uint8_t nops[] = { 0x0f, 0x1f, 0x80, 0, 0, 0, 0, 0x90, 0x90 }; /* of 7, 1 and 1 bytes */

static struct entry_code_plan plan(const struct entry_code_function *f)
{
	struct entry_code_plan p;
	struct err e;

	if (entry_code_plan_make(&p, f, &e))
		fail_msg("%s", e.text);
	return p;
}

static void assert_refused(const struct entry_code_function *f, const char *why)
{
	struct entry_code_plan p;
	struct err e;

	assert_int_equal(entry_code_plan_make(&p, f, &e), -ENOTSUP);
	if (!strstr(e.text, why))
		fail_msg("refused for another reason: %s", e.text);
}

/* ---- plans ---- */

static void test_plan_takes_one_long_instruction(void **state)
{
	struct entry_code_function f = FUNCTION(0x48, 0x8b, 0x05, 1, 2, 0, 0, 0xc3); /* mov 0x201(%rip),%rax; ret */
	struct entry_code_plan p = plan(&f);

	(void)state;
	assert_int_equal(p.kind, ENTRY_ONE);
	assert_int_equal(p.write_at, AT);
	assert_int_equal(p.write_bytes, 5);
	assert_int_equal(p.displaced_bytes, 7);
	assert_int_equal(p.island, 0);
	assert_false(p.crosses_word);
	f.address = AT + 4;
	assert_true(plan(&f).crosses_word && !plan(&f).crosses_line);
	f.address = AT + 59;
	assert_false(plan(&f).crosses_line);
	f.address = AT + 60;
	assert_true(plan(&f).crosses_line);
}

static void test_plan_jumps_to_padding_behind(void **state)
{
	struct entry_code_function f = FUNCTION(0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3); /* mov %rdi,%rax; add; ret */

	(void)state;
	f.after = nops;
	f.after_bytes = sizeof nops;
	struct entry_code_plan p = plan(&f);
	assert_int_equal(p.kind, ENTRY_ONE);
	assert_int_equal(p.write_bytes, 2);
	assert_int_equal(p.displaced_bytes, 3);
	assert_int_equal(p.island, AT + 7);

	/* Padding ends where the next function may begin, at a multiple of 16. */
	f.address = AT + 5;
	p = plan(&f);
	assert_int_equal(p.kind, ENTRY_SEVERAL);
	assert_int_equal(p.island, 0);

	/* Taken by another entry. */
	const struct entry_code_range taken = { AT + 7, AT + 12 };
	f.address = AT;
	f.taken = &taken;
	f.taken_count = 1;
	assert_int_equal(plan(&f).island, 0);
}

static void test_plan_needs_padding_that_nobody_passes(void **state)
{
	static const uint8_t falls_through[] = { 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xe8, 0, 1, 0, 0 };
	/* Behind a call that may return, and behind a jump into the padding. */
	struct entry_code_function f = { .address = AT, .code = falls_through, .bytes = sizeof falls_through };
	struct entry_code_function jumps = FUNCTION(0x48, 0x89, 0xf8, 0x74, 3, 0x48, 0x01, 0xf0, 0xc3);

	(void)state;
	f.after = jumps.after = nops;
	f.after_bytes = jumps.after_bytes = sizeof nops - 4;
	assert_int_equal(plan(&f).island, 0);
	jumps.after_bytes = 7;
	assert_true(plan(&jumps).island);
	jumps.code = (const uint8_t[]){ 0x48, 0x89, 0xf8, 0x74, 4, 0x48, 0x01, 0xf0, 0xc3 };
	assert_int_equal(plan(&jumps).island, 0);
}

static void test_plan_takes_padding_before(void **state)
{
	static const uint8_t after_return[] = { 0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
	static const uint8_t after_call[] = { 0xe8, 0, 1, 0, 0, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
	static const uint8_t jumped_to[] = { 0x74, 1, 0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
	struct entry_code_function f = FUNCTION(0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3);

	(void)state;
	f.before = after_return;
	f.before_bytes = sizeof after_return;
	struct entry_code_plan p = plan(&f);
	assert_int_equal(p.kind, ENTRY_ONE);
	assert_true(p.island >= AT - 7 && p.island + ENTRY_JUMP_BYTES <= AT);
	f.before = after_call;
	f.before_bytes = sizeof after_call;
	assert_int_equal(plan(&f).island, 0);
	f.before = jumped_to;
	f.before_bytes = sizeof jumped_to;
	assert_int_equal(plan(&f).island, 0);
}

static void test_plan_keeps_endbr64(void **state)
{
	struct entry_code_function f = FUNCTION(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 1, 2, 0, 0, 0xc3);
	struct entry_code_plan p = plan(&f);

	(void)state;
	assert_int_equal(p.write_at, AT + 4);
	assert_int_equal(p.displaced_bytes, 7);
	assert_true(p.crosses_word);
	/* Two bytes lie in one word: better where there is padding. */
	f.after = nops;
	f.after_bytes = 4;
	assert_true(plan(&f).crosses_word);
	f.code = (const uint8_t[]){ 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3 };
	f.bytes = 11;
	f.after = (const uint8_t[]){ 0x0f, 0x1f, 0x44, 0, 0 };
	f.after_bytes = 5;
	p = plan(&f);
	assert_int_equal(p.island, AT + 11);
	assert_false(p.crosses_word);
}

static void test_plan_displaces_several(void **state)
{
	struct entry_code_function f = FUNCTION(0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x5d, 0xc3);
	struct entry_code_plan p = plan(&f);

	(void)state;
	assert_int_equal(p.kind, ENTRY_SEVERAL);
	assert_int_equal(p.displaced_count, 3);
	assert_int_equal(p.displaced_bytes, 6);
}

static void test_plan_refuses(void **state)
{
	const struct entry_code_function none = { .address = AT };
	const struct entry_code_function calls = FUNCTION(0x53, 0xe8, 0, 1, 0, 0, 0x5b, 0xc3);
	const struct entry_code_function loops = FUNCTION(0x53, 0xe2, 3, 0x90, 0x90, 0x90, 0x5b, 0xc3);
	const struct entry_code_function inside = FUNCTION(0x53, 0x90, 0x48, 0x89, 0xf8, 0x5b, 0x74, 0xfa, 0xc3);
	const struct entry_code_function back = FUNCTION(0x48, 0x83, 0xc7, 1, 0x31, 0xc0, 0x75, 0xf8, 0xc3);
	const struct entry_code_function small = FUNCTION(0x31, 0xc0, 0xc3);
	const struct entry_code_function odd = FUNCTION(0x48, 0x8b, 0x05, 1, 2, 0, 0, 0x06, 0xc3);
	struct entry_code_function entered = FUNCTION(0x53, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0x5b, 0xc3);

	(void)state;
	assert_refused(&none, "ends");
	assert_refused(&calls, "a call");
	assert_refused(&loops, "cannot be widened");
	assert_refused(&inside, "jumps into its first");
	assert_refused(&back, "back to its own entry");
	assert_refused(&small, "shorter than a jump");
	assert_refused(&odd, "decoded");
	assert_int_equal(plan(&entered).displaced_bytes, 7);
	entered.entered = AT + 4;
	assert_refused(&entered, "other code jumps into");
	entered.entered = AT + 7;
	assert_int_equal(plan(&entered).displaced_bytes, 7);
}

/* ---- copies ---- */

static void test_copy_refers_to_the_same(void **state)
{
	/* lea 0x100(%rip),%rax; jmp over two bytes: widened. */
	struct entry_code_function f = FUNCTION(0x31, 0xc0, 0xeb, 2, 0x90, 0x90, 0x48, 0x8d, 0x05, 0, 1, 0, 0, 0xc3);
	struct entry_code_plan p = { .write_at = AT + 6, .displaced_bytes = 7, .displaced_count = 1 };
	struct entry_code_copy copy;
	struct instruction in;
	struct err e;

	(void)state;
	assert_int_equal(entry_code_copy_make(&copy, &f, &p, NEAR, &e), 0);
	assert_true(instruction_read(&in, copy.code, copy.bytes, NEAR));
	assert_true(in.loads_address && in.memory == AT + 13 + 0x100);
	assert_true(instruction_read(&in, copy.code + in.bytes, copy.bytes - in.bytes, NEAR + in.bytes));
	assert_true(in.flow == FLOW_JUMP && in.target == AT + 13);

	p = (struct entry_code_plan){ .write_at = AT, .displaced_bytes = 4, .displaced_count = 2 };
	assert_int_equal(entry_code_copy_make(&copy, &f, &p, NEAR, &e), 0);
	assert_int_equal(copy.bytes, 2 + 5); /* no way leads behind the jump */
	assert_int_equal(copy.from[1], 2);
	assert_int_equal(copy.to[1], 2);
	assert_true(instruction_read(&in, copy.code + 2, 5, NEAR + 2));
	assert_int_equal(in.target, AT + 6);
}

static void test_copy_must_be_near(void **state)
{
	struct entry_code_function f = FUNCTION(0x48, 0x8b, 0x05, 1, 2, 0, 0, 0xc3);
	struct entry_code_plan p = plan(&f);
	struct entry_code_patch patch;
	struct entry_code_copy copy;
	struct err e;

	(void)state;
	assert_int_equal(entry_code_copy_make(&copy, &f, &p, AT + (3ull << 30), &e), -ERANGE);
	assert_int_equal(entry_code_patch_make(&patch, &p, AT + (3ull << 30), &e), -ERANGE);
	assert_int_equal(entry_code_patch_make(&patch, &p, AT - (1ull << 30), &e), 0);
}

/* ---- run for real ---- */

#define COPY_OFFSET 2048u
typedef int (*run_fn)(int);

/* Puts the function into memory, jumps from its entry to the copy of what is displaced, and calls it. */
static void run_displaced(const uint8_t *code, size_t bytes, const int *arguments, const int *results, size_t count)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)page;
	struct entry_code_function f = { .address = at, .code = code, .bytes = bytes };
	struct entry_code_patch patch;
	struct entry_code_copy copy;
	struct err e;
	run_fn run;

	assert_ptr_not_equal(page, MAP_FAILED);
	memcpy(&run, &page, sizeof run);
	memcpy(page, code, bytes);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(run(arguments[i]), results[i]);
	struct entry_code_plan p = plan(&f);
	assert_int_equal(entry_code_patch_make(&patch, &p, at + COPY_OFFSET, &e), 0);
	assert_int_equal(entry_code_copy_make(&copy, &f, &p, at + COPY_OFFSET, &e), 0);
	memcpy(page + COPY_OFFSET, copy.code, copy.bytes);
	memcpy(page + (p.write_at - at), patch.jump, p.write_bytes);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(run(arguments[i]), results[i]);
	munmap(page, 4096);
}

static void test_displaced_code_runs(void **state)
{
	/* test %edi,%edi; je 1f; mov $1,%eax; ret; 1: mov $2,%eax; ret */
	static const uint8_t condition[] = { 0x85, 0xff, 0x74, 6, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3 };
	/* cmp $7,%edi; jg (in 6 bytes) 1f; mov $1,%eax; ret; 1: mov $2,%eax; ret */
	static const uint8_t wide[] = { 0x83, 0xff, 7, 0x0f, 0x8f, 6, 0, 0, 0, 0xb8, 1,
		                        0,    0,    0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3 };
	/* xor %eax,%eax; jmp 1f; nops; 1: lea 3(%rdi),%eax; ret */
	static const uint8_t jump[] = { 0x31, 0xc0, 0xeb, 3, 0x0f, 0x1f, 0, 0x8d, 0x47, 3, 0xc3 };
	/* mov 1f(%rip),%eax; add %edi,%eax; ret; 1: .long 40 */
	static const uint8_t data[] = { 0x8b, 0x05, 3, 0, 0, 0, 0x01, 0xf8, 0xc3, 40, 0, 0, 0 };
	/* cmpl $2,1f(%rip), which has an immediate behind the distance; sete %al; movzbl %al,%eax; ret; 1: .long 2 */
	static const uint8_t immediate[] = { 0x83, 0x3d, 7,    0,    0,    0, 2, 0x0f, 0x94,
		                             0xc0, 0x0f, 0xb6, 0xc0, 0xc3, 2, 0, 0,    0 };
	static const int arguments[] = { 0, 1, 8, -3 };

	(void)state;
	run_displaced(condition, sizeof condition, arguments, (const int[]){ 2, 1, 1, 1 }, 4);
	run_displaced(wide, sizeof wide, arguments, (const int[]){ 1, 1, 2, 1 }, 4);
	run_displaced(data, sizeof data, arguments, (const int[]){ 40, 41, 48, 37 }, 4);
	run_displaced(immediate, sizeof immediate, arguments, (const int[]){ 1, 1, 1, 1 }, 4);
	/* Its jump ends what can be displaced: 4 bytes. */
	const struct entry_code_function f = { .address = AT, .code = jump, .bytes = sizeof jump };
	assert_refused(&f, "shorter");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan_takes_one_long_instruction),
		cmocka_unit_test(test_plan_jumps_to_padding_behind),
		cmocka_unit_test(test_plan_needs_padding_that_nobody_passes),
		cmocka_unit_test(test_plan_takes_padding_before),
		cmocka_unit_test(test_plan_keeps_endbr64),
		cmocka_unit_test(test_plan_displaces_several),
		cmocka_unit_test(test_plan_refuses),
		cmocka_unit_test(test_copy_refers_to_the_same),
		cmocka_unit_test(test_copy_must_be_near),
		cmocka_unit_test(test_displaced_code_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
