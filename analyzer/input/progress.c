/* SPDX-License-Identifier: MIT */
#include "input/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/now.h"

#define REDRAW_NS 200000000ull
#define ERASE "\r\033[K"

static void put(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));

	(void)n; /* a terminal that is gone needs no progress */
}

void progress_start(struct progress *p, int fd, uint64_t delay_ns)
{
	const char *term = getenv("TERM");
	bool erasable = isatty(fd) && term && term[0] && strcmp(term, "dumb") != 0;

	*p = (struct progress){ .fd = erasable ? fd : -1, .due_ns = now_ns(CLOCK_MONOTONIC) + delay_ns };
}

void progress_at(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
	char text[sizeof p->text], line[sizeof text + sizeof ERASE];

	if (!p || p->fd < 0)
		return;
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	if (now < p->due_ns)
		return;
	p->due_ns = now + REDRAW_NS;
	pid_t foreground = tcgetpgrp(p->fd); /* -1: this is not the terminal of our session */
	if (foreground >= 0 && foreground != getpgrp())
		return;
	double share = total ? 100.0 * (double)done / (double)total : 0;
	if (total)
		snprintf(text, sizeof text, "memanalyze: %.40s %.0f %%", what, share < 99 ? share : 99);
	else
		snprintf(text, sizeof text, "memanalyze: %.40s", what);
	if (p->shown && !strcmp(text, p->text))
		return;
	p->shown = true;
	memcpy(p->text, text, sizeof text);
	snprintf(line, sizeof line, ERASE "%s", text);
	put(p->fd, line);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		put(p->fd, ERASE);
	p->shown = false;
}

void progress_stop(struct progress *p)
{
	progress_clear(p);
	p->fd = -1;
}
