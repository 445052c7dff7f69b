/* SPDX-License-Identifier: MIT */
#include "files/rights.h"

#include <asm/termbits.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* a sanitizer reserves terabytes, and looks at itself */
#else
#define SANITIZED 0
#endif

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

void rights_limit(int resource, uint64_t most)
{
	struct rlimit l = { most, most };

	setrlimit((__rlimit_resource_t)resource, &l);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define IF(value, yes, no)                                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no)) /* how many instructions are left out */
#define IF_BITS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))

struct filter {
	struct sock_filter code[UINT8_MAX + 64];
	unsigned count;
};

static void add(struct filter *f, struct sock_filter instruction)
{
	f->code[f->count++] = instruction;
}

static void filter_begin(struct filter *f)
{
	*f = (struct filter){ .code = { LOAD(arch), IF(CALLS_ARCH, 1, 0), ANSWER(SECCOMP_RET_KILL_PROCESS), LOAD(nr),
		                        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CALLS_END, 0, 1),
		                        ANSWER(SECCOMP_RET_KILL_PROCESS) },
		              .count = 6 };
}

static void filter_end(struct filter *f, const uint32_t *list, uint8_t count, uint32_t listed, uint32_t others)
{
	for (unsigned i = 0; i < count; i++)
		add(f, (struct sock_filter)IF(list[i], (uint8_t)(count - i), 0));
	add(f, (struct sock_filter)ANSWER(others));
	add(f, (struct sock_filter)ANSWER(listed));
	const struct sock_fprog program = { (unsigned short)f->count, f->code };
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A call that is allowed only if its argument has none of these bits. */
static void filter_bits(struct filter *f, uint32_t call, unsigned argument, uint32_t bits)
{
	const struct sock_filter rule[] = { IF(call, 0, 4), LOAD(args[argument]), IF_BITS(bits, 0, 1),
		                            ANSWER(SECCOMP_RET_ERRNO | EPERM), ANSWER(SECCOMP_RET_ALLOW) };

	for (size_t i = 0; i < COUNT(rule); i++)
		add(f, rule[i]);
}

/* A call that is allowed only if its argument is in the list. */
static void filter_values(struct filter *f, uint32_t call, unsigned argument, const uint32_t *list, uint8_t count)
{
	add(f, (struct sock_filter)IF(call, 0, (uint8_t)(count + 3)));
	add(f, (struct sock_filter)LOAD(args[argument]));
	for (unsigned i = 0; i < count; i++)
		add(f, (struct sock_filter)IF(list[i], (uint8_t)(count - i), 0));
	add(f, (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM));
	add(f, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
}

void rights_filter_calls(const uint32_t *list, uint8_t count, uint32_t listed, uint32_t others)
{
	struct filter f;

	filter_begin(&f);
	filter_end(&f, list, count, listed, others);
}

/* What a reader of files has no use for. A filter of its own comes on top (analyzer/debug_info/jail.h). */
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
		                              SYS_execve,
		                              SYS_execveat,
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

	struct filter f;

	filter_begin(&f);
	/* Its flags are out of a filter's sight: it is not there, and the C library takes clone. */
	add(&f, (struct sock_filter)IF(SYS_clone3, 0, 1));
	add(&f, (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | ENOSYS));
	filter_bits(&f, SYS_clone, 0, NAMESPACES);
	filter_end(&f, forbidden, COUNT(forbidden), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
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
	struct filter f;

	filter_begin(&f);
	filter_values(&f, SYS_ioctl, 1, terminal, COUNT(terminal));
	filter_bits(&f, SYS_mmap, 2, PROT_EXEC);
	filter_bits(&f, SYS_mprotect, 2, PROT_EXEC);
	filter_bits(&f, SYS_clone, 0, NAMESPACES);
	filter_end(&f, allowed, COUNT(allowed), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | ENOSYS);
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

int rights_become_stranger(uid_t uid)
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

/* When the user does not change any more, which would clear the signal. */
static void end_with_parent(int signal)
{
	prctl(PR_SET_PDEATHSIG, signal);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int rights_drop(const struct rights *r)
{
	/* Who has a terminal can type there (TIOCSTI). */
	if (setsid() < 0)
		return -EPERM;
	rights_set_capabilities(rights_capabilities());
	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	syscall(SYS_unshare, CLONE_NEWNET); /* what is not permitted is forbidden all the same, below */
	rights_limit(RLIMIT_CORE, 0);
	rights_limit(RLIMIT_CPU, r->cpu_seconds);
	rights_limit(RLIMIT_FSIZE, r->file_bytes);
	if (!SANITIZED)
		rights_limit(RLIMIT_DATA, r->data_bytes);
	int rc = rights_become_stranger(r->uid);
	if (getuid() >= OWN_USERS)
		rights_limit(RLIMIT_NPROC, OWN_PROCESSES);
	end_with_parent(SIGKILL);
	forbid_calls();
	return rc;
}

int rights_drop_to_view(void)
{
	syscall(SYS_unshare, CLONE_NEWNET);
	rights_limit(RLIMIT_CORE, 0);
	rights_limit(RLIMIT_FSIZE, 0); /* a terminal is no file in this sense */
	int rc = rights_become_stranger(0);
	end_with_parent(SIGTERM);
	if (SANITIZED)
		forbid_calls();
	else
		allow_only_drawing();
	return rc;
}
