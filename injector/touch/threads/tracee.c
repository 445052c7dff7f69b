/* SPDX-License-Identifier: MIT */
#include "touch/threads/tracee.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "touch/threads/hand_back.h"
#include "touch/threads/let_go.h"
#include "touch/threads/reap.h"
#include "process/proc_stat.h"
#include "process/target.h"
#include "host/watchdog.h"

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif
#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

#ifndef sigev_notify_thread_id /* timer_create(2) */
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define LAST_WAIT_NS 200000000u /* of tracee_detach, for a thread that runs */

static int request(struct tracee *t, int what, const char *name, uintptr_t address, uintptr_t data, struct err *e)
{
	if (ptrace(what, t->tid, (void *)address, (void *)data) == 0)
		return 0;
	return err_sys(e, "thread %d: %s", t->tid, name);
}

static bool is_thread_of(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) == 0 || !proc_stat_has_gone(-errno);
}

/*
 * A debugger, or a LeakSanitizer that looks for leaks, is the tracer for its time: -EAGAIN. It may have gone between
 * the refusal and the look, so what is refused without one is tried once more.
 */
static int seize(struct tracee *t, uintptr_t options, struct err *e)
{
	int rc = request(t, PTRACE_SEIZE, "PTRACE_SEIZE", 0, options, e);

	if (rc != -EPERM)
		return rc;
	rc = thread_check_tracer(t->pid, t->tid, e);
	return rc < 0 ? rc : request(t, PTRACE_SEIZE, "PTRACE_SEIZE", 0, options, e);
}

int tracee_seize(struct tracee *t, pid_t pid, pid_t tid, bool suspend_seccomp, struct err *e)
{
	uintptr_t options = PTRACE_O_TRACESYSGOOD | (suspend_seccomp ? (uintptr_t)PTRACE_O_SUSPEND_SECCOMP : 0);
	uint64_t *longest = t->longest_ns;
	struct reaper reaper;

	int rc = let_go_take_back(t, tid, suspend_seccomp, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	*t = (struct tracee){ .pid = pid, .tid = tid, .filtered = suspend_seccomp, .longest_ns = longest };
	rc = is_thread_of(pid, tid) ? reap_reserve(e) : err_set(e, ESRCH, "process %d has no thread %d", pid, tid);
	if (rc < 0)
		return rc;
	reaper_start(&reaper);
	watchdog_call_begin(); /* an execve of another thread keeps it waiting */
	rc = seize(t, options, e);
	watchdog_call_end();
	reaper_stop(&reaper);
	if (rc == 0)
		reap_add(tid);
	/* That is also what ptrace says of a thread between its exit and its disappearance. */
	if (rc == -EPERM && thread_has_ended(pid, tid))
		return err_set(e, ESRCH, "thread %d has ended", tid);
	t->seized = rc == 0;
	/* Its number may have become that of somebody else's thread between the look and the request. */
	if (rc == 0 && !is_thread_of(pid, tid)) {
		tracee_detach(t);
		return err_set(e, ESRCH, "thread %d has ended", tid);
	}
	return rc;
}

bool tracee_go_first(bool first)
{
	const struct sched_param urgent = { .sched_priority = 1 }, usual = { 0 };

	watchdog_hold(first);
	return sched_setscheduler(0, first ? SCHED_RR : SCHED_OTHER, first ? &urgent : &usual) == 0;
}

static void hold_begins(struct tracee *t)
{
	if (t->stopped_since)
		return;
	tracee_go_first(true);
	t->stopped_since = clock_monotonic_ns();
}

static void hold_ends(struct tracee *t)
{
	if (t->stopped_since)
		tracee_go_first(false);

	if (t->stopped_since && t->longest_ns) {
		uint64_t held = clock_monotonic_ns() - t->stopped_since;
		if (held > *t->longest_ns)
			*t->longest_ns = held;
	}
	t->stopped_since = 0;
	t->stopped = false;
}

/* What kind of stop a status of waitid tells of (ptrace(2), "Stopped states"). */
static enum tracee_stop classify(struct tracee *t, int status)
{
	int signal = status & 0x7f;

	t->signal = 0;
	if (status >> 8 == PTRACE_EVENT_STOP)
		return signal == SIGTRAP ? TRACEE_STOP_EVENT : TRACEE_STOP_GROUP;
	if (status == (SIGTRAP | 0x80))
		return TRACEE_STOP_SYSCALL;
	t->signal = signal;
	return TRACEE_STOP_SIGNAL;
}

static int gone(struct tracee *t, struct err *e)
{
	t->seized = t->stopped = false;
	if (t->stopped_since)
		tracee_go_first(false);
	t->stopped_since = 0;
	return err_set(e, ESRCH, "thread %d has ended", t->tid);
}

/*
 * waitid has no timeout. A timer of this process interrupts it at the deadline, and every few milliseconds after that:
 * a single shot could fall between the look at the clock and the system call. It is armed once for a deadline, not once
 * for a stop, because a thread is stopped while we wait: one system call per stop is what it may cost.
 */
#define DEADLINE_SIGNAL SIGALRM
#define DEADLINE_REPEAT_NS 5000000

static void interrupted(int signal)
{
	(void)signal;
}

static int deadline_arm(uint64_t deadline_ns, struct err *e)
{
	static timer_t timer;
	static pid_t made; /* for this thread */
	static uint64_t armed_ns;
	struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
		              .tv_nsec = (long)(deadline_ns % 1000000000u) },
		.it_interval = { .tv_nsec = DEADLINE_REPEAT_NS },
	};

	if (deadline_ns == 0)
		spec.it_interval.tv_nsec = 0; /* disarms */
	if (made && made != gettid()) {
		timer_delete(timer);
		made = 0;
		armed_ns = 0;
	}
	if (armed_ns == deadline_ns)
		return 0;
	if (!made) {
		struct sigaction action = { .sa_handler = interrupted }; /* no SA_RESTART */
		struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = DEADLINE_SIGNAL };
		event.sigev_notify_thread_id = gettid();
		if (sigaction(DEADLINE_SIGNAL, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
			return err_sys(e, "cannot make a timer");
		made = gettid();
	}
	if (timer_settime(timer, deadline_ns ? TIMER_ABSTIME : 0, &spec, NULL) < 0)
		return err_sys(e, "cannot set a timer");
	armed_ns = deadline_ns;
	return 0;
}

/* No deadline is waited for any more. */
static void deadline_disarm(void)
{
	if (deadline_arm(0, ERR_IGNORED) < 0)
		return;
}

/*
 * A stop alone, and a signal that the program ignores (a tracee is woken for it), make epoll_wait and a few others
 * return EINTR. Before anything else that is turned into a restart, which the kernel makes unless a handler runs. Best
 * effort: a thread that is gone needs nothing.
 */
static void hide_interruption(struct tracee *t)
{
	struct registers regs;

	int rc = tracee_registers(t, &regs, ERR_IGNORED);
	if (rc == 0 && registers_hide_interruption(&regs, &t->before))
		rc = tracee_set_registers(t, &regs, ERR_IGNORED);
	(void)rc;
}

/* 1: it is in a stop; 0: not, or a signal of ours came first. options: WNOHANG or 0. */
static int look_for_stop(struct tracee *t, int options, enum tracee_stop *stop, struct err *e)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)t->tid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL | options) < 0) {
		if (errno == EINTR)
			return 0;
		return errno == ECHILD ? gone(t, e) : err_sys(e, "thread %d: waitid", t->tid);
	}
	if (info.si_pid == 0)
		return 0;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		waitid(P_PID, (id_t)t->tid, &info, WEXITED | WNOHANG | __WALL);
		reap_remove(t->tid);
		return gone(t, e);
	}
	*stop = classify(t, info.si_status);
	t->stopped = true;
	t->asked = false;
	t->group_stopped = *stop == TRACEE_STOP_GROUP;
	if (*stop != TRACEE_STOP_SYSCALL)
		hide_interruption(t);
	return 1;
}

int tracee_wait(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e)
{
	int rc = deadline_arm(deadline_ns, e);

	watchdog_waits(true);
	while (rc == 0) {
		rc = look_for_stop(t, 0, stop, e);
		if (rc == 0 && clock_monotonic_ns() >= deadline_ns)
			rc = thread_did_not_stop(t->pid, t->tid, e);
		if (rc == 0 && watchdog_asked_twice())
			rc = err_set(e, ETIMEDOUT, "thread %d was not waited for: interrupted twice", t->tid);
	}
	watchdog_waits(false);
	return rc < 0 ? rc : 0;
}

int tracee_poll(struct tracee *t, enum tracee_stop *stop, struct err *e)
{
	return look_for_stop(t, WNOHANG, stop, e);
}

int tracee_ask(struct tracee *t, struct err *e)
{
	registers_before_stop(&t->before, t->pid, t->tid);
	t->asked = true;
	return request(t, PTRACE_INTERRUPT, "PTRACE_INTERRUPT", 0, 0, e);
}

int tracee_interrupt(struct tracee *t, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e)
{
	bool held = t->stopped_since; /* in the stub, or on its way there: that has been a stop even if it ends so */

	for (;;) {
		hold_begins(t);
		int rc = tracee_ask(t, e);
		rc = rc ?: tracee_wait(t, deadline_ns, stop, e);
		if (rc == -ETIMEDOUT && !held) {
			t->stopped_since = 0;
			tracee_go_first(false);
		} else if (rc == -ETIMEDOUT) {
			hold_ends(t);
		}
		if (rc < 0)
			return rc;
		held = false;
		if (*stop == TRACEE_STOP_EVENT || *stop == TRACEE_STOP_GROUP)
			return 0;
		/* Any other stop has used up the interrupt: pass it on and ask again, but not for ever. */
		rc = tracee_continue(t, e);
		if (rc == 0 && clock_monotonic_ns() >= deadline_ns)
			rc = thread_did_not_stop(t->pid, t->tid, e);
		if (rc < 0)
			return rc;
	}
}

/* With the signal that it has met, unless that was for the first thread. */
static int signal_to_pass_on(struct tracee *t)
{
	const int signal = t->signal && !hand_back(t) ? t->signal : 0;

	t->signal = 0;
	return signal;
}

int tracee_resume(struct tracee *t, int how, struct err *e)
{
	const int signal = signal_to_pass_on(t);

	t->stopped = false;
	int rc = request(t, how, "resume", 0, (uintptr_t)signal, e);
	return rc == -ESRCH ? gone(t, e) : rc;
}

int tracee_continue(struct tracee *t, struct err *e)
{
	hold_ends(t);
	return tracee_resume(t, PTRACE_CONT, e);
}

int tracee_run(struct tracee *t, int how, uint64_t deadline_ns, enum tracee_stop *stop, struct err *e)
{
	int rc = tracee_resume(t, how, e);

	return rc < 0 ? rc : tracee_wait(t, deadline_ns, stop, e);
}

void tracee_detach(struct tracee *t)
{
	enum tracee_stop stop;

	if (!t->seized)
		return;
	if (!t->stopped && tracee_interrupt(t, clock_monotonic_ns() + LAST_WAIT_NS, &stop, ERR_IGNORED) < 0 &&
	    !t->stopped) {
		let_go_running(t);
		deadline_disarm();
		return;
	}
	if (let_go(t))
		t->stopped_since = 0;
	else if (request(t, PTRACE_DETACH, "PTRACE_DETACH", 0, (uintptr_t)signal_to_pass_on(t), ERR_IGNORED) == 0)
		reap_remove(t->tid);
	hold_ends(t);
	deadline_disarm();
	t->seized = false;
}

int tracee_registers(struct tracee *t, struct registers *regs, struct err *e)
{
	return registers_read(t->tid, &t->before, regs) ? 0
	                                                : err_sys(e, "thread %d: cannot read its registers", t->tid);
}

int tracee_set_registers(struct tracee *t, const struct registers *regs, struct err *e)
{
	return registers_write(t->tid, regs) ? 0 : err_sys(e, "thread %d: cannot write its registers", t->tid);
}

static int ask_kernel(const struct tracee *t, int what, void *answer, size_t bytes)
{
	return ptrace((enum __ptrace_request)what, t->tid, bytes, answer) < 0 ? -errno : 0;
}

int tracee_rseq(const struct tracee *t, struct tracee_rseq *rseq)
{
	return ask_kernel(t, PTRACE_GET_RSEQ_CONFIGURATION, rseq, sizeof *rseq);
}

int tracee_dispatch(const struct tracee *t, struct tracee_dispatch *dispatch)
{
	return ask_kernel(t, PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, dispatch, sizeof *dispatch);
}

int tracee_signal_mask(struct tracee *t, uint64_t *mask, struct err *e)
{
	return request(t, PTRACE_GETSIGMASK, "PTRACE_GETSIGMASK", sizeof *mask, (uintptr_t)mask, e);
}

int tracee_set_signal_mask(struct tracee *t, uint64_t mask, struct err *e)
{
	return request(t, PTRACE_SETSIGMASK, "PTRACE_SETSIGMASK", sizeof mask, (uintptr_t)&mask, e);
}
