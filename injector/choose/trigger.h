/* SPDX-License-Identifier: MIT */
/*
 * Conditions on the memory of a process under which a session begins by itself (--when):
 *
 *   rss>2G           resident memory, as ps and top show it (VmRSS): files that it has mapped are in it
 *   private>2G       memory of its own, resident or swapped out (RssAnon and VmSwap): the heap is in it
 *   growth>100M/1m   so much more private memory than the least within the last minute
 *   cgroup>90%       its memory cgroup, or one that that is in, uses so much of its limit (memory.max)
 *   pressure>10%     tasks of its cgroup, or of the machine, waited for memory that part of ten seconds (PSI)
 *
 * Growth is counted from the least within the time, not from what was there at its begin: so it is noticed as soon as
 * it has happened, also after memory was given back. What a window holds is kept in parts of it, so a condition takes
 * the same few kilobytes for any time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "process/target.h"

enum trigger_figure { TRIGGER_RSS, TRIGGER_PRIVATE, TRIGGER_GROWTH, TRIGGER_CGROUP, TRIGGER_PRESSURE };

struct trigger {
	enum trigger_figure figure;
	uint64_t bytes;
	uint64_t window_ns; /* of growth */
	double part;        /* of cgroup and pressure, which have no bytes */
	const char *text;   /* as the user wrote it; belongs to the caller */
};

/* -EINVAL, -ERANGE with a text. text must outlive t. */
int trigger_parse(const char *text, struct trigger *t, struct err *e) WARN_UNUSED;

/* The window is kept to a 128th of its length: a growth that took so much longer counts, too. */
#define TRIGGER_PARTS 128u
/* What has been seen of a process with regard to one condition. All zero at first. */
struct trigger_watch {
	struct {
		uint64_t began_ns; /* of the part */
		uint64_t least_ns; /* when the least was seen last */
		uint64_t least;    /* private memory */
	} parts[TRIGGER_PARTS + 4];
	unsigned first, count; /* a ring */
	uint64_t value;        /* of the figure, at the last look */
	uint64_t took_ns;      /* in which it has grown by that */
	double part;           /* the same of those that have no bytes */
};

/* At times that do not go back. True: the condition holds. */
bool trigger_look(struct trigger_watch *w, const struct trigger *t, const struct memory_use *use, uint64_t now_ns);

/* Is it about a part? Then part is what it is now, NAN: not known, and it does not hold. */
static inline bool trigger_is_part(const struct trigger *t)
{
	return t->figure >= TRIGGER_CGROUP;
}
bool trigger_look_part(struct trigger_watch *w, const struct trigger *t, double part);

#define TRIGGER_TEXT 96
/* "rss is 1.20 GiB", "private memory grew by 112 MiB within 41 s": at the last look. Returns text. */
const char *trigger_say(const struct trigger_watch *w, const struct trigger *t, char text[TRIGGER_TEXT]);
