/* SPDX-License-Identifier: MIT */
#include "run/take_out.h"

#include <string.h>

#include "host/watchdog.h"
#include "payload_image.h"
#include "run/clone_collect.h"
#include "run/steps/detach.h"
#include "run/steps/inspect.h"
#include "run/steps/old_stub.h"
#include "run/steps/other_session.h"
#include "run/session_end.h"
#include "session/payload_place.h"
#include "session/receipt.h"

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

/* Takes the lock, and looks. *ended: a session ran, and has ended; *waited: a memattach waited for one, and has ended.
 */
static int look(struct session *s, bool *ended, bool *waited, struct err *e)
{
	struct err why;

	int rc = inspect_open(s, e);
	rc = rc ?: other_session_lock(s, ended, e);
	/* Not where the one that waits has this done (repeat.h). */
	if (rc == 0 && !s->options.every_ns && other_session_end_waiting(s, waited, &why) < 0)
		session_end_complain(s, &why);
	if (rc < 0 || (*ended && !target_alive(&s->target)))
		return rc;
	rc = inspect_session(s, e);
	return rc ?: old_stub_settle(s, e);
}

static enum exit_status refuse(const struct session *s, enum exit_status status, const struct err *e)
{
	session_end_complain(s, e);
	return status;
}

/* A stub is there, and no payload. */
static enum exit_status clear_padding(struct session *s)
{
	struct err e;

	int rc = inspect_choose(s, &e);
	rc = rc ?: old_stub_erase_caves(s, &e);
	if (rc < 0)
		return refuse(s, EXIT_RESIDUE, &e);
	session_say(s, "cleared what a memattach that died left in the padding of %d (%s)", s->target.pid,
	            s->target.comm);
	return EXIT_DONE;
}

static enum exit_status take_payload_out(struct session *s)
{
	struct err e;

	int rc = inspect_choose(s, &e);
	rc = rc ?: detach_session(s, &e);
	rc = rc ?: old_stub_erase_caves(s, &e);
	rc = rc ?: receipt_verify(s, &e);
	if (session_life_after(s, rc) != SESSION_GOES_ON) {
		session_say(s, "%d (%s) has ended meanwhile", s->target.pid, s->target.comm);
		return EXIT_DONE;
	}
	if (rc < 0)
		return refuse(s, EXIT_RESIDUE, &e);
	if (receipt_write(s, &e) < 0)
		session_end_complain(s, &e);
	return session_end_tell_detached(s);
}

/* Zombies of clones that a dead memattach has left. False: said why not. */
static bool collect_clones(struct session *s, bool *some)
{
	unsigned collected = 0;
	struct err e;

	if (clone_collect_of_dead(s, &collected, &e) < 0) {
		session_end_complain(s, &e);
		return false;
	}
	if (collected)
		session_say(s, "collected %u clone%s of %d (%s) that a memattach that died left as a zombie", collected,
		            collected > 1 ? "s" : "", s->target.pid, s->target.comm);
	*some = collected;
	return true;
}

/* Whatever of it there is. */
static enum exit_status take_rest_out(struct session *s, bool *some)
{
	*some = true;
	if (s->payload.base)
		return take_payload_out(s);
	if (old_stub_cave(s, &s->view.cave))
		return clear_padding(s);
	*some = false;
	return EXIT_DONE;
}

enum exit_status take_out(struct session *s)
{
	bool ended = false, waited = false, clones = false, rest;
	struct err e;

	s->save_as = s->options.output;
	s->detaching = true;
	other_session_outlive_detach();
	if (look(s, &ended, &waited, &e) < 0)
		return refuse(s, EXIT_NOT_ATTACHED, &e);
	if (ended && !target_alive(&s->target))
		return EXIT_DONE;
	if (ended && !payload_place_is_active(s)) {
		session_say(s, "the memattach that ran the session has detached from %d (%s)", s->target.pid,
		            s->target.comm);
		return EXIT_DONE;
	}
	if (watchdog_start(s->target.pid, &e) < 0)
		return refuse(s, EXIT_NOT_ATTACHED, &e);
	const bool collected = collect_clones(s, &clones);
	const enum exit_status status = take_rest_out(s, &rest);
	if (!collected)
		return status == EXIT_DONE ? EXIT_RESIDUE : status;
	if (!waited && !clones && !rest)
		say_nothing_to_detach(s);
	return status;
}
