/* SPDX-License-Identifier: MIT */
#include "touch/start/own_child.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "host/clocks.h"

#define LOOK_NS 200000

static enum child_event classify(const siginfo_t *info, int *number)
{
	int event = info->si_status >> 8;

	*number = info->si_status & 0x7f;
	if (event == PTRACE_EVENT_EXEC)
		return CHILD_EXEC;
	if (event == PTRACE_EVENT_STOP)
		return CHILD_STOP;
	return CHILD_SIGNAL;
}

bool own_child_seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, (void *)(intptr_t)PTRACE_O_TRACEEXEC) == 0;
}

bool own_child_let_go(pid_t pid, int number)
{
	return ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)number) == 0;
}

enum child_event own_child_wait(pid_t pid, uint64_t deadline_ns, int *number)
{
	int block = deadline_ns == UINT64_MAX ? 0 : WNOHANG;

	for (;;) {
		siginfo_t info = { 0 };
		if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL | block) < 0) {
			if (errno == EINTR)
				continue;
			return CHILD_ENDED;
		}
		if (info.si_pid != 0)
			return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED ? classify(&info, number)
			                                                                  : CHILD_ENDED;
		if (clock_monotonic_ns() >= deadline_ns)
			return CHILD_RUNS;
		clock_pause(LOOK_NS);
	}
}

enum child_event own_child_wait_past_signals(pid_t pid, uint64_t deadline_ns)
{
	for (;;) {
		int number = 0;
		enum child_event event = own_child_wait(pid, deadline_ns, &number);
		if (event == CHILD_EXEC || event == CHILD_ENDED || event == CHILD_RUNS)
			return event;
		/* Stopped by job control it stays so until that lets it go on. */
		int request = event == CHILD_STOP ? PTRACE_LISTEN : PTRACE_CONT;
		if (ptrace((enum __ptrace_request)request, pid, NULL,
		           (void *)(intptr_t)(event == CHILD_STOP ? 0 : number)) < 0)
			return CHILD_ENDED;
	}
}

enum child_event own_child_stop(pid_t pid, uint64_t deadline_ns)
{
	for (;;) {
		int number = 0;
		if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
			return CHILD_ENDED;
		enum child_event event = own_child_wait(pid, deadline_ns, &number);
		if (event == CHILD_STOP || event == CHILD_ENDED || event == CHILD_RUNS)
			return event;
		/* Another stop has used up the request. */
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(event == CHILD_SIGNAL ? number : 0)) < 0)
			return CHILD_ENDED;
	}
}
