/* SPDX-License-Identifier: MIT */
#include "run/steps/look_ahead.h"

#include "run/steps/inspect.h"
#include "session/loader_choice.h"
#include "session/payload_place.h"
#include "run/steps/plan.h"
#include "session/record.h"
#include "run/steps/session_file.h"
#include "run/reports/session_reports.h"

int look_ahead_plan(struct session *s, struct err *e)
{
	int rc = loader_choice_make(s, e);
	rc = rc ?: inspect_check_loader(s, e);
	rc = rc ?: inspect_check_threads(s, e);
	rc = rc ?: inspect_choose(s, e);
	rc = rc ?: plan_session(s, e);
	return rc ?: record_compile(s, e);
}

/* What an attach prepares, none of which touches the process. Unwind tables that are compiled here are kept, so the
 * attach itself is short. */
static int prepare(struct session *s, struct err *e)
{
	int rc = inspect_open(s, e);
	rc = rc ?: inspect_session(s, e);
	rc = rc ?: payload_place_find(s, e);
	/* What a dead memattach left is taken out first when the time has come. */
	if (rc < 0 || s->payload.base)
		return rc;
	rc = look_ahead_plan(s, e);
	if (rc < 0 || !s->options.report_count)
		return rc;
	symbol_sources_open(&s->symbols, &s->target);
	return session_reports_open(s, e);
}

/* By a session that is thrown away: what it finds is out of date when the condition holds. */
int look_ahead(const struct session_options *options, struct err *e)
{
	struct session look;

	session_init(&look, options);
	look.options.quiet = true;
	int rc = prepare(&look, e);
	rc = rc ?: session_file_check(options, e);
	session_done(&look);
	return rc;
}
