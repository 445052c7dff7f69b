/* SPDX-License-Identifier: MIT */
#include "session_reports.h"

#include <unistd.h>

#include "long_wait.h"
#include "report_child.h"

static int check(const struct session_options *options, const struct symbol_sources *sources, struct err *e)
{
	for (unsigned i = 0; i < options->report_count; i++) {
		int rc = report_child_check(sources, options->reports[i], e);
		if (rc < 0)
			return err_prefix(e, "--report %.200s", options->reports[i]);
	}
	return 0;
}

int session_reports_check(const struct session_options *options, struct err *e)
{
	const struct target self = { .pid = getpid() };
	struct symbol_sources sources;

	if (!options->report_count)
		return 0;
	symbol_sources_open(&sources, &self);
	int rc = check(options, &sources, e);
	symbol_sources_close(&sources);
	return rc;
}

int session_reports_open(struct session *s, struct err *e)
{
	int rc = check(&s->options, &s->symbols, e);

	for (unsigned i = 0; i < s->options.report_count && rc == 0; i++) {
		rc = output_file_open(&s->reports[i], s->options.reports[i], e);
		if (rc == 0)
			s->report_count++;
		else
			err_prefix(e, "--report");
	}
	return rc;
}

static int write_one(struct session *s, struct output_file *f, struct err *e)
{
	struct long_wait w;

	long_wait_begin(&w, s, "the report", " (Ctrl-C: without)");
	int rc =
		report_child_run(&s->symbols, &s->recording.file, f->path, fileno(f->stream), long_wait_goes_on, &w, e);
	long_wait_end(&w);
	return rc < 0 ? rc : output_file_finish(f, e);
}

int session_reports_write(struct session *s)
{
	int first = 0;

	for (unsigned i = 0; i < s->report_count; i++) {
		struct err e;
		int rc = write_one(s, &s->reports[i], &e);
		if (rc < 0)
			session_say(s, "memattach: there is no report %s: %s", s->reports[i].path, e.text);
		first = first ? first : rc;
	}
	return first;
}
