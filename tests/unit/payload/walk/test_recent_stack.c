/* SPDX-License-Identifier: MIT */
/* Walks that take over outer frames of the walk before: they find exactly what others find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "walk/known_stack.h"
#include "walk/recent_stack.h"
#include "walk_fixture.h"

static struct recent_stack recent;

static uint64_t thread_control_block; /* above the stack, or on it */

static struct unwind_result again; /* with the recent stack */

static void assert_same_in_walks(uint32_t word, uint64_t fp, uint32_t walks)
{
	struct unwind_start start = { .sp = at(word), .fp = fp, .thread_pointer = thread_control_block };
	uint64_t seen[DUMP_FRAMES_MAX];

	unwind_walk(&start, NULL, frames, &result);
	for (uint32_t i = 0; i < walks; i++) {
		unwind_walk(&start, &recent, seen, &again);
		unwind_frames_complete(&recent, &again, seen);
		assert_int_equal(again.count, result.count);
		assert_int_equal(again.flags, result.flags);
		assert_int_equal(again.fallback, result.fallback);
		assert_true(again.hash == result.hash);
		assert_memory_equal(seen, frames, result.count * sizeof(frames[0]));
	}
}

/* So often that all frames are kept, and then met. */
static void assert_same_with_recent(uint32_t word, uint64_t fp)
{
	assert_same_in_walks(word, fp, 4);
}

/* One walk, that takes over so many frames. */
static void assert_held(uint32_t word, uint64_t fp, uint32_t held)
{
	assert_same_in_walks(word, fp, 1);
	assert_int_equal(again.held, held);
}

static uint64_t dice = 88172645463325252u;

static uint32_t roll(uint32_t sides)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 33) % sides;
}

/* What a walk of the random test began with: a program comes back to such. */
struct earlier {
	uint64_t stack[1024];
	uint64_t fp;
	uint64_t thread_control_block;
	uint32_t from;
};

/* Walks with a recent stack find exactly what walks without one find, whatever changes on the stack between them. */
static void test_recent_stack_changes_nothing(void **state)
{
	const uint32_t rules[] = {
		UNWIND_RULE(UNWIND_SP, 8, 0),
		UNWIND_RULE(UNWIND_SP, 24, 0),
		UNWIND_RULE(UNWIND_SP, 40, 2),
		UNWIND_RULE(UNWIND_SP, 48, 4),
		UNWIND_RULE(UNWIND_SP, 16, UNWIND_FP_LOST),
		UNWIND_RULE(UNWIND_FP, 16, 2),
		UNWIND_RULE(UNWIND_FP, 32, UNWIND_FP_AT_FP),
		UNWIND_RULE(UNWIND_AT_SP, 8, 0),
		UNWIND_RULE(UNWIND_AT_FP, -8, UNWIND_FP_AT_FP),
		UNWIND_NONE,
		UNWIND_RULE(UNWIND_END, 0, 0),
		UNWIND_RULE(UNWIND_SP, 32, 0),
		UNWIND_RULE(UNWIND_SP, 56, 0),
	};
	const uint32_t plain[] = { 0, 1, 2, 3, 11, 12 };
	static struct earlier earlier[3];
	uint64_t frames_seen = 0, frames_held = 0;

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 13);
	for (int round = 0; round < 40000; round++) {
		uint32_t from = 10 + roll(8), word = from;
		struct earlier *e = &earlier[roll(3)];
		bool wild = roll(8) == 0;
		uint64_t fp;

		if (e->from && roll(2)) {
			memcpy(stack, e->stack, sizeof(e->stack));
			thread_control_block = e->thread_control_block;
			if (thread_control_block)
				make_control_block(thread_control_block);
			else
				known_stacks_init(at(0), at(WORDS - 1) + 8, 0);
			assert_same_in_walks(e->from, e->fp, 1 + roll(4));
			frames_held += again.held;
			continue;
		}

		if (roll(50) == 0) /* another outermost part */
			memset(stack, 0, sizeof(stack));
		/* innermost frames anew, and now and then one anywhere */
		for (uint32_t i = 0; i < 6 + roll(30) && word < 600; i++) {
			uint32_t rule = wild ? roll(13) : plain[roll(6)];

			if (i < 6 || !stack[word] || roll(100) == 0)
				stack[word] = PC(rule);
			word += UNWIND_KIND(rules[(stack[word] - CODE) / 16]) == UNWIND_SP
			                ? (uint32_t)UNWIND_N_BYTES(rules[(stack[word] - CODE) / 16]) / 8
			                : 1 + roll(6);
			if (!stack[word])
				stack[word] = PC(rule);
			else if (stack[word] < CODE || stack[word] >= CODE + 16 * 13)
				break;
		}
		if (roll(3) == 0)
			stack[10 + roll(300)] = at(10 + roll(300)); /* a saved frame pointer, perhaps */
		if (roll(20) == 0)
			stack[10 + roll(600)] = 0;
		thread_control_block = roll(4) ? 0 : at(5) + 8 * roll(WORDS - 64);
		if (thread_control_block)
			make_control_block(thread_control_block);
		else
			known_stacks_init(at(0), at(WORDS - 1) + 8, 0);
		fp = roll(2) ? at(10 + roll(300)) : 0;
		assert_same_in_walks(from, fp, 1 + roll(4));
		frames_seen += result.count;
		frames_held += again.held;
		memcpy(e->stack, stack, sizeof(e->stack));
		e->thread_control_block = thread_control_block;
		e->fp = fp;
		e->from = from;
	}
	assert_true(frames_seen > 100000 && frames_held > 100000);
	thread_control_block = 0;
}

static void publish_deep_rules(void)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_RULE(UNWIND_SP, 8, 0),
		                   UNWIND_RULE(UNWIND_SP, 16, 2), UNWIND_RULE(UNWIND_END, 0, 0) };

	publish(rules, 4);
}

/* Each word from 10 to 30 is a frame. */
static void publish_deep(void)
{
	memset(&recent, 0, sizeof(recent));
	publish_deep_rules();
	for (uint32_t i = 10; i < 30; i++)
		stack[i] = PC(0);
	stack[30] = PC(3);
}

/* Frames are kept when they are met a second time in a row, and a third time in place of others. */
static void test_recent_stack_keeps_what_is_met_again(void **state)
{
	(void)state;
	publish_deep();
	assert_held(10, 0, 0);
	assert_held(10, 0, 0);
	assert_held(10, 0, 21);
	for (int i = 0; i < 3; i++) { /* inner frames that differ from walk to walk */
		stack[14] = PC(1) + 1;
		assert_held(10, 0, 16);
		stack[14] = PC(1);
		assert_held(10, 0, 16);
		stack[14] = PC(1) + 1;
		assert_held(10, 0, 16);
		stack[13] = PC(1);
		stack[14] = PC(0);
		assert_held(10, 0, 17);
		stack[13] = PC(0);
	}
	assert_held(10, 0, 21);       /* have taken nothing away */
	for (int i = 0; i < 3; i++) { /* nor has a stack that comes every other time */
		stack[14] = PC(1);
		assert_held(10, 0, 16);
		stack[14] = PC(0);
		assert_held(10, 0, 21);
	}
	stack[14] = PC(1);
	assert_held(10, 0, 16);
	assert_held(10, 0, 16);
	assert_held(10, 0, 16);
	assert_held(10, 0, 21);
	stack[12] = PC(1); /* of what is inside, two walks have the outer frames in common */
	assert_held(10, 0, 18);
	stack[10] = PC(1);
	assert_held(10, 0, 18);
	assert_held(10, 0, 18);
	assert_held(10, 0, 21);
}

/* A stack that has become deeper is known after two walks. */
static void test_recent_stack_grows(void **state)
{
	(void)state;
	publish_deep();
	assert_same_in_walks(20, 0, 2);
	assert_held(20, 0, 11);
	assert_held(10, 0, 11);
	assert_held(10, 0, 11);
	assert_held(10, 0, 21);
	assert_held(20, 0, 11);
	assert_held(10, 0, 21);
	publish_deep_rules(); /* another index: what is held is worth nothing */
	assert_held(10, 0, 0);
	assert_held(10, 0, 0);
	assert_held(10, 0, 21);
}

/* Both parts together are too many. */
static void test_recent_stack_keeps_to_the_depth_limit(void **state)
{
	(void)state;
	publish_deep();
	for (uint32_t i = 10; i < 10 + DUMP_FRAMES_MAX + 32; i++)
		stack[i] = PC(0);
	stack[10 + DUMP_FRAMES_MAX + 32] = PC(3);
	assert_same_with_recent(110, 0);
	assert_int_equal(again.held, DUMP_FRAMES_MAX - 67);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, DUMP_FRAMES_MAX);
	assert_int_equal(result.flags, DUMP_STACK_DEEP);
	assert_same_with_recent(43, 0);
	assert_int_equal(result.count, DUMP_FRAMES_MAX);
	assert_int_equal(result.flags, 0);
	assert_int_equal(again.held, DUMP_FRAMES_MAX);
}

/* A frame whose frame pointer differs at each walk is never met: it takes nothing away. */
static void test_recent_stack_ignores_a_frame_pointer_that_counts(void **state)
{
	(void)state;
	publish_deep();
	assert_same_in_walks(10, 1000, 2);
	assert_held(10, 1000, 21);
	stack[20] = PC(2); /* saves it for those outside, which are at other places now */
	stack[21] = 1000;
	for (uint64_t i = 0; i < 5; i++)
		assert_held(10, 2000 + 8 * i, 9);
	stack[20] = stack[21] = PC(0);
	assert_held(10, 1000, 21);
}

/* The outermost frame ends the stack in another way now: that holds for frames that are not met this time, too. */
static void test_recent_stack_counts_the_last_step(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_NONE };

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 3);
	for (uint32_t i = 10; i < 20; i++)
		stack[i] = PC(0);
	stack[20] = PC(2);
	stack[41] = 0x666; /* no code */
	assert_same_with_recent(10, at(40));
	assert_int_equal(result.fallback, 0);
	assert_int_equal(result.flags, DUMP_STACK_TRUNCATED);
	stack[14] = PC(1);
	stack[41] = 0;
	assert_held(10, at(40), 6);
	assert_int_equal(result.fallback, 1);
	stack[14] = PC(0);
	assert_held(10, at(40), 11);
	stack[41] = 0x666;
	assert_held(10, at(40), 11);
	assert_int_equal(result.fallback, 0);
	stack[41] = PC(1); /* goes on */
	assert_same_with_recent(10, at(40));
	assert_int_equal(result.count, 12);
	assert_int_equal(result.fallback, 1);
}

/* A thread control block below what was walked ends the stack for those who are below it. */
static void test_recent_stack_ends_at_the_thread_pointer(void **state)
{
	(void)state;
	publish_deep();
	assert_same_with_recent(20, 0);
	assert_int_equal(again.held, 11);
	known_stacks_init(at(20), at(WORDS), 0); /* of the main thread, from there on */
	known_stacks.noted_at = NOTED_AT;
	thread_control_block = at(15);
	stack[15 + NOTED_AT / 8] = at(0);
	stack[16 + NOTED_AT / 8] = 16 * 8;
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 5);
	assert_same_with_recent(20, 0);
	thread_control_block = 0;
	publish_deep();
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 21);
}

/* What a signal interrupted is not found by the words of frames alone. */
static void test_recent_stack_leaves_signals_out(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_RULE(UNWIND_SIGNAL, 0, 0),
		                   UNWIND_RULE(UNWIND_END, 0, 0) };

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 3);
	stack[10] = PC(0);
	stack[11] = PC(1);
	stack[12 + ARCH_UCONTEXT_SP / 8] = at(200);
	stack[12 + ARCH_UCONTEXT_PC / 8] = PC(2);
	stack[199] = PC(2) + 1; /* as if it had been called */
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 3);
	stack[12 + ARCH_UCONTEXT_PC / 8] = PC(0);
	stack[200] = PC(2);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 4);
}

/* A step by frame pointer that was read elsewhere is not taken for the same. */
static void test_recent_stack_notices_a_changed_frame_pointer(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 32, 2), UNWIND_RULE(UNWIND_FP, 16, 2),
		                   UNWIND_RULE(UNWIND_END, 0, 0) };

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 3);
	stack[10] = PC(0);
	stack[13] = at(20);
	stack[14] = PC(1);
	stack[21] = PC(2);
	stack[31] = PC(1);
	stack[30] = at(40);
	stack[41] = PC(2);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 3);
	stack[13] = at(30);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 4);
}

/* The same outer frames, but the frame pointer was saved in another place by the frame inside. */
static void test_recent_stack_knows_where_the_frame_pointer_was_saved(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 32, 2), UNWIND_RULE(UNWIND_SP, 32, 3),
		                   UNWIND_RULE(UNWIND_FP, 16, 2), UNWIND_RULE(UNWIND_END, 0, 0) };

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 4);
	stack[10] = PC(0);
	stack[12] = stack[13] = at(20);
	stack[14] = PC(2);
	stack[21] = PC(3);
	stack[31] = PC(2);
	stack[30] = at(40);
	stack[41] = PC(3);
	assert_same_with_recent(10, 0);
	stack[10] = PC(1);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 3);
	stack[12] = at(30);
	assert_same_with_recent(10, 0);
	assert_int_equal(result.count, 4);
}

/* All that was compared is as it was, but a CFA was read from a word that has changed. */
static void test_recent_stack_ends_where_a_cfa_was_read(void **state)
{
	const uint32_t rules[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_RULE(UNWIND_AT_SP, 8, 0),
		                   UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_RULE(UNWIND_END, 0, 0),
		                   UNWIND_RULE(UNWIND_END, 0, 0) };

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(rules, 5);
	stack[10] = PC(0);
	stack[11] = PC(1);
	stack[13] = at(20);
	stack[19] = PC(2);
	stack[20] = PC(3);
	stack[29] = PC(2);
	stack[30] = PC(4);
	assert_same_with_recent(10, 0);
	assert_frame(3, PC(3));
	stack[13] = at(30);
	assert_same_with_recent(10, 0);
	assert_frame(3, PC(4));
}

/* Nothing that is in its memory leads a walk out of the stack. */
static void test_recent_stack_is_not_trusted(void **state)
{
	const uint32_t rule = UNWIND_RULE(UNWIND_SP, 8, 0);

	(void)state;
	memset(&recent, 0, sizeof(recent));
	publish(&rule, 1);
	for (uint32_t i = 10; i < 30; i++)
		stack[i] = PC(0);
	for (uint32_t round = 0; round < 2000; round++) {
		struct unwind_start start = { .sp = at(10) };
		struct recent_frame *hit = &recent.frames[1 + roll(18)];
		struct recent_word *word = &recent.words[roll(18)];

		unwind_walk(&start, &recent, frames, &result);
		assert_int_equal(result.flags, 0);
		hit->sp = roll(2) ? dice : hit->sp + 8ull * roll(WORDS);
		if (roll(2))
			hit->fp_below = (uint32_t)dice;
		if (roll(2))
			hit->word = (uint16_t)dice;
		if (roll(2))
			word->at = roll(2) ? (int32_t)dice : word->at - (int32_t)roll(WORDS);
		if (roll(2))
			word->frame = (uint32_t)dice;
		if (roll(8) == 0)
			recent.word_count = (uint32_t)dice;
		if (roll(8) == 0)
			recent.count = roll(2) ? (uint32_t)dice : roll(DUMP_FRAMES_MAX + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_recent_stack_changes_nothing),
		SESSION_TEST(test_recent_stack_keeps_what_is_met_again),
		SESSION_TEST(test_recent_stack_grows),
		SESSION_TEST(test_recent_stack_keeps_to_the_depth_limit),
		SESSION_TEST(test_recent_stack_ignores_a_frame_pointer_that_counts),
		SESSION_TEST(test_recent_stack_counts_the_last_step),
		SESSION_TEST(test_recent_stack_ends_at_the_thread_pointer),
		SESSION_TEST(test_recent_stack_leaves_signals_out),
		SESSION_TEST(test_recent_stack_notices_a_changed_frame_pointer),
		SESSION_TEST(test_recent_stack_knows_where_the_frame_pointer_was_saved),
		SESSION_TEST(test_recent_stack_ends_where_a_cfa_was_read),
		SESSION_TEST(test_recent_stack_is_not_trusted),
	};

	return cmocka_run_group_tests_name("recent_stack", tests, NULL, NULL);
}
