/* SPDX-License-Identifier: MIT */
/*
 * What the child that writes a report (report_child.h) hands back: bytes in a pipe, which memattach copies to where the
 * report goes, and no more of them than a report may have. So the child never has the file: when it has ended, or was
 * taken over and lives on, nothing that it holds leads there.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct report_pipe {
	int from, into;        /* the ends of the pipe; into is the child's */
	int out;               /* where the report goes */
	bool regular;          /* out takes all that it is given */
	uint64_t left;         /* bytes that it may still have */
	const char *beginning; /* what is still to come before all else */
	size_t held, written;
	char bytes[65536]; /* held of them were read, and written of these went out */
};

/* limit: bytes. beginning: what it must begin with, "": anything; must outlive the pipe. */
int report_pipe_open(struct report_pipe *p, int out, uint64_t limit, const char *beginning, struct err *e) WARN_UNUSED;
void report_pipe_close(struct report_pipe *p);
/* In memattach, when the child is there. */
void report_pipe_keep_end(struct report_pipe *p);
/* What has to happen before it can be moved on. */
struct pollfd report_pipe_awaits(const struct report_pipe *p);
/* Reads or writes once, without waiting. 1: done; 0: there is nothing to read now, or no room to write; -EFBIG,
 * -EPROTO (it begins in another way) and others of the writing. */
int report_pipe_move(struct report_pipe *p, struct err *e) WARN_UNUSED;
/* Has all that was read been written? */
bool report_pipe_is_empty(const struct report_pipe *p);
