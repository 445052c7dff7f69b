/* SPDX-License-Identifier: MIT */
/* What is special to some views, in JSON. */
#pragma once

#include "base/json.h"
#include "report/report.h"

/* A figure without what is special to numbers of blocks; "name" is that of the member. */
void json_bytes(struct json *j, const char *name, struct estimate x);
/* The members of every figure. */
void json_interval(struct json *j, const struct estimate *x);
/* The member "filter": null if nothing is filtered. */
void json_filter(struct json *j, const struct report *report);
/* The member "timeline", if it is asked for. */
/* Who was not profiled, where a directory was given. */
void json_machine(struct json *j, const struct report *report);
void json_timeline(struct json *j, const struct report *report);
/* The members that say what a group is. */
void json_group_names(struct json *j, const struct report *report, const struct group *group);
