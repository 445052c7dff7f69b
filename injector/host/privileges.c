/* SPDX-License-Identifier: MIT */
#include "host/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/close_all_but.h"
#include "files/owner.h"
#include "files/rights.h"
#include "files/whole_io.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define BIT(capability) (1ull << (capability))

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* a sanitizer opens files, and reserves terabytes */
#else
#define SANITIZED 0
#endif

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

	rights_filter_calls(allowed, COUNT(allowed), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | ENOSYS);
}

void privileges_drop_all(const int *keep, size_t keep_count, uint64_t data_bytes, unsigned cpu_seconds)
{
	if (!SANITIZED) {
		rights_limit(RLIMIT_DATA, data_bytes_now() + data_bytes);
		close_all_but(keep, keep_count);
	}
	rights_limit(RLIMIT_CPU, cpu_seconds);
	rights_limit(RLIMIT_CORE, 0);
	if (rights_become_stranger(0))
		errno = 0;                /* it can open nothing, below, and reach nobody */
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user would have cleared it */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!SANITIZED)
		allow_only_computing();
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
	uint64_t permitted = rights_capabilities();
	uid_t uid;
	gid_t gid;

	/* And to give copies of the dump to another user, and to replace his in a directory like /tmp. */
	if (owner_is_other(&uid, &gid))
		needed |= BIT(CAP_CHOWN) | BIT(CAP_FOWNER);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (permitted & BIT(CAP_SYS_PTRACE))
		rights_set_capabilities(permitted & needed);
}
