/* SPDX-License-Identifier: MIT */
/* Which lines of /proc/PID/cgroup mean a cgroup or a unit, and processes found by their name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chosen.h"
#include "inspect.h"

#define NAME "chosen by name"

static void test_chosen_line_matches_cgroups(void **state)
{
	(void)state;
	static const struct {
		const char *line, *what;
		bool matches;
	} cases[] = {
		{ "0::/shop/web", "/shop/web", true },
		{ "0::/shop/web", "shop/web/", true },
		{ "0::/shop/web", "/shop", true },
		{ "0::/shop/web", "/", true },
		{ "0::/shop/web", "/shop/we", false },
		{ "0::/shop", "/shop/web", false },
		{ "0::/shop/web", "/sys/fs/cgroup/shop/web", true },
		{ "0::/shop/web", "/sys/fs/cgroup/unified/shop", true },
		{ "4:memory:/shop/web", "/sys/fs/cgroup/memory/shop", true },
		{ "4:memory:/shop/web", "/sys/fs/cgroup/cpu/shop", false },
		{ "4:memory:/memory/shop", "/sys/fs/cgroup/memory/shop", false },
		{ "1:name=systemd:/a/b", "/sys/fs/cgroup/systemd/a", true },
		{ "0::/../above", "/above", false },
		{ "no line of this kind", "/", false },
		{ "", "/", false },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (chosen_line_matches(cases[i].line, CHOSEN_BY_CGROUP, cases[i].what) != cases[i].matches)
			fail_msg("%s in %s", cases[i].line, cases[i].what);
}

static void test_chosen_line_matches_units(void **state)
{
	(void)state;
	const char *line = "0::/system.slice/nginx.service/worker";

	assert_true(chosen_line_matches(line, CHOSEN_BY_UNIT, "nginx.service"));
	assert_true(chosen_line_matches(line, CHOSEN_BY_UNIT, "nginx"));
	assert_true(chosen_line_matches(line, CHOSEN_BY_UNIT, "system.slice"));
	assert_false(chosen_line_matches(line, CHOSEN_BY_UNIT, "ginx"));
	assert_false(chosen_line_matches(line, CHOSEN_BY_UNIT, "nginx.socket"));
	assert_false(chosen_line_matches("0::/nginx.service-copy", CHOSEN_BY_UNIT, "nginx"));
}

/* A child that is called so. Its end of the pipe says that it is. */
static pid_t make_child(void)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, NAME);
		if (write(ends[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return child;
}

static void test_chosen_find_by_name(void **state)
{
	(void)state;
	struct chosen_list found;
	struct err e;
	pid_t children[2] = { make_child(), make_child() };

	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, NAME, &e), 0);
	assert_int_equal(found.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct chosen again;
		assert_true(found.list[i].pid == children[0] || found.list[i].pid == children[1]);
		assert_int_equal(chosen_look(&again, found.list[i].pid, &e), 0);
		assert_int_equal(again.start_ticks, found.list[i].start_ticks);
	}
	chosen_free(&found);
	kill(children[0], SIGKILL);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)children[0], &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, NAME, &e), 0);
	assert_int_equal(found.count, 1); /* a zombie is none */
	chosen_free(&found);
	kill(children[1], SIGKILL);
	waitpid(children[0], NULL, 0);
	waitpid(children[1], NULL, 0);
	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, NAME, &e), -ESRCH);
	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, "chosen by", &e), -ESRCH);
}

static void test_session_open_refuses_another_process(void **state)
{
	(void)state;
	struct session_options options = { .pid = make_child() };
	struct session s;
	struct chosen child;
	struct err e;

	assert_int_equal(chosen_look(&child, options.pid, &e), 0);
	options.start_ticks = child.start_ticks + 1; /* as if its number had been that of another one */
	session_init(&s, &options);
	assert_int_equal(session_open(&s, &e), -ESRCH);
	session_done(&s);
	options.start_ticks = child.start_ticks;
	session_init(&s, &options);
	assert_int_equal(session_open(&s, &e), 0);
	session_done(&s);
	kill(options.pid, SIGKILL);
	waitpid(options.pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen_line_matches_cgroups),
		cmocka_unit_test(test_chosen_line_matches_units),
		cmocka_unit_test(test_chosen_find_by_name),
		cmocka_unit_test(test_session_open_refuses_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
