/* SPDX-License-Identifier: MIT */
/*
 * What OpenTelemetry calls the resource of a profile: the process, where it runs, and what its users add to that
 * (opentelemetry.io/docs/specs/semconv/resource,
 * opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables).
 */
#pragma once

#include "exchange/proto.h"
#include "report/report.h"

/*
 * Writes the message Resource. What not all of the report's sessions have in common is left out. Of the variables
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES (key=value,key=value; %XX stands for a byte) the first one wins, and
 * both over what is known of the process; a part that has not this form is passed over.
 */
void otlp_resource(struct proto *resource, const struct report *report);
