/* SPDX-License-Identifier: MIT */
#include "live_child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "clocks.h"
#include "close_all_but.h"
#include "privileges.h"
#include "say.h"

#define DUMP_FD 3
#define PROGRAM_FD 4
#define END_NS 2000000000ull /* until it is killed */

enum { NOT_EXECUTED = 127, NOT_DROPPED = 126, NO_DUMP = 125 };

int live_child_check(const struct session *s, struct err *e)
{
	return s->symbols.program < 0 ? err_set(e, EINVAL, "--live: there is no memanalyze beside memattach") : 0;
}

/* ---- in the child ---- */

/* Ctrl-Z would stop memattach with it, and with that the recording. */
static void settle_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, sig == SIGTSTP ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* For reading only, below what is moved to its place. */
static bool place_descriptors(int dump, int program)
{
	static const int keep[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, DUMP_FD, PROGRAM_FD };
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", dump);
	int opened = open(path, O_RDONLY | O_CLOEXEC);
	int high = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
	int high_program = fcntl(program, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
	if (high < 0 || high_program < 0 || dup2(high, DUMP_FD) < 0 || dup3(high_program, PROGRAM_FD, O_CLOEXEC) < 0)
		return false;
	close_all_but(keep, sizeof keep / sizeof keep[0]);
	return true;
}

/* Of the environment what says how to draw. */
static size_t add_variable(char *environment[], size_t count, const char *name)
{
	const char *value = getenv(name);

	return value && asprintf(&environment[count], "%s=%s", name, value) >= 0 ? count + 1 : count;
}

static _Noreturn void be_child(const struct session *s)
{
	char *arguments[] = { (char[]){ "memanalyze" }, (char[]){ "--live" }, (char[]){ "/proc/self/fd/3" },
		              s->options.no_symbols ? (char[]){ "--no-symbols" } : NULL, NULL };
	/* A sanitizer would trace the process at its end. */
	char *environment[4] = { (char[]){ "ASAN_OPTIONS=detect_leaks=0" } };
	size_t count = add_variable(environment, 1, "TERM");

	environment[add_variable(environment, count, "NO_COLOR")] = NULL;
	settle_signals();
	if (!place_descriptors(s->recording.dump.fd, s->symbols.program))
		_exit(NO_DUMP);
	if (privileges_drop_for_view())
		_exit(NOT_DROPPED);
	syscall(SYS_execveat, PROGRAM_FD, "", arguments, environment, AT_EMPTY_PATH);
	_exit(NOT_EXECUTED);
}

/* ---- in memattach ---- */

int live_child_start(struct session *s, struct err *e)
{
	pid_t foreground = tcgetpgrp(STDIN_FILENO);

	if (foreground >= 0 && foreground != getpgrp())
		session_say(s, "memattach: in the background there is no live view; it comes with the foreground (fg)");
	s->held = calloc(1, sizeof *s->held);
	if (!s->held)
		return err_set(e, ENOMEM, "out of memory");
	fflush(NULL); /* or the child would write it, too */
	pid_t child = fork();
	if (child == 0)
		be_child(s);
	if (child < 0) {
		free(s->held);
		s->held = NULL;
		return err_sys(e, "no process can be made for the live view");
	}
	s->live_child = child;
	return 0;
}

static void say_held(struct session *s)
{
	struct held_lines *held = s->held;

	s->held = NULL;
	if (held)
		say_lines(stderr, held->text);
	if (held)
		free(held->text);
	free(held);
}

static void explain(struct session *s, int status)
{
	static const char goes_on[] = "; the session goes on until Ctrl-C";

	if (WIFSIGNALED(status))
		session_say(s, "memattach: the live view was ended by signal %d%s", WTERMSIG(status), goes_on);
	else if (WEXITSTATUS(status) == NOT_EXECUTED)
		session_say(s, "memattach: the memanalyze beside memattach cannot be executed%s", goes_on);
	else if (WEXITSTATUS(status) == NOT_DROPPED)
		session_say(s, "memattach: the privileges for the live view could not be given up%s", goes_on);
	else
		session_say(s, "memattach: the live view has failed%s", goes_on);
}

bool live_child_has_quit(struct session *s)
{
	int status;

	if (!s->live_child || waitpid(s->live_child, &status, WNOHANG) != s->live_child)
		return false;
	s->live_child = 0;
	say_held(s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	explain(s, status);
	return false;
}

void live_child_end(struct session *s)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t deadline_ns = monotonic_ns() + END_NS;

	if (!s->live_child)
		return;
	kill(s->live_child, SIGTERM);
	while (waitpid(s->live_child, NULL, WNOHANG) == 0) {
		if (monotonic_ns() > deadline_ns)
			kill(s->live_child, SIGKILL);
		nanosleep(&pause, NULL);
	}
	s->live_child = 0;
	say_held(s);
}
