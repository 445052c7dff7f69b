/* SPDX-License-Identifier: MIT */
/* What is read from code of aarch64: stubs of the PLT, references to GOT entries, rules, the ends of functions, frames
 * of compiled Java code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/code.h"
#include "arch/code_scan.h"
#include "arch/compiled_frame.h"
#include "arch/instruction.h"
#include "arch/rule_encode.h"
#include "unwind/switch_rows.h"

#define CODE 0x400000ull
#define GOT 0x41f000ull    /* its page: adrp of 31 pages */
#define ENTRY (GOT + 0x40) /* of malloc */

#define NOP 0xd503201fu
#define BTI_C 0xd503245fu
#define RET 0xd65f03c0u
#define ADRP(to) (0xf0000000u | 7u << 5 | (to)) /* 7 * 4 + 3 = 31 pages */
#define LDR(to, from, offset) (0xf9400000u | (offset) / 8 << 10 | (from) << 5 | (to))
#define ADD(to, from, number) (0x91000000u | (number) << 10 | (from) << 5 | (to))
#define BR_17 0xd61f0220u
#define BLR(n) (0xd63f0000u | (n) << 5)
#define BL(words) (0x94000000u | ((uint32_t)(words)&0x3ffffff))

static struct code_scan scan_words(const uint32_t *words, size_t count)
{
	static struct code_entry entries[1];
	struct code_scan scan = { .entries = entries, .entry_count = 1 };
	struct err e;

	entries[0] = (struct code_entry){ .address = ENTRY };
	assert_int_equal(code_scan_bytes(&scan, (const uint8_t *)words, count * sizeof *words, CODE, &e), 0);
	return scan;
}

#define SCAN(...) scan_words((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void assert_other(struct code_scan scan)
{
	assert_true(scan.entries[0].others > 0);
	assert_false(code_entry_call_only(&scan.entries[0]));
	free(scan.stubs);
}

static void test_scan_knows_stubs(void **state)
{
	uint32_t entry = 7;

	(void)state;
	struct code_scan scan = SCAN(NOP, BTI_C, ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), BR_17);
	assert_int_equal(scan.entries[0].jumps, 1);
	assert_true(code_entry_call_only(&scan.entries[0]));
	assert_true(code_scan_stub_entry(&scan, CODE + 4, &entry) && entry == 0);
	assert_true(code_scan_stub_entry(&scan, CODE + 8, &entry));
	assert_false(code_scan_stub_entry(&scan, CODE + 12, &entry));
	free(scan.stubs);
	/* Not one that nobody jumps through, nor one of another entry. */
	scan = SCAN(NOP, NOP);
	assert_false(code_entry_call_only(&scan.entries[0]));
	scan = SCAN(ADRP(16), LDR(17, 16, 0x48), ADD(16, 16, 0x48), BR_17);
	assert_int_equal(scan.entries[0].jumps + scan.entries[0].others, 0);
	free(scan.stubs);
}

static void test_scan_sees_what_may_copy_an_entry(void **state)
{
	(void)state;
	assert_other(SCAN(ADRP(0), LDR(0, 0, 0x40), RET));
	assert_other(SCAN(ADRP(0), NOP, LDR(8, 0, 0x40), BLR(8))); /* -fno-plt */
	assert_other(SCAN(ADRP(20), BL(100), LDR(0, 20, 0x40)));   /* kept over a call */
	assert_other(SCAN(ADRP(1), ADD(1, 1, 0x40), RET));         /* its address */
	assert_other(SCAN(ADRP(1), 0xa9440021u /* ldp x1, x0, [x1, #64] */));
	assert_other(SCAN(ADRP(1), 0xa943802au /* ldp x10, x0, [x1, #56] */));
	assert_other(SCAN(ADRP(1), 0x39410022u /* ldrb w2, [x1, #64] */));
	/* Beside a stub of its own. */
	assert_other(SCAN(ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), BR_17, ADRP(0), LDR(0, 0, 0x40)));
	/* A stub in another form is a load. */
	assert_other(SCAN(ADRP(16), LDR(17, 16, 0x40), NOP, BR_17));
	/* adr, and ldr of what is near. */
	assert_other(SCAN(0x10000000u | (ENTRY - CODE) / 4 << 5));
	assert_other(SCAN(0x58000000u | (ENTRY - CODE) / 4 << 5));
}

static void test_scan_passes_other_words_of_the_page(void **state)
{
	const uint32_t harmless[][4] = {
		{ ADRP(0), LDR(0, 0, 0x48), LDR(1, 0, 0x40), RET }, /* the register holds something else */
		{ ADRP(3), BL(100), LDR(0, 3, 0x40), RET },         /* … after a call */
		{ ADRP(0), ADD(0, 0, 0x100), LDR(1, 0, 0x40), RET },
		{ ADRP(0), LDR(1, 2, 0x40), NOP, RET },
	};

	(void)state;
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
		struct code_scan scan = scan_words(harmless[i], 4);
		assert_int_equal(scan.entries[0].others + scan.entries[0].jumps, 0);
	}
}

static void test_stub_word_of_each_form(void **state)
{
	const uint32_t plain[] = { ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), BR_17, NOP, NOP, NOP };
	const uint32_t pad[] = { BTI_C, ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), BR_17, NOP };
	const uint32_t keyed[] = { BTI_C, ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), 0xd503219fu, BR_17 };
	const uint32_t first[] = { 0xa9bf7bf0u, ADRP(16), LDR(17, 16, 0x40), ADD(16, 16, 0x40), BR_17, NOP, NOP };
	uint64_t word = 0;
	uint32_t number;

	(void)state;
	assert_true(code_stub_word((const uint8_t *)plain, sizeof plain, CODE, &word) && word == ENTRY);
	assert_true(code_stub_word((const uint8_t *)pad, sizeof pad, CODE, &word) && word == ENTRY);
	assert_true(code_stub_word((const uint8_t *)keyed, sizeof keyed, CODE, &word) && word == ENTRY);
	assert_false(code_stub_word((const uint8_t *)plain, 12, CODE, &word));
	assert_true(code_is_stub((const uint8_t *)first, sizeof first));
	assert_true(code_lazy_stub((const uint8_t *)first, &number) && number == LAZY_STUB_ANY);
	assert_false(code_lazy_stub((const uint8_t *)plain, &number));
}

static void test_returned_address(void **state)
{
	const uint32_t pages[] = { BTI_C, ADRP(0), ADD(0, 0, 0x123), RET };
	const uint32_t near[] = { 0x10000000u | 16 / 4 << 5, RET, NOP, NOP };
	const uint32_t loads[] = { ADRP(0), LDR(0, 0, 0x40), RET, NOP };
	uint64_t at;

	(void)state;
	assert_true(code_returns_address((const uint8_t *)pages, CODE, &at) && at == GOT + 0x123);
	assert_true(code_returns_address((const uint8_t *)near, CODE, &at) && at == CODE + 16);
	assert_false(code_returns_address((const uint8_t *)loads, CODE, &at));
}

static void test_returned_number(void **state)
{
	const uint32_t plain[] = { ADRP(0), 0xb9404400u, RET, NOP };
	const uint32_t pad[] = { BTI_C, ADRP(3), 0xb9404460u, RET };
	const uint32_t wide[] = { ADRP(0), LDR(0, 0, 0x40), RET, NOP };
	const uint32_t other[] = { ADRP(3), 0xb9404463u, RET, NOP };
	const uint32_t more[] = { ADRP(0), 0xb9404400u, NOP, RET };
	const uint32_t any[] = { NOP, 0xb9404400u, RET, NOP };
	uint64_t at;

	(void)state;
	assert_true(code_returns_number((const uint8_t *)plain, CODE, &at) && at == GOT + 0x44);
	assert_true(code_returns_number((const uint8_t *)pad, CODE, &at) && at == GOT + 0x44);
	assert_false(code_returns_number((const uint8_t *)wide, CODE, &at));
	assert_false(code_returns_number((const uint8_t *)other, CODE, &at));
	assert_false(code_returns_number((const uint8_t *)more, CODE, &at));
	assert_false(code_returns_number((const uint8_t *)any, CODE, &at));
}

static uint32_t rule(uint64_t cfa_register, int64_t n, int64_t fp, int64_t link)
{
	const struct frame_state s = {
		.cfa = FRAME_CFA_REGISTER,
		.cfa_register = cfa_register,
		.cfa_offset = n,
		.frame_pointer = { .kind = fp ? FRAME_OFFSET : FRAME_SAME, .offset = fp },
		.return_address = { .kind = link ? FRAME_OFFSET : FRAME_SAME, .offset = link },
	};

	return rule_encode_word(&s, false);
}

static void test_rules(void **state)
{
	const struct frame_state end = { .return_address.kind = FRAME_UNDEFINED };

	(void)state;
	assert_int_equal(rule(31, 64, -64, -56), UNWIND_RULE(UNWIND_PAIR_SP, 64, 8));
	assert_int_equal(rule(29, 32, -32, -24), UNWIND_RULE(UNWIND_PAIR_FP, 32, 4));
	assert_int_equal(rule(31, 16, 0, -16), UNWIND_RULE(UNWIND_LINK_SP, 16, 2));
	assert_int_equal(rule(31, 48, 0, 0), UNWIND_RULE(UNWIND_LINK_SP, 48, 0));
	assert_int_equal(rule(31, 65536, -65536, -65528), UNWIND_RULE(UNWIND_PAIR_SP, 65536, UNWIND_FP_AT_FP));
	assert_int_equal(rule(31, 65536, -65520, -65512), UNWIND_UNSUPPORTED);
	assert_int_equal(rule(31, 64, -64, -16), UNWIND_UNSUPPORTED); /* apart */
	assert_int_equal(rule(31, 64, -64, 0), UNWIND_UNSUPPORTED);
	assert_int_equal(rule(0, 64, -64, -56), UNWIND_UNSUPPORTED);
	assert_int_equal(rule_encode_word(&end, false), UNWIND_END);
	assert_int_equal(UNWIND_KIND(rule_encode_word(&(struct frame_state){ .cfa = FRAME_CFA_EXPRESSION }, true)),
	                 UNWIND_SIGNAL);
}

static void test_stack_switches(void **state)
{
	const uint32_t to_x9 = 0x9100013fu, to_x29 = 0x910003bfu, from_sp = 0x910003e9u;

	(void)state;
	assert_true(stack_switch_at((const uint8_t *)&to_x9));    /* mov sp, x9 */
	assert_false(stack_switch_at((const uint8_t *)&to_x29));  /* mov sp, x29 */
	assert_false(stack_switch_at((const uint8_t *)&from_sp)); /* mov x9, sp */
}

static enum instruction_flow flow(uint32_t word, uint64_t target)
{
	struct instruction in;

	assert_true(instruction_read(&in, (const uint8_t *)&word, sizeof word, CODE));
	assert_int_equal(in.has_target, target != 0);
	if (target)
		assert_int_equal(in.target, target);
	return in.flow;
}

static void test_flow(void **state)
{
	struct instruction in;
	const uint32_t pad = BTI_C;

	(void)state;
	assert_int_equal(flow(NOP, 0), FLOW_NEXT);
	assert_int_equal(flow(BL(-4), CODE - 16), FLOW_CALL);
	assert_int_equal(flow(0x14000002, CODE + 8), FLOW_JUMP);
	assert_int_equal(flow(0x54000041, CODE + 8), FLOW_CONDITION); /* b.ne */
	assert_int_equal(flow(0xb4ffffe0, CODE - 4), FLOW_CONDITION); /* cbz */
	assert_int_equal(flow(0x37f80040, CODE + 8), FLOW_CONDITION); /* tbnz */
	assert_int_equal(flow(BR_17, 0), FLOW_JUMP);
	assert_int_equal(flow(BLR(8), 0), FLOW_CALL);
	assert_int_equal(flow(RET, 0), FLOW_RETURN);
	assert_int_equal(flow(0xd65f0bff, 0), FLOW_RETURN); /* retaa */
	assert_int_equal(flow(0xd4200000, 0), FLOW_TRAP);
	assert_true(instruction_read(&in, (const uint8_t *)&pad, sizeof pad, CODE) && in.landing_pad);
	assert_false(instruction_read(&in, (const uint8_t *)&pad, 3, CODE));
	assert_false(instruction_read(&in, (const uint8_t *)&pad, sizeof pad, CODE + 2));
}

static bool makes(uint64_t frame, uint32_t first, uint32_t second)
{
	const uint32_t words[] = { NOP, first, second, RET };

	return compiled_frame_made((const uint8_t *)words, sizeof words, frame);
}

static void test_frames_of_compiled_code(void **state)
{
	(void)state;
	assert_true(makes(64, 0xd10103ff, NOP));          /* sub sp, sp, #64 */
	assert_true(makes(64, NOP, 0xa9037bfd));          /* stp x29, x30, [sp, #48] */
	assert_true(makes(528, 0xa9bf7bfd, 0xd10803ff));  /* …, [sp, #-16]!; sub sp, sp, #512 */
	assert_true(makes(4112, 0xa9bf7bfd, 0xd14007ff)); /* …; sub sp, sp, #1, lsl #12 */
	assert_true(makes(4672, 0x52824608, 0xcb2863ff)); /* mov w8, #4656; sub sp, sp, x8 */
	assert_true(makes(4672, 0xd2824608, 0xcb2863ff)); /* mov x8, #4656; … */
	assert_false(makes(48, 0xd10103ff, 0xa9037bfd));
	assert_false(makes(96, 0xd10103ff, 0xa9037bfd));
	assert_false(makes(16, 0xa9bf7bfd, 0xd10003ff));
	assert_false(makes(64, 0x910103ff, 0xd10103e9));   /* add sp, sp, #64; sub x9, sp, #64 */
	assert_false(makes(4672, 0x52824609, 0xcb2863ff)); /* mov w9, … */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_knows_stubs),
		cmocka_unit_test(test_scan_sees_what_may_copy_an_entry),
		cmocka_unit_test(test_scan_passes_other_words_of_the_page),
		cmocka_unit_test(test_stub_word_of_each_form),
		cmocka_unit_test(test_returned_address),
		cmocka_unit_test(test_returned_number),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_stack_switches),
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_frames_of_compiled_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
