/* SPDX-License-Identifier: MIT */
/*
 * The report for speedscope: one file with a profile for each of the four figures, of a comparison one for each figure
 * before and after. Frames are functions of modules: speedscope tells frames apart by their numbers.
 */
#pragma once

#include <stdio.h>

#include "report/report.h"

/* -ENOMEM. */
int report_speedscope(const struct report *report, const char *name, FILE *out) WARN_UNUSED;
