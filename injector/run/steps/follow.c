/* SPDX-License-Identifier: MIT */
/*
 * While a session lasts: room in the dump before it is needed, the lease, modules that come and go, the status line;
 * until somebody asks for the end, or the target ends.
 */
#include "run/steps/follow.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/steps/java_session.h"
#include "run/steps/late_modules.h"
#include "run/steps/memory_usage.h"
#include "process/proc_stat.h"
#include "run/reports/live_child.h"
#include "session/payload_place.h"
#include "touch/python/python_hooks.h"
#include "touch/patches/recording.h"
#include "touch/python/python_session.h"
#include "touch/threads/let_go.h"
#include "session/rate_control.h"
#include "session/record.h"
#include "host/say.h"
#include "run/steps/session_file.h"
#include "base/size.h"
#include "session/status_line.h"
#include "recording/live/thinner.h"
#include "host/watchdog.h"

#define TICK_NS 100000000u      /* room in the dump, modules */
#define TICK_DENSE_NS 10000000u /* the same when every allocation is recorded, or nearly */
#define TICK_FAST_NS 2000000u   /* while the dump grows quickly */
#define TICK_QUIET_NS                                                                                                  \
	210000000u /* where nothing was sampled for a while: a wake-up costs more than what is done then. Longer than  \
	              MODULES_NS */
#define QUIET_AFTER_NS 1000000000u
/* One of many sessions (--system), whose process samples nothing: a third of the lease, which a wake-up renews. */
#define TICK_IDLE_NS 3000000000u
#define IDLE_AFTER_NS 10000000000u
#define RENEW_NS 1000000000u
#define MODULES_NS 200000000u
#define THREADS_NS 10000000000u /* names of threads */

struct follower {
	struct session *s;
	int signals, stops, timer;
	uint64_t next_renewal_ns, next_modules_ns, next_threads_ns, next_rate_control_ns, next_thinning_ns,
		next_python_ns, fast_until_ns, quiet_from_ns;
	struct memory_usage usage;
	uint64_t tick_ns;
	uint64_t taken;  /* samples, at the last tick */
	uint64_t cpu_ns; /* of the process, at the last tick that was idle */
	struct late_modules late;
	bool said_no_thinning, said_abandoned;
};

static int set_timer(struct follower *f, uint64_t ns, struct err *e)
{
	const struct timespec tick = { .tv_sec = (long)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	const struct itimerspec spec = { .it_interval = tick, .it_value = tick };

	if (f->tick_ns == ns)
		return 0;
	f->tick_ns = ns;
	return timerfd_settime(f->timer, 0, &spec, NULL) == 0 ? 0 : err_sys(e, "timerfd_settime");
}

/* How a process ended that is not our child: its zombie tells, while it is there. */
static enum session_end how_it_ended(const struct session *s, int *detail)
{
	uint64_t code;

	*detail = -1;
	if (proc_stat_number(s->target.pid, 52, &code, ERR_IGNORED) < 0)
		return SESSION_END_EXITED;
	if (code & 0x7f) {
		*detail = (int)(code & 0x7f);
		return SESSION_END_KILLED;
	}
	*detail = (int)(code >> 8 & 0xff);
	return SESSION_END_EXITED;
}

static bool execed(struct session *s)
{
	uint64_t magic;

	if (!s->payload.session ||
	    (target_read_u64(&s->memory, s->payload.session, &magic, ERR_IGNORED) == 0 && magic == CONTROL_MAGIC))
		return false;
	/* The program may have written there, or unmapped it. */
	return target_alive(&s->target) && !payload_place_is_mapped(s) && target_alive(&s->target);
}

static void make_room(struct follower *f)
{
	uint64_t rate, given_up;
	char text[SIZE_TEXT];
	struct err why;

	/* What is copied at this moment would have been removed in part. */
	dump_file_abort(&f->s->recording.file);
	/* A large table takes a second; the lease is good for ten. */
	if (thinner_make_room(&f->s->recording.dump, &rate, &given_up, &why) < 0) {
		f->said_no_thinning = true;
		session_say(f->s, "memattach: %s; from now on what has no room is counted, not kept", why.text);
		return;
	}
	/* A table that stays crowded though nothing could be given up is the target's doing. */
	if (given_up == 0)
		f->next_thinning_ns = clock_monotonic_ns() + RENEW_NS;
	rate_control_least(f->s, rate);
	if (f->s->options.verbose)
		session_say(f->s, "the live table was crowded: %llu samples given up, one sample per %s from now on",
		            (unsigned long long)given_up, size_format((double)rate, text));
}

static uint64_t tick_length(struct follower *f, uint64_t now)
{
	const struct dump_writer *dump = &f->s->recording.dump;
	uint64_t taken = dump_writer_counter(dump, DUMP_COUNTER_samples_taken);

	if (taken != f->taken)
		f->quiet_from_ns = now + QUIET_AFTER_NS;
	f->taken = taken;
	if (now < f->fast_until_ns)
		return TICK_FAST_NS;
	if (f->next_python_ns < now + TICK_NS)
		return f->next_python_ns < now + TICK_DENSE_NS ? TICK_FAST_NS : TICK_DENSE_NS;
	if (f->s->options.share && now > f->quiet_from_ns + IDLE_AFTER_NS)
		return TICK_IDLE_NS;
	return dump->dense ? TICK_DENSE_NS : now < f->quiet_from_ns ? TICK_NS : TICK_QUIET_NS;
}

/* For poll(): until the duration that was asked for is over, so 0 if it is; -1: it has no end. */
static int wait_ms(const struct session *s)
{
	uint64_t end_ns = s->recording.started_ns + s->options.duration_ns, now = clock_monotonic_ns();

	if (!s->options.duration_ns)
		return -1;
	if (now >= end_ns)
		return 0;
	return end_ns - now > RENEW_NS ? (int)(RENEW_NS / 1000000) : (int)((end_ns - now + 999999) / 1000000);
}

static void note_private(struct session *s)
{
	uint64_t bytes = target_private_bytes(&s->target);

	dump_writer_private(&s->recording.dump, bytes);
	if (s->options.share)
		atomic_store_explicit(&s->options.share->private_bytes, bytes, memory_order_relaxed);
}

/* One of many sessions, whose process has not run since the last tick: nothing of it has changed. Seldom it is looked
 * at all the same. */
static bool is_asleep(struct follower *f, uint64_t now)
{
	uint64_t cpu_ns = f->tick_ns == TICK_IDLE_NS ? target_cpu_ns(&f->s->target) : 0;
	bool asleep = cpu_ns && cpu_ns == f->cpu_ns && now < f->next_threads_ns;

	f->cpu_ns = cpu_ns;
	return asleep;
}

/* Room for what is recorded, by more memory, or by fewer samples. */
static void keep_room(struct follower *f, uint64_t now)
{
	struct dump_writer *dump = &f->s->recording.dump;
	const uint64_t used = dump->used;
	struct err why;

	if (dump_writer_grow(dump, &why) < 0) {
		session_say(f->s, "memattach: %s", why.text);
		if (dump_writer_note(dump, DUMP_NOTE_FULL, why.text, &why) < 0)
			session_say(f->s, "memattach: %s", why.text);
	}
	if (dump->used != used || thinner_is_near(dump))
		f->fast_until_ns = now + RENEW_NS;
	if (thinner_is_needed(dump) && !f->said_no_thinning && now >= f->next_thinning_ns)
		make_room(f);
}

static void look_at_threads(struct session *s)
{
	struct err why;

	if (record_threads(s, false, &why) < 0 && s->options.verbose)
		session_say(s, "memattach: names of threads: %s", why.text);
	record_paths(s);
}

static void look_at_modules(struct follower *f, uint64_t now)
{
	struct err why;

	f->next_modules_ns = now + (late_modules_poll(&f->late, now) < 0 ? RENEW_NS : MODULES_NS);
	if (python_hooks_watch(f->s, &why) < 0)
		session_say(f->s, "memattach: %s", why.text);
	java_session_await(f->s);
	java_session_name(f->s, false);
}

static void say_abandoned(struct follower *f)
{
	if (f->said_abandoned || dump_writer_state(&f->s->recording.dump) != DUMP_STATE_ABANDONED)
		return;
	f->said_abandoned = true;
	session_say(f->s, "memattach: recording stopped: memattach was held up for longer than its lease of %llu s",
	            SESSION_LEASE_NS / 1000000000ull);
}

/* One tick. 1: the session has ended. */
static int tick(struct follower *f, enum session_end *end, struct err *e)
{
	struct session *s = f->s;
	uint64_t now = clock_monotonic_ns();

	keep_room(f, now);
	session_file_tick(s);
	if (live_child_has_quit(s)) {
		*end = SESSION_END_ASKED;
		return 1;
	}
	if (s->recording.governor.least > s->options.rate_bytes && thinner_has_much_room(&s->recording.dump))
		s->recording.governor.least = s->options.rate_bytes;
	if (now >= f->next_python_ns)
		f->next_python_ns = python_session_await(s);
	int rc = set_timer(f, tick_length(f, now), e);
	if (rc < 0)
		return rc;
	if (is_asleep(f, now)) {
		dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
		return 0;
	}
	if (now >= f->next_renewal_ns) {
		f->next_renewal_ns = now + RENEW_NS;
		if (execed(s)) {
			*end = SESSION_END_EXECED;
			return 1;
		}
		dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
		note_private(s);
		rate_control_note_cost(s);
		status_line_show(s);
	}
	memory_usage_tick(&f->usage, s, now);
	if (now >= f->next_rate_control_ns) {
		rate_control_poll(s);
		f->next_rate_control_ns = governor_next_poll(&s->recording.governor, now);
	}
	if (now >= f->next_threads_ns) {
		f->next_threads_ns = now + THREADS_NS;
		look_at_threads(s);
	}
	if (now >= f->next_modules_ns)
		look_at_modules(f, now);
	say_abandoned(f);
	return 0;
}

static int follow(struct follower *f, enum session_end *end, int *detail, struct err *e)
{
	struct session *s = f->s;
	struct pollfd fds[] = {
		{ .fd = s->target.pidfd, .events = POLLIN },
		{ .fd = f->signals, .events = POLLIN },
		{ .fd = f->timer, .events = POLLIN },
		{ .fd = f->stops, .events = POLLIN },
	};

	for (;;) {
		uint64_t expired;
		struct signalfd_siginfo stop;
		if (poll(fds, 4, wait_ms(s)) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (fds[3].revents && read(f->stops, &stop, sizeof stop) == sizeof stop)
			let_go_look();
		if (fds[0].revents) {
			*end = how_it_ended(s, detail);
			return 0;
		}
		if (fds[1].revents) {
			*end = SESSION_END_ASKED;
			return 0;
		}
		if (fds[2].revents && read(f->timer, &expired, sizeof expired) == sizeof expired) {
			int rc = tick(f, end, e);
			if (rc != 0)
				return rc < 0 ? rc : 0;
		}
		if (wait_ms(s) == 0) {
			*end = SESSION_END_ASKED;
			return 0;
		}
	}
}

int follow_session(struct session *s, enum session_end *end, int *detail, struct err *e)
{
	sigset_t child, before;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	AUTO_CLOSE int stops = signalfd(-1, &child, SFD_CLOEXEC);
	AUTO_CLOSE int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct follower f = { .s = s, .signals = watchdog_fd(), .stops = stops, .timer = timer };

	if (stops < 0 || timer < 0)
		return err_sys(e, "cannot wait for events");
	*detail = 0;
	sigprocmask(SIG_BLOCK, &child, &before);
	let_go_look(); /* what came before is not told any more */
	f.fast_until_ns = clock_monotonic_ns() + (s->recording.dump.dense ? RENEW_NS : 0);
	f.quiet_from_ns = clock_monotonic_ns() + QUIET_AFTER_NS;
	int rc = set_timer(&f, TICK_FAST_NS, e);
	rc = rc ?: late_modules_begin(&f.late, s, e);
	rc = rc ?: follow(&f, end, detail, e);
	memory_usage_end(&f.usage);
	if (rc == 0 && *end == SESSION_END_ASKED)
		late_modules_end(&f.late);
	if (rc < 0 && !target_alive(&s->target)) { /* what could not be read may be another's who has its number */
		*end = how_it_ended(s, detail);
		rc = 0;
	}
	rc = rc ?: python_hooks_watch(s, e);
	python_session_miss(s, true);
	say_status(NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}
