/* SPDX-License-Identifier: MIT */
#include "touch/remote/borrowed_pair.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/watchdog.h"

static void *close_one(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/* A file system of the target's own may never answer, and a socket may linger. */
static void close_unproven(int fd)
{
	sigset_t all, before;
	pthread_t thread;

	if (fd < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* Where there can be no thread it stays open until memattach ends. */
	if (pthread_create(&thread, NULL, close_one, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool option_is(int socket, int option, int wanted)
{
	int value = -1;
	socklen_t bytes = sizeof value;

	return getsockopt(socket, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
}

/* The peer's credentials are those of the process that made the pair. */
static bool is_end(int socket, pid_t pid)
{
	struct ucred peer = { 0 };
	socklen_t bytes = sizeof peer;

	return option_is(socket, SO_DOMAIN, AF_UNIX) && option_is(socket, SO_TYPE, SOCK_SEQPACKET) &&
	       getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == pid;
}

static bool is_empty(int socket)
{
	char byte;

	return recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EWOULDBLOCK);
}

static bool leads_to(int from, int to)
{
	uint64_t sent[2], got[3] = { 0 };

	return getrandom(sent, sizeof sent, 0) == sizeof sent &&
	       send(from, sent, sizeof sent, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof sent &&
	       recv(to, got, sizeof got, MSG_DONTWAIT) == sizeof sent && memcmp(sent, got, sizeof sent) == 0 &&
	       is_empty(to);
}

static bool are_pair(const int ends[2], pid_t pid)
{
	return is_end(ends[0], pid) && is_end(ends[1], pid) && is_empty(ends[0]) && is_empty(ends[1]) &&
	       leads_to(ends[1], ends[0]);
}

int borrowed_pair_take(struct borrowed_pair *p, int pidfd, pid_t pid, const int32_t numbers[2], struct err *e)
{
	struct borrowed_pair new;

	for (unsigned i = 0; i < 2; i++) {
		watchdog_call_begin();
		new.ends[i] = (int)syscall(SYS_pidfd_getfd, pidfd, numbers[i], 0);
		watchdog_call_end();
		if (new.ends[i] < 0) {
			int rc = err_sys(e, "pidfd_getfd");
			if (i)
				close_unproven(new.ends[0]);
			return rc;
		}
	}
	if (are_pair(new.ends, pid)) {
		*p = new;
		return 0;
	}
	close_unproven(new.ends[0]);
	close_unproven(new.ends[1]);
	return err_set(e, EPROTO,
	               "the socket pair that the borrowed thread made was replaced by another one; nothing was sent "
	               "through it");
}

void borrowed_pair_close(struct borrowed_pair *p)
{
	close(p->ends[0]);
	close(p->ends[1]);
}
