/* SPDX-License-Identifier: MIT */
/*
 * memanalyze --live: the live heap on a terminal, once a second, or for scripts.
 *
 * Two processes share the work. The one that was started, the guard, holds the terminal's modes, waits for signals and
 * for the other, and reads nothing: whatever becomes of the view, also by SIGKILL or a fault, the terminal is given
 * back. The other reads, draws and takes keys. If the guard itself is killed the view gives the terminal back and ends.
 *
 * A look is made once a second, and later where looks take time: not more than LIVE_PART_OF_TIME of a processor goes
 * into them. Reading the names of functions comes on top, once for each address, in the process that does it
 * (symbols.h); all of them have a low priority.
 */
#pragma once

#include "report/report.h"

#define LIVE_PART_OF_TIME 100u /* one part of so many */

struct live_options {
	const char *path; /* NULL: fd is the dump */
	int fd;
	const struct report_options *report; /* of it: by, sort, top, confidence, symbols, show_std, search */
	size_t batch;                        /* looks to be written for scripts, 0: the view */
	bool colour;
	bool stays; /* also after the session has ended, until the user quits */
};

/* -EINVAL: what the live view does not show. */
int live_check(const struct report_options *report, struct err *e) WARN_UNUSED;
/* 0: ended by the user or with the session; -errno with a text: the dump could not be read, or there is no terminal.
 * Does not return where a signal ends it. */
int live_run(const struct live_options *options, struct err *e) WARN_UNUSED;
/* The view alone, by who has a guard and the terminal already. */
int live_show(const struct live_options *options, struct err *e) WARN_UNUSED;
