/* SPDX-License-Identifier: MIT */
#include "run/clone_guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "process/clones/our_clone.h"
#include "process/proc_stat.h"
#include "run/clone_collect.h"
#include "sandbox/child.h"
#include "sandbox/close_all_but.h"

#define PATIENCE_NS 60000000000ull
#define END_MS 1000
#define LOOK_MS 1000

static bool is_stopped(pid_t pid)
{
	char path[32], text[1024], state[8];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	return whole_io_text(path, text, sizeof text) == 0 && proc_stat_field(text, 3, state, sizeof state) == 0 &&
	       state[0] == 'T';
}

static void end_clone(pid_t pid)
{
	struct target t;

	if (target_open(&t, pid, ERR_IGNORED) < 0)
		return;
	our_clones_end(&t, 0);
	target_close(&t);
}

/* Until memattach says something, or has died. */
static void look_after(const struct session_options *o, pid_t memattach, int fd)
{
	struct pollfd said = { .fd = fd, .events = POLLIN };
	bool was_stopped = false;

	while (poll(&said, 1, LOOK_MS) <= 0) {
		const bool stopped = is_stopped(memattach);
		if (stopped && was_stopped)
			end_clone(o->pid);
		was_stopped = stopped;
	}
}

static _Noreturn void guard(const struct session_options *o, int fd)
{
	const pid_t memattach = getppid();
	char all_is_well;
	sigset_t all;
	int keep[] = { fd };

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)!setsid(); /* who ends memattach by its group shall not end both */
	close_all_but(keep, 1);
	look_after(o, memattach, fd);
	if (read(fd, &all_is_well, sizeof all_is_well) == sizeof all_is_well)
		_exit(0);
	_exit(clone_collect_alone(o, PATIENCE_NS, ERR_IGNORED) < 0);
}

int clone_guardian_start(struct clone_guardian *g, const struct session_options *o, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "cannot make a pipe");
	const pid_t child = child_start(0);
	if (child == 0) {
		close(ends[1]);
		guard(o, ends[0]);
	}
	const int rc = child < 0 ? err_sys(e, "cannot start a process") : 0;
	close(ends[0]);
	if (rc < 0)
		close(ends[1]);
	else
		*g = (struct clone_guardian){ child, ends[1] };
	return rc;
}

void clone_guardian_end(struct clone_guardian *g, bool left)
{
	const char all_is_well = 0;

	if (!g->child)
		return;
	if (!left)
		(void)!write(g->fd, &all_is_well, sizeof all_is_well);
	close(g->fd);
	if (!left && child_ends_within(g->child, END_MS))
		child_wait(g->child);
	*g = (struct clone_guardian)CLONE_GUARDIAN_NONE;
}
