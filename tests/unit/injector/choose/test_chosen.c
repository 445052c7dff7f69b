/* SPDX-License-Identifier: MIT */
/* Which lines of /proc/PID/cgroup mean a cgroup or a unit, and processes found by their name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "choose/chosen.h"
#include "run/steps/inspect.h"

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
		if (chosen_line_matches(cases[i].line, CHOSEN_BY_CGROUP, cases[i].what, 0) != cases[i].matches)
			fail_msg("%s in %s", cases[i].line, cases[i].what);
}

static void test_chosen_line_matches_units(void **state)
{
	(void)state;
	static const char nginx[] = "0::/system.slice/nginx.service/worker";
	static const char own[] =
		"0::/user.slice/user-7.slice/user@7.service/app.slice/app-x.slice/_nginx.service/y.service";
	static const struct {
		const char *line, *unit;
		uid_t uid;
		bool matches;
	} cases[] = {
		{ nginx, "nginx.service", 0, true },
		{ nginx, "nginx", 7, true },
		{ nginx, "system.slice", 0, true },
		{ nginx, "ginx", 0, false },
		{ nginx, "nginx.socket", 0, false },
		{ nginx, "worker", 0, false },
		{ "0::/nginx.service-copy", "nginx", 0, false },
		{ "0::/nginx.service", "nginx", 0, true },
		{ "0::/shop.slice/shop-web.slice/nginx.service", "shop-web.slice", 0, true },
		{ "1:name=systemd:/system.slice/nginx.service", "nginx", 0, true },
		{ "4:memory:/system.slice/nginx.service", "nginx", 0, false },
		/* What users can make: below their manager, below a service that is theirs, in another hierarchy. */
		{ own, "nginx", 0, false },
		{ own, "nginx", 8, false },
		{ own, "nginx", 7, true },
		{ own, "y", 7, false },
		{ own, "app-x.slice", 7, true },
		{ own, "app-x.slice", 0, false },
		{ own, "user@7", 0, true },
		{ own, "user-7.slice", 0, true },
		{ "0::/user.slice/user-7.slice/session-2.scope/nginx.service", "nginx", 7, false },
		{ "0::/system.slice/theirs.service/system.slice/nginx.service", "nginx", 0, false },
		{ "0::/user.slice/user-7.slice/user@7.service/user@7.service/nginx.service", "nginx", 7, false },
		{ "0::/docker/1234/system.slice/nginx.service", "nginx", 0, false },
		{ "0::/../nginx.service", "nginx", 0, false },
		{ "0::/", "nginx", 0, false },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (chosen_line_matches(cases[i].line, CHOSEN_BY_UNIT, cases[i].unit, cases[i].uid) != cases[i].matches)
			fail_msg("%s in %s", cases[i].line, cases[i].unit);
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

/* What is in the command line counts where no name fits: as an expression, and not in those that led here. */
static void test_chosen_find_by_command_line(void **state)
{
	(void)state;
	struct chosen_list found;
	struct err e;
	char word[32], wanted[80], line[512];
	pid_t children[2];

	snprintf(word, sizeof word, "--chosen-%d", getpid());
	for (unsigned i = 0; i < 2; i++) {
		int ends[2];
		char byte;
		assert_int_equal(pipe(ends), 0);
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			dup2(ends[1], STDOUT_FILENO);
			if (pipe(ends) < 0 || dup2(ends[0], STDIN_FILENO) < 0) /* from which nothing comes */
				_exit(1);
			execl("/bin/sh", "sh", "-c", "printf x; read line", "x", word, "end", NULL);
			_exit(1);
		}
		assert_int_equal(read(ends[0], &byte, 1), 1); /* it is executed */
		close(ends[0]);
		close(ends[1]);
	}
	snprintf(wanted, sizeof wanted, "%s (end|xyz)$", word);
	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, wanted, &e), 0);
	assert_int_equal(found.count, 2);
	FILE *out = tmpfile();
	assert_non_null(out);
	chosen_print(&found, 1, out);
	rewind(out);
	assert_non_null(fgets(line, sizeof line, out));
	assert_int_equal(atoi(line), found.list[0].pid);
	snprintf(wanted, sizeof wanted, "sh -c printf x; read line x %s end\n", word);
	assert_non_null(strstr(line, wanted));
	assert_non_null(fgets(line, sizeof line, out));
	assert_non_null(strstr(line, "and 1 more"));
	fclose(out);
	chosen_free(&found);
	for (unsigned i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	snprintf(wanted, sizeof wanted, "%s (end", word);
	assert_int_equal(chosen_find(&found, CHOSEN_BY_NAME, wanted, &e), -ESRCH); /* no expression */
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
	assert_int_equal(inspect_open(&s, &e), -ESRCH);
	session_done(&s);
	options.start_ticks = child.start_ticks;
	session_init(&s, &options);
	assert_int_equal(inspect_open(&s, &e), 0);
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
		cmocka_unit_test(test_chosen_find_by_command_line),
		cmocka_unit_test(test_session_open_refuses_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
