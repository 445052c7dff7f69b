/* SPDX-License-Identifier: MIT */
/*
 * The child (analyzer_child.h) that writes a report: memanalyze (include/report_request.h). It gets the dump and a pipe
 * (report_pipe.h), from which memattach copies what it writes to where that goes: a file that only the user may write,
 * or a terminal. Who takes the child over has neither, also later. What it says is taken for text.
 */
#pragma once

#include "recording/dump_file.h"
#include "children/symbol_sources.h"

#define REPORT_SECONDS 600u            /* then it is killed */
#define REPORT_DATA_BYTES (4ull << 30) /* that it may allocate */
#define REPORT_FILE_BYTES (4ull << 30) /* of a report */

struct report_wanted {
	const char *name; /* tells the form */
	int out;          /* where it is written */
	uint64_t limit;   /* bytes at most */
};

/* Does the name of the report say its form? -EINVAL, or as report_child_run. */
int report_child_check(const struct symbol_sources *sources, const char *name, struct err *e) WARN_UNUSED;
/*
 * Writes the report of the dump in the file. 0, also for a dump that could be read in part. -errno: what is in its
 * descriptor is no whole report.
 */
int report_child_run(const struct symbol_sources *sources, const struct dump_file *file,
                     const struct report_wanted *report, const struct patience *patience, struct err *e) WARN_UNUSED;
