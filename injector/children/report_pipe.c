/* SPDX-License-Identifier: MIT */
#include "children/report_pipe.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)

int report_pipe_open(struct report_pipe *p, int out, uint64_t limit, const char *beginning, struct err *e)
{
	struct stat st;
	int ends[2];

	if (fstat(out, &st) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "no pipe can be made for it");
	p->from = ends[0];
	p->into = ends[1];
	p->out = out;
	p->regular = S_ISREG(st.st_mode);
	p->left = limit;
	p->beginning = beginning;
	p->held = p->written = 0;
	/* A smaller one is slower, and nothing else. */
	if (fcntl(p->from, F_SETPIPE_SZ, PIPE_BYTES) < 0)
		errno = 0;
	if (fcntl(p->from, F_SETFL, O_NONBLOCK) == 0)
		return 0;
	int rc = err_sys(e, "no pipe can be made for it");
	report_pipe_close(p);
	return rc;
}

void report_pipe_keep_end(struct report_pipe *p)
{
	close(p->into);
	p->into = -1;
}

void report_pipe_close(struct report_pipe *p)
{
	if (p->into >= 0)
		close(p->into);
	if (p->from >= 0)
		close(p->from);
	p->from = p->into = -1;
}

bool report_pipe_is_empty(const struct report_pipe *p)
{
	return p->written == p->held;
}

struct pollfd report_pipe_awaits(const struct report_pipe *p)
{
	if (!report_pipe_is_empty(p))
		return (struct pollfd){ .fd = p->out, .events = POLLOUT };
	return (struct pollfd){ .fd = p->from, .events = POLLIN };
}

static bool begins_well(struct report_pipe *p, size_t bytes)
{
	size_t first = strlen(p->beginning);

	first = first < bytes ? first : bytes;
	p->beginning += first;
	return !memcmp(p->beginning - first, p->bytes, first);
}

static int refill(struct report_pipe *p, struct err *e)
{
	ssize_t n = p->from < 0 ? 0 : read(p->from, p->bytes, sizeof p->bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(e, "cannot read what memanalyze writes");
	if (n == 0) { /* there will be no more */
		report_pipe_close(p);
		return 0;
	}
	if ((uint64_t)n > p->left)
		return err_set(e, EFBIG, "it is too long");
	if (!begins_well(p, (size_t)n))
		return err_set(e, EPROTO, "it does not begin as such a report does");
	p->left -= (uint64_t)n;
	p->held = (size_t)n;
	p->written = 0;
	return 1;
}

/* A pipe or a terminal with room takes so many bytes at once without having the writer wait (pipe(7)). */
static int empty(struct report_pipe *p, struct err *e)
{
	struct pollfd room = { .fd = p->out, .events = POLLOUT };
	size_t bytes = p->held - p->written;

	if (!p->regular && poll(&room, 1, 0) <= 0)
		return 0;
	if (!p->regular && bytes > PIPE_BUF)
		bytes = PIPE_BUF;
	ssize_t n = write(p->out, p->bytes + p->written, bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(e, "cannot write it");
	p->written += (size_t)n;
	return 1;
}

int report_pipe_move(struct report_pipe *p, struct err *e)
{
	return report_pipe_is_empty(p) ? refill(p, e) : empty(p, e);
}
