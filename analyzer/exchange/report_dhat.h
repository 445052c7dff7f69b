/* SPDX-License-Identifier: MIT */
/*
 * The report as DHAT's JSON, version 2, for valgrind's dh_view.html. Where report.times are known: what was allocated
 * and how long it lived, what was live at the peak, what is live at the end. Else what is live, or with --sort of an
 * allocated figure what was allocated. dh_view takes a stack that comes twice for an error: frames are told apart by
 * their addresses, so only whole stacks can be shown.
 */
#pragma once

#include <stdio.h>

#include "report/report.h"

/* -ENOMEM. */
int report_dhat(const struct report *report, FILE *out) WARN_UNUSED;
