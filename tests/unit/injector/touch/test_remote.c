/* SPDX-License-Identifier: MIT */
/*
 * The stub never names a descriptor that is closed: by then its number could belong to another thread of the program,
 * whose file would be closed or written into. So a worker, which does what memattach does, is killed at the entry of
 * each of its system calls in turn, and the system calls that the borrowed thread makes alone after that are looked at
 * one by one. And errno, which a call has changed, is as it was, whoever brings the thread back. The same holds for all
 * vector registers of a thread that makes no call.
 */
#include "touch/remote/remote.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "touch/remote/send_descriptors.h"

#define SECOND_NS 1000000000ull
#define WORKER_CALLS_MAX 2000
#define VICTIM_WELL 7
#define VICTIM_ERRNO 77
#define VECTOR_STEP 7u

static struct stub_place cave;
static uint64_t area;

struct victim {
	pid_t pid;
	int wake;
	int end;                  /* what it reads from */
	volatile unsigned *round; /* of one that spins: shared with it */
};

/* Reads one byte, checks itself, ends. */
static struct victim start_victim(void)
{
	struct victim v;
	int ends[2];
	char ready;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	v.pid = fork();
	if (v.pid == 0) {
		char byte = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* the worker is its sibling: Yama */
		close(ends[1]);
		ssize_t n = write(ends[0], "r", 1);
		errno = VICTIM_ERRNO;
		n = n == 1 ? read(ends[0], &byte, 1) : 0;
		_exit(n == 1 && byte == 'b' && errno == VICTIM_ERRNO ? VICTIM_WELL : 1);
	}
	assert_true(v.pid > 0);
	close(ends[0]);
	v.wake = ends[1];
	v.end = ends[0];
	assert_int_equal(read(v.wake, &ready, 1), 1);
	return v;
}

/* ---- a thread that spins with all its vector registers in use: tests/targets/lives ---- */

#define STATE_BYTES 16384u
#define SPINS 20000u

#ifdef __x86_64__
void spin_sse(const uint8_t *in, uint8_t *out, uint64_t spins);

static void spin(uint8_t *in, uint8_t *out)
{
	const uint32_t control[] = { 0x1f80, 0, 0x37f, 0 };

	memcpy(in + 2312, control, sizeof control);
	spin_sse(in, out, SPINS);
}

static bool differ(const uint8_t *in, const uint8_t *out)
{
	for (unsigned i = 0; i < 16; i++)
		if (memcmp(in + 64 * i, out + 64 * i, 16))
			return true;
	return false;
}
#else
void spin_neon(const uint8_t *in, uint8_t *out, uint64_t spins);
void spin_sve(const uint8_t *in, uint8_t *out, uint64_t spins);

/* Of a vector of SVE; 0: there is none. */
static unsigned length(void)
{
	const int bytes = prctl(PR_SVE_GET_VL, 0, 0, 0, 0);

	return bytes < 0 ? 0 : (unsigned)bytes & PR_SVE_VL_LEN_MASK;
}

static void spin(uint8_t *in, uint8_t *out)
{
	memset(in + 8704, 0, 32);
	in[8704] = 0x7f; /* FFR: its first bits */
	memset(in + 8816, 0, 16);
	(length() ? spin_sve : spin_neon)(in, out, SPINS);
}

static bool differ(const uint8_t *in, const uint8_t *out)
{
	return memcmp(in, out, 32 * (length() ? length() : 16)) || memcmp(in + 8192, out + 8192, 2 * length()) ||
	       memcmp(in + 8704, out + 8704, length() / 8);
}
#endif

/* Spins until a byte comes, and compares each time. */
static struct victim start_spinner(void)
{
	_Alignas(64) static uint8_t in[STATE_BYTES], out[STATE_BYTES];
	struct victim v;
	int ends[2];
	char byte = 0;

	v.round = mmap(NULL, sizeof *v.round, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(v.round, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	v.pid = fork();
	if (v.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		close(ends[1]);
		bool well = write(ends[0], "r", 1) == 1;
		for (unsigned round = 1; well && recv(ends[0], &byte, 1, MSG_DONTWAIT) < 0; *v.round = ++round) {
			for (unsigned i = 0; i < STATE_BYTES; i++)
				in[i] = (uint8_t)(i * 7 + i / 256 + round);
			memset(out, 0, sizeof out);
			spin(in, out);
			well = !differ(in, out);
		}
		_exit(well && byte == 'b' ? VICTIM_WELL : 1);
	}
	assert_true(v.pid > 0);
	close(ends[0]);
	v.wake = ends[1];
	v.end = ends[0];
	assert_int_equal(read(v.wake, &byte, 1), 1);
	return v;
}

static unsigned count_descriptors(pid_t pid)
{
	char path[64];
	unsigned count = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* What an attach and a detach do with a thread, as far as descriptors are concerned. */
static int work(pid_t pid)
{
	struct target_memory memory;
	struct changes changes = { 0 };
	struct target_writer writer = { .changes = &changes };
	struct tracee t = { 0 };
	char path[40];
	struct remote r = { 0 };
	enum tracee_stop stop;
	const uint64_t none[6] = { 0 }, no_name[6] = { UINT64_MAX };
	uint64_t result = 0;
	uint64_t deadline = clock_monotonic_ns() + 20 * SECOND_NS;
	int remote_fds[2];
	struct err e;

	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	const int fds[2] = { memfd_create("one", MFD_CLOEXEC), memfd_create("two", MFD_CLOEXEC) };
	int rc = target_memory_open(&memory, pid, &e);
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	writer.fd = open(path, O_RDWR | O_CLOEXEC);
	if (rc == 0)
		rc = tracee_seize(&t, pid, pid, false, &e);
	if (rc == 0)
		rc = tracee_interrupt(&t, deadline, &stop, &e);
	if (rc == 0)
		rc = remote_prepare(&r, &memory, &writer, &cave, area, 0, &e);
	if (rc == 0)
		rc = remote_enter(&r, &t, deadline, &e);
	if (rc == 0)
		rc = send_descriptors(&r, pidfd, fds, 2, remote_fds, deadline, &e);
	if (rc == 0)
		rc = remote_keep_errno(&r, (uint64_t)(uintptr_t)&errno, &e);
	if (rc == 0) /* sets errno; all of these processes have one image */
		rc = remote_call1(&r, (uint64_t)(uintptr_t)sysconf, no_name, &result, deadline, &e);
	if (rc == 0)
		rc = remote_call1(&r, SYS_getppid, none, &result, deadline, &e);
	if (rc == 0)
		rc = remote_leave(&r, deadline, &e);
	if (rc == 0)
		tracee_detach(r.tracee);
	for (unsigned kind = 0; kind < CHANGE_KINDS && rc == 0; kind++)
		if (changes.sums[kind][CHANGE_MADE] != (kind == CHANGE_PADDING))
			return 1; /* all of the thread is back; the padding is not erased here */
	return rc == 0 && result == (uint64_t)getppid() ? 0 : 1;
}

/* In a stop, and not before. */
static int wait_for_stop(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	return status;
}

/* Lets the worker make so many system calls and kills it at the entry of the next one. False: it has ended before. */
static bool kill_worker_at(pid_t victim, unsigned calls)
{
	pid_t worker = fork();

	if (worker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(work(victim));
	}
	assert_true(WIFSTOPPED(wait_for_stop(worker)));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, worker, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
	                 0);
	int signal = 0;
	for (unsigned stops = 0; stops < 2 * calls + 1;) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, worker, NULL, (void *)(uintptr_t)signal), 0);
		int status = wait_for_stop(worker);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		assert_true(WIFSTOPPED(status));
		signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		stops += signal == 0;
	}
	/* Before the worker's end resumes the thread: it is to go on under our eyes. */
	kill(victim, SIGSTOP);
	kill(worker, SIGKILL);
	while (!WIFSIGNALED(wait_for_stop(worker)))
		;
	return true;
}

struct seen {
	unsigned calls;
	bool stale; /* a descriptor was named that is closed */
	char text[200];
};

/* At the entry of a system call its number and first argument, at the exit its result. */
struct call {
	int64_t number, first, result;
};

static void look_at_call(struct seen *seen, const struct call *entry, const struct call *exit)
{
	bool names = entry->number == SYS_close || entry->number == SYS_sendto || entry->number == SYS_recvfrom ||
	             entry->number == SYS_recvmsg;

	seen->calls++;
	if (!names || (int)entry->first == -1 || exit->result != -EBADF)
		return;
	seen->stale = true;
	snprintf(seen->text, sizeof seen->text, "system call %d named descriptor %d, which is closed",
	         (int)entry->number, (int)entry->first);
}

static struct call call_of(pid_t pid)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof regs };

	assert_int_equal(ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov), 0);
#ifdef __x86_64__
	return (struct call){ (int64_t)regs.orig_rax, (int64_t)regs.rdi, (int64_t)regs.rax };
#else
	return (struct call){ (int64_t)regs.regs[8], (int64_t)regs.regs[0], (int64_t)regs.regs[0] };
#endif
}

/* Until the thread reads again. */
static struct seen watch(const struct victim *v)
{
	struct call entry = { 0 }, now;
	struct seen seen = { 0 };
	bool inside = false;

	assert_int_equal(ptrace(PTRACE_SEIZE, v->pid, NULL, (void *)PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, v->pid, NULL, NULL), 0);
	kill(v->pid, SIGCONT);
	for (;;) {
		int status = wait_for_stop(v->pid);
		assert_true(WIFSTOPPED(status));
		int signal = WSTOPSIG(status) == (SIGTRAP | 0x80) || status >> 16 ? 0 : WSTOPSIG(status);
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			now = call_of(v->pid);
			if (inside)
				look_at_call(&seen, &entry, &now);
			else if (now.number == SYS_read && (int)now.first == v->end)
				break;
			entry = now;
			inside = !inside;
		}
		assert_int_equal(ptrace(PTRACE_SYSCALL, v->pid, NULL, (void *)(uintptr_t)signal), 0);
	}
	assert_int_equal(ptrace(PTRACE_DETACH, v->pid, NULL, NULL), 0);
	return seen;
}

static void end_well(const struct victim *v, unsigned descriptors)
{
	int status = 0;

	assert_int_equal(count_descriptors(v->pid), descriptors);
	assert_int_equal(write(v->wake, "b", 1), 1);
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), VICTIM_WELL);
	close(v->wake);
}

static void test_remote_killed_names_no_closed_descriptor(void **state)
{
	unsigned calls = 0, most = 0;

	(void)state;
	for (bool killed = true; killed; calls++) {
		struct victim v = start_victim();
		unsigned descriptors = count_descriptors(v.pid);
		killed = kill_worker_at(v.pid, calls);
		if (killed) {
			struct seen seen = watch(&v);
			if (seen.stale)
				fail_msg("killed at system call %u: %s", calls, seen.text);
			most = seen.calls > most ? seen.calls : most;
		}
		end_well(&v, descriptors);
		assert_true(calls < WORKER_CALLS_MAX);
	}
	print_message("killed at %u system calls; the thread made up to %u alone\n", calls - 1, most);
	assert_true(most > 10);
}

/* Who brings it back, memattach or the stub alone, gives it all of them. */
static void test_remote_killed_gives_vectors_back(void **state)
{
	unsigned calls = 0;

	(void)state;
	for (bool killed = true; killed; calls += VECTOR_STEP) {
		struct victim v = start_spinner();
		unsigned descriptors = count_descriptors(v.pid);
		killed = kill_worker_at(v.pid, calls);
		const unsigned round = *v.round;
		if (killed)
			kill(v.pid, SIGCONT);
		while (*v.round < round + 2) /* it has left the stub */
			usleep(100);
		end_well(&v, descriptors);
		assert_true(calls < WORKER_CALLS_MAX);
	}
	print_message("killed at %u of %u system calls\n", calls / VECTOR_STEP, calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remote_killed_names_no_closed_descriptor),
		cmocka_unit_test(test_remote_killed_gives_vectors_back),
	};

	/* At the same addresses in every victim: the cave, and room for the work area, which the stub maps. */
	void *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *room = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || room == MAP_FAILED || munmap(room, 1 << 20) < 0)
		return 1;
	cave.code = (uint64_t)(uintptr_t)code;
	cave.frame = cave.code + 4096;
	cave.frame_bytes = 4096;
	area = (uint64_t)(uintptr_t)room;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
