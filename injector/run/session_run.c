/* SPDX-License-Identifier: MIT */
#include "run/session_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "host/own_memory.h"
#include "host/privileges.h"
#include "host/say.h"
#include "run/steps/attach.h"
#include "run/steps/detach.h"
#include "run/steps/follow.h"
#include "run/steps/java_session.h"
#include "run/reports/live_child.h"
#include "run/session_end.h"
#include "run/steps/memory_looks.h"
#include "run/steps/session_file.h"
#include "run/session_prepare.h"
#include "run/reports/session_reports.h"
#include "run/reports/session_symbols.h"
#include "session/patched_words.h"
#include "session/rate_control.h"
#include "session/receipt.h"
#include "session/record.h"

#define PROGRAMS_MAX 20u /* that a process executes, one after the other, each while it is attached to */

/* Nothing of ours is in the target any more. */
static void note_end_memory(struct session *s)
{
	struct memory_use use;

	if (target_memory_use(&s->target, &use, ERR_IGNORED) == 0)
		dump_writer_end_resident(&s->recording.dump, use.shared, use.files);
}

static void announce(const struct session *s)
{
	char rate[SIZE_TEXT], every[128], limit[64] = "", words[PATCHED_WORDS_TEXT];

	if (s->options.max_overhead > 0)
		snprintf(limit, sizeof limit, " while that takes at most %g %% of the CPU time",
		         100 * s->options.max_overhead);
	if (s->options.rate_bytes == 1)
		snprintf(every, sizeof every, "recording every allocation%s",
		         limit[0] ? limit : ", whatever that costs");
	else
		snprintf(every, sizeof every, "sampling one per %s%s", size_format((double)s->options.rate_bytes, rate),
		         limit);
	patched_words_attached(s, words);
	if (s->options.share) {
		say_keep_errors(NULL, 0); /* why it was not attached to is no question any more */
		session_share_attached(s->options.share);
	}
	session_say(s, "attached to %d (%s): %s, thread stopped %.1f ms, %s, writing %s", s->target.pid, s->target.comm,
	            words, (double)s->outcome.attach_longest_ns / 1e6, every, s->recording.file.path);
	if (s->outcome.entries.refused)
		session_say(s, "not seen: %u GOT entries could not be patched", s->outcome.entries.refused);
}

/* What failed depends on the moment at which its memory went away: the cause says more. */
static void complain_of_end(const struct session *s, const struct err *why, enum session_life life)
{
	if (life == SESSION_HAS_EXECED)
		say_error(s->options.pid, "it executes one program after the other (execve): each was gone before it "
		                          "was attached to");
	else if (life == SESSION_HAS_ENDED)
		say_error(s->options.pid, "%s has ended", s->target.comm);
	else
		session_end_complain(s, why);
}

/* Undoes an attach that stopped half way. */
static struct session_result give_up(struct session *s, const struct err *why)
{
	struct err e;

	/* A program that is started is often that of a shell or of env at first. Children come and go as well. */
	enum session_life life = s->target.pid ? session_life_after(s, -why->code) : SESSION_GOES_ON;
	bool too_late = s->options.found_later && life == SESSION_HAS_ENDED;
	bool again = life == SESSION_HAS_EXECED && (s->options.found_later || ++s->programs < PROGRAMS_MAX);
	if (!too_late && !again)
		complain_of_end(s, why, life);
	/* One that has ended, perhaps while it was detached from, needs nothing more. */
	if (s->touched && s->payload.base && target_alive(&s->target) && target_same_program(&s->target) &&
	    detach_session(s, &e) < 0 && target_alive(&s->target) && target_same_program(&s->target)) {
		say_error(s->target.pid,
		          "the payload could not be taken out again: %s; finish with memattach --detach -p %d", e.text,
		          s->target.pid);
		return (struct session_result){ EXIT_RESIDUE, AFTER_NOTHING };
	}
	if (s->recording.file.result)
		dump_file_discard(&s->recording.file);
	return (struct session_result){ EXIT_NOT_ATTACHED, again      ? AFTER_EXEC_UNATTACHED
		                                           : too_late ? AFTER_END_UNATTACHED
		                                                      : AFTER_NOTHING };
}

/* The kernel counts whom it has ended for want of memory; so what led to it is in this dump. */
static void tell_of_oom_killer(struct session *s)
{
	static const char text[] = "the process ended while the kernel's OOM killer ended a process of its cgroup";
	struct err e;

	if (memory_room_kills(s->outcome.oom_events) <= s->outcome.oom_kills)
		return;
	session_say(s, "%s", text);
	if (dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, text, &e) < 0)
		session_end_complain(s, &e);
}

/* The recorder has stopped by itself. All that came before the lease ended is recorded, nothing that came after. */
static void tell_gap(struct session *s)
{
	const double recorded = (double)dump_writer_end_with_lease(&s->recording.dump) / 1e9;
	const uint64_t start_ns = s->recording.dump.own->clock_start.monotonic_ns;
	const double lasted = (double)(clock_monotonic_ns() - start_ns) / 1e9;
	char text[200];
	struct err e;

	snprintf(text, sizeof text,
	         "nothing is recorded of the last %.1f s of %.1f s: memattach was held up for longer than its lease "
	         "of %llu s",
	         lasted > recorded ? lasted - recorded : 0, lasted, SESSION_LEASE_NS / 1000000000ull);
	session_say(s, "memattach: %s", text);
	if (dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, text, &e) < 0)
		session_end_complain(s, &e);
}

static enum exit_status finish_dead(struct session *s, enum session_end end, int detail)
{
	struct err e;

	/* What had to stay is gone with it. */
	free(s->outcome.residue);
	s->outcome.residue = NULL;
	changes_all_gone(&s->changes);
	dump_writer_renew(&s->recording.dump, 0);
	java_session_end(s);
	if (end == SESSION_END_KILLED) {
		dump_writer_set_state(&s->recording.dump, DUMP_STATE_KILLED, detail);
		session_say(s, "%d (%s) was ended by signal %d (%s) during the session", s->target.pid, s->target.comm,
		            detail, strsignal(detail));
	} else if (end == SESSION_END_EXECED) {
		dump_writer_set_state(&s->recording.dump, DUMP_STATE_EXECED, 0);
		session_say(s, "%d (%s) called execve: its heap is gone, the session ends%s", s->target.pid,
		            s->target.comm,
		            s->options.launched && !s->options.among_several
		                    ? "; with --children another one is made of what it became"
		                    : "");
	} else {
		dump_writer_set_state(&s->recording.dump, DUMP_STATE_EXITED, detail);
		if (detail >= 0)
			session_say(s, "%d (%s) ended during the session with status %d", s->target.pid, s->target.comm,
			            detail);
		else
			session_say(s, "%d (%s) ended during the session", s->target.pid, s->target.comm);
	}
	/* By which signal is not known where its parent was quick. */
	if ((end == SESSION_END_KILLED && detail == SIGKILL) || (end == SESSION_END_EXITED && detail < 0))
		tell_of_oom_killer(s);
	if (receipt_write(s, &e) < 0)
		session_end_complain(s, &e);
	return EXIT_DONE;
}

/* Takes the payload out; a target that ends meanwhile needs nothing more. */
static enum exit_status finish(struct session *s)
{
	struct err e;

	if (target_has_execed(&s->target))
		return finish_dead(s, SESSION_END_EXECED, 0);
	if (record_threads(s, true, &e) < 0 && s->options.verbose)
		session_end_complain(s, &e);
	record_paths(s);
	dump_writer_private(&s->recording.dump, target_private_bytes(&s->target));
	rate_control_note_cost(s);
	/* The recording ends here, if it has not by itself; how long the detach takes is no part of it. */
	const bool abandoned = dump_writer_state(&s->recording.dump) == DUMP_STATE_ABANDONED;
	if (abandoned)
		tell_gap(s);
	dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
	dump_writer_end_lease(&s->recording.dump);
	java_session_name(s, true);
	/* The last copy comes after the detach; one of before would only be in its way. */
	dump_file_abort(&s->recording.file);
	int rc = detach_session(s, &e);
	rc = rc ?: receipt_verify(s, &e);
	enum session_life life = session_life_after(s, rc);
	if (life == SESSION_HAS_EXECED)
		return finish_dead(s, SESSION_END_EXECED, 0);
	if (life == SESSION_HAS_ENDED)
		return finish_dead(s, SESSION_END_EXITED, -1);
	if (rc < 0) {
		session_end_complain(s, &e);
		say_error(0,
		          "recording has stopped, but the payload is still there; finish with memattach --detach -p %d",
		          s->target.pid);
		session_add_residue(s, "the payload: %s", e.text);
	} else {
		note_end_memory(s);
		memory_looks_take(s, DUMP_MEMORY_END);
	}
	dump_writer_set_state(&s->recording.dump, abandoned ? DUMP_STATE_ABANDONED : DUMP_STATE_DETACHED, 0);
	if (receipt_write(s, &e) < 0)
		session_end_complain(s, &e);
	return session_end_tell_detached(s);
}

/* The program that memattach has started waits for this (launch.h). */
static void let_program_go(int ready)
{
	if (write(ready, "", 1) != 1)
		return;
}

/* All that is written when nothing records any more. */
static enum exit_status write_files(struct session *s, enum exit_status status)
{
	struct err e;

	if (session_file_finish(s, &e) < 0) {
		session_end_complain(s, &e);
		status = status == EXIT_DONE ? EXIT_DUMP : status;
	} else {
		session_symbols_write(s);
	}
	if (session_reports_write(s) < 0 && status == EXIT_DONE)
		status = EXIT_DUMP;
	if (!s->options.among_several)
		session_say(s, "memanalyze %s", s->recording.file.path);
	return status;
}

/* From the attach on, until it is asked to end or the process has ended. */
static enum exit_status follow(struct session *s)
{
	enum session_end end;
	struct err e;
	int detail;

	s->recording.started_ns = clock_monotonic_ns();
	privileges_keep_for_detach();
	own_memory_give_back();
	announce(s);
	if (s->options.launched)
		let_program_go(s->options.ready);
	if (s->options.live && live_child_start(s, &e) < 0)
		session_say(s, "memattach: %s; the session goes on until Ctrl-C", e.text);
	int rc = follow_session(s, &end, &detail, &e);
	live_child_end(s);
	if (rc < 0) {
		if (!target_has_execed(&s->target))
			session_end_complain(s, &e);
		end = SESSION_END_ASKED;
	}
	if (end == SESSION_END_ASKED)
		return finish(s);
	if (dump_writer_state(&s->recording.dump) == DUMP_STATE_ABANDONED)
		tell_gap(s);
	return finish_dead(s, end, detail);
}

static struct session_result run(struct session *s)
{
	struct err e;

	if (session_prepare(s, &e) < 0)
		return give_up(s, &e);
	memory_looks_take(s, DUMP_MEMORY_START);
	dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
	s->recording.started_ns = clock_monotonic_ns();
	rate_control_start(s);
	if (attach_session(s, &e) < 0)
		return give_up(s, &e);
	const enum exit_status status = write_files(s, follow(s));
	const bool execed = status == EXIT_DONE && s->options.among_several && target_has_execed(&s->target);
	return (struct session_result){ status, execed ? AFTER_EXEC : AFTER_NOTHING };
}

struct session_result session_run(struct session *s)
{
	struct session_result result = run(s);

	while (result.after == AFTER_EXEC_UNATTACHED && !s->options.found_later) {
		unsigned programs = s->programs;
		session_done(s);
		s->programs = programs;
		result = run(s);
	}
	return result;
}
