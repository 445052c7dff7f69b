/* SPDX-License-Identifier: MIT */
#include "other_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"

#define WAIT_MS 30000

/* Is the memattach of the session block alive? The start time tells it from a later process with its number. */
static bool injector_lives(const struct memattach_session *b)
{
	uint64_t start;
	struct err ignored;

	return b->injector_pid > 0 && process_stat(b->injector_pid, 22, &start, &ignored) == 0 && start == b->injector_start_ticks;
}

static bool is_active(const struct session *s)
{
	return s->payload.base && (s->payload.block.state == SESSION_STARTED || s->payload.block.state == SESSION_INERT);
}

bool other_session_runs(const struct session *s)
{
	return is_active(s) && injector_lives(&s->payload.block);
}

int other_session_make_way(struct session *s, struct err *e)
{
	if (!s->payload.base || (s->payload.block.state == SESSION_STOPPED && !s->libc.dlclose_unmaps))
		return 0;
	if (other_session_runs(s))
		return err_set(e, EBUSY, "it is being profiled already by memattach, PID %d; end that with memattach --detach -p %d",
			       s->payload.block.injector_pid, s->target.pid);
	session_say(s, "taking out what a memattach that died left in %d", s->target.pid);
	int rc = session_choose(s, e);
	if (rc == 0)
		rc = session_detach(s, e);
	if (rc == 0)
		rc = session_look_again(s, e);
	if (rc == 0)
		rc = session_find_payload(s, e);
	s->detach_longest_ns = 0;
	return rc;
}

int other_session_end(struct session *s, bool *done, struct err *e)
{
	pid_t injector = s->payload.block.injector_pid;

	*done = false;
	if (!other_session_runs(s))
		return 0;
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, injector, 0);
	if (pidfd < 0)
		return 0;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return err_sys(e, "cannot tell memattach, PID %d, to end", injector);
	struct pollfd wait = { .fd = pidfd, .events = POLLIN };
	if (poll(&wait, 1, WAIT_MS) <= 0)
		return err_set(e, ETIMEDOUT, "memattach, PID %d, did not detach within %d s", injector, WAIT_MS / 1000);
	int rc = session_look_again(s, e);
	if (rc == 0)
		rc = session_find_payload(s, e);
	*done = rc == 0 && !is_active(s);
	return rc;
}
