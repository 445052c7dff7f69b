/* SPDX-License-Identifier: MIT */
/* What stands at the head of a profile, for its reader. */
#pragma once

#include "report/report.h"

typedef void profile_put_comment(void *to, const char *line);

/*
 * Which target, and how it was sampled; the totals with their intervals; how well a node is known. Then what the
 * figures lack, if they do.
 */
void profile_comments(const struct report *report, profile_put_comment *put, void *to);
