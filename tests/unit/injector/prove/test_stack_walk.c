/* SPDX-License-Identifier: MIT */
/* Walks of stopped processes, frame by frame beside libunwind's, which reads the call frame information by itself. The
 * processes are children of this one, so both know their code. */
#include "fixture.h"

#include <libunwind-ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/clocks.h"
#include "prove/stack_walk.h"

#define DEPTH 40
#define MOMENTS 60
#define SECOND_NS 1000000000ull

#ifdef __x86_64__
extern char __executable_start, etext;
#endif

struct frames {
	uint64_t pc[STACK_WALK_FRAMES], sp[STACK_WALK_FRAMES];
	unsigned count;
};

/* ---- what the children do ---- */

static int announce;

static void ready(void)
{
	(void)!write(announce, "r", 1);
}

static int __attribute__((noinline)) wait_deep(int depth, volatile int *sum)
{
	if (depth == 0) {
		ready();
		pause();
		return 0;
	}
	return wait_deep(depth - 1, sum) + ++*sum;
}

static void sleep_deep(void)
{
	volatile int sum = 0;

	wait_deep(DEPTH, &sum);
}

static void on_signal(int number)
{
	(void)number;
	sleep_deep();
}

static void sleep_in_a_handler(void)
{
	const stack_t other = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_without_end(void)
{
	char *texts[64];

	ready();
	for (unsigned seed = 1;;) {
		for (unsigned i = 0; i < 64; i++) {
			seed = seed * 1103515245 + 12345;
			texts[i] = malloc(16 + seed % 4000);
			snprintf(texts[i], 16, "%u", seed);
		}
		qsort(texts, 64, sizeof *texts, by_text);
		for (unsigned i = 0; i < 64; i++)
			free(texts[i]);
	}
}

#ifdef __x86_64__
/* An entry of a lazy PLT: jmp *GOT; push; jmp. */
static uintptr_t stub_in(const char *start, const char *end)
{
	const uintptr_t first = ((uintptr_t)start + 4095) & ~(uintptr_t)4095, last = (uintptr_t)end - 32;

	for (const char *at = (const char *)first; (uintptr_t)at < last; at += 16)
		if (!memcmp(at, "\xff\x25", 2) && at[6] == 0x68 && at[11] == (char)0xe9)
			return (uintptr_t)at;
	return 0;
}
#endif

/* ---- looking at them ---- */

struct child {
	pid_t pid;
	struct view view;
	struct unwind_tables tables;
};

static void child_start(struct child *c, void (*what)(void), bool compiled)
{
	struct err e;
	int pipes[2];
	char answer;

	assert_int_equal(pipe(pipes), 0);
	c->pid = fork();
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		announce = pipes[1];
		what();
		_exit(1);
	}
	assert_int_equal(read(pipes[0], &answer, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	view_open(&c->view, c->pid, false);
	uint32_t next = 1;
	modules_number(&c->view.modules, NULL, &next);
	assert_int_equal(unwind_tables_create(&c->tables, UNWIND_TABLES_MAX_BYTES, &e), 0);
	struct unwind_coverage *coverage = calloc(c->view.modules.count, sizeof *coverage);
	assert_non_null(coverage);
	if (compiled)
		assert_int_equal(
			unwind_tables_compile(&c->tables, &c->view.modules, &c->view.tm, &c->view.maps, coverage, &e),
			0);
	free(coverage);
}

static void child_end(struct child *c)
{
	view_close(&c->view);
	unwind_tables_close(&c->tables);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

static bool note(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct frames *f = context;

	assert_int_equal(frame, f->count);
	f->pc[frame] = pc;
	f->sp[frame] = sp;
	f->count++;
	return true;
}

static void walk_by_libunwind(pid_t tid, struct frames *f)
{
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	void *info = _UPT_create(tid);
	unw_cursor_t cursor;

	assert_true(space && info && unw_init_remote(&cursor, space, info) == 0);
	do {
		unw_word_t pc, sp;
		assert_true(unw_get_reg(&cursor, UNW_REG_IP, &pc) == 0 && unw_get_reg(&cursor, UNW_REG_SP, &sp) == 0);
		if (pc == 0)
			break;
		f->pc[f->count] = pc;
		f->sp[f->count++] = sp;
	} while (f->count < STACK_WALK_FRAMES && unw_step(&cursor) > 0);
	_UPT_destroy(info);
	unw_destroy_addr_space(space);
}

static void compare(const struct frames *a, const struct frames *b)
{
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->pc, b->pc, a->count * sizeof *a->pc);
	assert_memory_equal(a->sp, b->sp, a->count * sizeof *a->sp);
}

/* Stops the child and walks it both ways. */
static void walk_both(const struct child *c, struct stack_walk *w, struct frames *ours, struct stack_walk_end *end)
{
	struct frames theirs = { .count = 0 };
	enum tracee_stop stop;
	struct tracee t = { 0 };
	struct err e;

	ours->count = 0;
	assert_int_equal(tracee_seize(&t, c->pid, c->pid, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20 * SECOND_NS, &stop, &e), 0);
	stack_walk(w, &t, note, ours, end);
	walk_by_libunwind(c->pid, &theirs);
	tracee_detach(&t);
#ifndef __x86_64__
	/* There libunwind goes on behind the outermost frame, which has no caller by its rule. */
	if (end->reached && theirs.count > ours->count)
		theirs.count = ours->count;
#endif
	compare(ours, &theirs);
}

static void walk_once(void (*what)(void), struct frames *ours, struct stack_walk_end *end)
{
	struct child c;

	child_start(&c, what, true);
	struct stack_walk *w = stack_walk_new(&c.view.modules, &c.view.tm, &c.tables);
	assert_non_null(w);
	walk_both(&c, w, ours, end);
	stack_walk_free(w);
	child_end(&c);
}

static void test_stack_walk_of_a_sleeping_thread(void **state)
{
	struct stack_walk_end end;
	struct frames ours;

	(void)state;
	walk_once(sleep_deep, &ours, &end);
	assert_true(stack_walk_complete(&end) && !end.in_handler);
	assert_in_range(end.frames, DEPTH, DEPTH + 60);
}

static void test_stack_walk_of_a_signal_handler(void **state)
{
	struct stack_walk_end end;
	struct frames ours;
	unsigned switches = 0;

	(void)state;
	walk_once(sleep_in_a_handler, &ours, &end);
	assert_true(stack_walk_complete(&end) && end.in_handler);
	for (unsigned i = 1; i < ours.count; i++)
		switches += ours.sp[i] < ours.sp[i - 1] || ours.sp[i] - ours.sp[i - 1] > 1u << 20;
	assert_int_equal(switches, 1);
}

static void test_stack_walk_at_any_moment(void **state)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	struct stack_walk_end end;
	struct frames ours;
	struct child c;

	(void)state;
	child_start(&c, sort_without_end, true);
	struct stack_walk *w = stack_walk_new(&c.view.modules, &c.view.tm, &c.tables);
	assert_non_null(w);
	for (unsigned i = 0; i < MOMENTS; i++) {
		walk_both(&c, w, &ours, &end);
		assert_true(stack_walk_complete(&end));
		nanosleep(&pause, NULL);
	}
	stack_walk_free(w);
	child_end(&c);
}

#ifdef __x86_64__
/* As if it were at each instruction of an entry of the PLT: only the first is met by chance. */
static void test_stack_walk_in_a_stub(void **state)
{
	static const struct at {
		unsigned offset, pushed;
	} places[] = { { 0, 0 }, { 6, 0 }, { 11, 1 } };
	const uint8_t *stub = (const uint8_t *)(uintptr_t)stub_in(&__executable_start, &etext);
	struct registers regs, changed;
	struct stack_walk_end end;
	struct frames ours;
	enum tracee_stop stop;
	struct tracee t = { 0 };
	struct child c;
	struct err e;

	(void)state;
	if (!stub)
		skip();
	child_start(&c, sleep_deep, true);
	struct stack_walk *w = stack_walk_new(&c.view.modules, &c.view.tm, &c.tables);
	assert_non_null(w);
	assert_int_equal(tracee_seize(&t, c.pid, c.pid, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20 * SECOND_NS, &stop, &e), 0);
	assert_int_equal(tracee_registers(&t, &regs, &e), 0);
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		changed = regs;
		changed.general.rip = (uintptr_t)stub + places[i].offset;
		changed.general.rsp -= 8ull * places[i].pushed;
		assert_int_equal(tracee_set_registers(&t, &changed, &e), 0);
		ours.count = 0;
		stack_walk(w, &t, note, &ours, &end);
		assert_true(end.frames > 1 && ours.sp[1] == regs.general.rsp + 8);
	}
	assert_int_equal(tracee_set_registers(&t, &regs, &e), 0);
	tracee_detach(&t);
	stack_walk_free(w);
	child_end(&c);
}
#endif

/* Without rows each frame is a guess. */
static void test_stack_walk_without_rows(void **state)
{
	struct stack_walk_end end;
	struct frames ours = { .count = 0 };
	enum tracee_stop stop;
	struct tracee t = { 0 };
	struct child c;
	struct err e;

	(void)state;
	child_start(&c, sleep_deep, false);
	struct stack_walk *w = stack_walk_new(&c.view.modules, &c.view.tm, &c.tables);
	assert_non_null(w);
	assert_int_equal(tracee_seize(&t, c.pid, c.pid, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20 * SECOND_NS, &stop, &e), 0);
	stack_walk(w, &t, note, &ours, &end);
	tracee_detach(&t);
	assert_true(end.guessed && end.guess_frame == 0 && end.guess_pc == ours.pc[0] && !stack_walk_complete(&end));
	stack_walk_free(w);
	child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_walk_of_a_sleeping_thread),
		cmocka_unit_test(test_stack_walk_of_a_signal_handler),
		cmocka_unit_test(test_stack_walk_at_any_moment),
#ifdef __x86_64__
		cmocka_unit_test(test_stack_walk_in_a_stub),
#endif
		cmocka_unit_test(test_stack_walk_without_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
