/* SPDX-License-Identifier: MIT */
#include "touch/remote/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/watchdog.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define LOOK_MS 1 /* between two looks at the thread, which may be stopped by job control while it is waited for */
#define END_NS 200000000u /* from the closing of a dying thread's descriptors to its end */

int channel_open(struct channel *c, int *other, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, "cannot make a socket pair");
	/* Descriptors that come along would be closed here, and a hostile program can make that take long (Linux 6.16
	 * and later refuse them). */
	const int none = 0;
	(void)!setsockopt(ends[0], SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof none);
	*c = (struct channel){ .here = ends[0], .there = -1 };
	*other = ends[1];
	return 0;
}

int channel_answer(struct channel *c, struct err *e)
{
	const unsigned char byte = 0;

	if (!c->awaited)
		return 0;
	/* It reads each answer before it speaks again: there is room, or it is not the thread who speaks. */
	if (send(c->here, &byte, sizeof byte, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return err_sys(e, "cannot answer the borrowed thread");
	c->awaited = false;
	return 0;
}

/* The other end is closed: by the end of the thread, nearly always. */
static int closed(struct tracee *t, struct err *e)
{
	enum tracee_stop stop;

	if (tracee_wait(t, clock_monotonic_ns() + END_NS, &stop, e) == -ESRCH)
		return -ESRCH;
	return err_set(e, EPROTO, "thread %d: the program closed a descriptor that was in use by memattach", t->tid);
}

/* 1: a byte has come; 0: none yet. */
static int receive(struct channel *c, struct tracee *t, unsigned *checkpoint, struct err *e)
{
	unsigned char byte = 0;

	watchdog_call_begin(); /* for the sake of what comes along, see channel_open */
	ssize_t n = recv(c->here, &byte, sizeof byte, MSG_DONTWAIT);
	watchdog_call_end();
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 0 || (n < 0 && errno == ECONNRESET)) /* reset: it has not read our answer */
		return closed(t, e);
	if (n < 0)
		return err_sys(e, "cannot hear the borrowed thread");
	c->awaited = true;
	*checkpoint = byte;
	return 1;
}

int channel_meet(struct channel *c, struct tracee *t, unsigned *checkpoint, uint64_t deadline_ns, struct err *e)
{
	int rc = c->awaited ? channel_answer(c, e) : tracee_resume(t, PTRACE_CONT, e);
	if (rc == -EPIPE)
		rc = closed(t, e);
	return rc < 0 ? rc : channel_hear(c, t, checkpoint, deadline_ns, e);
}

int channel_hear(struct channel *c, struct tracee *t, unsigned *checkpoint, uint64_t deadline_ns, struct err *e)
{
	int rc = 0;

	while (rc == 0) {
		struct pollfd end = { .fd = c->here, .events = POLLIN };
		if (poll(&end, 1, LOOK_MS) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		int heard = receive(c, t, checkpoint, e);
		if (heard)
			return heard < 0 ? heard : 0;
		enum tracee_stop stop;
		rc = tracee_poll(t, &stop, e);
		if (rc > 0)
			rc = tracee_resume(t, PTRACE_CONT, e);
		if (rc == 0 && (clock_monotonic_ns() >= deadline_ns || watchdog_asked_twice()))
			rc = err_set(e, ETIMEDOUT, "thread %d did not come to the end of a call in time", t->tid);
	}
	return rc;
}

void channel_close(struct channel *c)
{
	if (c->here >= 0)
		close(c->here);
	*c = CHANNEL_NONE;
}
