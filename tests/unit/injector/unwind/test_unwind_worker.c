/* SPDX-License-Identifier: MIT */
/* The child that compiles: the same rows as in this process, and nothing but tables is lost when it dies. */
#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/unwind_worker.h"

static void open_job(struct unwind_job *job, const struct elf_module *m, const struct view *view, bool by_memory)
{
	*job = (struct unwind_job){ 0 };
	module_file_open(&job->file, m, &view->tm, &view->maps);
	if (by_memory)
		module_file_close(&job->file);
	unwind_input_read(&job->input, &job->file);
}

static void close_job(struct unwind_job *job)
{
	unwind_rows_done(&job->rows);
	unwind_input_done(&job->input);
	module_file_close(&job->file);
}

static void check_same_rows(bool by_memory)
{
	struct victim v;
	struct view view;
	struct unwind_rows rows;
	struct err e;

	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	struct unwind_job *jobs = calloc(view.modules.count, sizeof *jobs);
	assert_non_null(jobs);
	for (size_t i = 0; i < view.modules.count; i++)
		open_job(&jobs[i], &view.modules.list[i], &view, by_memory);
	unwind_worker_run(jobs, view.modules.count);
	for (size_t i = 0; i < view.modules.count; i++) {
		assert_int_equal(jobs[i].result, 0);
		assert_int_equal(unwind_input_compile(&rows, &jobs[i].input, &e), 0);
		assert_true(rows.count > 0);
		assert_int_equal(jobs[i].rows.count, rows.count);
		assert_int_equal(jobs[i].rows.fdes, rows.fdes);
		assert_memory_equal(jobs[i].rows.pc, rows.pc, rows.count * sizeof *rows.pc);
		assert_memory_equal(jobs[i].rows.rule, rows.rule, rows.count * sizeof *rows.rule);
		unwind_rows_done(&rows);
		close_job(&jobs[i]);
	}
	free(jobs);
	view_close(&view);
	victim_end(&v);
}

static void test_unwind_worker_gives_the_same_rows(void **state)
{
	(void)state;
	check_same_rows(false);
}

/* Without files it reads the code of modules, which rows depend on too, in the memory of the target. */
static void test_unwind_worker_without_files(void **state)
{
	(void)state;
	check_same_rows(true);
}

/* Bytes that nobody may read kill the child, as a fault in a library would. */
static void test_unwind_worker_that_dies(void **state)
{
	uint8_t *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct victim v;
	struct view view;
	struct unwind_job jobs[2];

	(void)state;
	assert_ptr_not_equal(nothing, MAP_FAILED);
	void (*handler)(int) = signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the test in the child */
	victim_start(&v, "victim_now", NULL, NULL);
	view_open(&view, v.pid, false);
	for (int i = 0; i < 2; i++)
		open_job(&jobs[i], &view.modules.list[i], &view, false);
	uint8_t *good = jobs[0].input.data;
	jobs[0].input.data = nothing;
	unwind_worker_run(jobs, 2);
	signal(SIGSEGV, handler);
	jobs[0].input.data = good;
	assert_int_equal(jobs[0].result, -ECANCELED);
	assert_non_null(strstr(jobs[0].error.text, "the process that compiled its unwind table"));
	assert_int_equal(jobs[0].rows.count, 0);
	assert_true(jobs[1].result == -ECANCELED || jobs[1].rows.count > 0);
	for (int i = 0; i < 2; i++)
		close_job(&jobs[i]);
	view_close(&view);
	victim_end(&v);
	munmap(nothing, 4096);
}

static void test_unwind_rows_sound_refuses_what_would_mislead(void **state)
{
	uint32_t pc[] = { 0, 5, 9 }, rule[] = { UNWIND_RULE(UNWIND_SP, 8, 0), UNWIND_NONE, UNWIND_END };
	struct unwind_rows rows = { .pc = pc, .rule = rule, .count = 3 };

	(void)state;
	assert_true(unwind_rows_sound(&rows, 10));
	assert_false(unwind_rows_sound(&rows, 9));
	pc[1] = 9;
	assert_false(unwind_rows_sound(&rows, 10));
	pc[1] = 5;
	rule[2] = 15;
	assert_false(unwind_rows_sound(&rows, 10));
	rule[2] = UNWIND_END;
	pc[0] = 1;
	assert_false(unwind_rows_sound(&rows, 10));
	rows.count = 0;
	assert_false(unwind_rows_sound(&rows, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unwind_worker_gives_the_same_rows),
		cmocka_unit_test(test_unwind_worker_without_files),
		cmocka_unit_test(test_unwind_worker_that_dies),
		cmocka_unit_test(test_unwind_rows_sound_refuses_what_would_mislead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
