/* SPDX-License-Identifier: MIT */
#include "run/reports/session_symbols.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/dump_append.h"
#include "run/reports/long_wait.h"
#include "host/say.h"
#include "session/session_lock.h"
#include "children/symbol_child.h"

#define LEAST_BYTES 65536u

/* Whoever had it made shall know why it names nothing. */
static void say_refused_map(const struct session *s, enum symbol_map map)
{
	const char *refused = symbol_child_refused_map(map);

	if (refused)
		session_say(s, "memattach: /tmp/perf-%d.map names no code that the process has made: %s",
		            s->symbols.inner_pid, refused);
}

static int write_symbols(struct session *s, const struct patience *patience, struct symbol_answer *answer,
                         struct err *e)
{
	uint64_t room = dump_append_room(&s->recording.dump);

	if (room < LEAST_BYTES)
		return err_set(e, ENOSPC, "the limit of the dump (--max-size) leaves no room");
	int rc = symbol_child_run(&s->symbols, &s->recording.file, room, patience, answer, e);
	return rc ?: dump_append_symbols(&s->recording.file, answer->symbols, patience, e);
}

void session_symbols_write(struct session *s)
{
	struct symbol_answer answer = { .map = SYMBOL_MAP_FINE };
	struct long_wait w;
	struct err e;

	if (s->options.no_symbols)
		return;
	session_lock_release(&s->target); /* a --detach, or the next attach, shall not wait */
	long_wait_begin(&w, s, "the names of functions", " (Ctrl-C: without)");
	int rc = write_symbols(s, &w.patience, &answer, &e);
	say_status(NULL);
	say_refused_map(s, answer.map);
	if (rc == -EINTR)
		session_say(s, "memattach: the dump is without the names of functions, as you asked for; memanalyze "
		               "looks for them where it runs");
	else if (rc < 0)
		session_say(
			s,
			"memattach: the dump is without the names of functions: %s; memanalyze looks for them where it "
			"runs",
			e.text);
	else if (answer.symbols->flags & DUMP_SYMBOLS_CUT)
		session_say(
			s,
			"memattach: the dump is without the names of some functions: there was no time or no room for "
			"all; memanalyze looks for those where it runs");
	free(answer.symbols);
}
