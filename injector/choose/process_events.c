/* SPDX-License-Identifier: MIT */
#include "choose/process_events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/socket_filter.h"

#define MESSAGE_BYTES 1024
#define AT_ONCE 4096u /* messages: more are taken the next time */
/* Some 5,000 messages: a machine that begins more processes between two looks is not counted to the end. */
#define WAITING_BYTES (4 << 20)

/* Where things are in a message. */
#define EVENT_AT (sizeof(struct nlmsghdr) + sizeof(struct cn_msg))
#define IN_EVENT(member) (uint32_t)(EVENT_AT + offsetof(struct proc_event, member))

/* A request to be told. */
struct request {
	struct nlmsghdr header;
	struct cn_msg message;
	uint32_t what;
} __attribute__((packed));

static bool ask(int fd)
{
	const struct request request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = NLMSG_DONE, .nlmsg_pid = (uint32_t)getpid() },
		.message = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(uint32_t) },
		.what = PROC_CN_MCAST_LISTEN,
	};

	return send(fd, &request, sizeof request, 0) == sizeof request;
}

/* Keeps what is of no interest out of the socket, where threads that come and go would leave no room for forks. Words
 * are loaded as if of a network. Without it, all is looked at here. */
static void attach_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IN_EVENT(what)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IN_EVENT(event_data.fork.child_pid)),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IN_EVENT(event_data.fork.child_tgid)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	socket_filter_attach(fd, code, sizeof code / sizeof code[0]);
}

void process_events_open(struct process_events *p)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	const int waiting = WAITING_BYTES;

	p->works = false;
	p->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	if (p->fd < 0)
		return;
	(void)setsockopt(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, &waiting, sizeof waiting);
	attach_filter(p->fd);
	if (bind(p->fd, (const struct sockaddr *)&address, sizeof address) < 0 || !ask(p->fd))
		process_events_close(p);
}

void process_events_close(struct process_events *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->works = false;
}

/* Only the kernel's own messages count: others may be sent by any process with the right to. */
static bool take_one(struct process_events *p, const char *bytes, size_t size, const struct sockaddr_nl *from)
{
	struct proc_event event = { 0 };
	size_t at = EVENT_AT;

	if (from->nl_pid != 0 || size < at + offsetof(struct proc_event, event_data) + sizeof(uint32_t))
		return false;
	memcpy(&event, bytes + at, size - at < sizeof event ? size - at : sizeof event);
	switch ((unsigned)event.what) {
	case PROC_EVENT_NONE: p->works |= event.event_data.ack.err == 0; return false;
	case PROC_EVENT_FORK:
		if (event.event_data.fork.child_pid != event.event_data.fork.child_tgid)
			return false; /* a thread */
		if (p->forked)
			p->forked(p->context, event.event_data.fork.parent_tgid);
		return true;
	case PROC_EVENT_EXEC: return true;
	default: return false;
	}
}

bool process_events_take(struct process_events *p)
{
	char bytes[MESSAGE_BYTES] __attribute__((aligned(8)));
	bool begun = false;

	for (unsigned i = 0; i < AT_ONCE; i++) {
		struct sockaddr_nl from = { 0 };
		socklen_t length = sizeof from;
		ssize_t n = recvfrom(p->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length);
		if (n < 0 && errno == ENOBUFS)
			begun = true; /* more came than was taken */
		else if (n < 0)
			return begun;
		else
			begun |= take_one(p, bytes, (size_t)n, &from);
	}
	return true;
}
