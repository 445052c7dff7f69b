/* SPDX-License-Identifier: MIT */
/*
 * Blocks in one kind of system call, named by argument 1, and says when each timed call began and ended:
 *
 *     CALL start_ns end_ns
 *
 * No signal of its own comes but the SIGUSR1 that ends it (and the timer's, in the modes that set one): no call may
 * return EINTR, none may return before its time, errno of a call that succeeds stays. (read_restarting has a handler
 * for SIGUSR2, with SA_RESTART.) Whether a call is late is judged by the test, which knows when memattach was there.
 * Modes are listed with the promise that holds for their time:
 *
 *     kept     what remains after a stop is what remained before it
 *     anew     the kernel starts the call again with its whole time, at most once for each stop
 *     none     waits for ever
 */
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS 1000
#define ERRNO_BEFORE 77
static const struct timespec nap = { .tv_sec = NAP_MS / 1000 };

static int quiet[2]; /* a pipe that nothing is ever written to */
static int epoll_fd, sem_id = -1, queue_id = -1, fd = -1;
static pid_t child;
static aio_context_t aio;
static mqd_t mq;
static atomic_ulong alarms;

static struct timespec later(clockid_t clock)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_sec += nap.tv_sec;
	return until;
}

/* A call: 0 its time is over (or, untimed, never), -1 with errno. What a timed call returns at its end is made 0. */
static int ends_with(long result, int error)
{
	if (result < 0 && errno == error) {
		errno = ERRNO_BEFORE;
		return 0;
	}
	return result == 0 ? 1 : (int)result;
}

static int ends_with_zero(long result)
{
	return (int)result;
}

static int call_nanosleep(void)
{
	struct timespec rest = { 0 };
	return ends_with_zero(nanosleep(&nap, &rest));
}

static int call_clock_nanosleep(void)
{
	struct timespec rest = { 0 };
	int r = clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, &rest);
	return r ? (errno = r, -1) : 0;
}

static int call_clock_nanosleep_absolute(void)
{
	struct timespec until = later(CLOCK_REALTIME);
	int r = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
	return r ? (errno = r, -1) : 0;
}

static int call_poll(void)
{
	struct pollfd p = { .fd = quiet[0], .events = POLLIN };
	return ends_with_zero(poll(&p, 1, NAP_MS));
}

static int call_ppoll(void)
{
	struct pollfd p = { .fd = quiet[0], .events = POLLIN };
	sigset_t set;

	sigemptyset(&set);
	return ends_with_zero(ppoll(&p, 1, &nap, &set));
}

static int call_select(void)
{
	struct timeval time = { .tv_sec = NAP_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	int r = select(quiet[0] + 1, &set, NULL, NULL, &time);
	if (r == 0 && (time.tv_sec || time.tv_usec))
		victim_wrong("select left %ld.%06ld s", (long)time.tv_sec, (long)time.tv_usec);
	return ends_with_zero(r);
}

static int call_pselect(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	return ends_with_zero(pselect(quiet[0] + 1, &set, NULL, NULL, &nap, NULL));
}

static int call_futex_timed(void)
{
	static uint32_t word;
	return ends_with(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0), ETIMEDOUT);
}

static int call_futex_absolute(void)
{
	static uint32_t word;
	struct timespec until = later(CLOCK_MONOTONIC);
	return ends_with(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, ~0u), ETIMEDOUT);
}

static int call_cond_timedwait(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec until = later(CLOCK_REALTIME);

	pthread_mutex_lock(&mutex);
	int r = pthread_cond_timedwait(&cond, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	return r == ETIMEDOUT ? 0 : (errno = r, -1);
}

static int call_mq_timed(void)
{
	struct timespec until = later(CLOCK_REALTIME);
	char text[64];
	return ends_with(mq_timedreceive(mq, text, sizeof text, NULL, &until), ETIMEDOUT);
}

static int call_timerfd(void)
{
	const struct itimerspec once = { .it_value = nap };
	uint64_t count = 0;

	timerfd_settime(fd, 0, &once, NULL);
	ssize_t r = read(fd, &count, sizeof count);
	return r == sizeof count && count == 1 ? 0 : (int)r;
}

static int call_pause_alarm(void)
{
	const struct itimerval once = { .it_value.tv_sec = NAP_MS / 1000 };
	unsigned long before = atomic_load(&alarms);

	setitimer(ITIMER_REAL, &once, NULL);
	int r = pause();
	if (!victim_done() && atomic_load(&alarms) != before + 1)
		victim_wrong("%lu alarms came, 1 was set", atomic_load(&alarms) - before);
	return ends_with(r, EINTR); /* of its own signal */
}

static int call_epoll_wait(void)
{
	struct epoll_event event;
	return ends_with_zero(epoll_wait(epoll_fd, &event, 1, NAP_MS));
}

static int call_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t set;

	sigemptyset(&set);
	return ends_with_zero(epoll_pwait(epoll_fd, &event, 1, NAP_MS, &set));
}

static int call_epoll_pwait2(void)
{
	struct epoll_event event;
	return ends_with_zero(syscall(441, epoll_fd, &event, 1, &nap, NULL, 8));
}

static int call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	return ends_with(sigtimedwait(&set, NULL, &nap), EAGAIN);
}

static int call_semtimedop(void)
{
	struct sembuf operation = { .sem_op = -1 };
	return ends_with(semtimedop(sem_id, &operation, 1, &nap), EAGAIN);
}

static int call_recv_timeout(void)
{
	char byte;
	return ends_with(recv(fd, &byte, 1, 0), EAGAIN);
}

static int call_io_getevents(void)
{
	struct io_event event;
	struct timespec time = nap;
	return ends_with_zero(syscall(SYS_io_getevents, aio, 1, 1, &event, &time));
}

static int call_io_pgetevents(void)
{
	struct io_event event;
	struct timespec time = nap;
	return ends_with_zero(syscall(333, aio, 1, 1, &event, &time, NULL));
}

static int call_pause(void)
{
	return pause();
}

static int call_sigsuspend(void)
{
	sigset_t set;

	sigemptyset(&set);
	return sigsuspend(&set);
}

static int call_read(void)
{
	char byte;
	return (int)read(quiet[0], &byte, 1);
}

static int call_read_fd(void) /* eventfd, signalfd, socket */
{
	char bytes[256];
	return (int)read(fd, bytes, sizeof bytes);
}

static int call_accept(void)
{
	return accept(fd, NULL, NULL);
}

static int call_futex(void)
{
	static uint32_t word;
	return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static int call_epoll_wait_forever(void)
{
	struct epoll_event event;
	return epoll_wait(epoll_fd, &event, 1, -1);
}

static int call_poll_forever(void)
{
	struct pollfd p = { .fd = quiet[0], .events = POLLIN };
	return poll(&p, 1, -1);
}

static int call_select_forever(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	return select(quiet[0] + 1, &set, NULL, NULL, NULL);
}

static int call_wait4(void)
{
	return waitpid(child, NULL, 0);
}

static int call_waitid(void)
{
	siginfo_t info;
	return waitid(P_PID, (id_t)child, &info, WEXITED);
}

static int call_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	return sigwaitinfo(&set, NULL);
}

static int call_semop(void)
{
	struct sembuf operation = { .sem_op = -1 };
	return semop(sem_id, &operation, 1);
}

static int call_msgrcv(void)
{
	struct {
		long type;
		char text[16];
	} message;
	return (int)msgrcv(queue_id, &message, sizeof message.text, 0, 0);
}

static int call_msgsnd(void)
{
	static struct {
		long type;
		char text[8000];
	} message = { .type = 1 };
	while (msgsnd(queue_id, &message, sizeof message.text, IPC_NOWAIT) == 0)
		;
	errno = ERRNO_BEFORE;
	return msgsnd(queue_id, &message, sizeof message.text, 0);
}

static int call_mq_receive(void)
{
	char text[64];
	return (int)mq_receive(mq, text, sizeof text, NULL);
}

static int call_flock(void)
{
	return flock(fd, LOCK_EX);
}

static int call_lockw(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	return fcntl(fd, F_SETLKW, &lock);
}

enum promise { KEPT, ANEW, NONE };

static const struct {
	const char *name;
	int (*call)(void);
	enum promise promise;
} modes[] = {
	{ "nanosleep", call_nanosleep, KEPT },
	{ "clock_nanosleep", call_clock_nanosleep, KEPT },
	{ "clock_nanosleep_absolute", call_clock_nanosleep_absolute, KEPT },
	{ "poll", call_poll, KEPT },
	{ "ppoll", call_ppoll, KEPT },
	{ "select", call_select, KEPT },
	{ "pselect", call_pselect, KEPT },
	{ "futex_timed", call_futex_timed, KEPT },
	{ "futex_absolute", call_futex_absolute, KEPT },
	{ "cond_timedwait", call_cond_timedwait, KEPT },
	{ "mq_timedreceive", call_mq_timed, KEPT },
	{ "timerfd", call_timerfd, KEPT },
	{ "pause_alarm", call_pause_alarm, KEPT },
	{ "epoll_wait", call_epoll_wait, ANEW },
	{ "epoll_pwait", call_epoll_pwait, ANEW },
	{ "epoll_pwait2", call_epoll_pwait2, ANEW },
	{ "sigtimedwait", call_sigtimedwait, ANEW },
	{ "semtimedop", call_semtimedop, ANEW },
	{ "recv_timeout", call_recv_timeout, ANEW },
	{ "io_getevents", call_io_getevents, ANEW },
	{ "io_pgetevents", call_io_pgetevents, ANEW },
	{ "pause", call_pause, NONE },
	{ "sigsuspend", call_sigsuspend, NONE },
	{ "read", call_read, NONE },
	{ "read_restarting", call_read, NONE },
	{ "read_eventfd", call_read_fd, NONE },
	{ "read_signalfd", call_read_fd, NONE },
	{ "read_socket", call_read_fd, NONE },
	{ "accept", call_accept, NONE },
	{ "futex", call_futex, NONE },
	{ "epoll_wait_forever", call_epoll_wait_forever, NONE },
	{ "poll_forever", call_poll_forever, NONE },
	{ "select_forever", call_select_forever, NONE },
	{ "wait4", call_wait4, NONE },
	{ "waitid", call_waitid, NONE },
	{ "sigwaitinfo", call_sigwaitinfo, NONE },
	{ "semop", call_semop, NONE },
	{ "msgrcv", call_msgrcv, NONE },
	{ "msgsnd", call_msgsnd, NONE },
	{ "mq_receive", call_mq_receive, NONE },
	{ "flock", call_flock, NONE },
	{ "fcntl_lock", call_lockw, NONE },
};
#define MODE_COUNT (sizeof modes / sizeof modes[0])

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(&alarms, 1);
}

/* A child that waits until its parent is gone; with a path, it holds both kinds of lock on that file. */
static int start_child(const char *path)
{
	int told[2];
	char byte = 0;

	if (pipe(told))
		return -1;
	child = fork();
	if (child == 0) {
		signal(SIGUSR1, SIG_DFL);
		close(quiet[1]);
		if (path) {
			struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
			int file = open(path, O_RDWR | O_CLOEXEC);
			if (flock(file, LOCK_EX) || fcntl(file, F_SETLK, &lock))
				_exit(1);
		}
		if (write(told[1], &byte, 1) == 1 && read(quiet[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	return child < 0 || read(told[0], &byte, 1) != 1 || close(told[0]) || close(told[1]) ? -1 : 0;
}

static int lock_file(void)
{
	char path[] = "/tmp/sleeper-XXXXXX";

	fd = mkstemp(path);
	int rc = fd < 0 ? -1 : start_child(path);
	unlink(path);
	return rc;
}

static int block_rt_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -1;
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd;
}

static int open_socket(const char *mode)
{
	const struct timeval time = { .tv_sec = NAP_MS / 1000 };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	fd = socket(AF_INET, !strcmp(mode, "accept") ? SOCK_STREAM : SOCK_DGRAM, 0);
	if (!strcmp(mode, "recv_timeout"))
		return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	if (!strcmp(mode, "accept"))
		return bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1) ? -1 : 0;
	return fd;
}

static int setup(const char *mode)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = 64 };
	char name[32];

	if (pipe(quiet) || (epoll_fd = epoll_create1(0)) < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, quiet[0], &event))
		return -1;
	if (!strcmp(mode, "recv_timeout") || !strcmp(mode, "accept") || !strcmp(mode, "read_socket"))
		return open_socket(mode);
	if (!strncmp(mode, "sem", 3))
		return sem_id = semget(IPC_PRIVATE, 1, 0600);
	if (!strncmp(mode, "msg", 3))
		return queue_id = msgget(IPC_PRIVATE, 0600);
	if (!strncmp(mode, "mq_", 3)) {
		snprintf(name, sizeof name, "/blocked-%d", (int)getpid());
		mq = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, &attributes);
		return mq == (mqd_t)-1 ? -1 : mq_unlink(name);
	}
	if (!strncmp(mode, "io_", 3))
		return (int)syscall(SYS_io_setup, 1, &aio);
	if (!strncmp(mode, "wait", 4))
		return start_child(NULL);
	if (!strcmp(mode, "flock") || !strcmp(mode, "fcntl_lock"))
		return lock_file();
	if (!strncmp(mode, "sig", 3) || !strcmp(mode, "read_signalfd"))
		return block_rt_signal();
	if (!strcmp(mode, "read_eventfd"))
		return fd = eventfd(0, EFD_CLOEXEC);
	if (!strcmp(mode, "timerfd"))
		return fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (!strcmp(mode, "read_restarting")) {
		struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
		return sigaction(SIGUSR2, &action, NULL);
	}
	if (!strcmp(mode, "pause_alarm"))
		return signal(SIGALRM, on_alarm) == SIG_ERR ? -1 : 0;
	return 0;
}

static void one_call(size_t i)
{
	uint64_t start = victim_monotonic_ns();
	errno = ERRNO_BEFORE;
	int r = modes[i].call();
	int error = errno;
	uint64_t end = victim_monotonic_ns();

	if (victim_done()) {
		victim_round();
		return;
	}
	if (r != 0 || modes[i].promise == NONE)
		victim_wrong("%s returned %d after %lu ms: %s", modes[i].name, r,
		             (unsigned long)((end - start) / 1000000), strerror(error));
	else if (error != ERRNO_BEFORE)
		victim_wrong("%s changed errno to %d", modes[i].name, error);
	victim_say("CALL %lu %lu", (unsigned long)start, (unsigned long)end);
	victim_round();
}

int main(int argc, char **argv)
{
	static const char *const promises[] = { "kept", "anew", "none" };
	const char *mode = argc > 1 ? argv[1] : "";
	size_t i = 0;

	if (!strcmp(mode, "--list")) {
		for (i = 0; i < MODE_COUNT; i++)
			victim_say("%s %s", modes[i].name, promises[modes[i].promise]);
		return 0;
	}
	while (i < MODE_COUNT && strcmp(modes[i].name, mode))
		i++;
	if (i == MODE_COUNT) {
		victim_say("unknown mode %s", mode);
		return 2;
	}
	victim_start("sleeper");
	if (setup(mode) < 0) {
		victim_say("CANNOT %s", strerror(errno));
		victim_ready();
		return 77;
	}
	victim_ready();
	while (!victim_done())
		one_call(i);
	if (sem_id >= 0)
		semctl(sem_id, 0, IPC_RMID);
	if (queue_id >= 0)
		msgctl(queue_id, IPC_RMID, NULL);
	return victim_report();
}
