/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pty.h>
#include <unistd.h>

#include "input/progress.h"

#define ERASE "\r\033[K"
#define NEVER (3600ull * 1000000000u)

struct terminal {
	int master, slave;
	char text[4096];
};

static void open_terminal(struct terminal *t)
{
	assert_int_equal(openpty(&t->master, &t->slave, NULL, NULL, NULL), 0);
	setenv("TERM", "xterm", 1);
}

/* What was written to it since the last call: all that comes before a mark. */
static const char *seen(struct terminal *t)
{
	size_t used = 0;

	assert_int_equal(write(t->slave, "#", 1), 1);
	do {
		ssize_t n = read(t->master, t->text + used, sizeof t->text - used);
		assert_true(n > 0);
		used += (size_t)n;
	} while (t->text[used - 1] != '#');
	t->text[used - 1] = 0;
	return t->text;
}

static void close_terminal(struct terminal *t)
{
	close(t->slave);
	close(t->master);
}

static void test_line_comes_and_goes(void **state)
{
	struct terminal t;
	struct progress p;

	(void)state;
	open_terminal(&t);
	progress_start(&p, t.slave, 0);
	progress_at(&p, "reading", 1, 4);
	assert_string_equal(seen(&t), ERASE "memanalyze: reading 25 %");
	progress_at(&p, "reading", 2, 4); /* too early to draw again */
	assert_string_equal(seen(&t), "");
	p.due_ns = 0;
	progress_at(&p, "reading", 500, 4); /* the file said too little */
	assert_string_equal(seen(&t), ERASE "memanalyze: reading 99 %");
	progress_clear(&p);
	assert_string_equal(seen(&t), ERASE);
	progress_clear(&p);
	assert_string_equal(seen(&t), "");
	p.due_ns = 0;
	progress_at(&p, "writing", 0, 0);
	assert_string_equal(seen(&t), ERASE "memanalyze: writing");
	progress_stop(&p);
	assert_string_equal(seen(&t), ERASE);
	p.due_ns = 0;
	progress_at(&p, "writing", 1, 4);
	progress_stop(&p);
	assert_string_equal(seen(&t), "");
	progress_at(NULL, "writing", 1, 4);
	close_terminal(&t);
}

static void test_short_runs_show_nothing(void **state)
{
	struct terminal t;
	struct progress p;

	(void)state;
	open_terminal(&t);
	progress_start(&p, t.slave, NEVER);
	for (int i = 0; i < 100; i++)
		progress_at(&p, "reading", 1, 4);
	progress_stop(&p);
	assert_string_equal(seen(&t), "");
	close_terminal(&t);
}

static void test_only_terminals_that_can_erase(void **state)
{
	struct terminal t;
	struct progress p;
	int ends[2];
	char byte;

	(void)state;
	open_terminal(&t);
	setenv("TERM", "dumb", 1);
	progress_start(&p, t.slave, 0);
	progress_at(&p, "reading", 1, 4);
	progress_stop(&p);
	assert_string_equal(seen(&t), "");
	setenv("TERM", "xterm", 1);
	assert_int_equal(pipe(ends), 0);
	progress_start(&p, ends[1], 0);
	progress_at(&p, "reading", 1, 4);
	progress_stop(&p);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	close_terminal(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_comes_and_goes),
		cmocka_unit_test(test_short_runs_show_nothing),
		cmocka_unit_test(test_only_terminals_that_can_erase),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
