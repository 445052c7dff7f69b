/* SPDX-License-Identifier: MIT */
#include "live/requested_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/given_files.h"
#include "live/live_view.h"
#include "base/printable.h"
#include "report/report.h"
#include "sandbox/rights.h"
#include "view_request.h"

enum { EXIT_FAILED = 2 };

static int complain(struct err *e)
{
	printable_copy(e->text, e->text, sizeof e->text);
	fprintf(stderr, "memanalyze: %s\n", e->text);
	return EXIT_FAILED;
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
	return live_run(&options, &e) ? complain(&e) : 0;
}
