/* SPDX-License-Identifier: MIT */
#include "process/thread.h"

#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "process/proc_stat.h"
#include "process/proc_status.h"
#include "process/target.h"
#include "files/whole_io.h"

int thread_check_tracer(pid_t pid, pid_t tid, struct err *e)
{
	char name[TRACER_NAME];
	pid_t tracer = target_tracer(pid, tid, name);

	if (tracer <= 0 || tracer == getpid())
		return 0;
	return err_set(e, EAGAIN, "thread %d is traced by PID %d (%s)", tid, tracer, name);
}

int64_t thread_switches(pid_t pid, pid_t tid)
{
	char text[STATUS_BYTES];

	if (proc_status_read(text, pid, tid) < 0)
		return -1;
	int64_t voluntary = proc_status_number(text, "voluntary_ctxt_switches", 10, -1);
	int64_t others = proc_status_number(text, "nonvoluntary_ctxt_switches", 10, -1);
	return voluntary < 0 || others < 0 ? -1 : voluntary + others;
}

int64_t thread_ran_ns(pid_t pid, pid_t tid)
{
	char path[64], text[STATUS_BYTES];
	long long ns;

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
	return whole_io_text(path, text, sizeof text) == 0 && sscanf(text, "%lld", &ns) == 1 ? ns : 0;
}

/* '?': there is no such thread. ' ': it is not known, which is none that a thread has that has ended. */
static char thread_state(pid_t pid, pid_t tid)
{
	char state[32];

	const int rc = proc_stat_text(pid, tid, 3, state, sizeof state);
	if (rc < 0)
		return rc == -ESRCH ? '?' : ' ';
	return state[0];
}

bool thread_state_has_ended(char state)
{
	return state == 'Z' || state == 'X' || state == '?';
}

bool thread_has_ended(pid_t pid, pid_t tid)
{
	return thread_state_has_ended(thread_state(pid, tid));
}

uint64_t thread_birth_ticks(pid_t pid, pid_t tid)
{
	char ticks[32];

	return proc_stat_text(pid, tid, 22, ticks, sizeof ticks) == 0 ? strtoull(ticks, NULL, 10) : UINT64_MAX;
}

unsigned long thread_runnable_count(void)
{
	unsigned long count = 0;
	FILE *f = fopen("/proc/loadavg", "re");

	if (f && fscanf(f, "%*s %*s %*s %lu", &count) != 1)
		count = 0;
	if (f)
		fclose(f);
	return count;
}

int thread_did_not_stop(pid_t pid, pid_t tid, struct err *e)
{
	char state = thread_state(pid, tid);

	if (state == 'R')
		return err_set(e, ETIMEDOUT,
		               "thread %d did not stop in time: it is ready to run, with %lu threads on this machine "
		               "that run or want to",
		               tid, thread_runnable_count());
	return err_set(e, ETIMEDOUT, "thread %d did not stop in time%s", tid,
	               state == 'D' ? ": it is in uninterruptible sleep" : "");
}

void thread_look(pid_t pid, struct thread_info *info)
{
	char text[STATUS_BYTES];

	if (proc_status_read(text, pid, info->tid) == 0) {
		int64_t mode = proc_status_number(text, "Seccomp", 10, 0);
		info->filtered = mode > 0;
		info->strict = mode == SECCOMP_MODE_STRICT;
	}
	info->first = info->tid == pid;
	info->state = thread_state(pid, info->tid);
	info->call = (struct blocked_call){ .number = -1 };
	info->sleeping = blocked_call_read(&info->call, pid, info->tid);
	/* Of a stopped thread the call has been interrupted before. */
	bool stopped = info->state == 'T' || info->state == 't';
	info->effect = info->sleeping && !stopped ? blocked_call_effect(&info->call, pid, info->tid) : STOP_NONE;
}
