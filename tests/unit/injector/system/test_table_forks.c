/* SPDX-License-Identifier: MIT */
/* Which processes of a table lose their sessions for their forks, and when they get one again. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "system/table_forks.h"

#define MINUTE_NS 60000000000ull
#define LOOK_NS 2000000000ull
#define PART 0.01
#define FORKS 400u

static void nobody(void *context, const struct seen_process *p)
{
	(void)context;
	(void)p;
	fail();
}

/* A session, which is a process that waits for its end. */
static void begin(struct seen_process *p)
{
	p->state = PROCESS_IN_SESSION;
	p->attached = true;
	p->told = p->forking = false;
	p->session = fork();
	if (p->session == 0)
		for (;;)
			pause();
}

/* This process forks so often that its session is told to end. */
static void lose_session(struct process_table *t, uint64_t *now_ns)
{
	struct seen_process *p = t->list;
	int status;

	for (unsigned look = 0; look < 6 && !p->told; look++) {
		for (unsigned i = 0; i < FORKS; i++) {
			pid_t child = fork();
			if (child == 0)
				_exit(0);
			waitpid(child, NULL, 0);
			table_forks_count(t, getpid());
		}
		*now_ns += LOOK_NS;
		table_forks_judge(t, PART, *now_ns, nobody, NULL);
	}
	assert_true(p->told && p->forking);
	assert_int_equal(waitpid(p->session, &status, 0), p->session);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	p->session = 0;
	table_forks_leave(p, *now_ns);
}

/* One that forks in bursts is not attached to after each of them for ever. */
static void test_sessions_are_lost_more_and_more_seldom(void **state)
{
	struct seen_process list[] = { { .is.pid = getpid() } };
	struct process_table t = { .list = list, .count = 1 };
	uint64_t now_ns = LOOK_NS;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		begin(list);
		lose_session(&t, &now_ns);
		assert_int_equal(list->state, PROCESS_REFUSED);
		assert_int_equal(list->next_try_ns - now_ns, MINUTE_NS << (i < 6 ? i : 6));
		now_ns = list->next_try_ns;
	}
}

/* What takes out the rest of a killed session is its session until it has ended. */
static void test_next_waits_for_the_process_before(void **state)
{
	struct seen_process list[] = { { .is.pid = getpid(), .state = PROCESS_WAITING, .session = 1 } };
	struct process_table t = { .list = list, .count = 1 };

	(void)state;
	assert_null(process_table_next(&t, MINUTE_NS));
	list->session = 0;
	assert_ptr_equal(process_table_next(&t, MINUTE_NS), list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sessions_are_lost_more_and_more_seldom),
		cmocka_unit_test(test_next_waits_for_the_process_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
