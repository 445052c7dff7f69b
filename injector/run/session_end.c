/* SPDX-License-Identifier: MIT */
#include "run/session_end.h"

#include "host/say.h"
#include "session/patched_words.h"
#include "touch/threads/let_go.h"

#define END_SHOWS_NS 100000000ull

void session_end_complain(const struct session *s, const struct err *e)
{
	say_error(s->options.pid, "%s", e->text);
}

enum session_life session_life_after(const struct session *s, int rc)
{
	uint64_t deadline_ns = clock_monotonic_ns() + END_SHOWS_NS;
	bool execed;

	while (!(execed = target_has_execed(&s->target)) && rc < 0 && target_alive(&s->target) &&
	       clock_monotonic_ns() < deadline_ns) {
		clock_pause(1000000);
		let_go_look();
	}
	if (execed || target_has_execed(&s->target))
		return SESSION_HAS_EXECED;
	return rc < 0 && !target_alive(&s->target) ? SESSION_HAS_ENDED : SESSION_GOES_ON;
}

enum exit_status session_end_tell_detached(struct session *s)
{
	char words[PATCHED_WORDS_TEXT];

	patched_words_restored(s, words);
	if (!s->options.quiet)
		say_lines(stderr, s->outcome.notes);
	if (!s->outcome.residue) {
		session_say(s, "detached from %d: %s, thread stopped %.1f ms, the process is as before", s->target.pid,
		            words, (double)s->outcome.detach_longest_ns / 1e6);
		return s->unsaved ? EXIT_DUMP : EXIT_DONE;
	}
	session_say(s, "detached from %d: %s, thread stopped %.1f ms; what had to stay:", s->target.pid, words,
	            (double)s->outcome.detach_longest_ns / 1e6);
	if (!s->options.quiet || s->options.share)
		say_lines(stderr, s->outcome.residue);
	return EXIT_RESIDUE;
}
