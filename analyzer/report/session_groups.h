/* SPDX-License-Identifier: MIT */
/* Whole sessions summed up: by the process, its program, its unit of systemd, or its container. */
#pragma once

#include "report/report.h"

bool session_groups_wanted(const struct report_options *options);
/* Adds the latest session of the report; whole: the sum of its rows; rate: its largest. -ENOMEM. */
int session_groups_add(struct report *report, const struct report_row *whole, uint64_t rate) WARN_UNUSED;
