/* SPDX-License-Identifier: MIT */
/*
 * The system call that a thread sleeps in, and what a stop would do to it, both told by /proc without a stop.
 *
 * A stop wakes a thread as a signal does. Most calls then start again as if nothing had happened. But one that has
 * moved a part of its data returns what it has moved so far, which a program that has no signal handlers never expects:
 * it would lose data, or its place in a protocol. So a thread that sleeps in such a call is not stopped. The calls, by
 * what wakes them (kernel sources of 6.x; signal(7) where it says so):
 *
 *   - futex, futex_waitv: begin again, or wait for the rest of their time; who was woken meanwhile sees it by
 *     the word.
 *   - nanosleep, clock_nanosleep, poll, ppoll, select, pselect6, restart_syscall: wait for the rest of their
 *     time.
 *   - pause, rt_sigsuspend: begin again unless a handler has run, rt_sigsuspend with its mask.
 *   - wait4, waitid, flock, fcntl, accept, accept4, connect, mq_timedreceive, mq_timedsend: have nothing before
 *     they have it all, a child, a lock, a connection, a message. (connect goes on with the connection that it
 *     has begun.)
 *   - getrandom: would return less, and is made to begin again; which it is also where it does not sleep.
 *   - epoll_wait, epoll_pwait, epoll_pwait2, rt_sigtimedwait, semop, semtimedop, msgrcv, msgsnd: would return
 *     EINTR, and are made to begin again (registers_hide_interruption), with their whole time.
 *   - io_getevents, io_pgetevents: the same if they wait for one event; of several they return those that have
 *     come.
 *   - io_uring_enter: the same if it only waits; if it has submitted, it returns without having waited.
 *   - read, readv, recvfrom, recvmsg: from a pipe, a socket, or what has no name (eventfd, timerfd, signalfd,
 *     inotify …) wait only as long as nothing has come, but for MSG_WAITALL. From a terminal or another device
 *     they may wait for more (VMIN), which cannot be seen: those come last. From a file: FUSE may return EINTR,
 *     others hardly sleep.
 *   - write: of at most PIPE_BUF bytes to a pipe is whole; of more, or to a socket, is not. writev is not
 *     looked into.
 *   - send…, recvmmsg, sendfile, splice, tee, vmsplice, copy_file_range: return less.
 *   - all others are not known, and count as those that return less.
 *
 * A socket with SO_RCVLOWAT above 1 waits although something has come, which cannot be seen either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct blocked_call {
	int64_t number; /* -1: the thread sleeps elsewhere, in a page fault */
	uint64_t arguments[6];
	uint64_t sp, pc; /* in user code */
};

/* What is left of the call after a stop. In this order the less is better. */
enum stop_effect {
	STOP_NONE,  /* all, or the thread does not sleep */
	STOP_TIME,  /* all, but that a timeout begins anew */
	STOP_DOUBT, /* all, or it returns less, for what can be seen */
	STOP_LESS,  /* it returns less, or is not known */
};

#define BLOCKED_CALL_NAME 24

/* False: the thread does not sleep. What is read is of one and the same sleep. */
bool blocked_call_read(struct blocked_call *call, pid_t pid, pid_t tid);
enum stop_effect blocked_call_effect(const struct blocked_call *call, pid_t pid, pid_t tid);
/* "write(2)", or "system call 16". */
const char *blocked_call_name(const struct blocked_call *call, char name[BLOCKED_CALL_NAME]);
/*
 * The same of one that is not to be stopped: it sleeps in a call that a stop would harm, or (any) in whatever call.
 * False: it may be stopped, or (any) it does not sleep.
 */
struct sleeper {
	pid_t pid, tid;
	struct blocked_call call;
	int64_t switches;
	bool may_stop; /* it sleeps in another call, or is stopped */
};
bool sleeper_look(struct sleeper *s, pid_t pid, pid_t tid, bool any);
/*
 * A thread that runs, or wants to, may be in the kernel, on its way from one sleep in a call to the next one in the
 * same call. So it is looked at until it sleeps, or has used a processor for longer than that takes without having
 * slept.
 */
enum sleeper_found {
	SLEEPER_FOUND,   /* it sleeps in a call that a stop would harm */
	SLEEPER_NONE,    /* it sleeps in another one, or runs its program */
	SLEEPER_UNKNOWN, /* until the deadline neither was seen: it waits for a processor */
};
#define SLEEPER_AWAIT_NS 10000000ull /* two ticks of a slow kernel */
enum sleeper_found sleeper_await(struct sleeper *s, pid_t pid, pid_t tid, uint64_t deadline_ns);
/* Has it slept in the same call ever since? */
bool sleeper_sleeps(const struct sleeper *s);
