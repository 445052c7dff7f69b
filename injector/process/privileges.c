/* SPDX-License-Identifier: MIT */
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "close_all_but.h"
#include "owner.h"
#include "whole_io.h"

#define NOBODY 65534u
#define LOWER_PRIORITY 5 /* after the target, but somebody waits: at 19 a busy machine would never get to it */
#define X32_CALLS 0x40000000u
#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define BIT(capability) (1ull << (capability))

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* a sanitizer opens files, and reserves terabytes */
#else
#define SANITIZED 0
#endif

static int capabilities_get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return (int)syscall(SYS_capget, &head, data);
}

static int capabilities_set(uint64_t bits)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (unsigned i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(bits >> (32 * i));
	return (int)syscall(SYS_capset, &head, data);
}

/* ---- a process that only computes ---- */

/* What of the address space is data that only this process writes, as RLIMIT_DATA counts it. */
static uint64_t data_bytes_now(void)
{
	unsigned long long pages = 0;
	char text[200];

	if (whole_text("/proc/self/statm", text, sizeof text) < 0 ||
	    sscanf(text, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, uint64_t most)
{
	struct rlimit l = { most, most };

	setrlimit((__rlimit_resource_t)resource, &l);
}

/* Where that is permitted: root may, and who has CAP_SETUID and CAP_SETGID. */
static void become(uid_t uid, gid_t gid)
{
	setgroups(0, NULL);
	/* As system calls: those of the C library would tell all threads by a signal. */
	syscall(SYS_setresgid, gid, gid, gid);
	syscall(SYS_setresuid, uid, uid, uid);
}

/* What the kernel does with the calls of the list, and with all others. Those of another architecture, and those of
 * x32, whose numbers differ, are the end. */
static void filter_calls(const uint32_t *list, uint8_t count, uint32_t listed, uint32_t others)
{
	struct sock_filter code[UINT8_MAX + 8] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	unsigned n = 6;

	for (unsigned i = 0; i < count; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, list[i], (uint8_t)(count - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
	const struct sock_fprog program = { (unsigned short)n, code };
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Calls that are not in the list are young ones, without which the C library goes on: ENOSYS. */
static void allow_only_computing(void)
{
	static const uint32_t allowed[] = { SYS_read,
		                            SYS_pread64,
		                            SYS_pwrite64,
		                            SYS_lseek,
		                            SYS_fstat,
		                            SYS_newfstatat,
		                            SYS_mmap,
		                            SYS_munmap,
		                            SYS_mremap,
		                            SYS_mprotect,
		                            SYS_brk,
		                            SYS_madvise,
		                            SYS_futex,
		                            SYS_clone,
		                            SYS_set_robust_list,
		                            SYS_rseq,
		                            SYS_rt_sigprocmask,
		                            SYS_rt_sigaction,
		                            SYS_rt_sigreturn,
		                            SYS_sched_yield,
		                            SYS_sched_getaffinity,
		                            SYS_gettid,
		                            SYS_getpid,
		                            SYS_clock_gettime,
		                            SYS_getrandom,
		                            SYS_exit,
		                            SYS_exit_group };

	filter_calls(allowed, COUNT(allowed), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | ENOSYS);
}

void privileges_drop_all(const int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds)
{
	if (!SANITIZED) {
		limit(RLIMIT_DATA, data_bytes_now() + data_bytes);
		close_all_but(keep, keep_count);
	}
	limit(RLIMIT_CPU, cpu_seconds);
	limit(RLIMIT_CORE, 0);
	if (geteuid() == 0)
		become(NOBODY, NOBODY);
	capabilities_set(0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user would have cleared it */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!SANITIZED)
		allow_only_computing();
}

/* ---- a process that executes a program which reads ---- */

/* What a reader of files has no use for. A filter of its own comes on top (analyzer/symbols/jail.h). */
static void forbid_calls(void)
{
	static const uint32_t forbidden[] = { SYS_socket,
		                              SYS_connect,
		                              SYS_bind,
		                              SYS_accept,
		                              SYS_accept4,
		                              SYS_ptrace,
		                              SYS_process_vm_readv,
		                              SYS_process_vm_writev,
		                              SYS_kcmp,
		                              SYS_pidfd_getfd,
		                              SYS_pidfd_open,
		                              SYS_pidfd_send_signal,
		                              SYS_bpf,
		                              SYS_perf_event_open,
		                              SYS_userfaultfd,
		                              SYS_io_uring_setup,
		                              SYS_mount,
		                              SYS_unshare,
		                              SYS_setns,
		                              SYS_add_key,
		                              SYS_request_key,
		                              SYS_keyctl,
		                              SYS_open_by_handle_at };

	filter_calls(forbidden, COUNT(forbidden), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}

static bool has_privileges(void)
{
	struct __user_cap_data_struct have[2] = { 0 };

	return geteuid() == 0 || getuid() == 0 || capabilities_get(have) < 0 || have[0].permitted || have[1].permitted;
}

int privileges_drop_to(uid_t uid, gid_t gid, const struct privileges_limits *limits)
{
	bool nobody = uid == 0;

	/* Others of that user can take the process over, and who has a terminal can type there (TIOCSTI). */
	if (setsid() < 0)
		return -EPERM;
	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	syscall(SYS_unshare, CLONE_NEWNET); /* what is not permitted is forbidden all the same, below */
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, limits->cpu_seconds);
	limit(RLIMIT_FSIZE, limits->file_bytes);
	if (!SANITIZED)
		limit(RLIMIT_DATA, limits->data_bytes);
	become(nobody ? NOBODY : uid, nobody ? NOBODY : gid);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	capabilities_set(0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user would have cleared it */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (has_privileges())
		return -EPERM;
	forbid_calls();
	return 0;
}

int privileges_drop_for_view(void)
{
	struct __user_cap_data_struct have[2] = { 0 };

	syscall(SYS_unshare, CLONE_NEWNET); /* what is not permitted is forbidden all the same, below */
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0); /* a terminal is no file in this sense */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	capabilities_set(0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (capabilities_get(have) < 0 || have[0].permitted || have[1].permitted)
		return -EPERM;
	forbid_calls();
	return 0;
}

/* ---- memattach, attached ---- */

void privileges_keep_for_detach(void)
{
	/*
	 * Tracing; suspending seccomp filters; /proc/PID/map_files (one of two, as the kernel has them); going first
	 * while a thread is stopped; /proc/PID of other users, and the dump in their directories; becoming another
	 * user, in a child that reads what the target has written.
	 */
	uint64_t needed = BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_NICE) |
	                  BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SETUID) | BIT(CAP_SETGID);
	struct __user_cap_data_struct have[2];
	uid_t uid;
	gid_t gid;

	/* And to give copies of the dump to another user, and to replace his in a directory like /tmp. */
	if (owner_is_other(&uid, &gid))
		needed |= BIT(CAP_CHOWN) | BIT(CAP_FOWNER);
	if (capabilities_get(have) < 0)
		return;
	uint64_t permitted = have[0].permitted | (uint64_t)have[1].permitted << 32;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (permitted & BIT(CAP_SYS_PTRACE))
		capabilities_set(permitted & needed);
}
