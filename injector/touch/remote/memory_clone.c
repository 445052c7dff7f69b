/* SPDX-License-Identifier: MIT */
#include "touch/remote/memory_clone.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/clones/our_clone.h"
#include "process/thread.h"

#define SLEEP_S 5u
#define HOLD_NS 2000000000ull
#define END_NS 20000000000ull /* for the kernel to free much memory */
#define PAUSE_NS 50000u

_Static_assert(sizeof OUR_CLONE_NAME <= sizeof((struct stub_area *)0)->clone_name, "OUR_CLONE_NAME");

int memory_clone_make(struct remote *r, pid_t *inner, uint64_t deadline_ns, struct err *e)
{
	const uint64_t sleep[2] = { SLEEP_S, 0 };
	struct stub_call call = { .target = SYS_clone };

	int rc = target_write(r->writer, CHANGE_WORK_AREA, REMOTE_AT(r, stub.clone_name), OUR_CLONE_NAME,
	                      sizeof OUR_CLONE_NAME, e);
	rc = rc ?: target_write(r->writer, CHANGE_WORK_AREA, REMOTE_AT(r, stub.clone_sleep), sleep, sizeof sleep, e);
	if (rc < 0)
		return rc;
	changes_made(r->writer->changes, CHANGE_CLONE);
	call.argument[0] = CLONE_FILES;
	rc = remote_call(r, &call, 1, deadline_ns, e);
	if (rc < 0)
		return rc;
	rc = remote_result(call.result, e);
	if (rc < 0) {
		changes_end(r->writer->changes, CHANGE_CLONE, CHANGE_UNDONE);
		return err_set(e, ENOTSUP, "the kernel refuses to clone it: %s", strerror(-rc));
	}
	*inner = (pid_t)call.result;
	return 0;
}

static int was_killed(struct err *e)
{
	return err_set(e, EAGAIN, "somebody has killed the clone of the process");
}

/* Its stop, or its end. */
static int await(pid_t pid, int what, uint64_t wait_ns, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + wait_ns;

	for (;;) {
		siginfo_t info = { 0 };
		if (waitid(P_PID, (id_t)pid, &info, what | WEXITED | WNOHANG | __WALL) < 0)
			return err_sys(e, "the clone of the process cannot be waited for");
		if (info.si_pid)
			return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED || !what ? 0 : was_killed(e);
		if (clock_monotonic_ns() >= deadline_ns)
			return err_set(e, ETIMEDOUT, "the clone of the process does not %s", what ? "stop" : "end");
		clock_pause(PAUSE_NS);
	}
}

/* When memory runs out the kernel shall end it before all others: nothing is lost with it. And freeing its memory shall
 * not take a processor from a program that has real-time priorities, of which it has one. */
static void make_unimportant(pid_t pid)
{
	const struct sched_param usual = { 0 };
	char path[48];

	(void)!sched_setscheduler(pid, SCHED_OTHER, &usual);
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		return;
}

/* It is traced and stopped, so that its number stays its own. */
static int hold_stopped(const struct target *t, pid_t pid, struct err *e)
{
	if (!our_clone_is(t, pid))
		return err_set(e, EAGAIN, "the clone of the process has ended, and its number is another's");
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, (void *)PTRACE_O_EXITKILL) < 0)
		return err_sys(e, "the clone of the process cannot be held");
	make_unimportant(pid);
	return 0;
}

int memory_clone_hold(const struct target *t, pid_t pid, struct err *e)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0) {
		const int rc = err_sys(e, "the clone of the process cannot be traced");
		/* That is also what ptrace says of one that has ended. */
		return thread_has_ended(pid, pid) ? was_killed(e) : rc;
	}
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		return err_sys(e, "the clone of the process cannot be stopped");
	int rc = await(pid, WSTOPPED, HOLD_NS, e);
	if (rc == -ETIMEDOUT && our_clone_is(t, pid))
		(void)!memory_clone_end(pid, ERR_IGNORED);
	if (rc < 0)
		return rc;
	rc = hold_stopped(t, pid, e);
	/* One that was killed in its stop has its process wait for it only when this thread has. */
	if (rc < 0 && ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		(void)!await(pid, 0, END_NS, ERR_IGNORED);
	return rc == -ESRCH ? was_killed(e) : rc;
}

int memory_clone_end(pid_t pid, struct err *e)
{
	/* As long as this thread has not waited for it, it keeps its number. */
	kill(pid, SIGKILL);
	return await(pid, 0, END_NS, e);
}

int memory_clone_collect(struct remote *r, pid_t inner, uint64_t deadline_ns, struct err *e)
{
	const uint64_t arguments[6] = { (uint64_t)inner, 0, (uint64_t)WNOHANG | (uint32_t)__WCLONE, 0 };
	uint64_t result = 0;

	int rc = remote_call1(r, SYS_wait4, arguments, &result, deadline_ns, e);
	if (rc < 0)
		return rc;
	if (result == 0)
		return err_set(e, EAGAIN, "the clone of the process has not ended");
	rc = remote_result(result, e);
	if (rc == 0 || rc == -ECHILD)
		changes_end(r->writer->changes, CHANGE_CLONE, CHANGE_UNDONE);
	return rc == -ECHILD ? 0 : rc;
}
