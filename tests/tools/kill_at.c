/* SPDX-License-Identifier: MIT */
/*
 * kill_at NUMBER COUNT PROGRAM [ARGUMENT]...: runs PROGRAM and kills it with SIGKILL as it, a thread or a child of it
 * enters system call NUMBER for the COUNTth time; by PROGRAM itself that call is not made. Ends as PROGRAM did, when
 * its children have ended, too.
 *
 * What strace -e inject=NAME:signal=SIGKILL:when=COUNT does, but a filter of seccomp stops the program at that call
 * alone: thousands of runs take half of the time. Children inherit the filter: one that nobody traced would get ENOSYS
 * from that call, and the C library takes this answer of brk for memory.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 125

static int fail(const char *what)
{
	fprintf(stderr, "kill_at: %s: %s\n", what, strerror(errno));
	return FAILED;
}

static int run(unsigned number, char **command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof code / sizeof code[0], code };

	if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 || raise(SIGSTOP))
		return fail("ptrace");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		return fail("seccomp");
	execv(command[0], command);
	return fail(command[0]);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return FAILED;
	unsigned number = (unsigned)atoi(argv[1]), count = (unsigned)atoi(argv[2]);
	const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
	                     PTRACE_O_EXITKILL;
	bool begun = false;
	int status, end = 0;

	pid_t child = fork();
	if (child < 0)
		return fail("fork");
	if (child == 0)
		_exit(run(number, argv + 3));
	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno == ECHILD)
			break;
		if (tid < 0)
			return fail("waitpid");
		if (tid == child && !WIFSTOPPED(status))
			end = status;
		if (!WIFSTOPPED(status))
			continue;
		if (!begun)
			begun = ptrace(PTRACE_SETOPTIONS, child, 0, options) == 0;
		if (status >> 16 == PTRACE_EVENT_SECCOMP && --count == 0)
			kill(child, SIGKILL);
		/* Not passed on: SIGTRAP of events and of execve, SIGSTOP with which each thread begins. */
		int signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, tid, 0, signal) < 0 && errno != ESRCH)
			return fail("PTRACE_CONT");
	}
	if (WIFSIGNALED(end))
		raise(WTERMSIG(end));
	return WEXITSTATUS(end);
}
