/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "run/attach.h"
#include "base/cleanup.h"
#include "run/detach.h"
#include "run/follow.h"
#include "run/inspect.h"
#include "launch/launch.h"
#include "run/live_child.h"
#include "run/look_ahead.h"
#include "run/old_stub.h"
#include "cli/options.h"
#include "run/other_session.h"
#include "session/patched_words.h"
#include "payload_image.h"
#include "session/payload_place.h"
#include "run/plan.h"
#include "host/privileges.h"
#include "touch/patches/python_session.h"
#include "session/rate_control.h"
#include "session/receipt.h"
#include "session/record.h"
#include "cli/repeat.h"
#include "host/say.h"
#include "run/session_file.h"
#include "session/session_lock.h"
#include "run/session_reports.h"
#include "run/session_symbols.h"
#include "launch/several.h"
#include "base/size.h"
#include "process/start_state.h"
#include "touch/threads/tracee.h"
#include "run/trigger_wait.h"
#include "cli/wanted.h"
#include "host/watchdog.h"

#define END_SHOWS_NS 100000000ull
#define PROGRAMS_MAX 20u /* that a process executes, one after the other, each while it is attached to */

static void complain(const struct session *s, const struct err *e)
{
	say_error(s->options.pid, "%s", e->text);
}

/* Nothing of ours is in the target yet. */
static void note_start_memory(struct session *s)
{
	struct dump_header *h = s->recording.dump.own;
	struct memory_use use;
	struct err unread;

	if (target_memory_use(&s->target, &use, &unread) < 0)
		return;
	h->private_start_bytes = h->private_latest_bytes = use.anonymous + use.swapped;
	h->shared_start_bytes = use.shared;
	h->files_start_bytes = use.files;
}

/* Nothing of ours is in the target any more. */
static void note_end_memory(struct session *s)
{
	struct memory_use use;
	struct err unread;

	if (target_memory_use(&s->target, &use, &unread) == 0)
		dump_writer_end_resident(&s->recording.dump, use.shared, use.files);
}

static int create_dump(struct session *s, struct err *e)
{
	const struct dump_writer_options options = {
		.max_bytes = s->options.max_bytes,
		.rate_bytes = s->options.rate_bytes,
		.max_overhead = s->options.max_overhead,
	};

	int rc = dump_writer_create(&s->recording.dump, &options, e);
	if (rc < 0)
		return rc;
	struct dump_header *h = s->recording.dump.own;
	h->pid = s->target.pid;
	h->injector_pid = getpid();
	h->target_start_ticks = s->target.start_ticks;
	h->seed = s->options.seed;
	h->session_flags = s->options.groups & GROUP_BIT(GROUP_MMAP) ? DUMP_SESSION_MMAP : 0;
	note_start_memory(s);
	snprintf(h->command, sizeof h->command, "%s", s->target.comm);
	memcpy(h->program, s->target.program, sizeof h->program - 1);
	if (getrandom(&h->session_id, sizeof h->session_id, 0) != sizeof h->session_id)
		h->session_id = monotonic_ns();
	dump_writer_python(&s->recording.dump, s->python.layout.version, s->python.evaluators);
	rc = process_stat(getpid(), 22, &h->injector_start_ticks, e);
	dump_writer_publish(&s->recording.dump);
	return rc;
}

/* All that can be done before anything stops. */
static int prepare(struct session *s, struct err *e)
{
	pid_t holder;

	int rc = session_open(s, e);
	if (rc == 0)
		rc = session_lock_take(&s->target, &holder, e);
	if (rc == 0)
		rc = session_inspect(s, e);
	if (rc == 0)
		rc = session_settle(s, e);
	if (rc == 0 && s->payload.base)
		rc = watchdog_start(s->target.pid, e);
	if (rc == 0)
		rc = other_session_make_way(s, e);
	if (rc == 0)
		rc = session_prepare_plan(s, e);
	if (rc == 0)
		session_find_python(s);
	if (rc == 0 && s->options.verbose)
		session_say_lines(s, s->python.details);
	if (rc == 0)
		rc = snapshot_take(&s->outcome.before, &s->target, e);
	if (rc < 0)
		return rc;
	/* Until now a signal has just ended memattach. */
	rc = watchdog_start(s->target.pid, e);
	/* What would be said of it now would be of another program. */
	if (rc == 0 && target_has_execed(&s->target))
		rc = err_set(e, ESRCH, "it has called execve: another program runs now");
	if (rc == 0)
		rc = create_dump(s, e);
	if (rc == 0 && (!s->options.no_symbols || s->options.report_count || s->options.live))
		symbol_sources_open(&s->symbols, &s->target);
	if (rc == 0 && s->options.live)
		rc = live_child_check(s, e);
	if (rc == 0)
		rc = session_reports_open(s, e);
	if (rc == 0)
		rc = session_record_modules(s, 1, e);
	if (rc == 0)
		session_record_paths(s);
	return rc < 0 ? rc : session_file_create(s, e);
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
	session_say(s, "attached to %d (%s): %s, thread stopped %.1f ms, %s, writing %s", s->target.pid, s->target.comm,
	            words, (double)s->outcome.attach_longest_ns / 1e6, every, s->recording.file.path);
	if (s->outcome.entries.refused)
		session_say(s, "not seen: %u GOT entries could not be patched", s->outcome.entries.refused);
}

enum life { GOES_ON, HAS_ENDED, HAS_EXECED };

/*
 * What became of a process, and whether a step failed because of that. Threads end one after the other, and the memory
 * of a new program is there before what tells it from the old one; so there is a moment given until either is seen.
 */
static enum life life_after(const struct session *s, int rc)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t deadline_ns = monotonic_ns() + END_SHOWS_NS;
	bool execed;

	while (!(execed = target_has_execed(&s->target)) && rc < 0 && target_alive(&s->target) &&
	       monotonic_ns() < deadline_ns) {
		nanosleep(&pause, NULL);
		tracee_release_late();
	}
	if (execed || target_has_execed(&s->target))
		return HAS_EXECED;
	return rc < 0 && !target_alive(&s->target) ? HAS_ENDED : GOES_ON;
}

/* What failed depends on the moment at which its memory went away: the cause says more. */
static void complain_of_end(const struct session *s, const struct err *why, enum life life)
{
	if (life == HAS_EXECED)
		say_error(s->options.pid, "it executes one program after the other (execve): each was gone before it "
		                          "was attached to");
	else if (life == HAS_ENDED)
		say_error(s->options.pid, "%s has ended", s->target.comm);
	else
		complain(s, why);
}

/* Undoes an attach that stopped half way. */
static int give_up(struct session *s, const struct err *why)
{
	struct err e;

	/* A program that is started is often that of a shell or of env at first. Children come and go as well. */
	enum life life = s->target.pid ? life_after(s, -why->code) : GOES_ON;
	bool too_late = s->options.found_later && life == HAS_ENDED;
	bool again = life == HAS_EXECED && (s->options.found_later || ++s->programs < PROGRAMS_MAX);
	if (!too_late && !again)
		complain_of_end(s, why, life);
	/* One that has ended, perhaps while it was detached from, needs nothing more. */
	if (s->touched && s->payload.base && target_alive(&s->target) && target_same_program(&s->target) &&
	    session_detach(s, &e) < 0 && target_alive(&s->target) && target_same_program(&s->target)) {
		say_error(s->target.pid,
		          "the payload could not be taken out again: %s; finish with memattach --detach -p %d", e.text,
		          s->target.pid);
		return EXIT_RESIDUE;
	}
	if (s->recording.file.result)
		dump_file_discard(&s->recording.file);
	return again ? SEVERAL_AGAIN : too_late ? SEVERAL_TOO_LATE : EXIT_NOT_ATTACHED;
}

static int report_residue(struct session *s)
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
	if (!s->options.quiet)
		say_lines(stderr, s->outcome.residue);
	return EXIT_RESIDUE;
}

static int finish_dead(struct session *s, enum session_end end, int detail)
{
	struct err e;

	/* What had to stay is gone with it. */
	free(s->outcome.residue);
	s->outcome.residue = NULL;
	dump_writer_renew(&s->recording.dump, 0);
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
	if (receipt_write(s, &e) < 0)
		complain(s, &e);
	return EXIT_DONE;
}

/* Takes the payload out; a target that ends meanwhile needs nothing more. */
static int finish(struct session *s)
{
	struct err e;

	if (target_has_execed(&s->target))
		return finish_dead(s, SESSION_END_EXECED, 0);
	if (session_record_threads(s, true, &e) < 0 && s->options.verbose)
		complain(s, &e);
	session_record_paths(s);
	dump_writer_private(&s->recording.dump, target_private_bytes(&s->target));
	rate_control_note_cost(s);
	/* The recording ends here; how long the detach takes is no part of it. */
	dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
	dump_writer_end_lease(&s->recording.dump);
	/* The last copy comes after the detach; one of before would only be in its way. */
	dump_file_abort(&s->recording.file);
	int rc = session_detach(s, &e);
	if (rc == 0)
		rc = receipt_verify(s, &e);
	enum life life = life_after(s, rc);
	if (life == HAS_EXECED)
		return finish_dead(s, SESSION_END_EXECED, 0);
	if (life == HAS_ENDED)
		return finish_dead(s, SESSION_END_EXITED, -1);
	if (rc < 0) {
		complain(s, &e);
		say_error(0,
		          "recording has stopped, but the payload is still there; finish with memattach --detach -p %d",
		          s->target.pid);
		session_add_residue(s, "the payload: %s", e.text);
	} else {
		note_end_memory(s);
	}
	dump_writer_set_state(&s->recording.dump, DUMP_STATE_DETACHED, 0);
	if (receipt_write(s, &e) < 0)
		complain(s, &e);
	return report_residue(s);
}

static int profile(struct session *s)
{
	enum session_end end;
	struct err e;
	int detail;

	if (prepare(s, &e) < 0)
		return give_up(s, &e);
	dump_writer_renew(&s->recording.dump, SESSION_LEASE_NS);
	s->recording.started_ns = monotonic_ns();
	rate_control_start(s);
	if (session_attach(s, &e) < 0)
		return give_up(s, &e);
	s->recording.started_ns = monotonic_ns();
	privileges_keep_for_detach();
	announce(s);
	if (s->options.launched)
		launch_ready(s->options.ready);
	if (s->options.live && live_child_start(s, &e) < 0)
		session_say(s, "memattach: %s; the session goes on until Ctrl-C", e.text);
	int rc = session_follow(s, &end, &detail, &e);
	live_child_end(s);
	if (rc < 0) {
		if (!target_has_execed(&s->target))
			complain(s, &e);
		end = SESSION_END_ASKED;
	}
	int status = end == SESSION_END_ASKED ? finish(s) : finish_dead(s, end, detail);
	if (session_file_finish(s, &e) < 0) {
		complain(s, &e);
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

/* Trampolines that had to stay are inert, and belong to no session. */
static void say_nothing_to_detach(struct session *s)
{
	bool said = false;

	for (size_t i = 0; i < s->view.maps.count; i++) {
		const struct mapping *m = &s->view.maps.list[i];
		if (strncmp(m->path, "/memfd:" PAYLOAD_MEMFD_NAME, strlen("/memfd:" PAYLOAD_MEMFD_NAME)) != 0)
			continue;
		session_say(s,
		            "inert trampolines of an earlier session are in %d (%s) at 0x%llx; they call the original "
		            "functions",
		            s->target.pid, s->target.comm, (unsigned long long)m->start);
		said = true;
	}
	if (!said)
		session_say(s, "nothing of memattach is in %d (%s)", s->target.pid, s->target.comm);
}

static int detach(struct session *s)
{
	struct err e;
	bool ended = false, waited = false;

	s->save_as = s->options.output;
	s->detaching = true;
	other_session_outlive_detach();
	int rc = session_open(s, &e);
	if (rc == 0)
		rc = other_session_lock(s, &ended, &e);
	/* Not where the one that waits has this done (repeat.h). */
	if (rc == 0 && !s->options.every_ns && other_session_end_waiting(s, &waited, &e) < 0)
		complain(s, &e);
	if (rc == 0 && ended && !target_alive(&s->target))
		return EXIT_DONE;
	if (rc == 0)
		rc = session_inspect(s, &e);
	if (rc == 0)
		rc = session_settle(s, &e);
	if (rc < 0) {
		complain(s, &e);
		return EXIT_NOT_ATTACHED;
	}
	if (ended && !session_is_active(s)) {
		session_say(s, "the memattach that ran the session has detached from %d (%s)", s->target.pid,
		            s->target.comm);
		return EXIT_DONE;
	}
	rc = watchdog_start(s->target.pid, &e);
	if (rc < 0) {
		complain(s, &e);
		return EXIT_NOT_ATTACHED;
	}
	if (!s->payload.base && session_old_cave(s, &s->view.cave)) {
		rc = session_choose(s, &e);
		if (rc == 0)
			rc = session_erase_caves(s, &e);
		if (rc < 0) {
			complain(s, &e);
			return EXIT_RESIDUE;
		}
		session_say(s, "cleared what a memattach that died left in the padding of %d (%s)", s->target.pid,
		            s->target.comm);
		return EXIT_DONE;
	}
	if (!s->payload.base && waited)
		return EXIT_DONE;
	if (!s->payload.base) {
		say_nothing_to_detach(s);
		return EXIT_DONE;
	}
	rc = session_choose(s, &e);
	if (rc == 0)
		rc = session_detach(s, &e);
	if (rc == 0)
		rc = session_erase_caves(s, &e);
	if (rc == 0)
		rc = receipt_verify(s, &e);
	if (life_after(s, rc) != GOES_ON) {
		session_say(s, "%d (%s) has ended meanwhile", s->target.pid, s->target.comm);
		return EXIT_DONE;
	}
	if (rc < 0) {
		complain(s, &e);
		return EXIT_RESIDUE;
	}
	if (receipt_write(s, &e) < 0)
		complain(s, &e);
	return report_residue(s);
}

/* A process that has executed another program meanwhile is attached to anew, as if it were another one. */
static int profile_latest_program(struct session *s)
{
	int status = profile(s);

	while (status == SEVERAL_AGAIN && !s->options.found_later) {
		unsigned programs = s->programs;
		session_done(s);
		s->programs = programs;
		status = profile(s);
	}
	return status;
}

/* One session or many, now or later. */
static int attach(struct session *s)
{
	const struct session_options *o = &s->options;
	struct err e;

	int rc = o->trigger_count || o->every_ns ? look_ahead(o, &e) : 0;
	if (rc == 0 && o->trigger_count)
		rc = trigger_wait(s, &e);
	if (rc < 0) {
		complain(s, &e);
		return EXIT_NOT_ATTACHED;
	}
	return o->every_ns ? repeat_sessions(s, profile_latest_program, detach) : profile_latest_program(s);
}

int main(int argc, char **argv)
{
	struct wanted w = { .profile = attach, .detach = detach };

	start_state_settle();
	if (options_parse(argc, argv, &w.options, &w.command, &w.selection) < 0)
		return EXIT_USAGE;
	return w.command == COMMAND_NONE ? EXIT_DONE : wanted_run(&w);
}
