/* SPDX-License-Identifier: MIT */
#include "requested.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "debug_info/debug_package.h"
#include "dump/dump_reader.h"
#include "forms/outputs.h"
#include "live/live_view.h"
#include "report/report.h"
#include "report_request.h"
#include "sandbox/rights.h"
#include "stats/estimate.h"
#include "symbols/given_files.h"
#include "view_request.h"

enum { EXIT_WHOLE = 0, EXIT_PARTIAL = 1, EXIT_UNREADABLE = 2 };

static int complain(const char *what, const struct err *e, int status)
{
	char line[1024];

	snprintf(line, sizeof line, "%.300s: %s", what, e->text);
	printable_copy(line, line, sizeof line);
	fprintf(stderr, "%s\n", line);
	return status;
}

/* What outputs_settle says names options that memattach has not. */
static int refuse(void)
{
	fputs("its name does not tell the format; memanalyze(1) lists the names\n", stderr);
	return REPORT_REQUEST_USAGE;
}

static int show(struct report *report, struct outputs *outputs, const char *dump_name)
{
	const struct output_style style = { .name = dump_name };
	struct dump *dump;
	struct err e = { 0 };

	if (dump_open_fd(REPORT_REQUEST_DUMP, &dump, &e))
		return complain(dump_name, &e, EXIT_UNREADABLE);
	int r = report_add(report, dump, dump_name, &e);
	dump_close(dump);
	r = r ?: report_finish(report, &e);
	if (r)
		return complain(dump_name, &e, EXIT_UNREADABLE);
	if (outputs_open(outputs, NULL, 0, &e) || outputs_write(outputs, report, false, &style, &e))
		return complain(dump_name, &e, EXIT_UNREADABLE);
	return report->session_count && report->sessions[0].whole ? EXIT_WHOLE : EXIT_PARTIAL;
}

int requested_report_main(int argc, char **argv)
{
	struct report_options options = { .confidence = ESTIMATE_CONFIDENCE,
		                          .symbols = true,
		                          .package_lists = DEBUG_PACKAGE_LISTS };
	struct outputs outputs = { 0 };
	struct report report;
	struct rights rights;
	struct err e = { 0 };

	if (argc < 3 || argc > 4 || strcmp(argv[0], REPORT_REQUEST_VERSION) != 0 || !rights_parse(argv[1], &rights))
		return REPORT_REQUEST_UNKNOWN;
	if (rights_drop(&rights))
		return REQUEST_NOT_DROPPED;
	int r = outputs_add(&outputs, argv[2], &e);
	r = r ?: outputs_settle(&outputs, NULL, &options, &e);
	if (!r)
		outputs_ask(&outputs, &options, 1);
	int status = r ? refuse() : EXIT_WHOLE;
	if (!r && argc == 4) {
		outputs.list[0].path = "-"; /* the name has said the form; the file is open already */
		r = report_init(&report, &options, &e);
		status = r ? complain(argv[3], &e, EXIT_UNREADABLE) : show(&report, &outputs, argv[3]);
		report_done(&report);
	}
	outputs_done(&outputs);
	return status;
}

int requested_view_main(int argc, char **argv, bool colour)
{
	static struct given_files given;
	struct report_options report = { .confidence = ESTIMATE_CONFIDENCE };
	const struct live_options options = { .fd = VIEW_REQUEST_DUMP, .report = &report, .colour = colour };
	struct err e = { 0 };

	if (argc != 3 || strcmp(argv[0], VIEW_REQUEST_VERSION) != 0)
		return VIEW_REQUEST_UNKNOWN;
	if (rights_drop_to_view())
		return REQUEST_NOT_DROPPED;
	report.symbols = strcmp(argv[2], VIEW_REQUEST_NO_NAMES) != 0;
	given_files_take(&given, atoi(argv[1]), argv[2]);
	report.search.given = &given;
	report.search.files = given_files_descriptors(&given);
	return live_run(&options, &e) ? complain("memanalyze", &e, EXIT_UNREADABLE) : 0;
}
