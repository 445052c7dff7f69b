/* SPDX-License-Identifier: MIT */
/* The line that a terminal shows while a session lasts: time, samples, live estimate with its interval, size of the
 * dump. */
#pragma once

#include "session/session.h"

/* stderr is a terminal, and neither --quiet nor TERM=dumb is given: else these show nothing. */
bool status_line_wanted(const struct session *s);
void status_line_show(struct session *s);
/* The same with another text, while no session lasts. */
void status_line_text(const struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define STATUS_LINE_TIME 24
/* "01:02:03". Returns text. */
const char *status_line_time(uint64_t ns, char text[STATUS_LINE_TIME]);
