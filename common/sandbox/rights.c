/* SPDX-License-Identifier: MIT */
#include "sandbox/rights.h"

#include <asm/termbits.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "base/sanitized.h"
#include "files/whole_io.h"
#include "sandbox/call_filter.h"
#include "sandbox/child.h"
#include "sandbox/close_all_but.h"

/* Users by number. Nobody gives away the upper half of the numbers, and no range of a container may lie there; the next
 * are systemd's, for as long as a service runs; where a user namespace has few there is only the one who is nobody. */
#define OWN_USERS 3000000000u
#define OWN_PROCESSES 16u /* it makes one at a time */
#define DYNAMIC_USERS 61184u
#define DYNAMIC_USERS_COUNT 4336u
#define NOBODY 65534u

#define LOWER_PRIORITY 5 /* after the target, but somebody waits: at 19 a busy machine would never get to it */
#define NAMESPACES                                                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- capabilities ---- */

static int capabilities_get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return (int)syscall(SYS_capget, &head, data);
}

static int capabilities_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(permitted >> (32 * i));
		data[i].effective = (uint32_t)(effective >> (32 * i));
	}
	return (int)syscall(SYS_capset, &head, data);
}

uint64_t rights_capabilities(void)
{
	struct __user_cap_data_struct have[2] = { 0 };

	return capabilities_get(have) < 0 ? UINT64_MAX : have[0].permitted | (uint64_t)have[1].permitted << 32;
}

int rights_set_capabilities(uint64_t bits)
{
	return capabilities_set(bits, bits);
}

/* ---- limits and calls ---- */

static void limit(int resource, uint64_t most)
{
	struct rlimit l = { most, most };

	setrlimit((__rlimit_resource_t)resource, &l);
}

uint64_t rights_data_bytes(void)
{
	unsigned long long pages = 0;
	char text[200];

	if (whole_io_text("/proc/self/statm", text, sizeof text) < 0 ||
	    sscanf(text, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What a reader of files has no use for. A filter of its own comes on top (analyzer/debug_info/jail.h). */
static void forbid_calls(void)
{
	static const uint32_t forbidden[] = {
		/* clang-format off */
		SYS_socket, SYS_connect, SYS_bind, SYS_accept, SYS_accept4, SYS_ptrace, SYS_process_vm_readv,
		SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_execve,
		SYS_execveat, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_mount,
		SYS_unshare, SYS_setns, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_open_by_handle_at,
		/* clang-format on */
	};

	struct call_filter f;

	call_filter_begin(&f);
	/* Its flags are out of a filter's sight: it is not there, and the C library takes clone. */
	call_filter_answer(&f, SYS_clone3, CALL_FILTER_REFUSE(ENOSYS));
	call_filter_without(&f, SYS_clone, 0, NAMESPACES);
	(void)call_filter_end(&f, forbidden, COUNT(forbidden), CALL_FILTER_REFUSE(EPERM), SECCOMP_RET_ALLOW);
}

/* Reading, drawing, and processes of its own that do so. Some are for the C library and for the filter of the jail. */
static void allow_only_drawing(void)
{
	static const uint32_t allowed[] = {
		/* clang-format off */
		SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_writev, SYS_pwrite64, SYS_lseek, SYS_close,
		SYS_close_range, SYS_open, SYS_openat, SYS_fstat, SYS_fstatfs, SYS_newfstatat, SYS_stat, SYS_lstat,
		SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat, SYS_getcwd,
		SYS_getdents64, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl, SYS_poll, SYS_ppoll, SYS_pipe2,
		SYS_socketpair, SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_recvmsg, SYS_setsockopt, SYS_munmap,
		SYS_mremap, SYS_madvise, SYS_brk, SYS_futex, SYS_wait4, SYS_waitid, SYS_kill, SYS_tgkill,
		SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_sigaltstack,
		SYS_restart_syscall, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres,
		SYS_gettimeofday, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgrp, SYS_getpgid, SYS_getsid,
		SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_setpriority, SYS_getpriority, SYS_prctl,
		SYS_seccomp, SYS_set_robust_list, SYS_rseq, SYS_getrlimit, SYS_setrlimit, SYS_prlimit64,
		SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity,
		SYS_exit, SYS_exit_group,
		/* clang-format on */
	};
	static const uint32_t terminal[] = { TCGETS,  TCSETS,   TCSETSW,  TCSETSF,    TCXONC,   TCGETS2,
		                             TCSETS2, TCSETSW2, TCSETSF2, TIOCGWINSZ, TIOCGPGRP };
	struct call_filter f;

	call_filter_begin(&f);
	for (size_t i = 0; i < COUNT(terminal); i++)
		call_filter_when(&f, SYS_ioctl, 1, UINT32_MAX, terminal[i], SECCOMP_RET_ALLOW);
	call_filter_answer(&f, SYS_ioctl, CALL_FILTER_REFUSE(EPERM));
	call_filter_without(&f, SYS_mmap, 2, PROT_EXEC);
	call_filter_without(&f, SYS_mprotect, 2, PROT_EXEC);
	call_filter_without(&f, SYS_clone, 0, NAMESPACES);
	(void)call_filter_end(&f, allowed, COUNT(allowed), SECCOMP_RET_ALLOW, CALL_FILTER_REFUSE(ENOSYS));
}

/* ---- users ---- */

static bool is_root(void)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) || !real || !effective || !saved;
}

/* As system calls: those of the C library would tell all threads by a signal. */
static bool become(void)
{
	const unsigned process = (unsigned)getpid();
	const unsigned users[] = { OWN_USERS + process, DYNAMIC_USERS + process % DYNAMIC_USERS_COUNT, NOBODY };

	for (size_t i = 0; i < COUNT(users); i++) {
		bool in_group = !syscall(SYS_setresgid, users[i], users[i], users[i]);
		if (!syscall(SYS_setresuid, users[i], users[i], users[i]))
			return in_group;
	}
	return false;
}

/* For opening files. setfsuid tells the number before, whether it changes it or not. */
static bool open_as(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	return (gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid;
}

/*
 * A user of its own, without groups or capabilities, that cannot be dumped. For opening files it is uid, if that is not
 * root, in a group of its own: so what is his can be opened, but by /proc none of his processes, for which ptrace(2)
 * asks for both. -EPERM: it is still root, or has a group or capability of root's.
 */
static int become_stranger(uid_t uid)
{
	const uint64_t permitted = rights_capabilities();
	const bool root = is_root();

	rights_set_capabilities(permitted);
	bool alone = !syscall(SYS_setgroups, 0, NULL);
	alone &= !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	alone &= become();
	rights_set_capabilities(permitted);
	if (alone && uid)
		alone = open_as(uid, getegid());
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	rights_set_capabilities(0);
	return (root && !alone) || is_root() || rights_capabilities() || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) ? -EPERM
	                                                                                                    : 0;
}

/* ---- a program that reads for a user ---- */

void rights_format(const struct rights *r, char text[RIGHTS_TEXT])
{
	snprintf(text, RIGHTS_TEXT, "%u:%u:%" PRIu64 ":%" PRIu64 ":%u", r->uid, r->gid, r->data_bytes, r->file_bytes,
	         r->cpu_seconds);
}

bool rights_parse(const char *text, struct rights *r)
{
	char end;

	return sscanf(text, "%u:%u:%" SCNu64 ":%" SCNu64 ":%u%c", &r->uid, &r->gid, &r->data_bytes, &r->file_bytes,
	              &r->cpu_seconds, &end) == 5;
}

int rights_lend(const struct rights *r)
{
	if (!is_root())
		return 0; /* his own are all that there are */
	bool lent = !syscall(SYS_setgroups, 0, NULL);
	lent &= open_as(r->uid, r->gid);
	lent &= !capabilities_set(rights_capabilities(), 0);
	return lent ? 0 : -EPERM;
}

int rights_drop(const struct rights *r)
{
	/* Who has a terminal can type there (TIOCSTI). */
	if (setsid() < 0)
		return -EPERM;
	rights_set_capabilities(rights_capabilities());
	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	syscall(SYS_unshare, CLONE_NEWNET); /* what is not permitted is forbidden all the same, below */
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, r->cpu_seconds);
	limit(RLIMIT_FSIZE, r->file_bytes);
	if (!SANITIZED)
		limit(RLIMIT_DATA, r->data_bytes);
	int rc = become_stranger(r->uid);
	if (getuid() >= OWN_USERS)
		limit(RLIMIT_NPROC, OWN_PROCESSES);
	child_ends_with_parent(SIGKILL); /* a change of the user has cleared it */
	forbid_calls();
	return rc;
}

int rights_drop_to_view(void)
{
	syscall(SYS_unshare, CLONE_NEWNET);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0); /* a terminal is no file in this sense */
	int rc = become_stranger(0);
	child_ends_with_parent(SIGTERM);
	if (SANITIZED)
		forbid_calls();
	else
		allow_only_drawing();
	return rc;
}

/* ---- a process that only computes ---- */

/* Calls that are not in the list are young ones, without which the C library goes on: ENOSYS. */
static void allow_only_computing(void)
{
	static const uint32_t allowed[] = {
		/* clang-format off */
		SYS_read, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_mmap, SYS_munmap,
		SYS_mremap, SYS_mprotect, SYS_brk, SYS_madvise, SYS_futex, SYS_clone, SYS_set_robust_list, SYS_rseq,
		SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_sched_yield, SYS_sched_getaffinity,
		SYS_gettid, SYS_getpid, SYS_clock_gettime, SYS_getrandom, SYS_exit, SYS_exit_group,
		/* clang-format on */
	};

	struct call_filter f;

	call_filter_begin(&f);
	(void)call_filter_end(&f, allowed, COUNT(allowed), SECCOMP_RET_ALLOW, CALL_FILTER_REFUSE(ENOSYS));
}

void rights_drop_to_compute(int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds)
{
	if (!SANITIZED) {
		limit(RLIMIT_DATA, rights_data_bytes() + data_bytes);
		close_all_but(keep, keep_count);
	}
	limit(RLIMIT_CPU, cpu_seconds);
	limit(RLIMIT_CORE, 0);
	if (become_stranger(0))
		errno = 0;               /* it can open nothing, below, and reach nobody */
	child_ends_with_parent(SIGKILL); /* a change of the user has cleared it */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!SANITIZED)
		allow_only_computing();
}
