/* SPDX-License-Identifier: MIT */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clocks.h"
#include "touch/start/entry_hold.h"
#include "launch/group_witness.h"
#include "launch/named_program.h"
#include "launch/session_process.h"
#include "touch/start/own_child.h"
#include "host/say.h"
#include "host/start_state.h"
#include "sandbox/child.h"

#define LOOK_MS 1
#define LOOK_SELDOM_MS 10
#define SELDOM_AFTER_NS 1000000000ull

static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP };

/* Each pipe leads one way; all ends are closed by execve. */
struct launch {
	char **command;
	bool quiet;
	int to_program[2];   /* a byte: execute */
	int from_program[2]; /* its parent as it sees it, then errno if it cannot be executed */
	int to_session[2];   /* the number of the program */
	int from_session[2]; /* a byte: attached */
	int signals;
	pid_t program, session;
	struct group_witness witness;
	bool program_ended, session_ended;
	bool stopped;            /* the program is, by job control */
	bool answered, attached; /* the session has attached, or will not */
	struct itimerval alarm;  /* as memattach has inherited it; fork leaves it out, execve does not */
	struct entry_hold hold;
};

/* ---- the children ---- */

/* systemd tells by these for which process its sockets (sd_listen_fds(3)) and its watchdog are: the one that it has
 * started. */
static void take_number_over(const char *name, pid_t from)
{
	const char *value = getenv(name);
	char text[16];

	snprintf(text, sizeof text, "%d", from);
	if (!value || strcmp(value, text) != 0)
		return;
	snprintf(text, sizeof text, "%d", getpid());
	setenv(name, text, 1);
}

static _Noreturn void be_program(const struct launch *l)
{
	pid_t parent = getppid();
	char byte;

	take_number_over("LISTEN_PID", parent);
	take_number_over("WATCHDOG_PID", parent);
	setitimer(ITIMER_REAL, &l->alarm, NULL);
	/* The end of memattach shall be the end of these. */
	close(l->to_program[1]);
	close(l->to_session[1]);
	start_state_restore();
	/* Yama lets only ancestors trace. Without it, or with a right to trace, this is of no importance. */
	prctl(PR_SET_PTRACER, (unsigned long)l->session, 0, 0, 0);
	if (write(l->from_program[1], &parent, sizeof parent) != sizeof parent || read(l->to_program[0], &byte, 1) != 1)
		_exit(LAUNCH_FAILED);
	execvp(l->command[0], l->command);
	int why = errno;
	if (write(l->from_program[1], &why, sizeof why) != sizeof why)
		_exit(LAUNCH_FAILED);
	_exit(why == ENOENT || why == ENOTDIR ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTED);
}

/* What the process of the session is begun with. */
struct beginning {
	const struct launch *l;
	int (*session)(void *context, pid_t pid, int ready);
	void *context;
};

static int run_session(void *context)
{
	const struct beginning *b = context;
	const struct launch *l = b->l;
	pid_t pid;

	close(l->to_session[1]);
	close(l->from_session[0]);
	close(l->to_program[1]);
	close(l->from_program[1]);
	return read(l->to_session[0], &pid, sizeof pid) == sizeof pid ? b->session(b->context, pid, l->from_session[1])
	                                                              : 0;
}

/* ---- memattach ---- */

static bool make_pipes(struct launch *l)
{
	return pipe2(l->to_program, O_CLOEXEC) == 0 && pipe2(l->from_program, O_CLOEXEC) == 0 &&
	       pipe2(l->to_session, O_CLOEXEC) == 0 && pipe2(l->from_session, O_CLOEXEC) == 0;
}

/* From now on none is lost, and none ends memattach. */
static bool take_signals(struct launch *l)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGCONT);
	for (unsigned i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
		sigaddset(&set, passed_on[i]);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->signals >= 0 && sigprocmask(SIG_BLOCK, &set, NULL) == 0;
}

static bool fork_both(struct launch *l, int (*session)(void *context, pid_t pid, int ready), void *context)
{
	struct beginning b = { l, session, context };

	l->session = session_process_begin(run_session, &b);
	l->program = l->session < 0 ? -1 : child_start(0);
	if (l->program == 0)
		be_program(l);
	close(l->to_program[0]);
	close(l->from_program[1]);
	close(l->to_session[0]);
	close(l->from_session[1]);
	return l->program > 0;
}

/* The program has it already: all of the group has got it, from the terminal or from a process. That of the end of the
 * terminal goes to the leader of the session alone. */
static bool was_for_group(struct launch *l, const struct signalfd_siginfo *info)
{
	bool has = group_witness_has(&l->witness, (int)info->ssi_signo);

	if (info->ssi_code == SI_KERNEL)
		return info->ssi_signo != SIGHUP || getsid(0) != getpid();
	return has;
}

/* The signal that has stopped the program, 0: it is not, or traced. */
static int stop_of_program(const struct launch *l)
{
	siginfo_t info = { 0 };

	if (l->program_ended || l->hold.seized ||
	    waitid(P_PID, (id_t)l->program, &info, WSTOPPED | WNOHANG | WNOWAIT) < 0)
		return 0;
	return info.si_pid && info.si_code == CLD_STOPPED ? info.si_status : 0;
}

/*
 * The shell looks at memattach to learn that its job has stopped, and continues both. SIGSTOP comes from no terminal:
 * who sends that to the program continues it, too, and would not know of memattach. Where there is no shell (an
 * orphaned process group) the kernel drops the others, and memattach goes on.
 */
static void stop_with_program(struct launch *l)
{
	int number = stop_of_program(l);
	bool again = l->stopped;
	sigset_t this, before;

	l->stopped = number != 0;
	if (again || (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU))
		return;
	sigemptyset(&this);
	sigaddset(&this, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &this, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* A stop that comes after this is a new one. */
static void go_on(struct launch *l)
{
	if (stop_of_program(l))
		kill(l->program, SIGCONT);
	l->stopped = false;
}

static void pass_on(struct launch *l, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;
	bool was_told = was_for_group(l, info);

	if (!l->program_ended && !was_told)
		kill(l->program, number);
	else if (l->program_ended && !l->session_ended && number != SIGTSTP)
		kill(l->session, number);
}

/* What waits is read in the order of its numbers. SIGCONT goes first: what the program does upon another signal, as to
 * stop again, is not to be undone by it. */
static void hear(struct launch *l)
{
	struct signalfd_siginfo list[2 + sizeof passed_on / sizeof passed_on[0]];
	ssize_t bytes = read(l->signals, list, sizeof list);
	size_t count = bytes > 0 ? (size_t)bytes / sizeof list[0] : 0;

	for (size_t i = 0; i < count; i++)
		if (list[i].ssi_signo == SIGCONT)
			go_on(l);
	for (size_t i = 0; i < count; i++)
		if (list[i].ssi_signo != SIGCONT && list[i].ssi_signo != SIGCHLD)
			pass_on(l, &list[i]);
}

/* A session that ends by itself has said why. */
static void say_end_of_session(const struct launch *l, int status)
{
	if (!WIFSIGNALED(status))
		return;
	say_error(0, "the session was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (l->attached && !l->program_ended)
		say_error(0, "finish with memattach --detach -p %d, which saves what it recorded", l->program);
}

/* The program stays a zombie until its session is over, which asks how it ended. */
static void look_at_children(struct launch *l)
{
	siginfo_t info = { 0 };
	int status;

	if (!l->program_ended && waitid(P_PID, (id_t)l->program, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		l->program_ended = info.si_pid != 0;
	if (!l->session_ended && waitpid(l->session, &status, WNOHANG) == l->session) {
		l->session_ended = true;
		say_end_of_session(l, status);
	}
	entry_hold_let_go(&l->hold);
	stop_with_program(l);
}

static void wait_for_events(struct launch *l, int ms)
{
	struct pollfd fds[] = { { .fd = l->signals, .events = POLLIN },
		                { .fd = l->answered ? -1 : l->from_session[0], .events = POLLIN } };
	char byte;

	if (poll(fds, 2, ms) > 0 && fds[1].revents) {
		l->answered = true;
		l->attached = read(l->from_session[0], &byte, 1) == 1;
	}
	hear(l);
	look_at_children(l);
}

static bool tells_parent(const struct launch *l, pid_t *parent)
{
	return read(l->from_program[0], parent, sizeof *parent) == sizeof *parent;
}

/* Lets it execute the command. 0, or errno. */
static int execute(struct launch *l)
{
	bool traced = false;
	pid_t parent = 0;
	struct err e;
	int why;

	if (!tells_parent(l, &parent))
		return ECANCELED; /* a signal has ended it */
	if (named_program_loses_rights(l->command[0]))
		say_unless(l->quiet,
		           "memattach: %s gains rights when it is executed, which it would lose: it is not held at its "
		           "entry",
		           l->command[0]);
	else if (parent > 0)
		traced = own_child_seize(l->program);
	if (write(l->to_program[1], "", 1) != 1)
		return errno;
	if (traced && own_child_wait_past_signals(l->program, UINT64_MAX) == CHILD_EXEC) {
		if (entry_hold_set(&l->hold, l->program, parent, &e) < 0)
			say_unless(l->quiet, "memattach: %s is not held at its entry: %s", l->command[0], e.text);
		(void)own_child_let_go(l->program, 0);
	}
	return read(l->from_program[0], &why, sizeof why) == sizeof why ? why : 0;
}

/* Until it waits at its entry, or will not. */
static void await_entry(struct launch *l)
{
	uint64_t seldom_ns = clock_monotonic_ns() + SELDOM_AFTER_NS;

	while (l->hold.code && !l->program_ended && entry_hold_look(&l->hold) == HOLD_COMING)
		wait_for_events(l, clock_monotonic_ns() < seldom_ns ? LOOK_MS : LOOK_SELDOM_MS);
}

static void profile(struct launch *l)
{
	await_entry(l);
	if (write(l->to_session[1], &l->program, sizeof l->program) != sizeof l->program)
		say_unless(l->quiet, "memattach: the session has ended before it began");
	while (!l->answered && !l->session_ended)
		wait_for_events(l, -1);
	entry_hold_release(&l->hold);
	if (!l->attached)
		say_unless(l->quiet, "memattach: %s %s", l->command[0],
		           l->program_ended ? "was not profiled" : "runs without being profiled");
	while (!l->program_ended || !l->session_ended)
		wait_for_events(l, -1);
}

/* Ends memattach as the program has ended; its core is the one that counts. */
static int end_as(int status)
{
	const struct rlimit none = { 0 };
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	raise(WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 128 + WTERMSIG(status);
}

int launch_run(char **command, bool quiet, int (*session)(void *context, pid_t pid, int ready), void *context)
{
	struct launch l = { .command = command, .quiet = quiet, .hold.image.mem = -1 };
	const struct itimerval none = { 0 };

	setitimer(ITIMER_REAL, &none, &l.alarm);
	if (!make_pipes(&l) || !take_signals(&l) || !fork_both(&l, session, context)) {
		say_error(0, "cannot start %s: %s", command[0], strerror(errno));
		return LAUNCH_FAILED;
	}
	group_witness_start(&l.witness);
	int why = execute(&l);
	if (why == 0)
		profile(&l);
	else
		close(l.to_session[1]);
	entry_hold_close(&l.hold);
	if (why && why != ECANCELED)
		say_error(0, "cannot execute %s: %s", command[0], strerror(why));
	int status = child_wait(l.program);
	group_witness_end(&l.witness);
	return end_as(status < 0 ? 0 : status);
}
