/* SPDX-License-Identifier: MIT */
/* What a group of samples or of sessions (report/groups.h) is called: a thread, a range of sizes or of times, a unit.
 */
#pragma once

#include "report/report.h"

#define GROUP_TITLE_TEXT 4096

/* Of a group by report->options.by, which is of samples or sessions; printable. Returns title. */
const char *group_title(const struct report *report, const struct group *group, char title[GROUP_TITLE_TEXT]);
