/* SPDX-License-Identifier: MIT */
/*
 * Walks of 20,000 stacks made by hand, of coroutines, threads and signal handlers, with memory around them that cannot
 * be read: none may fault. Each is built as a program would leave it: frames that the tables describe, then something
 * that they do not, with anything in %rbp. Those frames must be found, whatever stack they are on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "fixture.h"
#include "walk/known_stack.h"
#include "walk/recent_stack.h"
#include "walk/unwind.h"

#define PAGE 4096u
#define ARENA_PAGES 64u
#define ROUNDS 20000
#define FRAMES 24u
#define NOTED_AT 0x690 /* as glibc */
#define CONTROL_BLOCK_BYTES 0x900

/* Function i of the module, or of the code that no module holds, which calls at its byte 100. */
#define FUNCTION_BYTES 128u
#define PC(i) (code + (uint64_t)(i)*FUNCTION_BYTES + 100)

enum {
	SMALL,
	LARGE,
	SAVING,
	POINTED,
	BARE,
	OUTERMOST,
	SWITCHING,
	HANDLER,
	MODULE_FUNCTIONS,
	JIT = MODULE_FUNCTIONS,
	FUNCTIONS
};

static const uint32_t rules[MODULE_FUNCTIONS] = {
	[SMALL] = UNWIND_RULE(UNWIND_SP, 16, UNWIND_FP_SAME),
	[LARGE] = UNWIND_RULE(UNWIND_SP, 1600, UNWIND_FP_SAME),
	[SAVING] = UNWIND_RULE(UNWIND_SP, 48, 2),
	[POINTED] = UNWIND_RULE(UNWIND_FP, 16, 2), /* 64 bytes */
	[BARE] = UNWIND_NONE,
	[OUTERMOST] = UNWIND_RULE(UNWIND_END, 0, 0),
	[SWITCHING] = UNWIND_RULE(UNWIND_UNSUPPORTED, 0, 0), /* see injector/arch/stack_switch.h */
	[HANDLER] = UNWIND_RULE(UNWIND_SIGNAL, 0, 0),
};
static const uint32_t bytes[MODULE_FUNCTIONS] = { [SMALL] = 16, [LARGE] = 1600, [SAVING] = 48, [POINTED] = 64 };

static struct fixture f;
static uint64_t code, arena, dice = 88172645463325252u;
static struct recent_stack recent;

/* A stretch of the arena that can be read. */
struct stretch {
	uint64_t start;
	uint64_t end;
};

/* A stack in the making. */
struct made {
	struct stretch in;
	struct stretch other; /* somewhere else */
	uint64_t sp;
	uint64_t fp;
	uint64_t thread_pointer;
	uint32_t frames; /* that must be found */
};

static uint32_t roll(uint32_t sides)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 33) % sides;
}

/* What a register holds that nobody speaks for. */
static uint64_t anything(const struct made *m)
{
	switch (roll(6)) {
	case 0: return 0;
	case 1: return arena + 8ull * roll(ARENA_PAGES * PAGE / 8);
	case 2: return m->sp + 8ull * roll(1024);
	case 3: return m->in.end - 8 + 8ull * roll(4);
	case 4: return PC(roll(FUNCTIONS));
	default: return dice;
	}
}

static void store(uint64_t address, uint64_t value)
{
	*(uint64_t *)address = value;
}

static void open_stretch(struct stretch *s, uint32_t pages)
{
	s->start = arena + (uint64_t)(1 + roll(ARENA_PAGES - pages - 2)) * PAGE;
	s->end = s->start + pages * PAGE;
	assert_int_equal(mprotect((void *)s->start, s->end - s->start, PROT_READ | PROT_WRITE), 0);
}

static void fill(const struct made *m, const struct stretch *s)
{
	for (uint64_t at = s->start; at < s->end; at += 8)
		store(at, anything(m));
}

/* The index knows the arena as it was once, as it is, or not at all. */
static void publish(const struct made *m)
{
	struct unwind_module module = {
		.start = code, .end = code + MODULE_FUNCTIONS * FUNCTION_BYTES, .row_count = MODULE_FUNCTIONS, .id = 9
	};
	struct unwind_range ranges[2] = { { code, code + PAGE, UNWIND_RANGE_EXEC, 0 } };
	struct unwind_range stack = { m->in.start, m->in.end, UNWIND_RANGE_STACK, 0 };
	uint32_t pcs[MODULE_FUNCTIONS], count = 1, kind = roll(3), at = arena < code ? 0 : 1;

	for (uint32_t i = 0; i < MODULE_FUNCTIONS; i++)
		pcs[i] = i * FUNCTION_BYTES;
	if (kind) {
		ranges[!at] = ranges[0];
		ranges[at] = stack;
		if (kind == 1) {
			ranges[at].start = arena;
			ranges[at].end = arena + ARENA_PAGES * PAGE;
		}
		count = 2;
	}
	f.tables_end = 4096; /* nobody reads the old ones */
	module.rows_offset = fixture_rows(&f, pcs, rules, MODULE_FUNCTIONS);
	fixture_index(&f, &module, 1, ranges, count);
}

/* Frames of random functions from m->sp on, whose return addresses are in place; returns where the last one's CFA is.
 */
static uint64_t make_frames(struct made *m, uint32_t wanted)
{
	uint64_t at = m->sp, cfa[FRAMES + 1];
	uint32_t made[FRAMES];

	cfa[0] = at + 8;
	for (m->frames = 0; m->frames < wanted; m->frames++) {
		uint32_t function = roll(4);

		if (cfa[m->frames] + bytes[function] > m->in.end)
			break;
		made[m->frames] = function;
		cfa[m->frames + 1] = cfa[m->frames] + bytes[function];
		store(cfa[m->frames] - 8, PC(function));
	}
	m->fp = anything(m); /* of the outermost one */
	for (uint32_t i = m->frames; i-- > 0;) {
		if (made[i] == SAVING || made[i] == POINTED)
			store(cfa[i + 1] - 16, m->fp);
		if (made[i] == SAVING)
			m->fp = anything(m);
		else if (made[i] == POINTED)
			m->fp = cfa[i + 1] - 16;
	}
	return cfa[m->frames];
}

/* What the outermost of the frames was called by. */
static void make_caller(struct made *m, uint64_t cfa)
{
	static const uint32_t callers[] = { BARE, JIT, OUTERMOST, SWITCHING, HANDLER };
	uint32_t caller = callers[roll(5)];

	if (caller == HANDLER && m->in.end - cfa < ARCH_UCONTEXT_BYTES)
		caller = SWITCHING;
	store(cfa - 8, PC(caller));
	if (caller == HANDLER) {
		store(cfa + ARCH_UCONTEXT_PC, PC(roll(2) ? BARE : JIT));
		store(cfa + ARCH_UCONTEXT_SP, anything(m) & ~7ull);
		store(cfa + ARCH_UCONTEXT_FP, anything(m));
	}
	m->frames++;
}

/* Nothing is known, or a thread's stack elsewhere or here, or the main one. */
static void make_known(struct made *m)
{
	uint64_t *noted;

	known_stacks_init(0, 0, 0);
	m->thread_pointer = 0;
	switch (roll(4)) {
	case 0: break;
	case 1:
		known_stacks_init(m->in.start + roll(2) * PAGE, m->in.end, roll(2) * MAIN_STACK_GAP);
		if (roll(2))
			known_stacks_init(arena + ARENA_PAGES * PAGE, arena + 2 * ARENA_PAGES * PAGE, 0);
		break;
	default:
		if (roll(2) && m->sp < m->in.end - PAGE)
			m->thread_pointer = m->in.end - CONTROL_BLOCK_BYTES;
		else
			m->thread_pointer = m->other.end - CONTROL_BLOCK_BYTES;
		noted = (uint64_t *)(m->thread_pointer + NOTED_AT);
		noted[0] = (m->thread_pointer > m->in.end || m->thread_pointer < m->in.start ? m->other.start
		                                                                             : m->in.start) -
		           PAGE;
		noted[1] = m->thread_pointer + CONTROL_BLOCK_BYTES - noted[0];
		known_stacks.noted_at = NOTED_AT;
	}
}

static bool apart(const struct made *m)
{
	return m->in.end + PAGE <= m->other.start || m->other.end + PAGE <= m->in.start;
}

static void make(struct made *m)
{
	assert_int_equal(mprotect((void *)arena, ARENA_PAGES * PAGE, PROT_NONE), 0);
	do {
		open_stretch(&m->in, 1 + roll(6));
		open_stretch(&m->other, 1 + roll(6));
		if (!apart(m))
			assert_int_equal(mprotect((void *)arena, ARENA_PAGES * PAGE, PROT_NONE), 0);
	} while (!apart(m));
	m->sp = m->in.end - 8ull * (1 + roll(roll(2) ? 16 : (uint32_t)(m->in.end - m->in.start) / 8));
	fill(m, &m->in);
	fill(m, &m->other);
	make_caller(m, make_frames(m, roll(FRAMES)));
	make_known(m);
	publish(m);
}

static void test_no_stack_faults(void **state)
{
	static uint64_t frames[DUMP_FRAMES_MAX];
	struct unwind_result result;
	struct made m;

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		make(&m);
		struct unwind_start start = { .sp = m.sp, .fp = m.fp, .thread_pointer = m.thread_pointer };
		bool cut = m.thread_pointer > m.sp &&
		           m.thread_pointer < m.in.end; /* by a control block among the frames */

		unwind_walk(&start, NULL, frames, &result);
		if (!cut)
			assert_true(result.count >= m.frames);
		for (int again = roll(4); again > 0; again--) {
			struct unwind_result other;

			unwind_walk(&start, &recent, frames, &other);
			assert_int_equal(other.count, result.count);
			assert_true(other.hash == result.hash);
		}
	}
}

static int open_session(void **state)
{
	(void)state;
	fixture_open(&f, 1, "/proc/self/exe");
	assert_int_equal(memattach_control(CONTROL_START, &f.start), 0);
	code = (uint64_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena = (uint64_t)mmap(NULL, 2 * ARENA_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
	                       0);
	assert_true(code != (uint64_t)MAP_FAILED && arena != (uint64_t)MAP_FAILED);
	return 0;
}

static int close_session(void **state)
{
	(void)state;
	fixture_inert(&memattach_session);
	assert_int_equal(memattach_control(CONTROL_STOP, NULL), 0);
	munmap((void *)code, PAGE);
	munmap((void *)arena, 2 * ARENA_PAGES * PAGE);
	fixture_close(&f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_stack_faults, open_session, close_session),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
