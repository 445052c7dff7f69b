/* SPDX-License-Identifier: MIT */
#include "launch/several.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose/child_search.h"
#include "base/cleanup.h"
#include "host/clocks.h"
#include "base/grow.h"
#include "host/say.h"
#include "host/stop_signals.h"

#define POLL_NS 200000000ull
#define PART_OF_TIME 50u /* one of so many parts of a processor's time */

/* A target, and its session as long as that lasts. Those that have ended stay: a process is not taken twice. */
struct member {
	struct chosen target;
	bool found_later;
	unsigned programs; /* that it has executed */
	pid_t session;     /* 0: it has ended */
};

struct several {
	const struct several_options *options;
	struct member *list;
	size_t count;
	size_t running;
	enum session_after *after; /* what the members say, in memory that they have, too */
	unsigned ended[OUTCOMES];
	int signals;
	bool asked, said_full;
	uint64_t next_look_ns;
};

static enum session_after *after(const struct several *s, const struct member *m)
{
	return &s->after[m - s->list];
}

/* ---- sessions ---- */

/* What a session in a process of its own is begun with. */
struct beginning {
	const struct several *s;
	const struct member *m;
};

static int run_session(void *context)
{
	const struct beginning *b = context;
	const struct several_member member = { .target = &b->m->target,
		                               .ordinal = (size_t)(b->m - b->s->list),
		                               .programs = b->m->programs,
		                               .found_later = b->m->found_later };
	struct session_result result = b->s->options->session(b->s->options->context, &member);

	*after(b->s, b->m) = result.after;
	return (int)result.status;
}

static void begin(struct several *s, struct member *m)
{
	struct beginning b = { s, m };

	*after(s, m) = AFTER_NOTHING;
	pid_t child = session_process_begin(run_session, &b);
	if (child < 0) {
		say_unless(s->options->quiet, "memattach: PID %d: no process can be made for its session: %s",
		           m->target.pid, strerror(errno));
		s->ended[OUTCOME_NOT_ATTACHED]++;
		return;
	}
	m->session = child;
	s->running++;
}

static bool is_known(const struct several *s, const struct chosen *target)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].target.pid == target->pid && s->list[i].target.start_ticks == target->start_ticks)
			return true;
	return false;
}

static void say_full(struct several *s, const struct chosen *target)
{
	if (s->said_full)
		return;
	s->said_full = true;
	say_unless(s->options->quiet,
	           "memattach: PID %d and others are not profiled: there are %zu sessions, of at most %u, and were "
	           "%zu, of at "
	           "most %u",
	           target->pid, s->running, SEVERAL_MAX, s->count, SEVERAL_EVER_MAX);
}

/* What is refused for want of room is asked again at the next look: sessions may have ended. */
static bool add(struct several *s, const struct chosen *target, bool found_later)
{
	if (s->running >= SEVERAL_MAX || s->count >= SEVERAL_EVER_MAX) {
		say_full(s, target);
		return false;
	}
	if (!grow_list(s->list, s->count))
		return false;
	s->list[s->count] = (struct member){ .target = *target, .found_later = found_later };
	begin(s, &s->list[s->count++]);
	return true;
}

/* It has executed another program, and is the same process. */
static bool begins_anew(const struct several *s, const struct member *m, int status)
{
	const enum session_after then = *after(s, m);
	struct chosen now;

	if (!WIFEXITED(status) || (then != AFTER_EXEC && then != AFTER_EXEC_UNATTACHED))
		return false;
	return s->options->children && !s->asked && m->programs < SEVERAL_PROGRAMS_MAX &&
	       chosen_look(&now, m->target.pid, ERR_IGNORED) == 0 && now.start_ticks == m->target.start_ticks;
}

static void ended(struct several *s, struct member *m, int status)
{
	m->session = 0;
	s->running--;
	if (m == s->list && s->options->first_ended)
		s->options->first_ended(s->options->context);
	bool anew = begins_anew(s, m, status);
	const enum member_outcome outcome = session_process_outcome(status, *after(s, m));
	if (!anew || *after(s, m) == AFTER_EXEC)
		s->ended[outcome]++;
	if (outcome == OUTCOME_KILLED)
		say_error(m->target.pid, "its session was ended by signal %d; finish with memattach --detach -p %d",
		          WTERMSIG(status), m->target.pid);
	if (!anew)
		return;
	m->programs++;
	begin(s, m);
}

static void reap(struct several *s)
{
	int status;

	for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
		for (size_t i = 0; i < s->count; i++)
			if (s->list[i].session == child)
				ended(s, &s->list[i], status);
}

static void pass_on(struct several *s, int number)
{
	s->asked = true;
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].session)
			kill(s->list[i].session, number);
}

/* ---- children ---- */

static bool take_child(void *context, const struct chosen *child)
{
	struct several *s = context;

	return is_known(s, child) || add(s, child, true);
}

static void look_for_children(struct several *s)
{
	uint64_t began_ns = clock_monotonic_ns();

	/* The list grows meanwhile: what is found is looked below at once. */
	for (size_t i = 0; i < s->count; i++) {
		struct chosen parent = s->list[i].target; /* the list may move */
		child_search(&parent, take_child, s);
	}
	uint64_t now_ns = clock_monotonic_ns(), rest_ns = (now_ns - began_ns) * PART_OF_TIME;
	s->next_look_ns = now_ns + (rest_ns > POLL_NS ? rest_ns : POLL_NS);
}

/* For poll(): until the next look. */
static int wait_ms(const struct several *s)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!s->options->children || s->asked)
		return -1;
	return now_ns >= s->next_look_ns ? 0 : (int)((s->next_look_ns - now_ns) / 1000000 + 1);
}

/* ---- all of them ---- */

static void hear(struct several *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGCHLD)
			pass_on(s, (int)info.ssi_signo);
	reap(s);
}

static int take_signals(struct several *s)
{
	sigset_t set;

	stop_signals_list(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals;
}

/* "3 sessions: 2 done, 1 not attached" */
static enum exit_status sum_up(const struct several *s)
{
	unsigned all = 0;
	char text[200];

	for (unsigned i = 0; i < OUTCOMES; i++)
		all += s->ended[i];
	session_process_sum(s->ended, text, sizeof text);
	say_unless(s->options->quiet, "%u sessions:%s", all, text);
	return session_process_worst(s->ended);
}

enum exit_status several_run(const struct several_options *options, const struct chosen_list *targets)
{
	struct several s = { .options = options };
	AUTO_CLOSE int signals = take_signals(&s);

	if (signals < 0) {
		say_error(0, "cannot wait for signals: %s", strerror(errno));
		return EXIT_NOT_ATTACHED;
	}
	s.after = mmap(NULL, SEVERAL_EVER_MAX * sizeof *s.after, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	               0);
	if (s.after == MAP_FAILED) {
		say_error(0, "out of memory");
		return EXIT_NOT_ATTACHED;
	}
	for (size_t i = 0; i < targets->count; i++)
		if (!add(&s, &targets->list[i], false))
			s.ended[EXIT_NOT_ATTACHED]++;
	while (s.running) {
		struct pollfd event = { .fd = signals, .events = POLLIN };
		if (poll(&event, 1, wait_ms(&s)) == 0 && options->children && !s.asked)
			look_for_children(&s);
		hear(&s);
	}
	enum exit_status status = sum_up(&s);
	munmap(s.after, SEVERAL_EVER_MAX * sizeof *s.after);
	free(s.list);
	return status;
}
