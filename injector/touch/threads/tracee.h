/* SPDX-License-Identifier: MIT */
/*
 * One thread of the target under ptrace: seized, stopped, run to its next stop, resumed.
 *
 * Always PTRACE_SEIZE (no SIGSTOP that could race with job control), never EXITKILL, and waitid(WNOWAIT): a stop that
 * is not consumed keeps its signal, should memattach die at that moment. Signals that are met on the way are passed on,
 * not kept.
 *
 * Waits have deadlines, which a timer with SIGALRM enforces: not for programs that use that signal, nor for several
 * threads at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/registers.h"
#include "host/clocks.h"
#include "base/err.h"

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
	bool group_stopped;
	bool asked;            /* to stop, and has not met a stop since */
	bool detached_at_once; /* from its stop: its tracer will have more to do than to look after it (let_go.h) */
	int signal;            /* of a TRACEE_STOP_SIGNAL, to be passed on */
	struct blocked_call before; /* registers_before_stop() */
	uint64_t stopped_since;     /* CLOCK_MONOTONIC ns when the present stop was asked for, 0: running */
	uint64_t *longest_ns;       /* longest stop of any one thread so far is kept here; may be NULL */
};

/*
 * A stopped thread waits for memattach at every stop: on a busy machine each wait for a processor lengthens the stop by
 * whole time slices. So memattach goes first while it holds a thread, where it may (CAP_SYS_NICE); it only sleeps and
 * makes short calls then. False: it may not. The watchdog looks after it meanwhile.
 */
bool tracee_go_first(bool first);

/* Only a thread of process pid. -ESRCH it is none, or gone, -EAGAIN somebody else traces it, -EPERM with the reason as
 * far as ptrace tells it. suspend_seccomp needs CAP_SYS_ADMIN. */
int tracee_seize(struct tracee *t, pid_t pid, pid_t tid, bool suspend_seccomp, struct err *e) WARN_UNUSED;
/* Asks the thread to stop and does not wait for it; no stop is counted yet. It may meet stops of other kinds first,
 * which use the request up. */
int tracee_ask(struct tracee *t, struct err *e) WARN_UNUSED;
/* Stops the thread; signals met on the way are delivered first. -ETIMEDOUT, -ESRCH. */
int tracee_interrupt(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Lets the thread run to its next stop of any kind. request: PTRACE_CONT or PTRACE_SYSCALL. */
int tracee_run(struct tracee *t, int request, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Waits for a stop without having resumed. */
int tracee_wait(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* 1: the thread is in a stop that was not seen yet; 0: it runs. */
int tracee_poll(struct tracee *t, enum tracee_stop *stop, struct err *e) WARN_UNUSED;
/* Resumes without waiting, while the stop goes on: what runs is not the thread's own program. */
int tracee_resume(struct tracee *t, int request, struct err *e) WARN_UNUSED;
/* Resumes the thread's own program without waiting (still seized). */
int tracee_continue(struct tracee *t, struct err *e) WARN_UNUSED;
/* Ends the tracing; a running thread is stopped first. Safe in any state, also after the thread's end. A thread that
 * does not stop is given up, and one that is not the first of its process may be traced until its tracer ends
 * (let_go.h). */
void tracee_detach(struct tracee *t);
int tracee_registers(struct tracee *t, struct registers *regs, struct err *e) WARN_UNUSED;
int tracee_set_registers(struct tracee *t, const struct registers *regs, struct err *e) WARN_UNUSED;
/* Where the kernel has its restartable sequences (struct ptrace_rseq_configuration), and whether its system calls
 * become signals (struct ptrace_sud_config); -EIO: this kernel does not tell. */
struct tracee_rseq {
	uint64_t address; /* of its struct rseq, 0: it has registered none */
	uint32_t bytes, signature, flags, pad;
};
struct tracee_dispatch {
	uint64_t mode, selector, offset, bytes;
};
int tracee_rseq(const struct tracee *t, struct tracee_rseq *rseq) WARN_UNUSED;
int tracee_dispatch(const struct tracee *t, struct tracee_dispatch *dispatch) WARN_UNUSED;
int tracee_signal_mask(struct tracee *t, uint64_t *mask, struct err *e) WARN_UNUSED;
int tracee_set_signal_mask(struct tracee *t, uint64_t mask, struct err *e) WARN_UNUSED;
