/* SPDX-License-Identifier: MIT */
/*
 * Blocks in one kind of system call, named by argument 1. No signal of its own ever comes (but the SIGUSR1 that ends it),
 * so no call may return EINTR, and no timed call may return before its time. Whether it is late is not judged: a
 * loaded machine is late.
 */
#include "victim.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS 300
static const struct timespec nap = { .tv_nsec = NAP_MS * 1000000l };
static int quiet_pipe[2]; /* nothing is ever written to it */
static int epoll_fd, semaphore, socket_fd;
static pid_t child;
static aio_context_t aio;

/* What a call returned. A timed call has ended well if it says that its time is over. */
struct outcome {
	bool timed_out;
	int error;
};

static struct outcome outcome_of(long result, bool timed_out)
{
	return (struct outcome){ .timed_out = timed_out, .error = result < 0 ? errno : 0 };
}

static struct outcome call_nanosleep(void)
{
	int r = nanosleep(&nap, NULL);
	return outcome_of(r, r == 0);
}

static struct outcome call_clock_nanosleep(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += nap.tv_nsec;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return outcome_of(errno ? -1 : 0, errno == 0);
}

static struct outcome call_poll(void)
{
	struct pollfd p = { .fd = quiet_pipe[0], .events = POLLIN };
	int r = poll(&p, 1, NAP_MS);
	return outcome_of(r, r == 0);
}

static struct outcome call_ppoll(void)
{
	struct pollfd p = { .fd = quiet_pipe[0], .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	int r = ppoll(&p, 1, &nap, &none);
	return outcome_of(r, r == 0);
}

static struct outcome call_select(void)
{
	struct timeval time = { .tv_usec = NAP_MS * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet_pipe[0], &set);
	int r = select(quiet_pipe[0] + 1, &set, NULL, NULL, &time);
	return outcome_of(r, r == 0);
}

static struct outcome call_pselect(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet_pipe[0], &set);
	int r = pselect(quiet_pipe[0] + 1, &set, NULL, NULL, &nap, NULL);
	return outcome_of(r, r == 0);
}

static struct outcome call_epoll_wait(void)
{
	struct epoll_event event;
	int r = epoll_wait(epoll_fd, &event, 1, NAP_MS);
	return outcome_of(r, r == 0);
}

static struct outcome call_futex_timed(void)
{
	static uint32_t word;
	long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0);
	return outcome_of(r, r < 0 && errno == ETIMEDOUT);
}

static struct outcome call_cond_timedwait(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += nap.tv_nsec;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	int r = pthread_cond_timedwait(&cond, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	errno = r;
	return outcome_of(r ? -1 : 0, r == ETIMEDOUT);
}

static struct outcome call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	int r = sigtimedwait(&set, NULL, &nap);
	return outcome_of(r, r < 0 && errno == EAGAIN);
}

static struct outcome call_semtimedop(void)
{
	struct sembuf operation = { .sem_op = -1 };
	int r = semtimedop(semaphore, &operation, 1, &nap);
	return outcome_of(r, r < 0 && errno == EAGAIN);
}

static struct outcome call_recv_timeout(void)
{
	char byte;
	ssize_t r = recv(socket_fd, &byte, 1, 0);
	return outcome_of(r, r < 0 && errno == EAGAIN);
}

static struct outcome call_io_getevents(void)
{
	struct io_event event;
	struct timespec time = nap;
	long r = syscall(SYS_io_getevents, aio, 1, 1, &event, &time);
	return outcome_of(r, r == 0);
}

static struct outcome call_pause(void)
{
	return outcome_of(pause(), false);
}

static struct outcome call_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return outcome_of(sigsuspend(&none), false);
}

static struct outcome call_read(void)
{
	char byte;
	return outcome_of(read(quiet_pipe[0], &byte, 1), false);
}

static struct outcome call_accept(void)
{
	return outcome_of(accept(socket_fd, NULL, NULL), false);
}

static struct outcome call_futex(void)
{
	static uint32_t word;
	return outcome_of(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), false);
}

static struct outcome call_epoll_wait_forever(void)
{
	struct epoll_event event;
	return outcome_of(epoll_wait(epoll_fd, &event, 1, -1), false);
}

static struct outcome call_poll_forever(void)
{
	struct pollfd p = { .fd = quiet_pipe[0], .events = POLLIN };
	return outcome_of(poll(&p, 1, -1), false);
}

static struct outcome call_wait4(void)
{
	return outcome_of(waitpid(child, NULL, 0), false);
}

static struct outcome call_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	return outcome_of(sigwaitinfo(&set, NULL), false);
}

static struct outcome call_semop(void)
{
	struct sembuf operation = { .sem_op = -1 };
	return outcome_of(semop(semaphore, &operation, 1), false);
}

static const struct {
	const char *name;
	struct outcome (*call)(void);
	bool timed;
} modes[] = {
	{ "nanosleep", call_nanosleep, true },
	{ "clock_nanosleep", call_clock_nanosleep, true },
	{ "poll", call_poll, true },
	{ "ppoll", call_ppoll, true },
	{ "select", call_select, true },
	{ "pselect", call_pselect, true },
	{ "epoll_wait", call_epoll_wait, true },
	{ "futex_timed", call_futex_timed, true },
	{ "cond_timedwait", call_cond_timedwait, true },
	{ "sigtimedwait", call_sigtimedwait, true },
	{ "semtimedop", call_semtimedop, true },
	{ "recv_timeout", call_recv_timeout, true },
	{ "io_getevents", call_io_getevents, true },
	{ "pause", call_pause, false },
	{ "sigsuspend", call_sigsuspend, false },
	{ "read", call_read, false },
	{ "accept", call_accept, false },
	{ "futex", call_futex, false },
	{ "epoll_wait_forever", call_epoll_wait_forever, false },
	{ "poll_forever", call_poll_forever, false },
	{ "wait4", call_wait4, false },
	{ "sigwaitinfo", call_sigwaitinfo, false },
	{ "semop", call_semop, false },
};
#define MODE_COUNT (sizeof modes / sizeof modes[0])

static int setup(const char *mode)
{
	if (pipe(quiet_pipe))
		return -1;
	epoll_fd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, quiet_pipe[0], &event))
		return -1;
	if (!strcmp(mode, "recv_timeout")) {
		struct timeval time = { .tv_usec = NAP_MS * 1000 };
		socket_fd = socket(AF_INET, SOCK_DGRAM, 0);
		return setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	}
	if (!strcmp(mode, "accept")) {
		socket_fd = socket(AF_INET, SOCK_STREAM, 0);
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		return bind(socket_fd, (struct sockaddr *)&address, sizeof address) || listen(socket_fd, 1) ? -1
		                                                                                            : 0;
	}
	if (!strncmp(mode, "sem", 3)) {
		semaphore = semget(IPC_PRIVATE, 1, 0600);
		return semaphore < 0 ? -1 : 0;
	}
	if (!strcmp(mode, "io_getevents"))
		return (int)syscall(SYS_io_setup, 1, &aio);
	if (!strcmp(mode, "wait4")) {
		child = fork();
		if (child == 0) {
			char byte;
			signal(SIGUSR1, SIG_DFL);
			close(quiet_pipe[1]);
			ssize_t ignored = read(quiet_pipe[0], &byte, 1); /* until the parent is gone */
			(void)ignored;
			_exit(0);
		}
		return child < 0 ? -1 : 0;
	}
	if (!strcmp(mode, "sigtimedwait") || !strcmp(mode, "sigwaitinfo")) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN + 3);
		return sigprocmask(SIG_BLOCK, &set, NULL);
	}
	return 0;
}

static void one_call(size_t i)
{
	uint64_t start = victim_monotonic_ns();
	errno = 0;
	struct outcome r = modes[i].call();
	uint64_t elapsed_ms = (victim_monotonic_ns() - start) / 1000000;

	if (victim_done()) {
		victim_round();
		return;
	}
	if (!modes[i].timed || !r.timed_out)
		victim_wrong("%s returned after %lu ms: %s", modes[i].name, (unsigned long)elapsed_ms,
		             strerror(r.error));
	else if (elapsed_ms + 1 < NAP_MS)
		victim_wrong("%s returned after %lu of %d ms", modes[i].name, (unsigned long)elapsed_ms, NAP_MS);
	victim_round();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "nanosleep";
	size_t i = 0;

	if (!strcmp(mode, "--list")) {
		for (i = 0; i < MODE_COUNT; i++)
			victim_say("%s", modes[i].name);
		return 0;
	}
	while (i < MODE_COUNT && strcmp(modes[i].name, mode))
		i++;
	if (i == MODE_COUNT) {
		victim_say("unknown mode %s", mode);
		return 2;
	}
	victim_start("sleeper");
	if (setup(mode)) {
		victim_wrong("set-up of %s: %s", mode, strerror(errno));
		return victim_report();
	}
	victim_ready();
	while (!victim_done())
		one_call(i);
	if (semaphore > 0 || !strncmp(mode, "sem", 3))
		semctl(semaphore, 0, IPC_RMID);
	return victim_report();
}
