/* SPDX-License-Identifier: MIT */
#include "cli/census_command.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "census/census_file.h"
#include "census/census_report.h"
#include "base/size.h"
#include "cli/census_live.h"
#include "cli/options.h"
#include "host/page_size.h"
#include "host/say.h"
#include "process/memory_room.h"
#include "run/census_stop.h"
#include "run/clone_guardian.h"
#include "session/status_line.h"

/* -ESRCH: it has ended meanwhile. */
static int wait_for(const struct target *t, uint64_t ns, struct err *e)
{
	struct pollfd end = { .fd = t->pidfd, .events = POLLIN };
	const struct timespec timeout = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	return ppoll(&end, 1, &timeout, NULL) > 0 ? err_set(e, ESRCH, "it has ended") : 0;
}

static int tell(const struct census *c, const struct census *before, const struct session_options *o, struct err *e)
{
	const struct census_view view = {
		.before = before, .room = memory_room_of(o->pid), .by = o->by, .json = o->json, .out = stdout
	};

	return census_report(c, &view, e);
}

static void show_reading(uint64_t bytes)
{
	char line[64], size[SIZE_TEXT];

	snprintf(line, sizeof line, "reading its heap: %s", size_format((double)bytes, size));
	say_status(line);
}

static void show_progress(uint64_t blocks)
{
	char line[64];

	snprintf(line, sizeof line, "following pointers: %" PRIu64 " blocks", blocks);
	say_status(line);
}

static bool shows_progress(const struct session_options *o)
{
	struct session session;

	session_init(&session, o);
	const bool wanted = status_line_wanted(&session);
	session_done(&session);
	return wanted;
}

static int take(struct census *c, const struct target *t, const struct session_options *o, struct err *e)
{
	const bool shows = shows_progress(o);
	const struct census_wish wish = { .lost = o->unreachable,
		                          .holders = o->unreachable || o->by == CENSUS_BY_HOLDER,
		                          .reading = shows ? show_reading : NULL,
		                          .progress = shows ? show_progress : NULL,
		                          .budget_ns = o->budget_ns };

	struct clone_guardian guardian = CLONE_GUARDIAN_NONE;
	struct session_options options = *o;
	struct err why = { 0 };
	bool left = false;

	/* While memattach is still small. */
	if (wish.lost && !o->freeze)
		options.freeze = clone_guardian_start(&guardian, o, &why) < 0;
	int rc = census_take(c, t, &wish, e);
	if (shows)
		say_status(NULL);
	snprintf(c->lost.not_cloned, sizeof c->lost.not_cloned, "%.*s", (int)sizeof c->lost.not_cloned - 1, why.text);
	if (rc == 0 && wish.lost)
		rc = census_stop(c, &options, &left, e);
	clone_guardian_end(&guardian, left);
	return rc;
}

/* Looks until there is nothing more to tell. */
static int look(const struct target *t, const struct session_options *o, struct err *e)
{
	const uint64_t apart_ns = o->for_ns ? o->for_ns : o->every_ns;
	struct census now, before = { 0 };
	bool again = true;

	int rc = take(&now, t, o, e);
	if (rc == 0 && !o->for_ns)
		rc = tell(&now, NULL, o, e);
	while (rc == 0 && apart_ns && again) {
		census_free(&before);
		before = now;
		census_keep_figures(&before);
		rc = wait_for(t, apart_ns, e);
		now = (struct census){ 0 };
		rc = rc ?: take(&now, t, o, e);
		if (rc == 0 && !o->for_ns && !o->json)
			puts("");
		rc = rc ?: tell(&now, &before, o, e);
		again = !o->for_ns;
		if (rc == 0 && o->output && again)
			rc = census_file_write(&now, o->output, e);
	}
	if (rc == 0 && o->output)
		rc = census_file_write(&now, o->output, e);
	if (rc < 0 && target_has_ended(t))
		rc = err_set(e, ESRCH, "it has ended"); /* in the middle of a look */
	census_free(&before);
	census_free(&now);
	return rc;
}

int census_command(const struct session_options *o)
{
	struct target target;
	bool ended = false;
	struct err e;

	int rc = page_size_check(&e);
	rc = rc ?: target_open(&target, o->pid, &e);
	if (rc == 0) {
		if (o->start_ticks && o->start_ticks != target.start_ticks)
			rc = err_set(&e, ESRCH, "it has ended");
		else
			rc = o->live ? census_live(&target, o, &ended, &e) : look(&target, o, &e);
		target_close(&target);
	}
	if (rc < 0 || ended)
		say_error(o->pid, "%s", ended ? "it has ended" : e.text);
	return rc < 0 ? EXIT_NOT_ATTACHED : EXIT_DONE;
}
