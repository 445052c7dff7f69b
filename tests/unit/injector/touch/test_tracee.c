/* SPDX-License-Identifier: MIT */
#include "touch/threads/tracee.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/registers.h"
#include "process/target.h"
#include "touch/threads/let_go.h"

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Between its exit and its disappearance ptrace says EPERM of a thread: that is no refusal. */
static void test_seize_of_a_zombie_tells_that_it_has_ended(void **state)
{
	struct tracee t = { 0 };
	struct err e;
	siginfo_t info;
	pid_t pid = start_sleeper();

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), -ESRCH);
	assert_false(t.seized);
	assert_non_null(strstr(e.text, "has ended"));
	end(pid);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), -ESRCH);
}

static void test_seize_of_somebody_elses_thread_is_refused(void **state)
{
	struct tracee t = { 0 };
	enum tracee_stop stop;
	struct err e;
	pid_t target = start_sleeper(), other = start_sleeper();

	(void)state;
	assert_int_equal(tracee_seize(&t, target, other, false, &e), -ESRCH);
	assert_false(t.seized);
	/* Nor was it for a moment: it can be seized by who knows it. */
	assert_int_equal(tracee_seize(&t, other, other, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000000ull, &stop, &e), 0);
	tracee_detach(&t);
	end(target);
	end(other);
}

static void test_seize_of_a_traced_thread_is_refused(void **state)
{
	struct tracee first = { 0 }, second = { 0 };
	struct err e;
	pid_t pid = start_sleeper();

	(void)state;
	assert_int_equal(tracee_seize(&first, pid, pid, false, &e), 0);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), -EPERM);
	tracee_detach(&first);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), 0);
	tracee_detach(&second);
	end(pid);
}

static void test_seize_of_a_thread_of_another_tracer_may_be_tried_again(void **state)
{
	struct tracee first = { 0 }, second = { 0 };
	struct err e;
	int told[2];
	char byte;
	pid_t pid = start_sleeper();

	(void)state;
	assert_int_equal(pipe(told), 0);
	pid_t tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(tracee_seize(&first, pid, pid, false, &e) < 0 || write(told[1], "s", 1) != 1 || pause() != 0);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "is traced by PID"));
	end(tracer);
	assert_int_equal(tracee_seize(&second, pid, pid, false, &e), 0);
	tracee_detach(&second);
	close(told[0]);
	close(told[1]);
	end(pid);
}

/* Its only thread waits for a vfork child from the first byte to the second, where no stop reaches it. Says when it is
 * back. */
static pid_t start_vforker(int *go_on, int *back)
{
	int go[2], said[2];

	assert_int_equal(pipe(go) + pipe(said), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte = 'b';
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		if (vfork() == 0) {
			_exit(read(go[0], &byte, 1) != 1);
		}
		_exit(write(said[1], &byte, 1) != 1 || pause() != 0);
	}
	assert_true(pid > 0);
	close(go[0]);
	close(said[1]);
	*go_on = go[1];
	*back = said[0];
	return pid;
}

static bool first_line_has(pid_t pid, const char *file, const char *text)
{
	char path[64], line[256] = "";

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	bool has = fgets(line, sizeof line, f) && strstr(line, text);
	fclose(f);
	return has;
}

/* Its state alone would not do: before it has a child, a page that is not there yet lets it wait in the same way. */
static bool is_waiting_for_vfork(pid_t pid)
{
	char children[64];

	snprintf(children, sizeof children, "task/%d/children", (int)pid);
	return first_line_has(pid, children, " ") && first_line_has(pid, "stat", ") D ");
}

static void wait_for_vfork(pid_t pid, int go_on)
{
	assert_int_equal(write(go_on, "v", 1), 1);
	while (!is_waiting_for_vfork(pid))
		usleep(1000);
}

/* A thread that does not stop while it is asked to stops later, when it comes back: it must not stand still then. */
static void test_a_thread_that_stops_late_is_let_go(void **state)
{
	struct tracee t = { 0 };
	struct err e;
	enum tracee_stop stop;
	int go_on, back;
	uint64_t longest = 0;
	pid_t pid = start_vforker(&go_on, &back);
	struct pollfd said = { .fd = back, .events = POLLIN };

	(void)state;
	wait_for_vfork(pid, go_on);
	t.longest_ns = &longest;
	for (int i = 0; i < 2; i++) { /* the second time the seizure is taken over */
		assert_int_equal(tracee_seize(&t, pid, pid, false, &e), 0);
		assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000, &stop, &e), -ETIMEDOUT);
		assert_non_null(strstr(e.text, "did not stop in time: it is in uninterruptible sleep"));
		tracee_detach(&t);
		assert_false(t.seized);
	}
	assert_int_equal(longest, 0); /* it was asked and not held */
	let_go_look();
	assert_int_equal(tracee_seize(&t, pid, pid, true, &e), -EBUSY);
	assert_int_equal(write(go_on, "g", 1), 1);
	assert_int_equal(poll(&said, 1, 100), 0); /* it is in its stop */
	int came = 0;
	for (int i = 0; i < 100 && !came; i++) { /* on a busy machine its stop comes later */
		let_go_look();
		came = poll(&said, 1, 100);
	}
	assert_int_equal(came, 1);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), 0); /* nobody traces it */
	tracee_detach(&t);
	end(pid);
	close(go_on);
	close(back);
}

/* One that was stopped and then goes on for us (in the stub) is held, also if it does not come back; and it is resumed
 * when it does. */
static void test_a_hold_that_ends_late_counts(void **state)
{
	uint64_t longest = 0;
	struct tracee t = { .longest_ns = &longest };
	struct err e;
	enum tracee_stop stop;
	int go_on, back;
	pid_t pid = start_vforker(&go_on, &back);
	struct pollfd said = { .fd = back, .events = POLLIN };

	(void)state;
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000000, &stop, &e), 0);
	assert_int_equal(tracee_resume(&t, PTRACE_CONT, &e), 0);
	wait_for_vfork(pid, go_on);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000, &stop, &e), -ETIMEDOUT);
	assert_true(longest >= 20000000);
	tracee_detach(&t);
	assert_int_equal(write(go_on, "g", 1), 1);
	for (int i = 0; i < 200 && poll(&said, 1, 100) == 0; i++)
		let_go_look();
	assert_int_equal(poll(&said, 1, 0), 1);
	end(pid);
	close(go_on);
	close(back);
}

static int heard;

static void hear(int number)
{
	const char byte = (char)number;

	if (write(heard, &byte, 1) != 1)
		_exit(1);
}

/* One that was sent to the thread itself stops it before it is stopped as asked: it is delivered all the same. */
static void test_a_signal_that_is_met_is_delivered(void **state)
{
	struct tracee t = { 0 };
	struct err e;
	enum tracee_stop stop;
	int told[2];
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		heard = told[1];
		signal(SIGUSR2, hear);
		hear('r');
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), 0);
	assert_int_equal(syscall(SYS_tgkill, pid, pid, SIGUSR2), 0);
	assert_int_equal(tracee_interrupt(&t, clock_monotonic_ns() + 20000000000ull, &stop, &e), 0);
	tracee_detach(&t);
	struct pollfd said = { .fd = told[0], .events = POLLIN };
	assert_int_equal(poll(&said, 1, 20000), 1);
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(byte, SIGUSR2);
	end(pid);
	close(told[0]);
	close(told[1]);
}

/* What is said of one that did not stop: a thread that runs stops at once, so one that could run did not get its turn.
 */
static void test_the_reason_for_not_stopping_is_told(void **state)
{
	struct err e;
	pid_t busy = fork();

	(void)state;
	if (busy == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned long rounds = 0;; rounds++)
			;
	}
	assert_true(busy > 0);
	pid_t asleep = start_sleeper();
	assert_int_equal(thread_did_not_stop(busy, busy, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "ready to run, with "));
	assert_null(strstr(e.text, "with 0 threads"));
	while (thread_did_not_stop(asleep, asleep, &e) == -ETIMEDOUT && strstr(e.text, "ready to run"))
		usleep(1000);
	assert_int_equal(strcmp(strstr(e.text, " did"), " did not stop in time"), 0);
	end(busy);
	end(asleep);
}

static void *sleep_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

/* Has a second thread, which sleeps. Executes another program when a byte comes. */
static pid_t start_executer(int *go)
{
	int ends[2];
	pthread_t thread;
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0 && read(ends[0], &byte, 1) == 1)
			execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static pid_t second_thread(pid_t pid)
{
	char path[64];
	pid_t found = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	while (!found) {
		DIR *d = opendir(path);
		assert_non_null(d);
		for (struct dirent *entry; (entry = readdir(d));)
			if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != pid)
				found = atoi(entry->d_name);
		closedir(d);
		usleep(1000);
	}
	return found;
}

/* execve waits until its tracer knows that the other thread has ended, PTRACE_SEIZE waits for the execve. */
static void test_seize_does_not_wait_for_an_execve_that_waits_for_us(void **state)
{
	struct tracee other = { 0 }, t = { 0 };
	struct err e;
	int go;
	pid_t pid = start_executer(&go), tid = second_thread(pid);

	(void)state;
	assert_int_equal(tracee_seize(&other, pid, tid, false, &e), 0);
	pid_t watchdog = fork();
	if (watchdog == 0) {
		sleep(20);
		_exit(kill(pid, SIGKILL));
	}
	assert_int_equal(write(go, "g", 1), 1);
	while (!thread_has_ended(pid, tid))
		usleep(1000);
	assert_int_equal(tracee_seize(&t, pid, pid, false, &e), 0);
	tracee_detach(&t);
	assert_int_equal(kill(watchdog, SIGKILL), 0);
	assert_int_equal(waitpid(watchdog, NULL, 0), watchdog);
	end(pid);
	close(go);
}

/* ---- at which call a thread stands ---- */

static pid_t start_traced(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)!ptrace(PTRACE_TRACEME, 0, 0, 0);
		run();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, __WALL), pid); /* its first signal */
	return pid;
}

static void stop_by_call(void)
{
	raise(SIGSTOP);
}

static void stop_by_instruction(void)
{
	__builtin_trap();
}

/* It has returned from the call by which it was stopped, so that nobody but the code tells which one that was. */
static void test_a_call_that_has_just_been_made_is_told(void **state)
{
	struct registers regs;
	pid_t pid;

	(void)state;
	pid = start_traced(stop_by_call);
	assert_true(registers_read(pid, NULL, &regs));
	assert_int_equal(registers_at_call(pid, &regs), SYS_tgkill);
	end(pid);
	pid = start_traced(stop_by_instruction);
	assert_true(registers_read(pid, NULL, &regs));
	assert_int_equal(registers_at_call(pid, &regs), -1);
	end(pid);
}

static uint64_t context[sizeof(ucontext_t) / 8];

static void on_signal(int number, siginfo_t *info, void *interrupted)
{
	(void)number, (void)info;
	memcpy(context, interrupted, sizeof context);
}

/* Its program counter, and nothing else there, nor words that a frame record may have behind a return address. */
static void test_the_context_of_interrupted_code_is_known(void **state)
{
	const struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	const uint64_t zeros[REGISTERS_BEHIND_PC] = { 0 };
	unsigned found = 0;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	for (size_t i = 1; i + REGISTERS_BEHIND_PC <= sizeof context / 8; i++)
		if (registers_follow_pc(&context[i])) {
			/* of raise() */
			assert_true(context[i - 1] > (uint64_t)(uintptr_t)raise - (16u << 20) &&
			            context[i - 1] < (uint64_t)(uintptr_t)raise + (16u << 20));
			found++;
		}
	assert_int_equal(found, 1);
	assert_false(registers_follow_pc(zeros));
}

#ifdef __aarch64__
/* As glibc 2.41 makes calls in which a thread may be cancelled: a function gets the number behind the arguments, and
 * makes the call, or, in a program of several threads, has another function make it. */
long handed_call(long a, long b, const void *c, void *d, long e, long f, long number);
long handed_on_call(long a, long b, const void *c, void *d, long e, long f, long number);
__asm__(".pushsection .text\n"
        "handed_call: stp x29, x30, [sp, #-16]!\n"
        "  mov x8, x6\n mov x29, sp\n"
        "  .rept 24\n mov x7, x5\n .endr\n"
        "  svc #0\n ldp x29, x30, [sp], #16\n ret\n"
        "handed_on_call: stp x29, x30, [sp, #-16]!\n"
        "  mov x8, x6\n mov x29, sp\n mov x7, x5\n mov x5, x3\n mov x3, x1\n mov x1, x8\n"
        "  mov x6, x4\n mov x4, x2\n mov x2, x0\n"
        "  bl 1f\n ldp x29, x30, [sp], #16\n ret\n"
        "1: mov x8, x1\n mov x0, x2\n mov x1, x3\n mov x2, x4\n mov x3, x5\n mov x4, x6\n mov x5, x7\n"
        "  svc #0\n ret\n"
        ".popsection\n");

enum sleep_kind { BY_NAME, BY_NUMBER, HANDED, HANDED_ON };

static int sleep_by(enum sleep_kind kind, const struct timespec *time)
{
	switch (kind) {
	case BY_NAME: return nanosleep(time, NULL);
	case BY_NUMBER: return (int)syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, time, NULL);
	case HANDED: return (int)handed_call(CLOCK_REALTIME, 0, time, NULL, 0, 0, SYS_clock_nanosleep);
	default: return (int)handed_on_call(CLOCK_REALTIME, 0, time, NULL, 0, 0, SYS_clock_nanosleep);
	}
}

/* A thread that is stopped again before it has gone on with the rest of its sleep: a return by rt_sigreturn makes the
 * kernel forget that, so that the stub alone makes the whole call. */
static void sleep_is_made_again(enum sleep_kind kind)
{
	const struct timespec long_time = { .tv_sec = 3600 };
	struct blocked_call before = { .number = -1 };
	struct registers regs, again;
	struct stub_data data = { 0 };
	struct stub_frame frame = { 0 };

	pid_t pid = fork();
	if (pid == 0)
		_exit(sleep_by(kind, &long_time));
	while (before.number < 0)
		registers_before_stop(&before, pid, pid);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	assert_true(registers_read(pid, &before, &regs));
	assert_int_equal(registers_syscall(&regs), before.number);
	again = registers_go_on(&regs, false);
	assert_true(registers_write(pid, &again));
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	before.number = -1;
	assert_true(registers_read(pid, &before, &again));
	assert_int_equal(registers_at_call(pid, &again), SYS_restart_syscall);
	registers_note(pid, &again, &data, &frame);
	assert_int_equal(frame.registers[8], registers_syscall(&regs));
	end(pid);
}

static void test_a_rest_that_was_not_begun_is_the_whole_call(void **state)
{
	(void)state;
	sleep_is_made_again(BY_NAME);
	sleep_is_made_again(BY_NUMBER); /* syscall(3) has the number from its caller */
	sleep_is_made_again(HANDED);
	sleep_is_made_again(HANDED_ON);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seize_of_a_zombie_tells_that_it_has_ended),
		cmocka_unit_test(test_seize_of_somebody_elses_thread_is_refused),
		cmocka_unit_test(test_seize_of_a_traced_thread_is_refused),
		cmocka_unit_test(test_seize_of_a_thread_of_another_tracer_may_be_tried_again),
		cmocka_unit_test(test_a_thread_that_stops_late_is_let_go),
		cmocka_unit_test(test_a_hold_that_ends_late_counts),
		cmocka_unit_test(test_a_signal_that_is_met_is_delivered),
		cmocka_unit_test(test_the_reason_for_not_stopping_is_told),
		cmocka_unit_test(test_seize_does_not_wait_for_an_execve_that_waits_for_us),
		cmocka_unit_test(test_a_call_that_has_just_been_made_is_told),
		cmocka_unit_test(test_the_context_of_interrupted_code_is_known),
#ifdef __aarch64__
		cmocka_unit_test(test_a_rest_that_was_not_begun_is_the_whole_call),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
