/* SPDX-License-Identifier: MIT */
#include "launch/session_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/stop_signals.h"
#include "sandbox/child.h"

static _Noreturn void be_session(int (*session)(void *context), void *context)
{
	sigset_t none;

	setpgid(0, 0); /* a terminal's signals come through the parent, once */
	signal(SIGTTOU, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(session(context));
}

pid_t session_process_begin(int (*session)(void *context), void *context)
{
	pid_t child = child_start(SIGTERM);

	if (child == 0)
		be_session(session, context);
	return child;
}

enum member_outcome session_process_outcome(int status, enum session_after after)
{
	if (!WIFEXITED(status))
		return stop_signals_have(WTERMSIG(status)) ? OUTCOME_NOT_ATTACHED : OUTCOME_KILLED;
	if (after == AFTER_END_UNATTACHED || after == AFTER_EXEC_UNATTACHED)
		return OUTCOME_TOO_LATE;
	return WEXITSTATUS(status) <= OUTCOME_UNSAVED ? (enum member_outcome)WEXITSTATUS(status) : OUTCOME_DONE;
}

void session_process_sum(const unsigned counts[OUTCOMES], char *text, size_t size)
{
	static const char *const how[OUTCOMES] = { "done",
		                                   "not attached",
		                                   "with something left",
		                                   "without the end of the recording",
		                                   "killed",
		                                   "ended before they were attached to" };

	text[0] = '\0';
	for (unsigned i = 0; i < OUTCOMES; i++) {
		size_t used = strlen(text);
		if (counts[i])
			snprintf(text + used, size - used, "%s %u %s", used ? "," : "", counts[i], how[i]);
	}
}

enum exit_status session_process_worst(const unsigned counts[OUTCOMES])
{
	if (counts[OUTCOME_RESIDUE] || counts[OUTCOME_KILLED])
		return EXIT_RESIDUE;
	return counts[OUTCOME_UNSAVED] ? EXIT_DUMP : counts[OUTCOME_NOT_ATTACHED] ? EXIT_NOT_ATTACHED : EXIT_DONE;
}
