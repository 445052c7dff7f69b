/* SPDX-License-Identifier: MIT */
#include "run/repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/steps/inspect.h"
#include "sandbox/child.h"
#include "recording/kept_dumps.h"
#include "host/say.h"
#include "session/session_lock.h"
#include "host/session_seed.h"
#include "run/session_run.h"
#include "session/status_line.h"
#include "run/take_out.h"
#include "host/stop_signals.h"
#include "host/watchdog.h"

#define SHOW_NS 1000000000ull
#define LONG_NS 1000000000000000ull

uint64_t schedule_next(struct schedule *s, uint64_t now_ns, uint64_t *missed)
{
	uint64_t since_ns = now_ns > s->first_ns ? now_ns - s->first_ns : 0;
	uint64_t next = since_ns / s->period_ns + 1;

	/* A wait may end a moment early. */
	if (next <= s->number)
		next = s->number + 1;
	*missed = next - s->number - 1;
	s->number = next;
	return s->first_ns + next * s->period_ns;
}

/* What a session leaves to its parent, in memory that both have. */
struct left_result {
	char path[4096]; /* of the dump, "": there is none */
	struct file_identity identity;
	bool asked;   /* it was told to end */
	bool saw_end; /* of the target, and has said so */
};

struct repeater {
	struct session *s;
	struct left_result *result;
	struct stop_signals signals;
	struct kept_dumps kept;
	struct schedule schedule;
	unsigned written, failed;
	enum exit_status worst; /* of those that came about */
	bool done;              /* no further session */
	bool unread;            /* nobody reads the names of the dumps */
};

/* ---- in the process of a session ---- */

static _Noreturn void be_session(struct repeater *r, bool detaches)
{
	struct dump_file *file = &r->s->recording.file;
	struct err e;

	stop_signals_close(&r->signals);
	/* With the pidfd of the parent it would have the lock of the session, too (session_lock.h). */
	if (target_reopen(&r->s->target, &e) < 0) {
		say_error(r->s->options.pid, "%s", e.text);
		exit(EXIT_NOT_ATTACHED);
	}
	r->s->options.seed = session_seed(r->s->options.seed, r->written);
	enum exit_status status = detaches ? take_out(r->s) : session_run(r->s).status;
	r->result->asked = watchdog_asked() > 0;
	if (status != EXIT_NOT_ATTACHED && file->result) {
		enum dump_state state = dump_writer_state(&r->s->recording.dump);
		r->result->saw_end = state == DUMP_STATE_EXITED || state == DUMP_STATE_KILLED;
		memcpy(r->result->path, file->path, sizeof r->result->path);
		r->result->identity = dump_file_identity(file);
	}
	session_done(r->s);
	exit(status);
}

/* ---- in the parent ---- */

/* Signals are passed on: those of a terminal have come there, too, and count once (watchdog.h). */
static int await(struct repeater *r, pid_t child)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);

	while (pidfd >= 0 && stop_signals_wait(&r->signals, pidfd, clock_monotonic_ns() + LONG_NS) != WOKEN_BY_END) {
		int number = stop_signals_take(&r->signals);
		if (number)
			kill(child, number);
		r->done |= number != 0;
	}
	return child_wait(child);
}

/* A session, or the detach of one. What waitpid() tells of its process, or -1: there is none. */
static int run(struct repeater *r, bool detaches)
{
	memset(r->result, 0, sizeof *r->result);
	fflush(NULL);
	pid_t child = child_start(SIGTERM);
	if (child == 0)
		be_session(r, detaches);
	if (child < 0) {
		say_error(r->s->options.pid, "no process can be made for the session: %s", strerror(errno));
		return -1;
	}
	int status = await(r, child);
	r->done |= r->result->asked;
	return status;
}

static void say_dump(struct repeater *r)
{
	if (r->unread || (puts(r->result->path) >= 0 && fflush(stdout) == 0))
		return;
	r->unread = true;
	session_say(r->s, "memattach: nobody reads the names of the dumps any more; sessions go on");
}

static void keep(struct repeater *r)
{
	struct err e;

	r->written++;
	say_dump(r);
	if (kept_dumps_add(&r->kept, r->result->path, &r->result->identity, &e) < 0)
		say_error(r->s->options.pid, "%s", e.text);
}

/* A signal that ends a session before there is anything to undo is as good as being told. */
static void was_killed(struct repeater *r, int number)
{
	r->done = true;
	if (stop_signals_have(number))
		return;
	say_error(r->s->options.pid, "the session was ended by signal %d (%s); it is detached, and there is no other",
	          number, strsignal(number));
	int status = run(r, true);
	r->worst = status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE ? EXIT_DUMP : EXIT_RESIDUE;
}

static void worst(struct repeater *r, enum exit_status status)
{
	r->worst = status == EXIT_RESIDUE || r->worst == EXIT_DONE ? status : r->worst;
}

static void one_session(struct repeater *r)
{
	int status = run(r, false);

	if (status >= 0 && WIFSIGNALED(status)) {
		was_killed(r, WTERMSIG(status));
	} else if (status < 0 || WEXITSTATUS(status) == EXIT_NOT_ATTACHED) {
		r->failed++;
	} else {
		worst(r, (enum exit_status)WEXITSTATUS(status));
		if (r->result->path[0])
			keep(r);
	}
	if (r->worst == EXIT_RESIDUE && !r->done) {
		r->done = true;
		session_say(r->s,
		            "memattach: something stayed in %d (%s): no further session, so that it does not add up",
		            r->s->target.pid, r->s->target.comm);
	}
}

/* Shows on a terminal how long it is until then. False: no further session. */
static bool sleep_until(struct repeater *r, uint64_t next_ns)
{
	const struct target *t = &r->s->target;
	enum woken woken;
	char text[STATUS_LINE_TIME];

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		if (now_ns >= next_ns)
			return true;
		uint64_t until_ns = status_line_wanted(r->s) && now_ns + SHOW_NS < next_ns ? now_ns + SHOW_NS : next_ns;
		status_line_text(r->s, "next session in %s", status_line_time(next_ns - now_ns, text));
		woken = stop_signals_wait(&r->signals, t->pidfd, until_ns);
		if (woken != WOKEN_BY_TIME)
			break;
	}
	say_status(NULL);
	if (woken == WOKEN_BY_END)
		session_say(r->s, "%d (%s) has ended", t->pid, t->comm);
	else
		stop_signals_take(&r->signals);
	return false;
}

static bool wait_for_next(struct repeater *r)
{
	uint64_t missed, next_ns = schedule_next(&r->schedule, clock_monotonic_ns(), &missed);

	if (missed)
		session_say(r->s, "memattach: the next session was due before this one was done; left out: %llu",
		            (unsigned long long)missed);
	bool goes_on = sleep_until(r, next_ns);
	say_status(NULL);
	return goes_on;
}

static int prepare(struct repeater *r, struct err *e)
{
	int rc = inspect_open(r->s, e);

	if (rc < 0)
		return rc;
	r->result = mmap(NULL, sizeof *r->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->result == MAP_FAILED) {
		r->result = NULL;
		return err_sys(e, "out of memory");
	}
	rc = stop_signals_open(&r->signals, e);
	return rc ?: session_lock_announce(&r->s->target, e);
}

enum exit_status repeat_sessions(struct session *s)
{
	struct repeater r = { .s = s,
		              .signals = { .fd = -1 },
		              .kept = { .limit = s->options.keep },
		              .schedule = { .first_ns = clock_monotonic_ns(), .period_ns = s->options.every_ns } };
	struct err e;

	if (prepare(&r, &e) < 0) {
		say_error(s->options.pid, "%s", e.text);
		r.done = true;
	}
	while (!r.done) {
		one_session(&r);
		r.done = r.done || r.result->saw_end || !wait_for_next(&r);
	}
	if (r.written + r.failed)
		session_say(s, "sessions recorded: %u, failed: %u", r.written, r.failed);
	target_close(&s->target); /* with the announcement */
	/* A --detach that came while this was ending already: there is nothing more that it could end. */
	while (r.signals.fd >= 0 && stop_signals_take(&r.signals))
		;
	stop_signals_close(&r.signals);
	kept_dumps_free(&r.kept);
	if (r.result)
		munmap(r.result, sizeof *r.result);
	return r.worst == EXIT_DONE && !r.written ? EXIT_NOT_ATTACHED : r.worst;
}
