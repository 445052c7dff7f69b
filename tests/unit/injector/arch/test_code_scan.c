/* SPDX-License-Identifier: MIT */
/* The scan of machine code, on bytes made by hand. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/code_scan.h"

#define CODE 0x7f0000001000ull
#define ENTRY_A 0x7f0000101000ull
#define ENTRY_B 0x7f0000101008ull
#define ENTRY_FAR 0x7f0000700010ull

struct sheet {
	uint8_t code[256];
	size_t used;
	struct code_entry entries[3];
	struct code_scan scan;
};

static void sheet_begin(struct sheet *s)
{
	memset(s, 0, sizeof *s);
	memset(s->code, 0x90, sizeof s->code);
	s->entries[0].address = ENTRY_A;
	s->entries[1].address = ENTRY_B;
	s->entries[2].address = ENTRY_FAR;
	s->scan.entries = s->entries;
	s->scan.entry_count = 3;
}

/* Puts opcode bytes, a displacement to target, and an immediate of after bytes at a place. */
static void put(struct sheet *s, size_t at, const char *opcode, size_t bytes, uint64_t target, unsigned behind)
{
	uint64_t next = CODE + at + bytes + 4 + behind;
	int32_t displacement = (int32_t)(int64_t)(target - next);

	memcpy(s->code + at, opcode, bytes);
	memcpy(s->code + at + bytes, &displacement, 4);
	memset(s->code + at + bytes + 4, 0x11, behind);
}

static void scan(struct sheet *s)
{
	struct err e;

	assert_int_equal(code_scan_bytes(&s->scan, s->code, sizeof s->code, CODE, &e), 0);
}

static void test_code_scan_classifies(void **state)
{
	struct sheet s;

	(void)state;
	for (size_t at = 4; at < 200; at++) { /* at every alignment */
		sheet_begin(&s);
		put(&s, at, "\xff\x15", 2, ENTRY_A, 0);            /* call *A(%rip) */
		put(&s, at + 10, "\xff\x25", 2, ENTRY_A, 0);       /* jmp *A(%rip) */
		put(&s, at + 20, "\x48\x8b\x05", 3, ENTRY_B, 0);   /* mov B(%rip), %rax */
		put(&s, at + 30, "\x48\x83\x3d", 3, ENTRY_FAR, 1); /* cmpq $imm8, FAR(%rip) */
		scan(&s);
		assert_int_equal(s.entries[0].calls, 1);
		assert_int_equal(s.entries[0].jumps, 1);
		assert_true(code_entry_call_only(&s.entries[0]));
		assert_int_equal(s.entries[1].others, 1);
		assert_false(code_entry_call_only(&s.entries[1]));
		assert_int_equal(s.entries[2].others, 1);
		free(s.scan.stubs);
	}
}

/* Where no ModRM comes before, bytes that would lead to the entry are something else: here of jne and call. */
static void test_code_scan_asks_for_the_operand(void **state)
{
	struct sheet s;

	(void)state;
	for (unsigned before = 0; before < 256; before++) {
		const char code[] = { '\x0f', '\x85', (char)before };

		sheet_begin(&s);
		put(&s, 20, "\xff\x25", 2, ENTRY_A, 0);
		put(&s, 60, code, 3, ENTRY_A, 2);
		scan(&s);
		assert_int_equal(s.entries[0].others, (before & 0xc7) == 5);
		assert_int_equal(code_entry_call_only(&s.entries[0]), (before & 0xc7) != 5);
		free(s.scan.stubs);
	}
}

static void test_code_scan_knows_immediates(void **state)
{
	static const unsigned behind[] = { 1, 2, 4 };
	struct sheet s;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		sheet_begin(&s);
		put(&s, 16, "\x48\xc7\x05", 3, ENTRY_A, behind[i]);
		scan(&s);
		assert_int_equal(s.entries[0].others, 1);
		assert_null(s.scan.stubs);
	}
	/* Never referred to: nothing is known, so it may escape. */
	sheet_begin(&s);
	scan(&s);
	assert_false(code_entry_call_only(&s.entries[0]));
}

static void test_code_scan_at_the_edges(void **state)
{
	struct sheet s;

	(void)state;
	sheet_begin(&s);
	put(&s, 0, "\xff\x25", 2, ENTRY_A, 0);
	put(&s, sizeof s.code - 6, "\xff\x15", 2, ENTRY_A, 0);
	scan(&s);
	assert_int_equal(s.entries[0].jumps, 1);
	assert_int_equal(s.entries[0].calls, 1);
	free(s.scan.stubs);
	/* A few bytes only. */
	struct err e;
	for (size_t n = 0; n < 8; n++) {
		sheet_begin(&s);
		assert_int_equal(code_scan_bytes(&s.scan, s.code, n, CODE, &e), 0);
	}
}

static void test_code_scan_stubs_have_prefixes(void **state)
{
	struct sheet s;
	uint32_t entry;

	(void)state;
	sheet_begin(&s);
	put(&s, 16, "\xff\x25", 2, ENTRY_A, 0);
	put(&s, 32, "\xf3\x0f\x1e\xfa\xf2\xff\x25", 7, ENTRY_B, 0);
	put(&s, 64, "\xf3\x0f\x1e\xfa\xff\x25", 6, ENTRY_FAR, 0);
	scan(&s);
	assert_int_equal(s.scan.stub_count, 3);
	assert_true(code_scan_stub_entry(&s.scan, CODE + 16, &entry) && entry == 0);
	assert_true(code_scan_stub_entry(&s.scan, CODE + 32, &entry) && entry == 1);
	assert_true(code_scan_stub_entry(&s.scan, CODE + 36, &entry) && entry == 1);
	assert_true(code_scan_stub_entry(&s.scan, CODE + 64, &entry) && entry == 2);
	assert_false(code_scan_stub_entry(&s.scan, CODE + 15, &entry));
	assert_false(code_scan_stub_entry(&s.scan, CODE + 60, &entry));
	free(s.scan.stubs);
}

struct hits {
	unsigned of[3];
};

static void on_call(void *context, uint32_t entry)
{
	((struct hits *)context)->of[entry]++;
}

static void test_code_scan_calls_of_a_body(void **state)
{
	struct sheet s;
	struct hits h = { 0 };

	(void)state;
	sheet_begin(&s);
	put(&s, 16, "\xff\x25", 2, ENTRY_A, 0);
	put(&s, 32, "\xff\x25", 2, ENTRY_B, 0);
	put(&s, 100, "\xe8", 1, CODE + 16, 0);     /* call stub of A */
	put(&s, 110, "\xe9", 1, CODE + 32, 0);     /* jmp stub of B */
	put(&s, 120, "\xff\x15", 2, ENTRY_FAR, 0); /* call *FAR(%rip) */
	put(&s, 130, "\x0f\x84", 2, CODE + 16, 0); /* je stub of A */
	scan(&s);
	code_scan_calls(&s.scan, s.code + 96, 64, CODE + 96, on_call, &h);
	assert_int_equal(h.of[0], 2);
	assert_int_equal(h.of[1], 1);
	assert_int_equal(h.of[2], 1);
	h = (struct hits){ 0 };
	code_scan_calls(&s.scan, s.code + 140, 64, CODE + 140, on_call, &h);
	assert_int_equal(h.of[0] + h.of[1] + h.of[2], 0);
	free(s.scan.stubs);
}

/* In a program at a low fixed address a GOT entry may be named absolutely. */
static void test_code_scan_absolute_references(void **state)
{
	struct code_entry entry = { .address = 0x404018 };
	struct code_scan low = { .entries = &entry, .entry_count = 1 };
	uint8_t code[] = { 0x90, 0x48, 0x8b, 0x04, 0x25, 0x18, 0x40, 0x40, 0x00, 0x90 };
	struct err e;

	(void)state;
	assert_int_equal(code_scan_bytes(&low, code, sizeof code, 0x401000, &e), 0);
	assert_int_equal(entry.others, 1);
}

/* The filter must agree with the plain reading of the rule on random bytes. */
static void test_code_scan_agrees_with_plain_search(void **state)
{
	static uint8_t code[200000];
	struct code_entry entries[256];
	struct code_scan scan_ = { .entries = entries, .entry_count = 256 };
	struct err e;
	unsigned expected = 0, found = 0;

	(void)state;
	srand(1);
	for (size_t i = 0; i < sizeof code; i++)
		code[i] = i % 4 == 2 ? (uint8_t)(rand() % 4) : i % 4 == 3 ? (uint8_t)(rand() % 2 * 5) : (uint8_t)rand();
	for (size_t i = 0; i < 256; i++)
		entries[i] = (struct code_entry){ .address = CODE + 0x20000 + i * 0x100 };
	for (size_t at = 0; at + 4 <= sizeof code; at++) {
		int32_t d;
		memcpy(&d, code + at, 4);
		if (at && (code[at - 1] & 0xc7) != 5)
			continue;
		for (unsigned k = 0; k < 4; k++) {
			uint64_t to = CODE + at + 4 + (k == 3 ? 4 : k) + (uint64_t)(int64_t)d;
			for (size_t i = 0; i < 256; i++)
				expected += entries[i].address == to;
		}
	}
	assert_int_equal(code_scan_bytes(&scan_, code, sizeof code, CODE, &e), 0);
	for (size_t i = 0; i < 256; i++)
		found += entries[i].calls + entries[i].jumps + entries[i].others;
	assert_true(expected > 20);
	assert_int_equal(found, expected);
	free(scan_.stubs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_scan_classifies),
		cmocka_unit_test(test_code_scan_asks_for_the_operand),
		cmocka_unit_test(test_code_scan_knows_immediates),
		cmocka_unit_test(test_code_scan_at_the_edges),
		cmocka_unit_test(test_code_scan_stubs_have_prefixes),
		cmocka_unit_test(test_code_scan_calls_of_a_body),
		cmocka_unit_test(test_code_scan_absolute_references),
		cmocka_unit_test(test_code_scan_agrees_with_plain_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
