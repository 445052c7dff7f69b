/* SPDX-License-Identifier: MIT */
/*
 * The report as profile.proto, compressed, as pprof and continuous profilers take it
 * (github.com/google/pprof/blob/main/proto/profile.proto). What its readers want beyond the schema:
 *
 *   - The last type of samples is what most readers show first: live bytes.
 *   - Intervals do not add up, samples do: their numbers are types of their own, from which the certainty of any node
 *     follows. Comments say how, and what the figures are worth.
 *   - Every location has a mapping and a line. Addresses are those of the program file, the same in every process, so
 *     that profiles can be subtracted and merged; they are of the call, not of the return.
 *   - Mappings, functions and locations are numbered from 1 without gaps, the program is the first mapping.
 *   - A comparison shows growth, which may be negative.
 */
#pragma once

#include <stdio.h>

#include "report/report.h"

/* -ENOMEM. */
int report_pprof(const struct report *report, FILE *out) WARN_UNUSED;
