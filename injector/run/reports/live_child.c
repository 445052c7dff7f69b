/* SPDX-License-Identifier: MIT */
#include "run/reports/live_child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children/analyzer_child.h"
#include "base/cleanup.h"
#include "host/say.h"
#include "sandbox/child.h"
#include "view_request.h"

#define END_MS 2000 /* until it is killed */

int live_child_check(const struct session *s, struct err *e)
{
	return s->symbols.program < 0 ? err_set(e, EINVAL, "--live: there is no memanalyze beside memattach") : 0;
}

/* ---- in the child ---- */

/* For reading only. */
static int dump_for_reading(int dump)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", dump);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Ctrl-Z would stop memattach with it, and with that the recording. */
static _Noreturn void be_child(const struct session *s)
{
	static const char *const variables[] = { "TERM", "NO_COLOR", NULL };
	static char files[PASSED_ON_FILES_TEXT] = VIEW_REQUEST_NO_NAMES;
	struct passed_on p = { .count = 0 };
	char root[16] = "0";
	char *arguments[] = { (char[]){ "memanalyze" },
		              (char[]){ VIEW_REQUEST_OPTION },
		              (char[]){ VIEW_REQUEST_VERSION },
		              root,
		              files,
		              NULL };
	const int first[ANALYZER_CHILD_FIRST] = {
		[STDIN_FILENO] = passed_on_add(&p, STDIN_FILENO),
		[STDOUT_FILENO] = passed_on_add(&p, STDOUT_FILENO),
		[STDERR_FILENO] = passed_on_add(&p, STDERR_FILENO),
		[VIEW_REQUEST_DUMP] = passed_on_add(&p, dump_for_reading(s->recording.dump.fd)),
	};

	if (!first[VIEW_REQUEST_DUMP])
		analyzer_child_no_dump();
	if (!s->options.no_symbols) {
		snprintf(root, sizeof root, "%d", passed_on_add(&p, s->symbols.root));
		passed_on_add_files(&p, &s->symbols, files);
	}
	analyzer_child_execute(&p, first, &s->symbols, arguments, false, variables);
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
	pid_t child = child_start(SIGTERM);
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
	else if (WEXITSTATUS(status) == REQUEST_NOT_EXECUTED)
		session_say(s, "memattach: the memanalyze beside memattach cannot be executed%s", goes_on);
	else if (WEXITSTATUS(status) == REQUEST_NOT_DROPPED)
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
	if (!s->live_child)
		return;
	kill(s->live_child, SIGTERM);
	child_ends_within(s->live_child, END_MS);
	child_end(s->live_child);
	s->live_child = 0;
	say_held(s);
}
