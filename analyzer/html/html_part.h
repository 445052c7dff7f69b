/* SPDX-License-Identifier: MIT */
/* A report of some sessions of a report, read again, as elements of a page that has several (html_machine.h). */
#pragma once

#include "report/report.h"

struct html_part {
	const size_t *sessions; /* their places in the report */
	size_t count;
	const char *name;
	unsigned number;
};

/* The text is to be freed; NULL: nothing of it could be read, or it does not fit into limit bytes. -ENOMEM. */
int html_part_make(const struct html_part *p, const struct report *r, size_t limit, char **text,
                   size_t *bytes) WARN_UNUSED;
