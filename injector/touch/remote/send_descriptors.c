/* SPDX-License-Identifier: MIT */
#include "touch/remote/send_descriptors.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "touch/remote/borrowed_pair.h"
#include "base/cleanup.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

#define SENT_MAX (SEND_MAX + 1) /* with the channel */

_Static_assert(SENT_MAX <= WORK_DESCRIPTORS, "struct work_message");

static uint64_t message_address(const struct remote *r)
{
	return REMOTE_AT(r, data.message);
}

static int send_all(int socket, const int *fds, unsigned count, struct err *e)
{
	char byte = 'm';
	struct iovec vector = { &byte, 1 };
	union {
		char bytes[CMSG_SPACE(SENT_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr header = { .msg_iov = &vector,
		                 .msg_iovlen = 1,
		                 .msg_control = &control,
		                 .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	if (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return err_sys(e, "cannot send descriptors to the target");
	return 0;
}

static int make_pair(struct remote *r, struct work_message *m, uint64_t deadline_ns, struct err *e)
{
	uint64_t result = 0;
	const uint64_t arguments[6] = { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, message_address(r) };

	m->pair[0] = m->pair[1] = -1;
	int rc = target_write(r->writer, CHANGE_WORK_AREA, message_address(r), m->pair, sizeof m->pair, e);
	for (unsigned i = 0; i < 2 && rc == 0; i++)
		rc = remote_cleanup_indirect(r, SYS_close, message_address(r) + i * sizeof m->pair[0], e);
	rc = rc ?: remote_call1(r, SYS_socketpair, arguments, &result, deadline_ns, e);
	if (rc < 0)
		return rc;
	rc = remote_result(result, e);
	if (rc < 0)
		return err_prefix(e, "the target cannot make a socket pair");
	return target_read(r->memory, message_address(r), m->pair, sizeof m->pair, e);
}

static int receive(struct remote *r, struct work_message *m, unsigned count, int *remote_fds, uint64_t deadline_ns,
                   struct err *e)
{
	uint64_t at = message_address(r), result = 0;
	const uint64_t arguments[6] = { (uint64_t)m->pair[0], at + offsetof(struct work_message, header),
		                        MSG_DONTWAIT | MSG_CMSG_CLOEXEC };
	struct work_message back;

	/* Pointers of the target's address space, written into a struct of ours. */
	m->vector = (struct iovec){ (void *)(uintptr_t)(at + offsetof(struct work_message, byte)), 1 };
	m->header = (struct msghdr){
		.msg_iov = (void *)(uintptr_t)(at + offsetof(struct work_message, vector)),
		.msg_iovlen = 1,
		.msg_control = (void *)(uintptr_t)(at + offsetof(struct work_message, control)),
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	memset(m->control.bytes, 0xff, sizeof m->control.bytes); /* descriptors -1 until they are received */
	int rc = target_write(r->writer, CHANGE_WORK_AREA, at, m, sizeof *m, e);
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = remote_cleanup_indirect(
			r, SYS_close, at + offsetof(struct work_message, control) + CMSG_LEN(0) + i * sizeof(int), e);
	rc = rc ?: remote_call1(r, SYS_recvmsg, arguments, &result, deadline_ns, e);
	if (rc < 0)
		return rc;
	rc = remote_result(result, e);
	if (rc < 0)
		return err_prefix(e, "the target cannot receive descriptors");
	rc = target_read(r->memory, at, &back, sizeof back, e);
	if (rc < 0)
		return rc;
	/* The control buffer is ours now; its header is at the front. */
	size_t got = back.control.align.cmsg_len >= CMSG_LEN(0)
	                     ? (back.control.align.cmsg_len - CMSG_LEN(0)) / sizeof(int)
	                     : 0;
	if (back.header.msg_controllen < CMSG_LEN(0))
		got = 0;
	memcpy(remote_fds, back.control.bytes + CMSG_LEN(0), (got < count ? got : count) * sizeof(int));
	if (got < count)
		rc = err_set(e, EMFILE, "the target has too few free descriptors (RLIMIT_NOFILE)");
	return rc;
}

static int exchange(struct remote *r, int pidfd, const int *fds, unsigned count, int *remote_fds, uint64_t deadline_ns,
                    struct err *e)
{
	struct work_message m = { 0 };

	changes_made(r->writer->changes, CHANGE_DESCRIPTORS);
	int rc = make_pair(r, &m, deadline_ns, e);
	if (rc < 0)
		return rc;
	/* A main thread that has exited has no descriptors any more; Linux 6.9 and later can name the thread itself. */
	AUTO_CLOSE int thread = (int)syscall(SYS_pidfd_open, r->tracee->tid, PIDFD_THREAD);
	struct borrowed_pair pair;
	rc = borrowed_pair_take(&pair, thread >= 0 ? thread : pidfd, r->tracee->pid, m.pair, e);
	if (rc < 0)
		return rc;
	rc = send_all(pair.ends[1], fds, count, e);
	borrowed_pair_close(&pair);
	return rc < 0 ? rc : receive(r, &m, count, remote_fds, deadline_ns, e);
}

int send_descriptors(struct remote *r, int pidfd, const int *fds, unsigned count, int *remote_fds, uint64_t deadline_ns,
                     struct err *e)
{
	bool has_channel = !r->tracee->filtered;
	int sent[SENT_MAX], received[SENT_MAX] = { 0 };
	struct channel channel = CHANNEL_NONE;
	AUTO_CLOSE int other = -1;

	if (count > SEND_MAX)
		return err_set(e, EINVAL, "too many descriptors");
	if (count + has_channel == 0)
		return 0;
	int rc = has_channel ? channel_open(&channel, &other, e) : 0;
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < count; i++)
		sent[i] = fds[i];
	sent[count] = other;
	rc = exchange(r, pidfd, sent, count + has_channel, received, deadline_ns, e);
	for (unsigned i = 0; i < count; i++)
		remote_fds[i] = received[i];
	if (rc == 0 && has_channel) {
		channel.there = received[count];
		rc = remote_channel(r, &channel, e);
	}
	if (rc < 0)
		channel_close(&channel);
	return rc;
}
