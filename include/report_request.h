/* SPDX-License-Identifier: MIT */
/*
 * How memattach has a report written (--report): it executes memanalyze with
 *
 *   memanalyze --write-report VERSION RIGHTS FILE DUMP
 *
 * RIGHTS says what it gives up before it does anything (common/sandbox/rights.h); where it cannot, it ends with
 * REQUEST_NOT_DROPPED. FILE is the name of the report, which says its form as with -o, and is not opened; DUMP is what
 * the dump is called. Descriptors: REPORT_REQUEST_DUMP is the dump, REPORT_REQUEST_OUT takes the report (a pipe),
 * standard error takes messages, one a line. The exit status is that of memanalyze. Without DUMP it only says whether
 * there is a form for such a name. Anything else than these arguments ends memanalyze with REPORT_REQUEST_UNKNOWN: it
 * is of another version.
 */
#pragma once

#include "request_status.h"

#define REPORT_REQUEST_OPTION "--write-report"
#define REPORT_REQUEST_VERSION "2"
#define REPORT_REQUEST_UNKNOWN 65
#define REPORT_REQUEST_USAGE 64

enum { REPORT_REQUEST_DUMP = 0, REPORT_REQUEST_OUT = 1 };
