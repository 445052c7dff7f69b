/* SPDX-License-Identifier: MIT */
/* A report of some sessions of a report, read again, as elements of a page that has several (html_machine.h). */
#ifndef MEMATTACH_HTML_PART_H
#define MEMATTACH_HTML_PART_H

#include "report/report.h"

/* sessions: their places in r. The text is to be freed; NULL: nothing of it could be read, or it does not fit into so
 * many bytes. -ENOMEM. */
int html_part(const struct report *r, const size_t *sessions, size_t count, const char *name, unsigned number,
              size_t limit, char **text, size_t *bytes) WARN_UNUSED;

#endif
