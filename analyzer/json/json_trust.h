/* SPDX-License-Identifier: MIT */
/* The member "trust" of the JSON report (memanalyze(1)): what each figure is worth, and why. */
#pragma once

#include "base/json.h"
#include "report/report.h"

/* keys: the names of the figures. */
void json_trust(struct json *json, const struct report *report, const char *const keys[FIGURE_COUNT]);
