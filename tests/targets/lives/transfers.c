/* SPDX-License-Identifier: MIT */
/*
 * Calls that block and always do all of their work, unless something interrupts them: transfers MODE [alone]. The other
 * end is a slow process. Beside the thread that makes them are two that sleep, but with alone. Whatever does less is
 * wrong.
 *
 *   write, send, waitall, many (recvmmsg), submit (io_uring_enter)
 *   random (getrandom)   runs in the kernel all the time: may be stopped
 *   read, recv, accept   wait for what never comes: these may be stopped
 */
#include "victim.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BYTES (256 << 10)
#define PART 4096
#define MESSAGES 64

static char buffer[BYTES];
static int here;

static void nap(long ns)
{
	const struct timespec pause = { .tv_nsec = ns };

	nanosleep(&pause, NULL);
}

static void start_other_end(int there, bool reads)
{
	char part[PART] = { 0 };

	if (fork() != 0) {
		close(there);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, SIG_IGN);
	close(here);
	while ((reads ? read(there, part, sizeof part) : write(there, part, sizeof part)) > 0)
		nap(500000);
	_exit(0);
}

static ssize_t receive_many(void)
{
	struct mmsghdr messages[MESSAGES] = { 0 };
	struct iovec parts[MESSAGES];

	for (unsigned i = 0; i < MESSAGES; i++) {
		parts[i] = (struct iovec){ buffer + PART * i, PART };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	int got = recvmmsg(here, messages, MESSAGES, 0, NULL);
	return got < 0 ? got : got * (ssize_t)PART;
}

/* One timeout of 20 ms is submitted, and waited for in the same call. */
struct ring {
	int fd;
	char *submissions, *completions;
	struct io_uring_sqe *entries;
	struct io_uring_params p;
};

static bool ring_open(struct ring *r)
{
	*r = (struct ring){ 0 };
	r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->p);
	if (r->fd < 0)
		return false;
	r->submissions = mmap(NULL, r->p.sq_off.array + 4 * r->p.sq_entries, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
	                      IORING_OFF_SQ_RING);
	r->completions = mmap(NULL, r->p.cq_off.cqes + sizeof(struct io_uring_cqe) * r->p.cq_entries,
	                      PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->entries = mmap(NULL, sizeof *r->entries * r->p.sq_entries, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
	                  IORING_OFF_SQES);
	return true;
}

static ssize_t submit(const struct ring *r)
{
	unsigned *tail = (unsigned *)(r->submissions + r->p.sq_off.tail);
	unsigned *head = (unsigned *)(r->completions + r->p.cq_off.head);
	const unsigned *end = (const unsigned *)(r->completions + r->p.cq_off.tail);
	const unsigned slot = *tail & (r->p.sq_entries - 1);
	const int64_t time[2] = { 0, 20000000 };
	ssize_t result = BYTES;

	memset(&r->entries[slot], 0, sizeof r->entries[slot]);
	r->entries[slot].opcode = IORING_OP_TIMEOUT;
	r->entries[slot].addr = (uint64_t)(uintptr_t)time;
	r->entries[slot].len = 1;
	r->entries[slot].fd = -1;
	((unsigned *)(r->submissions + r->p.sq_off.array))[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 ||
	    *head == __atomic_load_n(end, __ATOMIC_ACQUIRE))
		result = 0;
	while (*head == __atomic_load_n(end, __ATOMIC_ACQUIRE))
		syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	__atomic_store_n(head, *end, __ATOMIC_RELEASE);
	return result;
}

static ssize_t wait_for_nothing(const char *mode)
{
	const struct sockaddr_un nowhere = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(listener, (const struct sockaddr *)&nowhere, sizeof nowhere.sun_family) < 0 || listen(listener, 1) < 0)
		return -1;
	if (!strcmp(mode, "read"))
		return read(here, buffer, BYTES);
	return !strcmp(mode, "recv") ? recv(here, buffer, BYTES, 0) : accept(listener, NULL, NULL);
}

static ssize_t transfer(const char *mode, const struct ring *ring)
{
	if (!strcmp(mode, "write"))
		return write(here, buffer, BYTES);
	if (!strcmp(mode, "send"))
		return send(here, buffer, BYTES, 0);
	if (!strcmp(mode, "waitall"))
		return recv(here, buffer, BYTES, MSG_WAITALL);
	if (!strcmp(mode, "random"))
		return getrandom(buffer, BYTES, 0);
	if (!strcmp(mode, "many"))
		return receive_many();
	return !strcmp(mode, "submit") ? submit(ring) : wait_for_nothing(mode);
}

static void *sleep_beside(void *unused)
{
	uint64_t random = 7;

	(void)unused;
	while (!victim_done()) {
		nap(3000000);
		victim_block(&random);
	}
	return NULL;
}

static bool is_in(const char *mode, const char *list)
{
	return strstr(list, mode) != NULL;
}

int main(int count, char **arguments)
{
	const char *mode = count > 1 ? arguments[1] : "write";
	uint64_t random = 1;
	pthread_t beside;
	struct ring ring;
	int ends[2];

	if (!strcmp(mode, "write") ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 2;
	here = is_in(mode, "waitall many recv") ? ends[0] : ends[1];
	if (!strcmp(mode, "read")) {
		if (pipe(ends))
			return 2;
		here = ends[0];
	} else if (is_in(mode, "write send waitall many")) {
		start_other_end(here == ends[0] ? ends[1] : ends[0], is_in(mode, "write send"));
	}
	victim_start("transfers");
	if (!strcmp(mode, "submit") && !ring_open(&ring))
		victim_say("CANNOT no io_uring");
	for (unsigned i = 0; i < 2 && count < 3; i++)
		if (pthread_create(&beside, NULL, sleep_beside, NULL))
			return 2;
	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		ssize_t done = transfer(mode, &ring);
		if (victim_done())
			break;
		if (done != BYTES)
			victim_wrong("%s: %zd of %d (%s)", mode, done, BYTES, done < 0 ? strerror(errno) : "less");
		victim_round();
	}
	return victim_report();
}
