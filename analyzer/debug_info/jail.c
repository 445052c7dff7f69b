/* SPDX-License-Identifier: MIT */
#include "debug_info/jail.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "arch/trapped_call.h"
#include "base/sanitized.h"
#include "files/regular_file.h"
#include "sandbox/call_filter.h"
#include "sandbox/close_all_but.h"
#include "sandbox/rights.h"

/* ---- limits: private, writable memory; CPU time ---- */

/* Also of a signal handler: the process has one thread. */
static uint64_t memory_bytes, cpu_ms;

static void set_limit(int what, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(what, &limit))
		return;
	limit.rlim_cur = limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max ? limit.rlim_max : value;
	setrlimit(what, &limit);
}

static void apply_limits(void)
{
	if (!SANITIZED) /* which has terabytes */
		set_limit(RLIMIT_DATA, memory_bytes);
	set_limit(RLIMIT_CPU, cpu_ms / 1000);
}

/* For a file that was opened, which is worth reading. */
static void allow_file(uint64_t bytes)
{
	/* A hole has any size. */
	if (bytes > 1ull << 40)
		return;
	memory_bytes += JAIL_FILE_FACTOR * bytes;
	cpu_ms += bytes * 1000 / JAIL_CPU_BYTES;
	apply_limits();
}

void jail_add_time(uint64_t milliseconds)
{
	uint64_t before = cpu_ms / 1000;

	cpu_ms += milliseconds;
	if (cpu_ms / 1000 != before)
		set_limit(RLIMIT_CPU, cpu_ms / 1000);
}

static void start_limits(void)
{
	const struct rlimit none = { 0, 0 };

	memory_bytes = rights_data_bytes() + JAIL_MEMORY_BYTES; /* a copy of the parent's is there already */
	cpu_ms = JAIL_CPU_SECONDS * 1000;
	setrlimit(RLIMIT_CORE, &none);
	apply_limits();
}

/* ---- opens ---- */

static long open_for(int directory, const char *path, long flags)
{
	struct stat st;

	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC))
		return -EACCES;
	int fd = regular_file_open_at(directory, path, (int)flags & O_NOFOLLOW);
	if (fd == -ESPIPE || fd == -EISDIR)
		return -ENOENT; /* the search of a library goes on */
	if (fd >= 0 && !fstat(fd, &st))
		allow_file((uint64_t)st.st_size);
	return fd;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	int saved = errno;
	long result = -ENOSYS;

	(void)sig, (void)info;
	if (trapped_call_number(c) == SYS_openat)
		result = open_for((int)trapped_call_argument(c, 0), (const char *)trapped_call_argument(c, 1),
		                  trapped_call_argument(c, 2));
	else if (trapped_call_number(c) == SYS_open)
		result = open_for(AT_FDCWD, (const char *)trapped_call_argument(c, 0), trapped_call_argument(c, 1));
	trapped_call_return(c, result);
	errno = saved;
}

static int catch_traps(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	sigset_t traps;

	sigemptyset(&action.sa_mask);
	sigemptyset(&traps);
	sigaddset(&traps, SIGSYS);
	return sigaction(SIGSYS, &action, NULL) || sigprocmask(SIG_UNBLOCK, &traps, NULL) ? -errno : 0;
}

/* ---- the filter ---- */

/*
 * Opens that regular_file_open_at makes pass: of a place, and of what was seen to be a regular file. No library has
 * reason to say O_NONBLOCK and O_NOCTTY of what it opens; one that is in the hands of a stranger could, and read what
 * the user may read.
 */
#define SEEN (O_NONBLOCK | O_NOCTTY)

static void filter_opens(struct call_filter *f)
{
	call_filter_when(f, SYS_openat, 2, O_PATH, O_PATH, SECCOMP_RET_ALLOW);
	call_filter_when(f, SYS_openat, 2, SEEN | O_ACCMODE | O_CREAT | O_TRUNC, SEEN, SECCOMP_RET_ALLOW);
	call_filter_answer(f, SYS_openat, SECCOMP_RET_TRAP);
	call_filter_answer(f, SYS_open, SECCOMP_RET_TRAP);
}

static int start_filter(struct err *e)
{
	static const uint32_t reading[] = {
		/* clang-format off */
		SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_sendto, SYS_writev, SYS_lseek, SYS_close,
		SYS_fstat, SYS_fstatfs, SYS_newfstatat, SYS_stat, SYS_lstat, SYS_statx, SYS_access,
		SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat, SYS_getcwd, SYS_dup, SYS_dup2,
		SYS_dup3, SYS_fcntl, SYS_poll, SYS_ppoll, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
		SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_set_robust_list, SYS_rseq,
		SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
		SYS_getrlimit, SYS_setrlimit, SYS_getrusage, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid,
		SYS_getgid, SYS_getegid, SYS_getrandom, SYS_clock_gettime, SYS_gettimeofday, SYS_sysinfo,
		SYS_uname, SYS_exit, SYS_exit_group,
		/* clang-format on */
	};
	struct call_filter f;

	call_filter_begin(&f);
	filter_opens(&f);
	/* No code comes in: no library of libdw's choice, nothing that was written here. */
	call_filter_without(&f, SYS_mmap, 2, PROT_EXEC);
	call_filter_without(&f, SYS_mprotect, 2, PROT_EXEC);
	/* Limits of its own process only. */
	call_filter_when(&f, SYS_prlimit64, 0, UINT32_MAX, 0, SECCOMP_RET_ALLOW);
	int rc = call_filter_end(&f, reading, sizeof reading / sizeof reading[0], SECCOMP_RET_ALLOW,
	                         CALL_FILTER_REFUSE(EPERM));
	return rc < 0 ? err_set(e, -rc, "no filter for system calls (seccomp): %s", strerror(-rc)) : 0;
}

/* ---- all of it ---- */

/* Nothing of the parent's is in reach. A sanitizer says what it has found where the parent does. */
static void keep_some(int keep, const struct jail_files *files)
{
	int all[JAIL_FILES_MAX + 4] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, JAIL_DESCRIPTOR };
	size_t count = files->count < JAIL_FILES_MAX ? files->count : JAIL_FILES_MAX;

	if (count)
		memcpy(all + 4, files->list, count * sizeof *all);
	dup2(keep, JAIL_DESCRIPTOR);
	close_all_but(all, count + 4);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < (SANITIZED ? 2 : 3); fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (null > JAIL_DESCRIPTOR)
		close(null);
}

int jail_open(int file)
{
	int fd = fcntl(file, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st))
		allow_file((uint64_t)st.st_size);
	return fd;
}

int jail_enter(int keep, const struct jail_files *files, struct err *e)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	keep_some(keep, files);
	start_limits();
	int r = catch_traps();
	return r ? err_set(e, -r, "SIGSYS cannot be caught") : start_filter(e);
}
