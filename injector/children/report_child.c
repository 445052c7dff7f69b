/* SPDX-License-Identifier: MIT */
#include "children/report_child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children/analyzer_child.h"
#include "base/cleanup.h"
#include "html_prologue.h"
#include "process/memory_room.h"
#include "base/printable.h"
#include "children/report_pipe.h"
#include "report_request.h"
#include "host/watchdog.h"
#include "sandbox/child.h"

#define TEXT_BYTES 300
#define CHECK_SECONDS 20u
#define SAID_BYTES 65536u /* of messages */

/* ---- in the child ---- */

/* file NULL: only to ask for the form. */
static _Noreturn void be_child(const struct symbol_sources *sources, const struct dump_file *file, const char *name,
                               int out, int said)
{
	const struct rights limits = { .data_bytes = REPORT_DATA_BYTES,
		                       .file_bytes = SAID_BYTES,
		                       .cpu_seconds = REPORT_SECONDS };
	char rights[RIGHTS_TEXT], called[sizeof file->path], wanted[sizeof file->path];
	struct passed_on p = { .count = 0 };
	char *arguments[] = { (char[]){ "memanalyze" },
		              (char[]){ REPORT_REQUEST_OPTION },
		              (char[]){ REPORT_REQUEST_VERSION },
		              rights,
		              wanted,
		              file ? called : NULL,
		              NULL };
	const int first[ANALYZER_CHILD_FIRST] = {
		[REPORT_REQUEST_DUMP] = file ? passed_on_add(&p, dump_file_reopen(file, O_RDONLY)) : 0,
		[REPORT_REQUEST_OUT] = passed_on_add(&p, out),
		[STDERR_FILENO] = passed_on_add(&p, said),
	};

	if (file && (!first[REPORT_REQUEST_DUMP] || !first[REPORT_REQUEST_OUT]))
		analyzer_child_no_dump();
	snprintf(wanted, sizeof wanted, "%s", name);
	snprintf(called, sizeof called, "%s", file ? file->path : "");
	analyzer_child_rights(sources, limits, rights);
	analyzer_child_execute(&p, first, sources, arguments, true, NULL);
}

/* ---- in memattach ---- */

/* The first line of what it said. */
static void read_said(int said, char text[TEXT_BYTES])
{
	ssize_t n = pread(said, text, TEXT_BYTES - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	printable_copy(text, text, TEXT_BYTES);
}

static int judge(int status, bool asked_only, int said, struct err *e)
{
	char text[TEXT_BYTES];

	read_said(said, text);
	if (status == 0 || (status == 1 && !asked_only))
		return 0;
	if (status == REPORT_REQUEST_UNKNOWN || (status == REPORT_REQUEST_USAGE && !text[0]))
		return err_set(e, EPROTO, "the memanalyze beside memattach is of another version");
	return err_set(e, asked_only ? EINVAL : EIO, "%s", text[0] ? text : "memanalyze could not write it");
}

static bool nobody_asks_to_end(void *unused, double done)
{
	(void)unused, (void)done;
	return !watchdog_asked();
}

static int run(const struct symbol_sources *sources, const struct dump_file *file, const char *name,
               struct report_pipe *pipe, const struct patience *patience, struct err *e)
{
	struct analyzer_child child = { .task = "writes it",
		                        .seconds = file ? REPORT_SECONDS : CHECK_SECONDS,
		                        .pipe = pipe };
	int status;

	if (sources->program < 0)
		return err_set(e, ENOENT, "there is no memanalyze beside memattach");
	AUTO_CLOSE int said = memfd_create("memattach-messages", MFD_CLOEXEC);
	if (said < 0)
		return err_sys(e, "out of memory");
	int rc = memory_room_check(ANALYZER_CHILD_ROOM_BYTES, e);
	if (rc < 0)
		return rc;
	child.pid = child_start(SIGKILL);
	if (child.pid == 0)
		be_child(sources, file, name, pipe ? pipe->into : -1, said);
	if (child.pid < 0)
		return err_sys(e, "no process can be made that writes it");
	if (pipe)
		report_pipe_keep_end(pipe);
	rc = analyzer_child_await(&child, patience, &status, e);
	return rc < 0 ? rc : judge(status, !file, said, e);
}

int report_child_check(const struct symbol_sources *sources, const char *name, struct err *e)
{
	return run(sources, NULL, name, NULL, &(struct patience){ nobody_asks_to_end, NULL }, e);
}

/* A page of root's is opened in root's browser: whatever has taken the child over, no script comes before the line that
 * says which may run. */
static bool is_page(const char *name)
{
	const char *ending = strrchr(name, '.');

	return ending && (!strcasecmp(ending, ".html") || !strcasecmp(ending, ".htm"));
}

int report_child_run(const struct symbol_sources *sources, const struct dump_file *file,
                     const struct report_wanted *report, const struct patience *patience, struct err *e)
{
	AUTO_FREE struct report_pipe *pipe = malloc(sizeof *pipe);

	if (!pipe)
		return err_set(e, ENOMEM, "out of memory");
	int rc = report_pipe_open(pipe, report->out, report->limit, is_page(report->name) ? HTML_PROLOGUE : "", e);
	if (rc < 0)
		return rc;
	rc = run(sources, file, report->name, pipe, patience, e);
	report_pipe_close(pipe);
	return rc;
}
