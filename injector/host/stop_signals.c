/* SPDX-License-Identifier: MIT */
#include "host/stop_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "host/clocks.h"

#define LONGEST_MS 1000000u

/* One that is ignored would wait for whoever asks, once it is blocked. */
static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void stop_signals_list(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(set, SIGHUP);
}

bool stop_signals_have(int number)
{
	sigset_t set;

	stop_signals_list(&set);
	return sigismember(&set, number) == 1;
}

int stop_signals_open(struct stop_signals *s, struct err *e)
{
	sigset_t set;

	stop_signals_list(&set);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "cannot wait for signals");
	s->fd = fd;
	sigprocmask(SIG_BLOCK, &set, &s->before);
	return 0;
}

void stop_signals_close(struct stop_signals *s)
{
	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int stop_signals_take(const struct stop_signals *s)
{
	struct signalfd_siginfo info;

	return read(s->fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

static int ms_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), ms = until_ns > now_ns ? (until_ns - now_ns + 999999) / 1000000 : 0;

	return ms < LONGEST_MS ? (int)ms : (int)LONGEST_MS;
}

enum woken stop_signals_wait(const struct stop_signals *s, int pidfd, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN }, { .fd = s->fd, .events = POLLIN } };

	for (;;) {
		int ms = ms_until(until_ns);
		if (poll(fds, 2, ms) > 0)
			return fds[1].revents ? WOKEN_BY_SIGNAL : WOKEN_BY_END;
		if (ms_until(until_ns) == 0)
			return WOKEN_BY_TIME;
	}
}
