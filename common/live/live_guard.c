/* SPDX-License-Identifier: MIT */
#include "live/live_guard.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/terminal.h"
#include "sandbox/child.h"

#define LOOK_NS 200000000

enum { CHILD_OK = 0, CHILD_FAILED = 1, CHILD_LEFT = 2, SIGNALLED = 128 };

struct guard {
	pid_t child; /* 0: there is none yet */
	int (*run)(void *arg, struct err *e);
	void *arg;
	bool stops;       /* Ctrl-Z does */
	bool waits;       /* for the foreground: the child, if there is one, is stopped */
	sigset_t watched; /* blocked, and waited for */
	sigset_t before;
	struct err *error; /* shared with the child */
};

static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static pid_t guard_pid;

/* ---- in the child ---- */

/*
 * Asked by the kernel: the guard is gone. Otherwise it gives the terminal back. Where it led the session its end hangs
 * the terminal up before it has ceased to be our parent; to leave twice does no harm.
 */
static void on_end(int sig)
{
	if (sig == SIGHUP || getppid() != guard_pid)
		terminal_leave();
	_exit(SIGNALLED + sig);
}

static _Noreturn void be_child(const struct guard *g)
{
	struct sigaction action = { .sa_handler = on_end };
	struct err e = { 0 };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigprocmask(SIG_SETMASK, &g->before, NULL);
	int r = g->run(g->arg, &e);
	*g->error = e;
	_exit(r < 0 ? CHILD_FAILED : r == LIVE_GUARD_LEFT ? CHILD_LEFT : CHILD_OK);
}

/* ---- in the guard ---- */

static void end_child(const struct guard *g)
{
	if (!g->child)
		return;
	child_end(g->child); /* it has nothing to put in order */
}

/* As if the signal had not been caught. */
static void die_by(const struct guard *g, int sig)
{
	sigset_t this;

	terminal_leave();
	signal(sig, SIG_DFL);
	sigemptyset(&this);
	sigaddset(&this, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &this, NULL);
	sigprocmask(SIG_SETMASK, &g->before, NULL);
}

static bool ends_programs(int sig)
{
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (ends[i] == sig)
			return true;
	return false;
}

static void wait_for_foreground(struct guard *g)
{
	siginfo_t info;

	g->waits = true;
	if (!g->child)
		return;
	kill(g->child, SIGSTOP);
	waitid(P_PID, (id_t)g->child, &info, WSTOPPED | WEXITED | WNOWAIT);
}

/* The first time, or again: what the terminal was set to meanwhile, and what is on it, is not ours. In the background
 * the view comes when the terminal does. */
static int go_on(struct guard *g, struct err *e)
{
	if (!terminal_is_ours()) {
		wait_for_foreground(g);
		return 1;
	}
	g->waits = false;
	terminal_enter(g->stops);
	if (g->child) {
		kill(g->child, SIGCONT);
		kill(g->child, SIGWINCH);
		return 1;
	}
	pid_t child = child_start(SIGTERM);
	if (child == 0)
		be_child(g);
	g->child = child > 0 ? child : 0;
	return child < 0 ? err_sys(e, "no process can be made") : 1;
}

/* SIGSTOP stops at once; who continues it, with SIGCONT, gives the terminal back first. */
static int stop(struct guard *g, struct err *e)
{
	wait_for_foreground(g);
	terminal_leave();
	raise(SIGSTOP);
	return go_on(g, e);
}

/* The signal that has ended it, caught or not; 0: none. */
static int end_signal(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status);
	return WEXITSTATUS(status) > SIGNALLED ? WEXITSTATUS(status) - SIGNALLED : 0;
}

/* 1: it lives. */
static int look_at_child(const struct guard *g, struct err *e)
{
	int status;

	if (!g->child || waitpid(g->child, &status, WNOHANG) != g->child)
		return 1;
	int sig = end_signal(status);
	if (ends_programs(sig))
		die_by(g, sig);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_LEFT)
		terminal_left();
	terminal_leave();
	if (sig)
		return err_set(e, ECANCELED, "the view was ended by signal %d (%s)", sig, strsignal(sig));
	if (WEXITSTATUS(status) != CHILD_FAILED)
		return 0;
	*e = *g->error;
	return e->code ? -e->code : err_set(e, EIO, "the view has failed");
}

/* A shell tells nobody that it gives the terminal to a job that runs. */
static int next_signal(const struct guard *g)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	return g->waits ? sigtimedwait(&g->watched, NULL, &pause) : sigwaitinfo(&g->watched, NULL);
}

static int watch(struct guard *g, struct err *e)
{
	int r = go_on(g, e);

	while (r == 1) {
		int sig = next_signal(g);
		if (sig < 0 && g->waits && terminal_is_ours()) {
			r = go_on(g, e);
		} else if (sig == SIGCHLD) {
			r = look_at_child(g, e);
		} else if (sig == SIGTSTP) {
			r = stop(g, e);
		} else if (sig == SIGCONT) {
			r = go_on(g, e);
		} else if (sig > 0) {
			end_child(g);
			die_by(g, sig);
		}
	}
	return r;
}

static bool is_ignored(int sig)
{
	struct sigaction action;

	return !sigaction(sig, NULL, &action) && action.sa_handler == SIG_IGN;
}

static void watch_signals(struct guard *g)
{
	sigemptyset(&g->watched);
	sigaddset(&g->watched, SIGCHLD);
	sigaddset(&g->watched, SIGCONT);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (!is_ignored(ends[i]))
			sigaddset(&g->watched, ends[i]);
	if (g->stops)
		sigaddset(&g->watched, SIGTSTP);
	signal(SIGCHLD, SIG_DFL); /* ignored by whoever started us: it would never come */
	sigprocmask(SIG_BLOCK, &g->watched, &g->before);
}

int live_guard_run(int (*run)(void *arg, struct err *e), void *arg, struct err *e)
{
	struct guard g = { .run = run, .arg = arg, .stops = !is_ignored(SIGTSTP) };
	int r = terminal_open(e);

	if (r)
		return r;
	g.error = mmap(NULL, sizeof *g.error, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g.error == MAP_FAILED)
		return err_set(e, ENOMEM, "out of memory");
	guard_pid = getpid();
	watch_signals(&g);
	r = watch(&g, e);
	terminal_leave();
	sigprocmask(SIG_SETMASK, &g.before, NULL);
	munmap(g.error, sizeof *g.error);
	return r;
}
