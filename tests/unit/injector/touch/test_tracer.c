/* SPDX-License-Identifier: MIT */
/* Threads that have left their stop and are traced until their tracer ends; and signals that they take meanwhile. */
#include "touch/threads/tracer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/proc_status.h"
#include "touch/threads/let_go.h"

#define LONG_NS 20000000000ull
#define PERIOD_NS 5000000

/* What the handler says: who has taken the signal, and with which words. */
struct taken {
	pid_t tid;
	int code;
	int sender;
};

static int out;

static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct taken taken = { gettid(), info->si_code, info->si_pid };

	(void)number, (void)context;
	(void)!write(out, &taken, sizeof taken);
}

static void *other(void *first_told)
{
	const pid_t tid = gettid();

	(void)!write(*(int *)first_told, &tid, sizeof tid);
	for (;;)
		pause();
	return NULL;
}

/* A process of two threads. */
struct pair {
	pid_t pid, other;
	int in; /* struct taken */
	int number;
	bool blocks; /* the first thread blocks the signal */
	bool timer;  /* there is one that sends it to the process */
	clockid_t clock;
};

static void run_pair(const struct pair *p)
{
	const struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = p->number };
	const struct itimerspec far = { .it_value.tv_sec = 1000 };
	pthread_t thread;
	timer_t timer;
	sigset_t set;

	sigaction(p->number, &action, NULL);
	if (p->timer && (timer_create(p->clock, &event, &timer) < 0 || timer_settime(timer, 0, &far, NULL) < 0))
		_exit(1);
	pthread_create(&thread, NULL, other, &out);
	sigemptyset(&set);
	sigaddset(&set, p->number);
	if (p->blocks)
		sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;)
		pause();
}

static void start_pair(struct pair *p)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after a failed assertion, too */
		out = ends[1];
		run_pair(p);
	}
	assert_true(p->pid > 0);
	close(ends[1]);
	p->in = ends[0];
	assert_int_equal(read(p->in, &p->other, sizeof p->other), sizeof p->other);
}

static void end_pair(const struct pair *p)
{
	kill(p->pid, SIGKILL);
	assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
	close(p->in);
}

static int tracer_of(const struct pair *p)
{
	char status[STATUS_BYTES];

	assert_int_equal(proc_status_read(status, p->pid, p->other), 0);
	return (int)proc_status_number(status, "TracerPid", 10, -1);
}

struct step {
	const struct pair *p;
	int code; /* that the signal is given, as if it were of this origin */
	int rc;
};

/* The other thread meets a signal, and is let go. */
static int meet_signal(void *context)
{
	struct step *step = context;
	const struct pair *p = step->p;
	struct tracee t = { 0 };
	enum tracee_stop stop;
	siginfo_t info;
	struct err e;

	int rc = tracee_seize(&t, p->pid, p->other, false, &e);
	if (rc == 0)
		rc = (int)syscall(SYS_tgkill, p->pid, p->other, p->number);
	if (rc == 0)
		rc = tracee_wait(&t, clock_monotonic_ns() + LONG_NS, &stop, &e);
	if (rc < 0 || stop != TRACEE_STOP_SIGNAL || ptrace(PTRACE_GETSIGINFO, t.tid, NULL, &info) < 0)
		return -EPROTO;
	info.si_code = step->code;
	info.si_pid = 77;
	if (step->code == SI_TIMER)
		info.si_timerid = 0;
	if (ptrace(PTRACE_SETSIGINFO, t.tid, NULL, &info) < 0)
		return -EPROTO;
	tracee_detach(&t);
	return 0;
}

/* True: the first thread has got it, with the same words. */
static bool first_takes(struct pair p, int code)
{
	struct pollfd said = { .events = POLLIN };
	struct step step = { .p = &p, .code = code };
	struct taken taken = { 0 };

	start_pair(&p);
	assert_int_equal(tracer_run(meet_signal, &step), 0);
	assert_int_equal(tracer_of(&p), 0);
	said.fd = p.in;
	assert_int_equal(poll(&said, 1, 20000), 1);
	assert_int_equal(read(p.in, &taken, sizeof taken), sizeof taken);
	const bool came_late = code >= 0 && taken.code == SI_QUEUE && taken.tid == p.pid;
	if (!came_late)
		assert_int_equal(taken.code, code);
	if (code != SI_TIMER)
		assert_int_equal(taken.sender, 77);
	assert_true(taken.tid == p.pid || taken.tid == p.other);
	assert_int_equal(poll(&said, 1, 20), 0); /* once */
	end_pair(&p);
	return taken.tid == p.pid && !came_late;
}

/* Where the first thread gets no processor for 30 ms (TAKE_NS of hand_back.c) it sees another code, or the other one
 * keeps the signal: so it is tried some times. Each time it comes once, with the same words. */
static bool is_handed_back(struct pair p, int code)
{
	for (int i = 0; i < 20; i++)
		if (first_takes(p, code))
			return true;
	return false;
}

static void test_signals_for_the_process_are_handed_back(void **state)
{
	const struct pair usual = { .number = SIGUSR1 }, alarm = { .number = SIGALRM }, child = { .number = SIGCHLD },
			  timer = { .number = SIGUSR1, .timer = true, .clock = CLOCK_MONOTONIC };

	(void)state;
	assert_true(is_handed_back(usual, SI_USER));
	assert_true(is_handed_back(usual, SI_MESGQ));
	assert_true(is_handed_back(alarm, SI_KERNEL));
	assert_true(is_handed_back(child, CLD_EXITED));
	if (access("/proc/self/timers", F_OK) == 0)
		assert_true(is_handed_back(timer, SI_TIMER));
}

/* Or may be for it; or the first one does not want them. */
static void test_signals_for_a_thread_stay_there(void **state)
{
	const struct pair usual = { .number = SIGUSR1 }, blocks = { .number = SIGUSR1, .blocks = true },
			  cpu = { .number = SIGUSR1, .timer = true, .clock = CLOCK_PROCESS_CPUTIME_ID };
	static const int own[] = { SIGPIPE, SIGXFSZ }, of_kernel[] = { SIGPROF, SIGVTALRM, SIGIO, SIGURG };

	(void)state;
	assert_false(first_takes(blocks, SI_USER));
	assert_false(first_takes(usual, SI_TKILL));
	assert_false(first_takes(usual, SI_QUEUE));
	assert_false(first_takes(usual, SI_SIGIO));
	assert_false(first_takes(usual, SI_TIMER)); /* there is none */
	assert_false(first_takes(cpu, SI_TIMER));
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		assert_false(first_takes((struct pair){ .number = own[i] }, SI_USER));
	for (unsigned i = 0; i < sizeof of_kernel / sizeof *of_kernel; i++)
		assert_false(first_takes((struct pair){ .number = of_kernel[i] }, SI_KERNEL));
}

static int stop_and_go_on(void *context)
{
	struct step *step = context;
	const struct pair *p = step->p;
	struct tracee t = { 0 };
	enum tracee_stop stop;
	struct err e;

	for (int i = 0; i < 3; i++) { /* it is taken back while it is still traced */
		step->rc = tracee_seize(&t, p->pid, p->other, false, &e);
		if (step->rc == 0)
			step->rc = tracee_interrupt(&t, clock_monotonic_ns() + LONG_NS, &stop, &e);
		if (step->rc < 0)
			return -EPROTO;
		tracee_detach(&t);
	}
	return tracer_of(p) == gettid() && tracer_runs() ? 42 : -EPROTO;
}

static void test_a_thread_is_traced_until_its_tracer_ends(void **state)
{
	struct pair p = { .number = SIGUSR1 };
	struct step step = { .p = &p };

	(void)state;
	start_pair(&p);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(tracer_run(stop_and_go_on, &step), 42);
		assert_int_equal(tracer_of(&p), 0);
		assert_false(tracer_runs());
	}
	end_pair(&p);
}

/* One that ends while it is let go keeps neither its process nor its tracer. */
static int let_it_end(void *context)
{
	const struct step *step = context;
	const struct timespec pause = { .tv_nsec = PERIOD_NS };

	(void)stop_and_go_on(context);
	kill(step->p->pid, SIGKILL);
	let_go_pause(PERIOD_NS);
	nanosleep(&pause, NULL);
	return 0;
}

static void test_a_thread_may_end_meanwhile(void **state)
{
	struct pair p = { .number = SIGUSR1 };
	struct step step = { .p = &p };

	(void)state;
	start_pair(&p);
	assert_int_equal(tracer_run(let_it_end, &step), 0);
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	close(p.in);
}

/* While it is stopped by job control, which a thread that is merely resumed would forget. */
static int stop_in_group_stop(void *context)
{
	const struct step *step = context;
	struct tracee t = { 0 };
	enum tracee_stop stop;
	struct err e;

	if (tracee_seize(&t, step->p->pid, step->p->other, false, &e) < 0 ||
	    tracee_interrupt(&t, clock_monotonic_ns() + LONG_NS, &stop, &e) < 0)
		return -EPROTO;
	tracee_detach(&t);
	return (int)stop;
}

static void test_job_control_is_kept(void **state)
{
	struct pair p = { .number = SIGUSR1 };
	struct step step = { .p = &p };
	char status[STATUS_BYTES];
	siginfo_t info;

	(void)state;
	start_pair(&p);
	kill(p.pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WSTOPPED), 0);
	assert_int_equal(tracer_run(stop_in_group_stop, &step), TRACEE_STOP_GROUP);
	for (int i = 0; i < 4000; i++) {
		usleep(PERIOD_NS / 1000);
		assert_int_equal(proc_status_read(status, p.pid, p.other), 0);
		if (*proc_status_field(status, "State") == 'T')
			break;
	}
	assert_int_equal(*proc_status_field(status, "State"), 'T');
	end_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_for_the_process_are_handed_back),
		cmocka_unit_test(test_signals_for_a_thread_stay_there),
		cmocka_unit_test(test_a_thread_is_traced_until_its_tracer_ends),
		cmocka_unit_test(test_a_thread_may_end_meanwhile),
		cmocka_unit_test(test_job_control_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
