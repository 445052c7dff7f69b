/* SPDX-License-Identifier: MIT */
#include "children/analyzer_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "sandbox/child.h"
#include "sandbox/close_all_but.h"
#include "request_status.h"

#define LOOK_MS 100
#define STOPPED_NS 15000000000ull
#define HELD_UP_NS 1000000000ull /* between two looks: memattach was stopped, or had no processor */
#define FIRST_MOVED 32           /* descriptors that are passed on are from here on, but for the first ones */

enum { NO_DUMP = 125 };

/* ---- in the child ---- */

int passed_on_add(struct passed_on *p, int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD, FIRST_MOVED);

	if (moved < 0)
		return 0;
	p->list[p->count++] = moved;
	return moved;
}

/* Their moved numbers are closed with all others: each is in one place. */
static void remove_first(struct passed_on *p, const int first[ANALYZER_CHILD_FIRST])
{
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		bool is_first = false;
		for (int k = 0; k < ANALYZER_CHILD_FIRST; k++)
			is_first |= p->list[i] == first[k];
		if (!is_first)
			p->list[kept++] = p->list[i];
	}
	p->count = kept;
}

static bool put_in_place(struct passed_on *p, const int first[ANALYZER_CHILD_FIRST])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return false;
	remove_first(p, first);
	for (int fd = 0; fd < ANALYZER_CHILD_FIRST; fd++) {
		if (!first[fd] && fd > STDERR_FILENO)
			continue;
		if (dup2(first[fd] ? first[fd] : null, fd) < 0)
			return false;
		p->list[p->count++] = fd;
	}
	close_all_but(p->list, p->count);
	return true;
}

void passed_on_add_files(struct passed_on *p, const struct symbol_sources *s, char text[PASSED_ON_FILES_TEXT])
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < s->file_count; i++) {
		int fd = passed_on_add(p, s->files[i].fd);
		if (fd)
			used += (size_t)snprintf(text + used, PASSED_ON_FILES_TEXT - used, "%s%u:%d", used ? "," : "",
			                         s->files[i].id, fd);
	}
}

static void default_signals(bool stops)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, sig == SIGTSTP && !stops ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn void analyzer_child_no_dump(void)
{
	_exit(NO_DUMP);
}

/* Of our own environment what is named. */
static void put_variables(char **environment, const char *const names[])
{
	for (size_t i = 0; names && names[i] && i < ANALYZER_CHILD_VARIABLES; i++) {
		const char *value = getenv(names[i]);
		if (value && asprintf(environment, "%s=%s", names[i], value) >= 0)
			environment++;
	}
}

void analyzer_child_rights(const struct symbol_sources *sources, struct rights limits, char text[RIGHTS_TEXT])
{
	limits.uid = sources->uid;
	limits.gid = sources->gid;
	rights_format(&limits, text);
}

_Noreturn void analyzer_child_execute(struct passed_on *p, const int first[ANALYZER_CHILD_FIRST],
                                      const struct symbol_sources *sources, char **arguments, bool stops,
                                      const char *const variables[])
{
	/* A sanitizer would trace the process at its end. */
	char *environment[ANALYZER_CHILD_VARIABLES + 2] = { (char[]){ "ASAN_OPTIONS=detect_leaks=0" } };
	int program = passed_on_add(p, sources->program);

	default_signals(stops);
	put_variables(environment + 1, variables);
	if (!program)
		_exit(REQUEST_NOT_EXECUTED);
	fcntl(program, F_SETFD, FD_CLOEXEC);
	if (!put_in_place(p, first))
		_exit(NO_DUMP);
	syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(REQUEST_NOT_EXECUTED);
}

/* ---- in memattach ---- */

static int explain(const struct analyzer_child *c, int wait_status, int *status, struct err *e)
{
	if (WIFSIGNALED(wait_status))
		return err_set(e, ECANCELED, "memanalyze, which %s, was ended by signal %d", c->task,
		               WTERMSIG(wait_status));
	*status = WEXITSTATUS(wait_status);
	switch (*status) {
	case REQUEST_NOT_EXECUTED: return err_set(e, ENOEXEC, "the memanalyze beside memattach cannot be executed");
	case REQUEST_NOT_DROPPED:
		return err_set(e, EPERM,
		               "root could not give up its user and groups (CAP_SETUID, CAP_SETGID) for reading");
	case NO_DUMP: return err_set(e, EIO, "the dump could not be opened again");
	default: return 0;
	}
}

/* Until something happens, or a tenth of a second; moves what the child hands back for as long. */
static int look(const struct analyzer_child *c, int pidfd, struct err *e)
{
	uint64_t until_ns = clock_monotonic_ns() + LOOK_MS * 1000000ull;
	int rc = 0;

	do {
		struct pollfd events[] = { { .fd = pidfd, .events = POLLIN }, { .fd = -1 } };
		if (c->pipe)
			events[1] = report_pipe_awaits(c->pipe);
		poll(events, 2, LOOK_MS);
		rc = events[1].revents ? report_pipe_move(c->pipe, e) : 0;
	} while (rc > 0 && clock_monotonic_ns() < until_ns);
	return rc < 0 ? rc : 0;
}

/* The child has ended: what it has handed back is all there is, whoever else may still hold the pipe. 1: that has gone
 * out; 0: not yet. */
static int hand_on_rest(const struct analyzer_child *c, struct err *e)
{
	uint64_t until_ns = clock_monotonic_ns() + LOOK_MS * 1000000ull;
	int rc = c->pipe ? 1 : 0;

	while (rc > 0 && clock_monotonic_ns() < until_ns)
		rc = report_pipe_move(c->pipe, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && c->pipe && !report_pipe_is_empty(c->pipe)) {
		struct pollfd room = report_pipe_awaits(c->pipe);
		poll(&room, 1, LOOK_MS);
		return 0;
	}
	return rc == 0;
}

/* Without a pidfd (Linux before 5.3) it is looked for ten times a second. */
int analyzer_child_await(const struct analyzer_child *c, const struct patience *patience, int *status, struct err *e)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	uint64_t deadline_ns = clock_monotonic_ns() + c->seconds * 1000000000ull;
	uint64_t looked_ns = clock_monotonic_ns();
	uint64_t stopped_ns = 0; /* since when it has been stopped, by its user: it may never go on */
	bool has_ended = false;
	int wait_status = 0;

	for (;;) {
		int rc = has_ended ? hand_on_rest(c, e) : look(c, pidfd, e);
		if (has_ended && rc > 0)
			return explain(c, wait_status, status, e);
		pid_t ended = has_ended ? 0 : waitpid(c->pid, &wait_status, WNOHANG | WUNTRACED | WCONTINUED);
		if (ended == c->pid && (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status))) {
			stopped_ns = WIFSTOPPED(wait_status) ? clock_monotonic_ns() : 0;
			ended = 0;
		}
		has_ended |= ended == c->pid;
		if (ended < 0 && errno != EINTR)
			return err_sys(e, "memanalyze, which %s, is gone", c->task);
		bool goes_on = rc == 0 && patience->goes_on(patience->context, c->done ? c->done(c->child_context) : 0);
		const uint64_t now_ns = clock_monotonic_ns();
		if (now_ns - looked_ns > HELD_UP_NS) /* which is no time of the child's: it may have ended in it */
			deadline_ns += now_ns - looked_ns;
		looked_ns = now_ns;
		bool stands_still = stopped_ns && !has_ended && now_ns - stopped_ns > STOPPED_NS;
		if (goes_on && !stands_still && now_ns <= deadline_ns)
			continue;
		if (!has_ended)
			child_end(c->pid);
		if (rc < 0)
			return rc;
		if (goes_on && stands_still)
			return err_set(e, ETIMEDOUT, "memanalyze, which %s, was stopped by somebody", c->task);
		return goes_on ? err_set(e, ETIMEDOUT, "memanalyze, which %s, took longer than %u s", c->task,
		                         c->seconds)
		               : err_set(e, EINTR, "it was given up");
	}
}
