/* SPDX-License-Identifier: MIT */
/* memanalyze --live DIRECTORY: its processes on a terminal as top has them, those that grow first; Enter shows the live
 * view of one. */
#pragma once

#include "report/report.h"

struct fleet_options {
	const char *directory;
	const struct report_options *report; /* of the live view of one, and its confidence */
	bool colour;
};

/* As live_run. */
int fleet_view_run(const struct fleet_options *options, struct err *e) WARN_UNUSED;
