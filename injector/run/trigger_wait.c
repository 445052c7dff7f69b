/* SPDX-License-Identifier: MIT */
#include "run/trigger_wait.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "process/memory_room.h"
#include "run/steps/inspect.h"
#include "host/say.h"
#include "session/session_lock.h"
#include "session/status_line.h"
#include "host/stop_signals.h"

#define LOOK_NS 250000000ull
#define SHOW_NS 1000000000ull
#define LIST_TEXT (TRIGGERS_MAX * TRIGGER_TEXT)

struct waiter {
	struct session *s;
	struct trigger_watch watches[TRIGGERS_MAX];
	unsigned held; /* the condition that held first */
};

/* One more of a list that is made of texts. */
static void add_text(char *list, size_t size, const char *separator, const char *text)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? separator : "", text);
}

static double part_of(const struct trigger *t, pid_t pid)
{
	return t->figure == TRIGGER_CGROUP ? memory_room_used(pid) : memory_room_pressure(pid);
}

static bool holds(struct waiter *w, unsigned i, const struct memory_use *use, uint64_t now_ns)
{
	const struct trigger *t = &w->s->options.triggers[i];

	return trigger_is_part(t) ? trigger_look_part(&w->watches[i], t, part_of(t, w->s->target.pid))
	                          : trigger_look(&w->watches[i], t, use, now_ns);
}

/* What can never hold is no condition to wait for. */
static int check_parts(const struct session *s, struct err *e)
{
	for (unsigned i = 0; i < s->options.trigger_count; i++) {
		const struct trigger *t = &s->options.triggers[i];
		if (!trigger_is_part(t) || !isnan(part_of(t, s->target.pid)))
			continue;
		return err_set(e, ENODATA, "--when %s: %s", t->text,
		               t->figure == TRIGGER_CGROUP ? "no memory cgroup that the process is in has a limit"
		                                           : "this kernel does not tell of memory pressure (PSI)");
	}
	return 0;
}

/* 1: a condition holds; 0: none does. */
static int look(struct waiter *w, struct err *e)
{
	const struct session_options *o = &w->s->options;
	struct memory_use use;
	unsigned held = o->trigger_count;

	int rc = target_memory_use(&w->s->target, &use, e);
	if (rc < 0)
		return rc;
	uint64_t now_ns = clock_monotonic_ns();
	for (unsigned i = o->trigger_count; i-- > 0;)
		if (holds(w, i, &use, now_ns))
			held = i;
	w->held = held;
	return held < o->trigger_count;
}

static void say_beginning(const struct waiter *w)
{
	const struct session_options *o = &w->s->options;
	char conditions[LIST_TEXT] = "", now[LIST_TEXT] = "", text[TRIGGER_TEXT];

	for (unsigned i = 0; i < o->trigger_count; i++) {
		add_text(conditions, sizeof conditions, " or ", o->triggers[i].text);
		if (o->triggers[i].figure != TRIGGER_GROWTH)
			add_text(now, sizeof now, ", ", trigger_say(&w->watches[i], &o->triggers[i], text));
	}
	session_say(w->s, "waiting for %s of %d (%s), without touching it%s%s", conditions, w->s->target.pid,
	            w->s->target.comm, now[0] ? "; now " : "", now);
}

static void show(const struct waiter *w, uint64_t since_ns)
{
	const struct session_options *o = &w->s->options;
	char list[LIST_TEXT] = "", text[TRIGGER_TEXT];

	for (unsigned i = 0; i < o->trigger_count; i++)
		add_text(list, sizeof list, ", ", trigger_say(&w->watches[i], &o->triggers[i], text));
	status_line_text(w->s, "%s  waiting: %s", status_line_time(clock_monotonic_ns() - since_ns, text), list);
}

static int ended(const struct session *s, struct err *e)
{
	return err_set(e, ESRCH, "%s has ended while memattach waited", s->target.comm);
}

static int await(struct waiter *w, const struct stop_signals *signals, struct err *e)
{
	struct session *s = w->s;
	uint64_t begun_ns = clock_monotonic_ns(), next_ns = begun_ns, shown_ns = begun_ns;

	for (bool first = true;; first = false) {
		int held = look(w, e);
		if (target_has_ended(&s->target))
			return ended(s, e);
		if (held == 1)
			return 0;
		/* Each of its threads may just be making way for another. */
		if (held < 0 && held != -ESRCH)
			return held;
		if (first)
			say_beginning(w);
		if (clock_monotonic_ns() - shown_ns >= SHOW_NS) {
			shown_ns += SHOW_NS;
			show(w, begun_ns);
		}
		next_ns += LOOK_NS;
		switch (stop_signals_wait(signals, s->target.pidfd, next_ns)) {
		case WOKEN_BY_END: return ended(s, e);
		case WOKEN_BY_SIGNAL:
			stop_signals_take(signals);
			return err_set(e, EINTR, "told to end before a condition held; nothing was changed");
		case WOKEN_BY_TIME: break;
		}
		if (clock_monotonic_ns() - next_ns > LOOK_NS)
			next_ns = clock_monotonic_ns(); /* memattach itself was stopped, or the machine slept */
	}
}

int trigger_wait(struct session *s, struct err *e)
{
	struct stop_signals signals = { .fd = -1 };
	struct waiter w = { .s = s };
	char text[TRIGGER_TEXT];

	int rc = inspect_open(s, e);
	rc = rc ?: check_parts(s, e);
	rc = rc ?: stop_signals_open(&signals, e);
	rc = rc ?: session_lock_announce(&s->target, e);
	if (rc < 0)
		return rc;
	rc = await(&w, &signals, e);
	say_status(NULL);
	stop_signals_close(&signals);
	rc = rc ?: target_reopen(&s->target, e);
	if (rc == 0) /* until the session has its lock */
		rc = session_lock_announce(&s->target, e);
	if (rc == 0)
		session_say(s, "%s: %s", s->options.triggers[w.held].text,
		            trigger_say(&w.watches[w.held], &s->options.triggers[w.held], text));
	return rc;
}
