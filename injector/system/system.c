/* SPDX-License-Identifier: MIT */
#include "system/system.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "choose/process_events.h"
#include "host/clocks.h"
#include "host/say.h"
#include "host/stop_signals.h"
#include "launch/session_process.h"
#include "process/proc_stat.h"
#include "process/memory_room.h"
#include "system/ended_dumps.h"
#include "system/process_table.h"
#include "system/table_budget.h"
#include "system/table_forks.h"
#include "system/roster.h"

#define SECOND_NS 1000000000ull
#define LOOK_NS SECOND_NS               /* at the processes, while some wait or the kernel does not tell of new ones */
#define LOOK_SELDOM_NS (60 * SECOND_NS) /* where it does */
#define PART_OF_TIME 400u               /* of one processor, for looks */
#define DIVIDE_NS (2 * SECOND_NS)       /* the budget of CPU time */
#define WRITE_NS (10 * SECOND_NS)       /* the roster */
#define PAUSE_LEAST_NS 100000000ull
#define PAUSE_MOST_NS (10 * SECOND_NS)
#define PAUSE_TIMES 4u                 /* the CPU time of an attach */
#define LONG_ATTACH_NS (5 * SECOND_NS) /* after that the next one begins beside it … */
#define ATTACHES_MAX 4u                /* … up to so many at once */
#define KEPT_BACK 8u                   /* one of so many parts of the room, for sessions to come */
#define SHOWN_ROWS 8u
#define NO_ROOM_WHY "no room is left for its dump (--max-size)"

struct supervisor {
	const struct system_options *options;
	struct process_table table;
	struct process_events events;
	struct shared_room *room; /* shared memory, with the shares behind it */
	struct session_share *shares;
	bool used[SYSTEM_SESSIONS_MAX];
	int signals, attached;
	size_t running, attaching, begun;
	unsigned came_about;
	unsigned ended[OUTCOMES];
	uint64_t first_bytes; /* that the dump of a session begins with, as seen */
	struct ended_dumps dumps;
	struct unseen said; /* reasons that were */
	struct roster roster;
	uint64_t began_ns, looked_ns, look_ns, attach_ns, divide_ns, divided_ns, write_ns, end_ns;
	unsigned asked;
	bool said_all, said_failing, said_roster;
	bool ended_failing; /* one that could not write its dump has ended since that was said */
};

/* ---- sessions ---- */

struct beginning {
	const struct supervisor *s;
	const struct seen_process *p;
};

/* In a process of its own. */
static void leave_supervisor(const struct supervisor *s)
{
	close(s->signals);
	if (s->events.fd >= 0)
		close(s->events.fd);
}

static int run_session(void *context)
{
	const struct beginning *b = context;
	const struct system_member member = { &b->p->is, b->p->share, b->s->begun };

	leave_supervisor(b->s);
	say_keep_errors(b->p->share->why, sizeof b->p->share->why);
	struct session_result result = b->s->options->session(b->s->options->context, &member);
	b->p->share->after = (unsigned)result.after;
	return (int)result.status;
}

static int run_detach(void *context)
{
	const struct beginning *b = context;

	leave_supervisor(b->s);
	return (int)b->s->options->detach(b->s->options->context, &b->p->is);
}

static struct session_share *new_share(struct supervisor *s)
{
	for (size_t i = 0; i < SYSTEM_SESSIONS_MAX; i++) {
		if (s->used[i])
			continue;
		s->used[i] = true;
		memset(&s->shares[i], 0, sizeof s->shares[i]);
		s->shares[i].room = s->room;
		s->shares[i].event = s->attached;
		s->shares[i].limit_ppm = (uint32_t)(s->options->part * 1e6 + 0.5);
		return &s->shares[i];
	}
	return NULL;
}

static void give_share(struct supervisor *s, struct seen_process *p)
{
	if (p->share)
		s->used[p->share - s->shares] = false;
	p->share = NULL;
}

static void begin(struct supervisor *s, struct seen_process *p, uint64_t now_ns)
{
	struct beginning b = { s, p };

	p->share = new_share(s);
	p->session = p->share ? session_process_begin(run_session, &b) : -1;
	if (p->session < 0) {
		p->session = 0;
		give_share(s, p);
		process_table_refuse(p, "no process can be made for its session", now_ns);
		return;
	}
	p->state = PROCESS_IN_SESSION;
	p->why[0] = '\0';
	p->attached = p->told = p->forking = false;
	p->begun_ns = now_ns;
	s->begun++;
	s->running++;
	s->attaching++;
}

static void say_finish_by_hand(const struct seen_process *p)
{
	say_error(p->is.pid, "finish with memattach --detach -p %d", p->is.pid);
}

/* Takes out what a session has left that was killed. */
static void begin_cleaning(struct supervisor *s, struct seen_process *p)
{
	struct beginning b = { s, p };
	pid_t child = session_process_begin(run_detach, &b);

	p->session = child > 0 ? child : 0;
	p->cleaning = child > 0;
	s->running += child > 0;
	if (child <= 0)
		say_finish_by_hand(p);
}

/* ---- room ---- */

static bool has_room(const struct supervisor *s)
{
	return s->room->left >= (int64_t)s->first_bytes;
}

/* ---- what became of sessions ---- */

static void pause_after(struct supervisor *s, uint64_t cpu_ns, uint64_t now_ns)
{
	uint64_t pause_ns = PAUSE_TIMES * cpu_ns;

	pause_ns = pause_ns < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : pause_ns > PAUSE_MOST_NS ? PAUSE_MOST_NS : pause_ns;
	if (s->attach_ns < now_ns + pause_ns)
		s->attach_ns = now_ns + pause_ns;
}

static void see_attached(struct supervisor *s, uint64_t now_ns)
{
	uint64_t events;

	(void)!read(s->attached, &events, sizeof events);
	for (size_t i = 0; i < s->table.count; i++) {
		struct seen_process *p = &s->table.list[i];
		if (!p->share || p->attached || !atomic_load_explicit(&p->share->attached, memory_order_acquire))
			continue;
		p->attached = true;
		p->last.at_ns = now_ns;
		s->attaching--;
		s->came_about++;
		s->first_bytes = p->share->bytes > s->first_bytes ? p->share->bytes : s->first_bytes;
		pause_after(s, proc_stat_cpu_ns(p->session), now_ns);
		if (s->options->verbose)
			say_unless(s->options->quiet, "attached to %d (%s)", p->is.pid, p->is.name);
	}
}

static void say_refusal(struct supervisor *s, const struct seen_process *p)
{
	if (unseen_add(&s->said, "", p->is.pid, p->why))
		say_unless(s->options->quiet, "memattach: PID %d (%s) is not profiled: %s", p->is.pid, p->is.name,
		           p->why);
}

static void refused(struct supervisor *s, struct seen_process *p, uint64_t now_ns)
{
	process_table_refuse(p, p->share->why[0] ? p->share->why : "its session ended without a word", now_ns);
	say_refusal(s, p);
}

/* What went wrong after the attach: sessions say nothing themselves. A dump that is not where it is looked for is named
 * there. */
static void say_trouble(struct supervisor *s, const struct seen_process *p)
{
	const char *path = p->share->path, *slash = strrchr(path, '/');
	char why[UNSEEN_WHY];

	if (p->share->elsewhere)
		snprintf(why, sizeof why, "there was no room for its dump; all of it is in %.*s",
		         slash ? (int)(slash - path) : 1, slash ? path : ".");
	else
		snprintf(why, sizeof why, "%s", p->share->why);
	if (!why[0])
		return;
	unseen_add(&s->table.ended, p->is.name, p->is.pid, why);
	if (unseen_add(&s->said, "", p->is.pid, why))
		say_error(p->is.pid, "%s", why);
}

static void session_ended(struct supervisor *s, struct seen_process *p, int status, uint64_t cpu_ns, uint64_t now_ns)
{
	const enum session_after after = (enum session_after)p->share->after;
	const enum member_outcome outcome = session_process_outcome(status, after);
	bool anew = WIFEXITED(status) && (after == AFTER_EXEC || after == AFTER_EXEC_UNATTACHED);

	ended_dumps_add(&s->dumps, p->share);
	s->ended_failing |= atomic_load_explicit(&p->share->failing, memory_order_acquire);
	p->state = PROCESS_DONE;
	if (!p->attached) {
		s->attaching--;
		pause_after(s, cpu_ns, now_ns);
	}
	if (p->attached)
		say_trouble(s, p);
	if (anew)
		process_table_execed(&s->table, p); /* it has another name from now on */
	else if (p->attached && p->forking && !s->asked) {
		table_forks_leave(p, now_ns);
		say_refusal(s, p);
	} else if (outcome == OUTCOME_NOT_ATTACHED && !p->told)
		refused(s, p, now_ns);
	else if (outcome == OUTCOME_NOT_ATTACHED)
		p->state = PROCESS_WAITING;
	else if (outcome == OUTCOME_TOO_LATE)
		unseen_add(&s->table.ended, p->is.name, p->is.pid, "it ended while it was attached to");
	if (p->attached)
		s->ended[outcome == OUTCOME_NOT_ATTACHED ? OUTCOME_DONE : outcome]++;
	else if (outcome == OUTCOME_RESIDUE || outcome == OUTCOME_KILLED)
		s->ended[outcome]++;
	give_share(s, p);
	if (outcome == OUTCOME_KILLED) {
		say_error(p->is.pid, "its session was ended by signal %d; what it left is taken out", WTERMSIG(status));
		begin_cleaning(s, p);
	}
}

static void cleaned(struct seen_process *p, int status)
{
	p->cleaning = false;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != OUTCOME_DONE)
		say_finish_by_hand(p);
}

static void reap(struct supervisor *s, uint64_t now_ns)
{
	struct rusage used;
	int status;

	for (pid_t child; (child = wait4(-1, &status, WNOHANG, &used)) > 0;)
		for (size_t i = 0; i < s->table.count; i++) {
			struct seen_process *p = &s->table.list[i];
			if (p->session != child)
				continue;
			uint64_t cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
			                  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
			p->session = 0;
			s->running--;
			if (p->cleaning)
				cleaned(p, status);
			else
				session_ended(s, p, status, 1000u * cpu_us, now_ns);
		}
}

/* ---- what it says ---- */

static void take_unseen(const struct supervisor *s, struct unseen *u)
{
	*u = (struct unseen){ 0 };
	process_table_unseen(&s->table, u);
}

static void say_unseen(const struct supervisor *s, const struct unseen *u)
{
	for (size_t i = 0; i < u->count && i < SHOWN_ROWS; i++)
		say_unless(s->options->quiet, "  not profiled: %u %s: %s", u->list[i].count,
		           u->list[i].name[0] ? u->list[i].name : "?", u->list[i].why);
	if (u->count > SHOWN_ROWS)
		say_unless(s->options->quiet, "  and %zu lines more, in %s", u->count - SHOWN_ROWS, s->roster.path);
}

static void write_roster(struct supervisor *s, bool shown)
{
	struct unseen u;
	struct err e;

	take_unseen(s, &u);
	bool failed = roster_write(&s->roster, s->came_about, &u, &e) < 0;
	if (failed && !s->said_roster)
		say_error(0, "%s", e.text);
	s->said_roster = failed;
	if (shown)
		say_unseen(s, &u);
	unseen_free(&u);
}

/* Disks that are full, as sessions find them. */
static void say_failing(struct supervisor *s)
{
	const struct session_share *failing = NULL;
	unsigned count = 0;

	for (size_t i = 0; i < s->table.count; i++) {
		const struct session_share *share = s->table.list[i].share;
		if (!share || !atomic_load_explicit(&share->failing, memory_order_acquire))
			continue;
		failing = share;
		count++;
	}
	if (count && !s->said_failing)
		say_error(0, "%u %s cannot be written, as %s", count, count == 1 ? "dump" : "dumps", failing->trouble);
	else if (!count && s->said_failing && !s->ended_failing)
		say_unless(s->options->quiet, "all dumps are complete again");
	s->said_failing = count > 0;
	s->ended_failing &= count > 0;
}

static void say_all(struct supervisor *s, uint64_t now_ns)
{
	struct unseen u;

	/* The youngest of them had to become old enough first. */
	if (s->said_all || s->looked_ns < s->began_ns + PROCESS_AGE_NS ||
	    !process_table_had_a_turn(&s->table, now_ns - s->began_ns))
		return;
	s->said_all = true;
	take_unseen(s, &u);
	say_unless(s->options->quiet, "%u processes are profiled, %u are not", s->came_about, unseen_total(&u));
	unseen_free(&u);
}

/* ---- the end ---- */

/* So many at once, so that the machine does not feel it. */
static void tell_some(struct supervisor *s, size_t most, int number)
{
	size_t told = 0;

	for (size_t i = 0; i < s->table.count; i++)
		told += s->table.list[i].session && s->table.list[i].told;
	for (size_t i = 0; i < s->table.count && told < most; i++) {
		struct seen_process *p = &s->table.list[i];
		if (!p->session || p->told || p->cleaning)
			continue;
		p->told = true;
		told++;
		kill(p->session, number);
	}
}

static void tell_to_end(struct supervisor *s)
{
	size_t processors = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

	tell_some(s, s->asked > 1 ? SIZE_MAX : processors > 2 ? processors : 2, SIGTERM);
}

static void hear(struct supervisor *s, uint64_t now_ns)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof info) == sizeof info)
		s->asked += info.ssi_signo != SIGCHLD;
	if (s->end_ns && now_ns >= s->end_ns && !s->asked)
		s->asked = 1;
	see_attached(s, now_ns);
	reap(s, now_ns);
	ended_dumps_make_room(&s->dumps, s->room);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* New processes are looked for when they are old enough. Until then nothing is heard of more of them. */
static void hear_events(struct supervisor *s, uint64_t now_ns)
{
	if (process_events_take(&s->events))
		s->look_ns = sooner(s->look_ns, now_ns + PROCESS_AGE_NS);
}

/* ---- processes that fork all the time ---- */

static void count_fork(void *context, pid_t parent)
{
	struct supervisor *s = context;

	table_forks_count(&s->table, parent);
}

static void say_left(void *context, const struct seen_process *p)
{
	say_refusal(context, p);
}

static void judge_forks(struct supervisor *s, uint64_t now_ns)
{
	if (!s->events.works)
		return;
	hear_events(s, now_ns);
	table_forks_judge(&s->table, s->options->part, now_ns, say_left, s);
}

/* ---- the loop ---- */

static void look(struct supervisor *s)
{
	uint64_t began_ns = clock_monotonic_ns();

	if (s->events.fd >= 0)
		process_events_take(&s->events);
	process_table_look(&s->table, began_ns);
	s->looked_ns = began_ns;
	uint64_t now_ns = clock_monotonic_ns(), rest_ns = (now_ns - began_ns) * PART_OF_TIME;
	bool seldom = s->events.works && !s->table.young && !process_table_count(&s->table, PROCESS_WAITING);
	uint64_t usual_ns = seldom ? LOOK_SELDOM_NS : LOOK_NS;
	s->look_ns = now_ns + (rest_ns > usual_ns ? rest_ns : usual_ns);
}

static void attach_next(struct supervisor *s, uint64_t now_ns)
{
	struct seen_process *p = process_table_next(&s->table, now_ns);
	uint64_t youngest_ns = 0;

	if (p && !has_room(s))
		process_table_hold(&s->table, NO_ROOM_WHY);
	if (!p || s->running >= SYSTEM_SESSIONS_MAX || !has_room(s)) {
		s->attach_ns = now_ns + SECOND_NS;
		return;
	}
	for (size_t i = 0; i < s->table.count; i++)
		if (s->table.list[i].share && !s->table.list[i].attached && s->table.list[i].begun_ns > youngest_ns)
			youngest_ns = s->table.list[i].begun_ns;
	if (s->attaching >= ATTACHES_MAX || (s->attaching && now_ns - youngest_ns < LONG_ATTACH_NS))
		return;
	begin(s, p, now_ns);
}

static void act(struct supervisor *s, uint64_t now_ns)
{
	if (s->asked) {
		tell_to_end(s);
		return;
	}
	if (now_ns >= s->look_ns)
		look(s);
	if (now_ns >= s->attach_ns)
		attach_next(s, now_ns);
	if (now_ns >= s->divide_ns) {
		table_budget_divide(&s->table, s->options->part, now_ns);
		judge_forks(s, now_ns);
		say_failing(s);
		s->divide_ns = now_ns + DIVIDE_NS;
	}
	if (now_ns >= s->write_ns) {
		write_roster(s, false);
		s->write_ns = now_ns + WRITE_NS;
	}
	say_all(s, now_ns);
}

static int wait_ms(const struct supervisor *s, uint64_t now_ns)
{
	uint64_t due_ns = sooner(sooner(s->look_ns, s->divide_ns), s->write_ns);

	if (s->asked)
		return -1; /* until a session ends */
	if (s->end_ns)
		due_ns = sooner(due_ns, s->end_ns);
	/* One that lasts for long is looked at with the processes. */
	if (process_table_count(&s->table, PROCESS_WAITING) && !s->attaching)
		due_ns = sooner(due_ns, s->attach_ns);
	return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / 1000000 + 1);
}

static void supervise(struct supervisor *s)
{
	do {
		uint64_t now_ns = clock_monotonic_ns();
		bool listens = s->look_ns > now_ns + PROCESS_AGE_NS && !s->asked;
		struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN },
			                { .fd = s->attached, .events = POLLIN },
			                { .fd = listens ? s->events.fd : -1, .events = POLLIN } };
		poll(fds, 3, wait_ms(s, now_ns));
		now_ns = clock_monotonic_ns();
		if (fds[2].revents)
			hear_events(s, now_ns);
		hear(s, now_ns);
		act(s, now_ns);
	} while (!s->asked || s->running);
}

static int prepare(struct supervisor *s, struct err *e)
{
	size_t bytes = sizeof *s->room + SYSTEM_SESSIONS_MAX * sizeof *s->shares;
	sigset_t set;

	s->room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->room == MAP_FAILED)
		return err_sys(e, "out of memory");
	s->shares = (struct session_share *)(s->room + 1);
	s->room->left = (int64_t)s->options->max_bytes;
	s->room->kept_back = (int64_t)s->options->max_bytes / KEPT_BACK;
	stop_signals_list(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->attached = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->signals < 0 || s->attached < 0)
		return err_sys(e, "cannot wait for signals");
	s->events.forked = count_fork;
	s->events.context = s;
	process_events_open(&s->events);
	return roster_begin(&s->roster, s->options->directory, e);
}

static enum exit_status sum_up(struct supervisor *s)
{
	char text[200], bytes[SIZE_TEXT];

	write_roster(s, true);
	if (s->dumps.removed)
		say_unless(s->options->quiet, "%u dumps of processes that had ended made way: --max-size is %s",
		           s->dumps.removed, size_format((double)s->options->max_bytes, bytes));
	session_process_sum(s->ended, text, sizeof text);
	say_unless(s->options->quiet, "%u sessions:%s", s->came_about, text);
	say_unless(s->options->quiet, "memanalyze %s", s->options->directory);
	return s->came_about ? session_process_worst(s->ended) : EXIT_NOT_ATTACHED;
}

enum exit_status system_run(const struct system_options *options)
{
	struct supervisor s = { .options = options,
		                .table = { .what = options->what, .by = options->by },
		                .events = { .fd = -1 },
		                .signals = -1,
		                .attached = -1 };
	enum exit_status status = EXIT_NOT_ATTACHED;
	struct err e;

	memory_room_go_first();
	if (prepare(&s, &e) < 0) {
		say_error(0, "%s", e.text);
	} else {
		say_unless(options->quiet, "profiling processes one after the other; memanalyze --live %s shows them",
		           options->directory);
		s.began_ns = clock_monotonic_ns();
		s.divide_ns = clock_monotonic_ns() + DIVIDE_NS;
		s.write_ns = clock_monotonic_ns() + WRITE_NS;
		s.end_ns = options->duration_ns ? clock_monotonic_ns() + options->duration_ns : 0;
		supervise(&s);
		status = sum_up(&s);
	}
	process_events_close(&s.events);
	process_table_free(&s.table);
	ended_dumps_free(&s.dumps);
	unseen_free(&s.said);
	roster_free(&s.roster);
	return status;
}
