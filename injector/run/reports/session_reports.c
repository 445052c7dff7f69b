/* SPDX-License-Identifier: MIT */
#include "run/reports/session_reports.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/reports/long_wait.h"
#include "children/report_child.h"
#include "host/say.h"
#include "files/whole_io.h"

#define SHOWN_BYTES (64u << 20) /* more text is not shown on a terminal */

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
		rc = output_file_open(&s->reports[i], s->options.reports[i], OUTPUT_OF_SESSION, e);
		if (rc == 0)
			s->report_count++;
		else
			err_prefix(e, "--report");
	}
	return rc;
}

/* What the child has written for a terminal. */
static int show(int written, FILE *terminal, struct err *e)
{
	struct stat st;

	if (fstat(written, &st) < 0)
		return err_sys(e, "cannot look at it");
	AUTO_FREE char *text = calloc(1, (size_t)st.st_size + 1);
	if (!text || !whole_io_pread(written, text, (size_t)st.st_size, 0))
		return err_set(e, ENOMEM, "out of memory");
	say_lines(terminal, text);
	return 0;
}

static int write_one(struct session *s, struct output_file *f, struct err *e)
{
	int out = fileno(f->stream);
	bool shown = isatty(out);
	AUTO_CLOSE int written = shown ? memfd_create("memattach-report", MFD_CLOEXEC) : -1;
	struct long_wait w;

	if (shown && written < 0)
		return err_sys(e, "out of memory");
	long_wait_begin(&w, s, "the report", " (Ctrl-C: without)");
	const struct report_wanted report = { f->path, shown ? written : out, shown ? SHOWN_BYTES : REPORT_FILE_BYTES };
	int rc = report_child_run(&s->symbols, &s->recording.file, &report, &w.patience, e);
	say_status(NULL);
	if (rc == 0 && shown)
		rc = show(written, f->stream, e);
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
