/* SPDX-License-Identifier: MIT */
#include "run/reports/long_wait.h"

#include <stdio.h>
#include <unistd.h>

#include "host/say.h"
#include "host/watchdog.h"

#define SHOWN_AFTER_NS 1000000000ull

static bool goes_on(void *wait, double done)
{
	const struct long_wait *w = wait;
	char line[128];

	if (!w->s->options.quiet && isatty(STDERR_FILENO) && clock_monotonic_ns() - w->since_ns > SHOWN_AFTER_NS) {
		snprintf(line, sizeof line, "%s: %.0f %%%s", w->what, 100 * done, w->note);
		say_status(line);
	}
	return watchdog_asked_by_user() == w->asked;
}

void long_wait_begin(struct long_wait *w, const struct session *s, const char *what, const char *note)
{
	*w = (struct long_wait){ .patience = { goes_on, w },
		                 .s = s,
		                 .what = what,
		                 .note = note,
		                 .since_ns = clock_monotonic_ns(),
		                 .asked = watchdog_asked_by_user() };
}
