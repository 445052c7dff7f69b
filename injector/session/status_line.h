/* SPDX-License-Identifier: MIT */
/* The line that a terminal shows while a session lasts: time, samples, live estimate with its interval, size of the
 * dump. */
#ifndef MEMATTACH_STATUS_LINE_H
#define MEMATTACH_STATUS_LINE_H

#include "session.h"

/* Nothing unless stderr is a terminal and neither --quiet nor TERM=dumb is given. */
void status_line_show(struct session *s);
/* Wipes the line. */
void status_line_end(struct session *s);

#endif
