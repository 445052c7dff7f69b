/* SPDX-License-Identifier: MIT */
/* See walk_fixture.h. */
#include "walk_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "walk/known_stack.h"

struct fixture fixture;
_Alignas(4096) uint64_t stack[WORDS];
uint64_t frames[DUMP_FRAMES_MAX];
struct unwind_result result;

uint64_t at(uint32_t word)
{
	return (uint64_t)&stack[word];
}

int open_session(void **state)
{
	(void)state;
	fixture_open(&fixture, 1, "/proc/self/exe");
	assert_int_equal(memattach_control(CONTROL_START, &fixture.start), 0);
	memset(stack, 0, sizeof(stack));
	return 0;
}

int close_session(void **state)
{
	(void)state;
	fixture_inert(&memattach_session);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	fixture_close(&fixture);
	return 0;
}

void publish(const uint32_t *rules, uint32_t count)
{
	struct unwind_module module = { .start = CODE, .end = CODE + 16ull * count, .row_count = count, .id = 9 };
	struct unwind_range ranges[] = {
		{ .start = CODE, .end = CODE + (1 << 20), .flags = UNWIND_RANGE_EXEC },
		{ .start = at(0), .end = at(WORDS - 1) + 8, .flags = UNWIND_RANGE_STACK },
	};
	uint32_t pcs[64];

	assert_true(count <= 64);
	for (uint32_t i = 0; i < count; i++)
		pcs[i] = 16 * i;
	module.rows_offset = fixture_rows(&fixture, pcs, rules, count);
	fixture_index(&fixture, &module, 1, ranges, 2);
	known_stacks_init(at(0), at(WORDS - 1) + 8, 0);
}

void make_control_block(uint64_t thread_pointer)
{
	uint64_t *noted = (uint64_t *)(thread_pointer + NOTED_AT);

	known_stacks_init(0, 0, 0);
	known_stacks.noted_at = NOTED_AT;
	noted[0] = at(0);
	noted[1] = thread_pointer + 64 - at(0);
}

void walk(uint32_t word, uint64_t fp)
{
	struct unwind_start start = { .sp = at(word), .fp = fp, .thread_pointer = 0 };

	unwind_walk(&start, NULL, frames, &result);
}

void assert_frame(uint32_t i, uint64_t pc)
{
	assert_true(i < result.count);
	assert_int_equal(DUMP_FRAME_ADDRESS(frames[i]), pc);
}
