/* SPDX-License-Identifier: MIT */
#include "debug_info/jail.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/system_calls.h"
#include "arch/trapped_call.h"
#include "files/close_all_but.h"
#include "files/regular_file.h"
#include "files/whole_io.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

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
	if (!UNDER_SANITIZER) /* which has terabytes */
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

/* What there is already: a copy of the parent's. */
static uint64_t private_bytes(void)
{
	char text[256];
	unsigned long data = 0;

	if (whole_text("/proc/self/statm", text, sizeof text) || sscanf(text, "%*u %*u %*u %*u %*u %lu", &data) != 1)
		return 0;
	return data * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void start_limits(void)
{
	const struct rlimit none = { 0, 0 };

	memory_bytes = private_bytes() + JAIL_MEMORY_BYTES;
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
	int fd = regular_open_at(directory, path, (int)flags & O_NOFOLLOW);
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

#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE(code) ANSWER(SECCOMP_RET_ERRNO | (code))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ARGUMENT(i) LOAD(args[i]) /* its lower half, on a little-endian machine */
#define IF(value, yes, no)                                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no)) /* how many instructions are left out */
#define IF_BIT(bit, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bit), (yes), (no))
#define ALLOW(call) IF(SYS_##call, 0, 1), ANSWER(SECCOMP_RET_ALLOW)

/*
 * Opens that regular_open_at makes pass: of a place, and of what was seen to be a regular file. No library has reason
 * to say O_NONBLOCK and O_NOCTTY of what it opens; one that is in the hands of a stranger could, and read what the user
 * may read.
 */
#define SEEN (O_NONBLOCK | O_NOCTTY)

static struct sock_filter filter[] = {
	LOAD(arch),
	IF(CALLS_ARCH, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	IF(SYS_openat, 0, 6),
	ARGUMENT(2),
	IF_BIT(O_PATH, 3, 0),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SEEN | O_ACCMODE | O_CREAT | O_TRUNC),
	IF(SEEN, 1, 0),
	ANSWER(SECCOMP_RET_TRAP),
	ANSWER(SECCOMP_RET_ALLOW),
	IF(SYS_open, 0, 1),
	ANSWER(SECCOMP_RET_TRAP),
	/* No code comes in: no library of libdw's choice, nothing that was written here. */
	IF(SYS_mmap, 1, 0),
	IF(SYS_mprotect, 0, 4),
	ARGUMENT(2),
	IF_BIT(PROT_EXEC, 1, 0),
	ANSWER(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	/* Limits of its own process only. */
	IF(SYS_prlimit64, 0, 4),
	ARGUMENT(0),
	IF(0, 0, 1),
	ANSWER(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	/* What reading takes. */
	/* clang-format off */
	ALLOW(read), ALLOW(pread64), ALLOW(readv), ALLOW(write), ALLOW(sendto), ALLOW(writev),
	ALLOW(lseek), ALLOW(close), ALLOW(fstat), ALLOW(fstatfs), ALLOW(newfstatat), ALLOW(stat), ALLOW(lstat),
	ALLOW(statx), ALLOW(access), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(readlink), ALLOW(readlinkat),
	ALLOW(getcwd), ALLOW(dup), ALLOW(dup2), ALLOW(dup3), ALLOW(fcntl), ALLOW(poll), ALLOW(ppoll), ALLOW(munmap),
	ALLOW(mremap), ALLOW(madvise), ALLOW(brk), ALLOW(futex), ALLOW(sched_yield), ALLOW(sched_getaffinity),
	ALLOW(set_robust_list), ALLOW(rseq), ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(rt_sigreturn),
	ALLOW(sigaltstack), ALLOW(restart_syscall), ALLOW(getrlimit), ALLOW(setrlimit), ALLOW(getrusage),
	ALLOW(getpid), ALLOW(gettid), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid),
	ALLOW(getrandom), ALLOW(clock_gettime), ALLOW(gettimeofday), ALLOW(sysinfo), ALLOW(uname), ALLOW(exit),
	ALLOW(exit_group),
	/* clang-format on */
	REFUSE(EPERM),
};

static int start_filter(struct err *e)
{
	const struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return err_sys(e, "no filter for system calls (seccomp)");
	return 0;
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
	for (int fd = 0; fd < (UNDER_SANITIZER ? 2 : 3); fd++)
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
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	keep_some(keep, files);
	start_limits();
	int r = catch_traps();
	return r ? err_set(e, -r, "SIGSYS cannot be caught") : start_filter(e);
}
