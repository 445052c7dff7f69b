/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>
#include <sys/mman.h>

#include "arch/entry_code.h"
#include "arch/instruction.h"

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
	/* nop; mov 0x201(%rip),%rax; ret */
	struct entry_code_function f = FUNCTION(0x90, 0x48, 0x8b, 0x05, 1, 2, 0, 0, 0xc3);
	struct entry_code_plan p = plan(&f);

	(void)state;
	assert_int_equal(p.kind, ENTRY_ONE);
	assert_int_equal(p.write_at, AT + 1);
	assert_int_equal(p.repeated_bytes, 1);
	assert_int_equal(p.write_bytes, 5);
	assert_int_equal(p.displaced_bytes, 7);
	assert_int_equal(p.island, 0);
	assert_false(p.crosses_word);
	f.address = AT + 3;
	assert_true(plan(&f).crosses_word && !plan(&f).crosses_line);
	f.address = AT + 58;
	assert_false(plan(&f).crosses_line);
	f.address = AT + 59;
	assert_true(plan(&f).crosses_line);
}

static void test_plan_jumps_to_padding_behind(void **state)
{
	/* nop; mov %rdi,%rax; add; ret */
	struct entry_code_function f = FUNCTION(0x90, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3);

	(void)state;
	f.after = nops;
	f.after_bytes = sizeof nops;
	struct entry_code_plan p = plan(&f);
	assert_int_equal(p.kind, ENTRY_ONE);
	assert_int_equal(p.write_bytes, 2);
	assert_int_equal(p.displaced_bytes, 3);
	assert_int_equal(p.island, AT + 8);

	/* Padding ends where the next function may begin, at a multiple of 16. */
	f.address = AT + 4;
	p = plan(&f);
	assert_int_equal(p.kind, ENTRY_SEVERAL);
	assert_int_equal(p.island, 0);

	/* Taken by another entry. */
	const struct entry_code_range taken = { AT + 8, AT + 13 };
	f.address = AT;
	f.taken = &taken;
	f.taken_count = 1;
	assert_int_equal(plan(&f).island, 0);
}

static void test_plan_needs_padding_that_nobody_passes(void **state)
{
	static const uint8_t falls_through[] = { 0x90, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xe8, 0, 1, 0, 0 };
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
	struct entry_code_function f = FUNCTION(0x90, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3);

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

/* Behind the function and before it, a pointer may lead to the last nop. */
static void test_plan_leaves_what_pointers_may_lead_to(void **state)
{
	static const uint8_t one_nop[] = { 0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
	static const uint8_t several[] = { 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x1f, 0x40, 0 };
	static const uint8_t traps[] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
	struct entry_code_function f = FUNCTION(0x90, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0xc3);

	(void)state;
	f.after = nops;
	f.after_bytes = 7;
	assert_int_equal(plan(&f).island, AT + 8);
	f.aliased = true;
	assert_int_equal(plan(&f).island, 0);
	f.after_bytes = 8; /* another of one byte is the last */
	assert_int_equal(plan(&f).island, AT + 8);
	f.after = NULL;
	f.before = one_nop;
	f.before_bytes = sizeof one_nop;
	assert_int_equal(plan(&f).island, 0);
	f.before = several;
	f.before_bytes = sizeof several;
	assert_int_equal(plan(&f).island, AT - 9);
	f.before = traps;
	f.before_bytes = sizeof traps;
	assert_int_equal(plan(&f).island, 0);
	f.aliased = false;
	assert_true(plan(&f).island);
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
	assert_int_equal(p.write_at, AT + 1);
	assert_int_equal(p.displaced_count, 2);
	assert_int_equal(p.displaced_bytes, 5);
}

static void test_plan_puts_a_jump_over_a_jump(void **state)
{
	struct entry_code_function f = FUNCTION(0xe9, 0, 1, 0, 0);
	struct entry_code_plan p = plan(&f);

	(void)state;
	assert_int_equal(p.write_at, AT);
	assert_int_equal(p.displaced_bytes, 5);
	/* A short one has no room for ours, which does not begin as it does. */
	f.code = (const uint8_t[]){ 0xeb, 3, 0x90, 0x90, 0x90 };
	assert_refused(&f, "twice");
}

/* ---- the first instruction ---- */

struct first {
	uint8_t code[8];
	bool repeatable;
	uint8_t number;
	int8_t distance;
};

static void test_first_instruction_is_run_twice(void **state)
{
	static const struct first firsts[] = {
		{ { 0x41, 0x54 }, true, 4, 8 },                       /* push %r12 */
		{ { 0x48, 0x83, 0xec, 0x18 }, true, 4, 24 },          /* sub $24, %rsp */
		{ { 0x48, 0x85, 0xff }, true, 0, 0 },                 /* test %rdi, %rdi */
		{ { 0x80, 0x3d, 1, 2, 0, 0, 0 }, true, 0, 0 },        /* cmpb $0, 0x201(%rip) */
		{ { 0x48, 0x89, 0xf8 }, true, 0, 0 },                 /* mov %rdi, %rax */
		{ { 0x48, 0x8b, 0x05, 1, 2, 0, 0 }, true, 0, 0 },     /* mov 0x201(%rip), %rax */
		{ { 0x4c, 0x8d, 0x54, 0x24, 8 }, true, 0, 0 },        /* lea 8(%rsp), %r10 */
		{ { 0x31, 0xc0 }, true, 0, 0 },                       /* xor %eax, %eax */
		{ { 0x0f, 0x1f, 0x44, 0, 0 }, true, 0, 0 },           /* nop */
		{ { 0x66, 0x50 }, false, 0, 0 },                      /* push %ax */
		{ { 0x48, 0x81, 0xec, 0x80, 0, 0, 0 }, false, 0, 0 }, /* sub $128, %rsp */
		{ { 0x48, 0x83, 0xec, 0x80 }, false, 0, 0 },          /* sub $-128, %rsp */
		{ { 0x48, 0x8b, 0x7f, 8 }, false, 0, 0 },             /* mov 8(%rdi), %rdi: it reads what it changes */
		{ { 0x48, 0x89, 0xfb }, false, 0, 0 },                /* mov %rdi, %rbx: not its own to change */
		{ { 0x48, 0x89, 0x7c, 0x24, 0xf8 }, false, 0, 0 },    /* mov %rdi, -8(%rsp) */
		{ { 0x31, 0xf8 }, false, 0, 0 },                      /* xor %edi, %eax */
		{ { 0x5d }, false, 0, 0 },                            /* pop %rbp */
		{ { 0xe9, 0, 1, 0, 0 }, false, 0, 0 },                /* jmp */
		{ { 0xc3 }, false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
		struct instruction in;

		assert_true(instruction_read(&in, firsts[i].code, sizeof firsts[i].code, AT));
		if (in.repeatable != firsts[i].repeatable ||
		    (in.repeatable && (in.undo.number != firsts[i].number || in.undo.distance != firsts[i].distance)))
			fail_msg("instruction %zu: %d, %u, %d", i, in.repeatable, in.undo.number, in.undo.distance);
	}
}

static void test_plan_refuses(void **state)
{
	const struct entry_code_function none = { .address = AT };
	const struct entry_code_function calls = FUNCTION(0x53, 0xe8, 0, 1, 0, 0, 0x5b, 0xc3);
	const struct entry_code_function loops = FUNCTION(0x53, 0xe2, 3, 0x90, 0x90, 0x90, 0x5b, 0xc3);
	const struct entry_code_function inside = FUNCTION(0x53, 0x90, 0x48, 0x89, 0xf8, 0x5b, 0x74, 0xfa, 0xc3);
	const struct entry_code_function back = FUNCTION(0x48, 0x8d, 0x47, 1, 0x31, 0xc0, 0x75, 0xf8, 0xc3);
	const struct entry_code_function small = FUNCTION(0x31, 0xc0, 0xc3);
	const struct entry_code_function once = FUNCTION(0x5d, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x5d, 0xc3);
	const struct entry_code_function odd = FUNCTION(0x90, 0x48, 0x8b, 0x05, 1, 2, 0, 0, 0x06, 0xc3);
	struct entry_code_function entered = FUNCTION(0x53, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0x5b, 0xc3);

	(void)state;
	assert_refused(&none, "ends");
	assert_refused(&calls, "a call");
	assert_refused(&loops, "cannot be widened");
	assert_refused(&inside, "jumps into its first");
	assert_refused(&back, "back to its own entry");
	assert_refused(&small, "shorter than a jump");
	assert_refused(&once, "run twice");
	assert_refused(&odd, "decoded");
	assert_int_equal(plan(&entered).displaced_bytes, 6);
	entered.entered = AT + 4;
	assert_refused(&entered, "other code jumps into");
	entered.entered = AT + 7;
	assert_int_equal(plan(&entered).displaced_bytes, 6);
}

/* ---- copies ---- */

static struct entry_code_plan displaces(const struct entry_code_function *f, uint8_t at, uint8_t bytes)
{
	struct entry_code_plan p = { .write_at = AT + at, .displaced_bytes = bytes, .code_bytes = at + bytes };

	memcpy(p.code, f->code, p.code_bytes);
	return p;
}

static void test_copy_refers_to_the_same(void **state)
{
	/* lea 0x100(%rip),%rax; jmp over two bytes: widened. */
	struct entry_code_function f = FUNCTION(0x31, 0xc0, 0xeb, 2, 0x90, 0x90, 0x48, 0x8d, 0x05, 0, 1, 0, 0, 0xc3);
	struct entry_code_plan p = displaces(&f, 6, 7);
	struct entry_code_copy copy;
	struct instruction in;
	struct err e;

	(void)state;
	assert_int_equal(entry_code_copy_make(&copy, &p, NEAR, &e), 0);
	assert_true(instruction_read(&in, copy.code, copy.bytes, NEAR));
	assert_true(in.loads_address && in.memory == AT + 13 + 0x100);
	assert_true(instruction_read(&in, copy.code + in.bytes, copy.bytes - in.bytes, NEAR + in.bytes));
	assert_true(in.flow == FLOW_JUMP && in.target == AT + 13);

	p = displaces(&f, 0, 4);
	assert_int_equal(entry_code_copy_make(&copy, &p, NEAR, &e), 0);
	assert_int_equal(copy.bytes, 2 + 5); /* no way leads behind the jump */
	assert_true(instruction_read(&in, copy.code + 2, 5, NEAR + 2));
	assert_int_equal(in.target, AT + 6);
}

static void test_copy_must_be_near(void **state)
{
	struct entry_code_function f = FUNCTION(0x90, 0x48, 0x8b, 0x05, 1, 2, 0, 0, 0xc3);
	struct entry_code_plan p = plan(&f);
	struct entry_code_patch patch;
	struct entry_code_copy copy;
	struct err e;

	(void)state;
	assert_int_equal(entry_code_copy_make(&copy, &p, AT + (3ull << 30), &e), -ERANGE);
	assert_int_equal(entry_code_patch_make(&patch, &p, AT + (3ull << 30), &e), -ERANGE);
	assert_int_equal(entry_code_patch_make(&patch, &p, AT - (1ull << 30), &e), 0);
}

/* ---- run for real ---- */

#define COPY_OFFSET 2048u
#define ELSEWHERE 1024u
typedef int (*run_fn)(int);

/* As the kernel does at a uprobe: what the file has at the entry is run elsewhere, and the function goes on behind it.
 */
static run_fn first_elsewhere(uint8_t *page, const uint8_t *code, size_t bytes)
{
	uint8_t *at = page + ELSEWHERE;
	struct instruction in;
	run_fn run;

	assert_true(instruction_read(&in, code, bytes, (uint64_t)(uintptr_t)page));
	assert_false(in.distance_bytes);
	memcpy(at, code, in.bytes);
	entry_code_far_jump(at + in.bytes, (uint64_t)(uintptr_t)(page + in.bytes));
	memcpy(&run, &at, sizeof run);
	return run;
}

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
	uint8_t undo[ENTRY_UNDO_BYTES];

	entry_code_undo(undo, &p.undo);
	assert_int_equal(entry_code_patch_make(&patch, &p, at + COPY_OFFSET, &e), 0);
	assert_int_equal(entry_code_copy_make(&copy, &p, at + COPY_OFFSET + sizeof undo, &e), 0);
	memcpy(page + COPY_OFFSET, undo, sizeof undo);
	memcpy(page + COPY_OFFSET + sizeof undo, copy.code, copy.bytes);
	memcpy(page + (p.write_at - at), patch.jump, p.write_bytes);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(run(arguments[i]), results[i]);
	assert_int_equal(*page, *code);
	run = first_elsewhere(page, code, bytes);
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
	/* xor %eax,%eax; add 1f(%rip),%eax; add %edi,%eax; ret; 1: .long 40 */
	static const uint8_t data[] = { 0x31, 0xc0, 0x03, 0x05, 3, 0, 0, 0, 0x01, 0xf8, 0xc3, 40, 0, 0, 0 };
	/* nop; cmpl $2,1f(%rip), which has an immediate behind the distance; sete %al; movzbl %al,%eax; ret; 1: .long 2
	 */
	static const uint8_t immediate[] = { 0x90, 0x83, 0x3d, 7,    0,    0, 0, 2, 0x0f, 0x94,
		                             0xc0, 0x0f, 0xb6, 0xc0, 0xc3, 2, 0, 0, 0 };
	/* push %rbx; mov %edi,%ebx; mov %ebx,%eax; add $5,%eax; pop %rbx; ret */
	static const uint8_t push[] = { 0x53, 0x89, 0xfb, 0x89, 0xd8, 0x83, 0xc0, 5, 0x5b, 0xc3 };
	/* add $15,%rdi; mov %edi,%eax; and $-1,%eax; ret */
	static const uint8_t round[] = { 0x48, 0x83, 0xc7, 15, 0x89, 0xf8, 0x83, 0xe0, 0xff, 0xc3 };
	/* sub $24,%rsp; mov %edi,(%rsp); mov (%rsp),%eax; add $24,%rsp; ret */
	static const uint8_t lower[] = { 0x48, 0x83, 0xec, 24,   0x89, 0x3c, 0x24, 0x8b,
		                         0x04, 0x24, 0x48, 0x83, 0xc4, 24,   0xc3 };
	static const int arguments[] = { 0, 1, 8, -3 };

	(void)state;
	run_displaced(condition, sizeof condition, arguments, (const int[]){ 2, 1, 1, 1 }, 4);
	run_displaced(wide, sizeof wide, arguments, (const int[]){ 1, 1, 2, 1 }, 4);
	run_displaced(data, sizeof data, arguments, (const int[]){ 40, 41, 48, 37 }, 4);
	run_displaced(immediate, sizeof immediate, arguments, (const int[]){ 1, 1, 1, 1 }, 4);
	run_displaced(push, sizeof push, arguments, (const int[]){ 5, 6, 13, 2 }, 4);
	run_displaced(round, sizeof round, arguments, (const int[]){ 15, 16, 23, 12 }, 4);
	run_displaced(lower, sizeof lower, arguments, (const int[]){ 0, 1, 8, -3 }, 4);
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
		cmocka_unit_test(test_plan_leaves_what_pointers_may_lead_to),
		cmocka_unit_test(test_plan_keeps_endbr64),
		cmocka_unit_test(test_plan_displaces_several),
		cmocka_unit_test(test_plan_puts_a_jump_over_a_jump),
		cmocka_unit_test(test_plan_refuses),
		cmocka_unit_test(test_first_instruction_is_run_twice),
		cmocka_unit_test(test_copy_refers_to_the_same),
		cmocka_unit_test(test_copy_must_be_near),
		cmocka_unit_test(test_displaced_code_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
