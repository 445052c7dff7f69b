/* SPDX-License-Identifier: MIT */
/* The walk of a stack over made-up stacks and tables: every kind of rule, and all that may be wrong with a stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "walk/known_stack.h"
#include "walk_fixture.h"

static void test_walk_follows_each_kind(void **state)
{
	const uint32_t rules[] = {
		UNWIND_RULE(UNWIND_SP, 24, 2),                  /* 0: rbp saved at CFA - 16 */
		UNWIND_RULE(UNWIND_FP, 16, 2),                  /* 1: push rbp; mov rsp, rbp */
		UNWIND_RULE(UNWIND_AT_SP, 8, UNWIND_FP_SAME),   /* 2 */
		UNWIND_RULE(UNWIND_AT_SP_8, 0, UNWIND_FP_SAME), /* 3 */
		UNWIND_RULE(UNWIND_AT_FP, -8, UNWIND_FP_AT_FP), /* 4 */
		UNWIND_RULE(UNWIND_END, 0, UNWIND_FP_SAME),     /* 5 */
	};

	(void)state;
	publish(rules, 6);
	stack[10] = PC(0);  /* sp of 0 is word 11, its CFA word 14 */
	stack[12] = at(20); /* rbp of 1 */
	stack[13] = PC(1);
	stack[20] = at(40); /* rbp of 2, 3 and 4; CFA of 1 is word 22 */
	stack[21] = PC(2);
	stack[23] = at(30); /* CFA of 2 */
	stack[29] = PC(3);
	stack[30] = at(34); /* CFA of 3 is word 35 */
	stack[34] = PC(4);
	stack[39] = at(50); /* CFA of 4 */
	stack[40] = 0x1234;
	stack[49] = PC(5);
	walk(10, 0xbad);
	assert_int_equal(result.count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_frame(i, PC(i));
		assert_int_equal(DUMP_FRAME_MODULE(frames[i]), 9);
	}
	assert_int_equal(result.flags, 0);
	assert_int_equal(result.fallback, 0);
}

static void walk_one(uint32_t rule, uint64_t fp)
{
	publish(&rule, 1);
	stack[10] = PC(0);
	walk(10, fp);
}

static void assert_truncated(uint32_t count)
{
	assert_int_equal(result.count, count);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
}

static void test_walk_ends_at_a_frame_that_does_not_fit(void **state)
{
	(void)state;
	walk_one(UNWIND_RULE(UNWIND_SP, 0, 0), 0); /* the CFA does not grow */
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_SP, -8, 0), 0);
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_SP, UNWIND_N_MAX_BYTES, 0), 0); /* after the end */
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_FP, 16, 0), 0);
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_FP, 16, 0), at(5)); /* below */
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_FP, 16, 0), UINT64_MAX - 7);
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_FP, 16, 0), at(20) + 3); /* not aligned */
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_AT_FP, 0, 0), 8);
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_AT_SP, -16, 0), 0);
	assert_truncated(1);
	stack[11] = UINT64_MAX;
	walk_one(UNWIND_RULE(UNWIND_AT_SP_8, 0, 0), 0);
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_UNSUPPORTED, 0, 0), 0);
	assert_truncated(1);
	walk_one(UNWIND_RULE(15, 8, 0), 0); /* no such kind */
	assert_truncated(1);
	walk_one(UNWIND_RULE(UNWIND_SP, 8 * (WORDS - 11), 0), 0); /* exactly the last word: 0, the outermost */
	assert_int_equal(result.flags, 0);
}

static void test_walk_loses_the_frame_pointer(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 8, UNWIND_FP_LOST), UNWIND_RULE(UNWIND_FP, 16, 2) };

	(void)state;
	publish(rules, 2);
	stack[10] = PC(0);
	stack[11] = PC(1);
	stack[21] = PC(0);
	walk(10, at(20));
	assert_truncated(2);
}

static void test_walk_stops_at_the_depth_limit(void **state)
{
	const uint32_t rule = UNWIND_RULE(UNWIND_SP, 8, 0);

	(void)state;
	publish(&rule, 1);
	for (uint32_t i = 10; i < 10 + DUMP_FRAMES_MAX + 5; i++)
		stack[i] = PC(0);
	walk(10, 0);
	assert_int_equal(result.count, DUMP_FRAMES_MAX);
	assert_int_equal(result.flags, DUMP_STACK_DEEP);
	stack[10 + DUMP_FRAMES_MAX] = 0;
	walk(10, 0);
	assert_int_equal(result.count, DUMP_FRAMES_MAX);
	assert_int_equal(result.flags, 0);
}

static void test_walk_falls_back_to_frame_pointers(void **state)
{
	const uint32_t none = UNWIND_RULE(UNWIND_NONE, 0, 0);

	(void)state;
	publish(&none, 1);
	stack[10] = PC(0);
	stack[20] = at(30);
	stack[21] = CODE + 0x8000; /* in no module, but executable */
	stack[30] = 0;
	stack[31] = 0;
	walk(10, at(20));
	assert_int_equal(result.count, 2);
	assert_int_equal(DUMP_FRAME_MODULE(frames[1]), 0);
	assert_int_equal(result.fallback, 2);
	assert_int_equal(result.flags, 0);
	assert_int_equal(memattach_session.new_code, CODE + 0x8000 - 1);

	stack[21] = 0x666; /* no code */
	walk(10, at(20));
	assert_truncated(1);
	stack[20] = at(20); /* a cycle */
	stack[21] = PC(0);
	walk(10, at(20));
	assert_truncated(2);
	walk(10, at(9)); /* below the frame */
	assert_truncated(1);
	walk(10, at(WORDS - 1)); /* the second word is after the end */
	assert_truncated(1);
}

/* "mark the deepest frame by zeroing the frame pointer" (psABI), as musl's start code does, which has no rules. */
static void test_walk_ends_at_a_zero_frame_pointer(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 16, 2), UNWIND_RULE(UNWIND_NONE, 0, 0) };

	(void)state;
	publish(rules, 2);
	stack[10] = PC(0);
	stack[11] = 0; /* the frame pointer that the first function saved */
	stack[12] = PC(1);
	walk(10, at(20));
	assert_int_equal(result.count, 2);
	assert_int_equal(result.flags, 0);
	assert_int_equal(result.fallback, 0);
	stack[11] = 1; /* any other value that leads nowhere */
	walk(10, at(20));
	assert_truncated(2);
	stack[12] = CODE + 0x8000; /* code of no module may use the register for anything */
	stack[11] = 0;
	walk(10, at(20));
	assert_truncated(2);
}

static void test_walk_of_an_unknown_stack_needs_rules(void **state)
{
	struct unwind_module module = { .start = CODE, .end = CODE + 32, .row_count = 2, .id = 9 };
	const uint32_t pcs[] = { 0, 16 }, rules[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_NONE };

	(void)state;
	module.rows_offset = fixture_rows(&fixture, pcs, rules, 2);
	fixture_index(&fixture, &module, 1, NULL, 0);
	stack[10] = PC(0);
	stack[11] = PC(1);
	stack[20] = 0;
	stack[21] = PC(0);
	walk(10, at(20));
	assert_truncated(2);
	publish(rules, 2);
	known_stacks_init(0, 0, 0);
	stack[600] = 0;
	stack[601] = PC(0);
	walk(10, at(600)); /* in another page */
	assert_truncated(2);
}

/* The thread control block ends a thread's stack. */
static void test_walk_ends_at_the_thread_pointer(void **state)
{
	const uint32_t rule = UNWIND_RULE(UNWIND_SP, 8, 0);
	struct unwind_start start = { .sp = at(10), .thread_pointer = at(14) };

	(void)state;
	publish(&rule, 1);
	for (uint32_t i = 10; i < 20; i++)
		stack[i] = PC(0);
	make_control_block(start.thread_pointer);
	unwind_walk(&start, NULL, frames, &result);
	assert_truncated(4);
	fixture_index(&fixture, NULL, 0, NULL, 0); /* a thread that the index does not know yet */
	unwind_walk(&start, NULL, frames, &result);
	assert_truncated(1);
}

static void test_walk_passes_signal_frames(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SIGNAL, 0, 0), UNWIND_RULE(UNWIND_FP, 16, 2),
		                   UNWIND_RULE(UNWIND_END, 0, 0) };
	uint32_t context = 11;

	(void)state;
	publish(rules, 3);
	stack[10] = PC(0);
	stack[context + ARCH_UCONTEXT_FP / 8] = at(120);
	stack[context + ARCH_UCONTEXT_SP / 8] = at(110);
	stack[context + ARCH_UCONTEXT_PC / 8] = CODE + 16; /* the first instruction of function 1 */
	stack[120] = 0;
	stack[121] = PC(2);
	walk(10, 0);
	assert_int_equal(result.count, 3);
	assert_frame(1, CODE + 17);
	assert_frame(2, PC(2));
	assert_int_equal(result.flags, 0);
	assert_int_equal(result.signal_frames, 1);
}

/* Where functions save the return address themselves: with the frame pointer, alone, or not yet. Other machines have no
 * such rules. */
static void test_walk_by_where_the_return_address_is_saved(void **state)
{
	const uint32_t rules[] = {
		UNWIND_RULE(UNWIND_PAIR_SP, 64, 8),                 /* 0: both at sp */
		UNWIND_RULE(UNWIND_PAIR_FP, 32, 4),                 /* 1: the frame pointer leads to them */
		UNWIND_RULE(UNWIND_LINK_SP, 16, 2),                 /* 2: the return address alone */
		UNWIND_RULE(UNWIND_PAIR_SP, 32, 2),                 /* 3 */
		UNWIND_RULE(UNWIND_PAIR_SP, 8208, UNWIND_FP_AT_FP), /* 4: at sp, in a large frame */
		UNWIND_RULE(UNWIND_END, 0, 0),                      /* 5 */
	};
	const uint64_t signature = ARCH_LINK_REGISTER ? 0x5a40000000000000 : 0;

	(void)state;
	publish(rules, 6);
	stack[10] = PC(0);  /* sp of 0 is word 11 */
	stack[11] = at(30); /* fp of 1, … */
	stack[12] = PC(1) | signature;
	stack[30] = at(50);
	stack[31] = PC(2); /* sp of 2 is word 34 */
	stack[34] = PC(3); /* sp of 3 is word 36 */
	stack[38] = 0;
	stack[39] = PC(4); /* sp of 4 is word 40 */
	stack[40] = 0;
	stack[41] = PC(5);
	walk(10, 0xbad);
	if (!ARCH_LINK_REGISTER) {
		assert_truncated(1);
		return;
	}
	assert_int_equal(result.count, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_frame(i, PC(i));
	assert_int_equal(result.flags, 0);
}

/* What the register held when a signal came counts for the code that was interrupted, and for no other. */
static void test_walk_uses_the_register_of_interrupted_code_once(void **state)
{
	const uint32_t rules[] = {
		UNWIND_RULE(UNWIND_SIGNAL, 0, 0),
		UNWIND_RULE(UNWIND_LINK_SP, 32, 0), /* calls nobody */
		UNWIND_RULE(UNWIND_PAIR_SP, 16, 2),
	};

	(void)state;
	publish(rules, 3);
	stack[10] = PC(0);
	stack[11 + ARCH_UCONTEXT_SP / 8] = at(110);
	stack[11 + ARCH_UCONTEXT_PC / 8] = CODE + 16;
	stack[11 + ARCH_UCONTEXT_LINK / 8] = ARCH_LINK_REGISTER ? PC(2) : 0;
	stack[115] = PC(1); /* it has called somebody after all: its rule is wrong */
	walk(10, 0);
	assert_int_equal(result.count, ARCH_LINK_REGISTER ? 4 : 2);
	assert_frame(1, CODE + 17);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
}

static void test_walk_finds_a_trampoline_at_its_first_byte(void **state)
{
	const uint32_t rules[] = { UNWIND_NONE, UNWIND_RULE(UNWIND_SIGNAL, 0, 0), UNWIND_RULE(UNWIND_END, 0, 0) };

	(void)state;
	publish(rules, 3);
	stack[10] = CODE + 16;
	stack[11 + ARCH_UCONTEXT_SP / 8] = at(110);
	stack[11 + ARCH_UCONTEXT_PC / 8] = CODE + 40;
	walk(10, 0);
	assert_int_equal(result.count, 2);
	assert_frame(1, CODE + 41);
}

static void test_walk_leaves_a_circle_of_signal_frames(void **state)
{
	const uint32_t rule = UNWIND_RULE(UNWIND_SIGNAL, 0, 0);

	(void)state;
	publish(&rule, 1);
	stack[10] = PC(0);
	stack[11 + ARCH_UCONTEXT_SP / 8] = at(11);
	stack[11 + ARCH_UCONTEXT_PC / 8] = PC(0) - 1;
	walk(10, 0);
	assert_true(result.count < 16);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
}

static uint32_t kind_at(const struct unwind_view *view, uint64_t pc)
{
	return UNWIND_FOUND_KIND(unwind_view_find(view, unwind_view_salt(view->generation), pc));
}

/* A new index makes cached rules void, and what a damaged one refers to is not read. */
static void test_rules_follow_the_index(void **state)
{
	struct unwind_header *header = (struct unwind_header *)fixture.tables;
	struct unwind_module module = {
		.start = CODE, .end = CODE + 16, .rows_offset = UINT64_MAX - 7, .row_count = 1, .id = 9
	};
	const uint32_t first = UNWIND_RULE(UNWIND_SP, 8, 0), second = UNWIND_RULE(UNWIND_END, 0, 0);
	struct unwind_view view;

	(void)state;
	publish(&first, 1);
	unwind_view_open(&view, unwind_view_offset());
	assert_int_equal(kind_at(&view, PC(0)), UNWIND_SP);
	assert_int_equal(kind_at(&view, PC(0)), UNWIND_SP);
	assert_int_equal(unwind_view_search(&view, CODE), UNWIND_NONE); /* the call before it would be outside */
	assert_int_equal(unwind_view_search(&view, CODE + 17), UNWIND_NONE);
	publish(&second, 1);
	unwind_view_open(&view, unwind_view_offset());
	assert_int_equal(kind_at(&view, PC(0)), UNWIND_END);

	fixture_index(&fixture, &module, 1, NULL, 0);
	unwind_view_open(&view, unwind_view_offset());
	assert_int_equal(kind_at(&view, PC(0)), UNWIND_NONE);
	module.rows_offset = FIXTURE_TABLES_BYTES - 4;
	fixture_index(&fixture, &module, 1, NULL, 0);
	unwind_view_open(&view, unwind_view_offset());
	assert_int_equal(kind_at(&view, PC(0)), UNWIND_NONE);
	for (uint64_t bad = FIXTURE_TABLES_BYTES - 8;; bad = bad == 12 ? UINT64_MAX - 7 : 12) {
		header->index_offset = bad;
		unwind_view_open(&view, unwind_view_offset());
		assert_int_equal(view.module_count, 0);
		if (bad > FIXTURE_TABLES_BYTES)
			break;
	}
}

/* The return address i of those that share an entry: they lie a whole cache apart. */
#define SHARED(i) (PC(0) + (uint64_t)(i) * (1u << (UNWIND_CACHE_LOG2 + UNWIND_CACHE_SHIFT)))
#define SHARERS 6u

/* What the view knows of return address i, which is another rule for each; it then has its own entry. */
static uint32_t words_at(const struct unwind_view *view, unsigned i)
{
	const struct unwind_cache_entry *own = &unwind_cache[unwind_cache_entry_index(SHARED(i))];
	const uint64_t salt = unwind_view_salt(view->generation), found = unwind_view_find(view, salt, SHARED(i));

	assert_true(own->found == found && (own->mixed ^ found) == (SHARED(i) ^ salt) * HASH_MULTIPLIER);
	return (uint32_t)UNWIND_FOUND_WORDS(found);
}

/* A line of them stays, and is found without the tables; one more takes the place of one, and each has its own rule. */
static void test_rules_that_share_an_entry_stay(void **state)
{
	uint32_t rows[2 * SHARERS];
	struct unwind_module module = { .start = CODE, .end = SHARED(SHARERS), .row_count = SHARERS, .id = 9 };
	struct unwind_view view, nothing;

	(void)state;
	for (uint32_t i = 0; i < SHARERS; i++) {
		rows[i] = (uint32_t)(SHARED(i) - CODE - 8);
		rows[SHARERS + i] = UNWIND_RULE(UNWIND_SP, 8 * (i + 1), 0);
	}
	module.rows_offset = FIXTURE_TABLES_BYTES - sizeof(rows);
	memcpy(fixture.tables + module.rows_offset, rows, sizeof(rows));
	fixture_index(&fixture, &module, 1, NULL, 0);
	unwind_view_open(&view, unwind_view_offset());
	nothing = view;
	nothing.module_count = 0;
	for (uint32_t i = 0; i < UNWIND_CACHE_WAYS; i++)
		assert_int_equal(words_at(&view, i), i + 1);
	for (uint32_t i = 0; i < 3 * UNWIND_CACHE_WAYS; i++)
		assert_int_equal(words_at(&nothing, i * 3 % UNWIND_CACHE_WAYS), i * 3 % UNWIND_CACHE_WAYS + 1);
	for (uint32_t i = 0; i < 5 * SHARERS; i++)
		assert_int_equal(words_at(&view, i % SHARERS), i % SHARERS + 1);
	/* Those of another index are not found, wherever they are. */
	fixture_index(&fixture, NULL, 0, NULL, 0);
	unwind_view_open(&nothing, unwind_view_offset());
	for (uint32_t i = 0; i < SHARERS; i++)
		assert_int_equal(words_at(&nothing, i), 0);
}

static void test_range_find_checks_flags_and_ends(void **state)
{
	const uint32_t rule = UNWIND_NONE;
	struct unwind_view view;

	(void)state;
	publish(&rule, 1);
	unwind_view_open(&view, unwind_view_offset());
	assert_non_null(unwind_view_range(&view, CODE, UNWIND_RANGE_EXEC));
	assert_null(unwind_view_range(&view, CODE, UNWIND_RANGE_STACK));
	assert_null(unwind_view_range(&view, CODE - 1, 0));
	assert_null(unwind_view_range(&view, CODE + (1 << 20), 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_walk_follows_each_kind),
		SESSION_TEST(test_walk_ends_at_a_frame_that_does_not_fit),
		SESSION_TEST(test_walk_loses_the_frame_pointer),
		SESSION_TEST(test_walk_stops_at_the_depth_limit),
		SESSION_TEST(test_walk_falls_back_to_frame_pointers),
		SESSION_TEST(test_walk_ends_at_a_zero_frame_pointer),
		SESSION_TEST(test_walk_of_an_unknown_stack_needs_rules),
		SESSION_TEST(test_walk_ends_at_the_thread_pointer),
		SESSION_TEST(test_walk_passes_signal_frames),
		SESSION_TEST(test_walk_by_where_the_return_address_is_saved),
		SESSION_TEST(test_walk_uses_the_register_of_interrupted_code_once),
		SESSION_TEST(test_walk_finds_a_trampoline_at_its_first_byte),
		SESSION_TEST(test_walk_leaves_a_circle_of_signal_frames),
		SESSION_TEST(test_rules_follow_the_index),
		SESSION_TEST(test_rules_that_share_an_entry_stay),
		SESSION_TEST(test_range_find_checks_flags_and_ends),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
