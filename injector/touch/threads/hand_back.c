/* SPDX-License-Identifier: MIT */
#include "touch/threads/hand_back.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "process/proc_status.h"
#include "touch/threads/let_go.h"
#include "touch/threads/tracer.h"

#define TAKE_NS 30000000ull /* in which the first thread comes to take it */
#define TIMERS_BYTES 16384

/* /proc/PID/timers (proc(5)): for each timer its number, whom it notifies, and its clock: not one of CPU time, which
 * means the thread that has used it. */
static bool is_timer_of_process(pid_t pid, int number)
{
	char path[64], wanted[32];
	AUTO_FREE char *text = malloc(TIMERS_BYTES);
	int clock;

	snprintf(path, sizeof path, "/proc/%d/timers", pid);
	snprintf(wanted, sizeof wanted, "\nID: %d\n", number);
	if (!text || whole_io_text(path, text + 1, TIMERS_BYTES - 1) < 0)
		return false;
	*text = '\n';
	const char *timer = strstr(text, wanted), *notify = timer ? strstr(timer, "notify: ") : NULL;
	return notify && sscanf(notify, "notify: signal/pid.%*d ClockID: %d", &clock) == 1 && clock >= 0 &&
	       clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

/* Signals of the kernel without other words: for what the thread itself does, too. */
static bool is_for_process(pid_t pid, const siginfo_t *info)
{
	const int number = info->si_signo;

	switch (info->si_code) {
	case SI_USER: return number != SIGPIPE && number != SIGXFSZ && number != SIGCONT && number != SIGTSTP;
	case SI_KERNEL:
		return number == SIGALRM || number == SIGINT || number == SIGQUIT || number == SIGHUP ||
		       number == SIGWINCH;
	case SI_MESGQ:
	case SI_ASYNCIO: return true;
	case SI_TIMER: return is_timer_of_process(pid, info->si_timerid);
	default: return number == SIGCHLD && info->si_code > 0;
	}
}

/* Would the kernel have chosen it? One that waits already would be the only one. */
static bool first_wants(pid_t pid, int number)
{
	const uint64_t bit = 1ull << (number - 1);
	char status[STATUS_BYTES];
	const char *state;

	if (proc_status_read(status, pid, pid) < 0 || !(state = proc_status_field(status, "State")))
		return false;
	return strchr("RSD", *state) && (uint64_t)proc_status_number(status, "SigCgt", 16, 0) & bit &&
	       !((uint64_t)proc_status_number(status, "SigBlk", 16, 0) & bit) &&
	       !((uint64_t)proc_status_number(status, "SigPnd", 16, 0) & bit);
}

static int send_first(pid_t pid, const siginfo_t *info)
{
	return (int)syscall(SYS_rt_tgsigqueueinfo, pid, pid, info->si_signo, info);
}

/* What comes first is its own. */
static void deliver(struct tracee *first, siginfo_t *info, int mark, uint64_t deadline_ns)
{
	enum tracee_stop stop;
	siginfo_t met;

	while (tracee_wait(first, deadline_ns, &stop, ERR_IGNORED) == 0) {
		const bool same = stop == TRACEE_STOP_SIGNAL &&
		                  ptrace(PTRACE_GETSIGINFO, first->tid, NULL, &met) == 0 &&
		                  met.si_signo == info->si_signo;
		if (same && met.si_code == SI_QUEUE && met.si_errno == mark)
			(void)!ptrace(PTRACE_SETSIGINFO, first->tid, NULL, info);
		if (same || stop == TRACEE_STOP_GROUP || tracee_continue(first, ERR_IGNORED) < 0)
			break;
	}
}

static bool send_and_deliver(pid_t pid, siginfo_t *info)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + TAKE_NS;
	struct tracee first = { 0 };
	siginfo_t marked = *info;

	marked.si_code = SI_QUEUE;
	if (getrandom(&marked.si_errno, sizeof marked.si_errno, 0) != sizeof marked.si_errno ||
	    syscall(SYS_tgkill, pid, pid, 0) < 0 || tracee_seize(&first, pid, pid, false, ERR_IGNORED) < 0)
		return false;
	const bool sent = send_first(pid, &marked) == 0;
	if (sent)
		deliver(&first, info, marked.si_errno, deadline_ns);
	if (first.stopped)
		let_go_first(&first, deadline_ns);
	else
		let_go_running(&first);
	return sent;
}

bool hand_back(const struct tracee *t)
{
	siginfo_t info;

	if (!tracer_runs() || t->pid == t->tid || ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) < 0 ||
	    !is_for_process(t->pid, &info) || !first_wants(t->pid, info.si_signo))
		return false;
	if (info.si_code < 0)
		return send_first(t->pid, &info) == 0;
	return send_and_deliver(t->pid, &info);
}
