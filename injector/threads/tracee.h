/* SPDX-License-Identifier: MIT */
/*
 * One thread of the target under ptrace: seized, stopped, run to its next stop, let go.
 *
 * Always PTRACE_SEIZE (no SIGSTOP that could race with job control), never EXITKILL, and waitid(WNOWAIT): a stop that
 * is not consumed keeps its signal, should memattach die at that moment. Signals that are met on the way are passed on,
 * not kept.
 *
 * Waits have deadlines, which a timer with SIGALRM enforces: not for programs that use that signal, nor for several
 * threads.
 */
#ifndef MEMATTACH_TRACEE_H
#define MEMATTACH_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "clocks.h"
#include "err.h"

enum tracee_stop {
	TRACEE_STOP_EVENT,   /* PTRACE_EVENT_STOP: no system call or signal is half done */
	TRACEE_STOP_GROUP,   /* the same, while the process is stopped by job control */
	TRACEE_STOP_SYSCALL, /* entry or exit of a system call */
	TRACEE_STOP_SIGNAL,  /* a signal is about to be delivered: tracee.signal */
};

struct tracee {
	pid_t pid;
	pid_t tid;
	bool seized;
	bool filtered; /* has a seccomp filter, which is suspended as long as it is seized */
	bool stopped;
	int signal;           /* of a TRACEE_STOP_SIGNAL, to be passed on */
	uint64_t held_since;  /* CLOCK_MONOTONIC ns when the present stop was asked for, 0: running */
	uint64_t *longest_ns; /* longest hold of any one thread so far is kept here; may be NULL */
};

/*
 * A held thread waits for memattach at every stop: on a busy machine each wait for a processor lengthens the hold by
 * whole time slices. So memattach goes first while it holds a thread, where it may (CAP_SYS_NICE); it only sleeps and
 * makes short calls then. False: it may not. The watchdog looks after it meanwhile.
 */
bool tracee_go_first(bool first);

/* Only a thread of process pid. -ESRCH it is none, or gone, -EPERM with the reason as far as ptrace tells it.
 * suspend_seccomp needs CAP_SYS_ADMIN. */
int tracee_seize(struct tracee *t, pid_t pid, pid_t tid, bool suspend_seccomp, struct err *e) WARN_UNUSED;
/* Asks the thread to stop and does not wait for it; no hold begins. It may meet stops of other kinds first, which use
 * the request up. */
int tracee_ask(struct tracee *t, struct err *e) WARN_UNUSED;
/* Stops the thread; signals met on the way are delivered first. -ETIMEDOUT, -ESRCH. */
int tracee_interrupt(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Lets the thread run to its next stop of any kind. request: PTRACE_CONT or PTRACE_SYSCALL. */
int tracee_run(struct tracee *t, int request, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Waits for a stop without having resumed. */
int tracee_wait(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* 1: the thread stands in a stop that was not seen yet; 0: it runs. */
int tracee_poll(struct tracee *t, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Resumes without waiting, while the hold goes on: what runs is not the thread's own program. */
int tracee_resume(struct tracee *t, int request, struct err *e) WARN_UNUSED;
/* Resumes the thread's own program without waiting (still seized). */
int tracee_continue(struct tracee *t, struct err *e) WARN_UNUSED;
/* Lets go for good; a running thread is stopped first. Safe in any state, also after the thread's end. If it does not
 * stop it is given up. */
void tracee_detach(struct tracee *t);
/*
 * A thread that was asked to stop and does not (it waits for a vfork child or for a disk) can neither be told to forget
 * that nor be let go. It would stand still when it comes back, until memattach ends: so it is remembered. tracee_seize
 * takes it over; tracee_release_late lets go of those that have come to their stop. To be called while no other thread
 * is held, whenever SIGCHLD tells of a stop, or now and then. tracee_release lets go of the one that waitid tells of,
 * given up or not. tracee_await_late waits for them, first among those that want a processor: to be called before
 * something that takes long.
 */
void tracee_give_up(struct tracee *t);
void tracee_release_late(void);
void tracee_await_late(uint64_t deadline_ns);
void tracee_release(pid_t tid);

int tracee_registers(struct tracee *t, struct user_regs_struct *regs, struct err *e) WARN_UNUSED;
int tracee_set_registers(struct tracee *t, const struct user_regs_struct *regs, struct err *e) WARN_UNUSED;
int tracee_signal_mask(struct tracee *t, uint64_t *mask, struct err *e) WARN_UNUSED;
int tracee_set_signal_mask(struct tracee *t, uint64_t mask, struct err *e) WARN_UNUSED;

#endif
