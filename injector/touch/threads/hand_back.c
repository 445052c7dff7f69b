/* SPDX-License-Identifier: MIT */
#include "touch/threads/hand_back.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "process/proc_status.h"
#include "touch/threads/let_go.h"
#include "touch/threads/tracer.h"

#define TAKE_NS 50000000ull /* in which the first thread comes to take it */
#define TIMERS_BYTES 16384

/* /proc/PID/timers (proc(5)): for each timer its number, and whom it notifies; without it: not known. */
static bool is_timer_of_process(pid_t pid, int number)
{
	char path[64], wanted[32];
	AUTO_FREE char *text = malloc(TIMERS_BYTES);

	snprintf(path, sizeof path, "/proc/%d/timers", pid);
	snprintf(wanted, sizeof wanted, "\nID: %d\n", number);
	if (!text || whole_text(path, text + 1, TIMERS_BYTES - 1) < 0)
		return false;
	*text = '\n';
	const char *timer = strstr(text, wanted), *notify = timer ? strstr(timer, "notify: ") : NULL;
	return notify && strncmp(notify, "notify: signal/pid.", 19) == 0;
}

static bool is_of_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE || number == SIGTRAP ||
	       number == SIGSYS;
}

static bool is_for_process(pid_t pid, const siginfo_t *info)
{
	switch (info->si_code) {
	case SI_USER:
	case SI_MESGQ:
	case SI_ASYNCIO: return true;
	case SI_KERNEL: return !is_of_fault(info->si_signo);
	case SI_TIMER: return is_timer_of_process(pid, info->si_timerid);
	default: return info->si_signo == SIGCHLD && info->si_code > 0;
	}
}

/* Would the kernel have chosen it? */
static bool first_wants(pid_t pid, int number)
{
	char status[STATUS_BYTES];
	const char *state;

	if (proc_status_read(status, pid, pid) < 0 || !(state = proc_status_field(status, "State")))
		return false;
	return (*state == 'R' || *state == 'S' || *state == 'D') &&
	       !((uint64_t)proc_status_number(status, "SigBlk", 16, 0) & 1ull << (number - 1));
}

static int send_ours(pid_t pid, int number, uintptr_t words)
{
	siginfo_t ours = { .si_signo = number, .si_code = SI_QUEUE, .si_value.sival_ptr = (void *)words };

	return (int)syscall(SYS_rt_tgsigqueueinfo, pid, pid, number, &ours);
}

/* What comes first is its own. One of the same number that waited already is the only one that comes. */
static void deliver(struct tracee *first, siginfo_t *info, uintptr_t words)
{
	const uint64_t deadline_ns = monotonic_ns() + TAKE_NS;
	enum tracee_stop stop;
	siginfo_t met;
	struct err ignored;

	while (tracee_wait(first, deadline_ns, &stop, &ignored) == 0) {
		const bool ours = stop == TRACEE_STOP_SIGNAL &&
		                  ptrace(PTRACE_GETSIGINFO, first->tid, NULL, &met) == 0 &&
		                  met.si_signo == info->si_signo;
		if (ours && met.si_code == SI_QUEUE && met.si_value.sival_ptr == (void *)words)
			(void)!ptrace(PTRACE_SETSIGINFO, first->tid, NULL, info);
		if (ours || stop == TRACEE_STOP_GROUP || tracee_continue(first, &ignored) < 0)
			break;
	}
}

bool hand_back(const struct tracee *t)
{
	struct tracee first = { .before.number = -1 };
	uintptr_t words = 0;
	siginfo_t info;
	struct err ignored;

	if (!tracer_runs() || t->pid == t->tid || ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) < 0 ||
	    !is_for_process(t->pid, &info) || !first_wants(t->pid, info.si_signo) ||
	    getrandom(&words, sizeof words, 0) != sizeof words ||
	    tracee_seize(&first, t->pid, t->pid, false, &ignored) < 0)
		return false;
	const bool sent = send_ours(t->pid, info.si_signo, words) == 0;
	if (sent)
		deliver(&first, &info, words);
	if (first.stopped)
		let_go_first(&first);
	else
		let_go_running(&first);
	return sent;
}
