/* SPDX-License-Identifier: MIT */
/* The report as JSON; the fields are documented in memanalyze(1). */
#pragma once

#include <stdio.h>

#include "report/report.h"

#define REPORT_JSON_FORMAT 4

/* -ENOMEM. */
int report_json(const struct report *report, FILE *out) WARN_UNUSED;
