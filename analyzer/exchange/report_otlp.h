/* SPDX-License-Identifier: MIT */
/*
 * The report as OpenTelemetry's profiles signal: the message ProfilesData, which is also what a collector takes in the
 * body of a POST to /v1development/profiles. The schema is profiles.proto of opentelemetry-proto 1.10 and 1.11
 * (github.com/open-telemetry/opentelemetry-proto/tree/v1.11.0/opentelemetry/proto/profiles/v1development), where the
 * signal is alpha; 1.9 numbers the fields of a sample otherwise.
 *
 *   - A profile has one type of values: there is one for each, of live bytes first, which is what readers show.
 *   - What pprof has in comments is one attribute of each profile, memattach.comments.
 *   - The resource is the process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say more of it, or otherwise, as for
 *     all that speaks OpenTelemetry.
 *   - Entry 0 of each table is empty and stands for nothing.
 */
#pragma once

#include <stdio.h>

#include "report/report.h"

/* -ENOMEM. */
int report_otlp(const struct report *report, FILE *out) WARN_UNUSED;
