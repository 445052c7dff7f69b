/* SPDX-License-Identifier: MIT */
#include "process/blocked_call.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "host/clocks.h"
#include "process/proc_status.h"
#include "process/thread.h"
#include "host/watchdog.h"
#include "files/whole_io.h"

#define AWAIT_PAUSE_NS 50000
#define RUNS_ON_NS 100000u /* more than a call needs from one sleep to the next */

/* What decides: besides the effects that are always the same, … */
enum rule {
	ALWAYS_WHOLE,
	WHOLE_BUT_TIME,
	READS,         /* … what is read from, */
	RECEIVES,      /* … argument 3, flags, */
	RECEIVES_MANY, /* … argument 2, flags, */
	WRITES,        /* … what is written to, and how much, */
	WAITS_FOR,     /* … argument 1, how many are waited for, */
	SUBMITS,       /* … argument 1, how many are submitted */
	NEVER,
};

static const struct row {
	int number;
	char rule;
	const char *name;
} rows[] = {
	{ SYS_futex, ALWAYS_WHOLE, "futex" },
	{ 449, ALWAYS_WHOLE, "futex_waitv" },
	{ SYS_nanosleep, ALWAYS_WHOLE, "nanosleep" },
	{ SYS_clock_nanosleep, ALWAYS_WHOLE, "clock_nanosleep" },
	{ SYS_poll, ALWAYS_WHOLE, "poll" },
	{ SYS_ppoll, ALWAYS_WHOLE, "ppoll" },
	{ SYS_select, ALWAYS_WHOLE, "select" },
	{ SYS_pselect6, ALWAYS_WHOLE, "pselect6" },
	{ SYS_restart_syscall, ALWAYS_WHOLE, "restart_syscall" },
	{ SYS_pause, ALWAYS_WHOLE, "pause" },
	{ SYS_rt_sigsuspend, ALWAYS_WHOLE, "rt_sigsuspend" },
	{ SYS_wait4, ALWAYS_WHOLE, "wait4" },
	{ SYS_waitid, ALWAYS_WHOLE, "waitid" },
	{ SYS_flock, ALWAYS_WHOLE, "flock" },
	{ SYS_fcntl, ALWAYS_WHOLE, "fcntl" },
	{ SYS_accept, ALWAYS_WHOLE, "accept" },
	{ SYS_accept4, ALWAYS_WHOLE, "accept4" },
	{ SYS_connect, ALWAYS_WHOLE, "connect" },
	{ SYS_mq_timedreceive, ALWAYS_WHOLE, "mq_timedreceive" },
	{ SYS_mq_timedsend, ALWAYS_WHOLE, "mq_timedsend" },
	{ SYS_getrandom, ALWAYS_WHOLE, "getrandom" },
	{ SYS_epoll_wait, WHOLE_BUT_TIME, "epoll_wait" },
	{ SYS_epoll_pwait, WHOLE_BUT_TIME, "epoll_pwait" },
	{ 441, WHOLE_BUT_TIME, "epoll_pwait2" },
	{ SYS_rt_sigtimedwait, WHOLE_BUT_TIME, "rt_sigtimedwait" },
	{ SYS_semop, WHOLE_BUT_TIME, "semop" },
	{ SYS_semtimedop, WHOLE_BUT_TIME, "semtimedop" },
	{ SYS_msgrcv, WHOLE_BUT_TIME, "msgrcv" },
	{ SYS_msgsnd, WHOLE_BUT_TIME, "msgsnd" },
	{ SYS_io_getevents, WAITS_FOR, "io_getevents" },
	{ SYS_io_pgetevents, WAITS_FOR, "io_pgetevents" },
	{ 426, SUBMITS, "io_uring_enter" },
	{ SYS_read, READS, "read" },
	{ SYS_readv, READS, "readv" },
	{ SYS_recvfrom, RECEIVES, "recvfrom" },
	{ SYS_recvmsg, RECEIVES_MANY, "recvmsg" },
	{ SYS_write, WRITES, "write" },
	{ SYS_writev, NEVER, "writev" },
	{ SYS_sendto, NEVER, "sendto" },
	{ SYS_sendmsg, NEVER, "sendmsg" },
	{ SYS_sendmmsg, NEVER, "sendmmsg" },
	{ SYS_recvmmsg, NEVER, "recvmmsg" },
	{ SYS_sendfile, NEVER, "sendfile" },
	{ SYS_splice, NEVER, "splice" },
	{ SYS_tee, NEVER, "tee" },
	{ SYS_vmsplice, NEVER, "vmsplice" },
	{ SYS_copy_file_range, NEVER, "copy_file_range" },
	{ SYS_ioctl, NEVER, "ioctl" },
};

static const struct row *row_of(int64_t number)
{
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].number == number)
			return &rows[i];
	return NULL;
}

enum end {
	END_PIPE,
	END_SOCKET,
	END_UNNAMED,
	END_DEVICE,
	END_OTHER,
};

/* What a descriptor of the thread leads to. Nothing is opened, and no file system is asked anew. */
static enum end end_of(pid_t pid, pid_t tid, uint64_t fd)
{
	char path[80], name[16] = "";
	struct statx status;

	snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", pid, tid, (int)fd);
	if (readlink(path, name, sizeof name - 1) < 0)
		return END_OTHER;
	if (strncmp(name, "pipe:", 5) == 0)
		return END_PIPE;
	if (strncmp(name, "socket:", 7) == 0)
		return END_SOCKET;
	if (strncmp(name, "anon_inode:", 11) == 0)
		return END_UNNAMED;
	watchdog_call_begin();
	int rc = statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status);
	watchdog_call_end();
	if (rc < 0 || !(status.stx_mask & STATX_TYPE))
		return END_OTHER;
	return S_ISFIFO(status.stx_mode) ? END_PIPE : S_ISCHR(status.stx_mode) ? END_DEVICE : END_OTHER;
}

static enum stop_effect effect_of_read(enum end from)
{
	return from == END_OTHER ? STOP_LESS : from == END_DEVICE ? STOP_DOUBT : STOP_NONE;
}

static enum stop_effect effect_of_write(enum end to, uint64_t bytes)
{
	return (to == END_PIPE || to == END_UNNAMED) && bytes <= PIPE_BUF ? STOP_NONE : STOP_LESS;
}

enum stop_effect blocked_call_effect(const struct blocked_call *call, pid_t pid, pid_t tid)
{
	const struct row *row = row_of(call->number);
	const uint64_t *a = call->arguments;

	if (call->number < 0)
		return STOP_NONE;
	switch (row ? (enum rule)row->rule : NEVER) {
	case ALWAYS_WHOLE: return STOP_NONE;
	case WHOLE_BUT_TIME: return STOP_TIME;
	case READS: return effect_of_read(end_of(pid, tid, a[0]));
	case RECEIVES: return a[3] & MSG_WAITALL ? STOP_LESS : STOP_NONE;
	case RECEIVES_MANY: return a[2] & MSG_WAITALL ? STOP_LESS : STOP_NONE;
	case WRITES: return effect_of_write(end_of(pid, tid, a[0]), a[2]);
	case WAITS_FOR: return a[1] > 1 ? STOP_LESS : STOP_TIME;
	case SUBMITS: return a[1] > 0 ? STOP_LESS : STOP_TIME;
	case NEVER: break;
	}
	return STOP_LESS;
}

const char *blocked_call_name(const struct blocked_call *call, char name[BLOCKED_CALL_NAME])
{
	const struct row *row = row_of(call->number);

	if (row)
		snprintf(name, BLOCKED_CALL_NAME, "%s(2)", row->name);
	else
		snprintf(name, BLOCKED_CALL_NAME, "system call %d", (int)call->number);
	return name;
}

/* proc(5), /proc/PID/syscall: number, six arguments, stack pointer, program counter; or -1, and the last two. */
static bool parse(struct blocked_call *call, const char *text)
{
	uint64_t *a = call->arguments;

	*call = (struct blocked_call){ .number = -1 };
	if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &call->sp, &call->pc) == 2)
		return true;
	return sscanf(text,
	              "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
	              " %" SCNx64,
	              &call->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &call->sp, &call->pc) == 9;
}

bool blocked_call_read(struct blocked_call *call, pid_t pid, pid_t tid)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, tid);
	watchdog_call_begin(); /* an execve keeps it waiting */
	int rc = whole_io_text(path, text, sizeof text);
	watchdog_call_end();
	return rc == 0 && parse(call, text);
}

/* Stopped threads count as none that sleep: what they slept in has been interrupted already. */
static bool is_stopped(const char *status)
{
	const char *state = proc_status_field(status, "State");

	return !state || *state == 'T' || *state == 't';
}

bool sleeper_look(struct sleeper *s, pid_t pid, pid_t tid, bool any)
{
	char status[STATUS_BYTES];

	*s = (struct sleeper){ .pid = pid, .tid = tid };
	if (!blocked_call_read(&s->call, pid, tid))
		return false;
	s->may_stop = !any && blocked_call_effect(&s->call, pid, tid) != STOP_LESS;
	if (s->may_stop)
		return false;
	s->switches = thread_switches(pid, tid);
	s->may_stop = proc_status_read(status, pid, tid) == 0 && is_stopped(status);
	return !s->may_stop && sleeper_sleeps(s);
}

/* ns on a processor, as of the last tick or switch; and how often it went to sleep. */
static void read_progress(pid_t pid, pid_t tid, uint64_t *ran_ns, int64_t *slept)
{
	char text[STATUS_BYTES];

	*ran_ns = (uint64_t)thread_ran_ns(pid, tid);
	*slept = proc_status_read(text, pid, tid) == 0 ? proc_status_number(text, "voluntary_ctxt_switches", 10, -1)
	                                               : -1;
}

enum sleeper_found sleeper_await(struct sleeper *s, pid_t pid, pid_t tid, uint64_t deadline_ns)
{
	uint64_t first_ns = 0, ran_ns;
	int64_t first_slept = -2, slept;

	for (;;) {
		if (sleeper_look(s, pid, tid, false))
			return SLEEPER_FOUND;
		if (s->may_stop)
			return SLEEPER_NONE;
		read_progress(pid, tid, &ran_ns, &slept);
		if (slept != first_slept) {
			first_slept = slept;
			first_ns = ran_ns;
		} else if (ran_ns - first_ns >= RUNS_ON_NS || slept < 0) {
			return SLEEPER_NONE;
		}
		if (clock_monotonic_ns() >= deadline_ns)
			return SLEEPER_UNKNOWN;
		clock_pause(AWAIT_PAUSE_NS);
	}
}

bool sleeper_sleeps(const struct sleeper *s)
{
	struct blocked_call now;

	return s->switches >= 0 && blocked_call_read(&now, s->pid, s->tid) && now.number == s->call.number &&
	       now.sp == s->call.sp && now.pc == s->call.pc && thread_switches(s->pid, s->tid) == s->switches;
}
