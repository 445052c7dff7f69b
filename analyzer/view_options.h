/* SPDX-License-Identifier: MIT */
/* The options of memanalyze that choose what a report is about. */
#pragma once

#include "report/report.h"

/* Takes one of enum memanalyze_option; value must outlive options. -EINVAL with a text. */
int view_option_parse(int option, const char *value, struct report_options *options, struct err *e) WARN_UNUSED;
/* What does not go together. */
int view_options_check(const struct report_options *options, int dump_count, struct err *e) WARN_UNUSED;
