/* SPDX-License-Identifier: MIT */
#include "session_symbols.h"

#include <stdlib.h>
#include <unistd.h>

#include "cleanup.h"
#include "dump_append.h"
#include "session_lock.h"
#include "symbol_child.h"
#include "watchdog.h"

#define SHOWN_AFTER_NS 1000000000ull
#define LEAST_BYTES 65536u

struct wait {
	const struct session *s;
	uint64_t since_ns;
	unsigned asked; /* signals of users that had come before: for the detach */
	bool shown;
};

static bool waiting(void *context, double done)
{
	struct wait *w = context;

	if (!w->s->options.quiet && isatty(STDERR_FILENO) && monotonic_ns() - w->since_ns > SHOWN_AFTER_NS) {
		fprintf(stderr, "\r\033[Kthe names of functions: %.0f %% (Ctrl-C: without)", 100 * done);
		w->shown = true;
	}
	return watchdog_asked_by_user() == w->asked;
}

static int write_symbols(struct session *s, struct wait *w, bool *cut, struct err *e)
{
	AUTO_FREE struct dump_symbols *symbols = NULL;
	uint64_t room = dump_append_room(&s->recording.dump);

	if (room < LEAST_BYTES)
		return err_set(e, ENOSPC, "the limit of the dump (--max-size) leaves no room");
	int rc = symbol_child_run(&s->symbols, &s->recording.file, room, waiting, w, &symbols, e);
	if (rc < 0)
		return rc;
	*cut = symbols->flags & DUMP_SYMBOLS_CUT;
	return dump_append_symbols(&s->recording.file, symbols, waiting, w, e);
}

void session_symbols_write(struct session *s)
{
	struct wait w = { .s = s, .since_ns = monotonic_ns(), .asked = watchdog_asked_by_user() };
	bool cut = false;
	struct err e;

	if (s->options.no_symbols)
		return;
	session_lock_release(&s->target); /* a --detach, or the next attach, shall not wait */
	int rc = write_symbols(s, &w, &cut, &e);
	if (w.shown)
		fputs("\r\033[K", stderr);
	if (rc == -EINTR)
		session_say(s, "memattach: the dump is without the names of functions, as you asked for; memanalyze "
		               "looks for them where it runs");
	else if (rc < 0)
		session_say(
			s,
			"memattach: the dump is without the names of functions: %s; memanalyze looks for them where it "
			"runs",
			e.text);
	else if (cut)
		session_say(
			s,
			"memattach: the dump is without the names of some functions: there was no time or no room for "
			"all; memanalyze looks for those where it runs");
}
