/* SPDX-License-Identifier: MIT */
#include "long_wait.h"

#include <unistd.h>

#include "watchdog.h"

#define SHOWN_AFTER_NS 1000000000ull

void long_wait_begin(struct long_wait *w, const struct session *s, const char *what, const char *note)
{
	*w = (struct long_wait){
		.s = s, .what = what, .note = note, .since_ns = monotonic_ns(), .asked = watchdog_asked_by_user()
	};
}

bool long_wait_goes_on(void *wait, double done)
{
	struct long_wait *w = wait;

	if (!w->s->options.quiet && isatty(STDERR_FILENO) && monotonic_ns() - w->since_ns > SHOWN_AFTER_NS) {
		fprintf(stderr, "\r\033[K%s: %.0f %%%s", w->what, 100 * done, w->note);
		w->shown = true;
	}
	return watchdog_asked_by_user() == w->asked;
}

void long_wait_end(const struct long_wait *w)
{
	if (w->shown)
		fputs("\r\033[K", stderr);
}
