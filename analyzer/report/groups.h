/* SPDX-License-Identifier: MIT */
/*
 * Rows summed up by what stands in their stacks (function, source file or line, module): exclusive, or own, where it
 * called the allocator itself, inclusive where it is anywhere in the stack. Or samples by thread, size or lifetime,
 * which are inclusive. Or whole sessions (session_groups.h), inclusive as well.
 */
#pragma once

#include <stddef.h>

#include "input/classes.h"
#include "input/images.h"
#include "input/labels.h"
#include "base/map.h"
#include "input/rows.h"
#include "input/threads.h"

enum group_by {
	BY_STACK,
	BY_FUNCTION,
	BY_FILE,
	BY_LINE,
	BY_MODULE,
	BY_THREAD,
	BY_SIZE,
	BY_LIFETIME,
	BY_RESIDENCY,
	BY_TYPE,
	BY_HOLDER,
	BY_PROCESS,
	BY_PROGRAM,
	BY_UNIT,
	BY_CONTAINER,
	BY_COUNT
};
#define SESSION_KINDS (BY_COUNT - BY_PROCESS)

/* "stack" …; -1 if there is none of that name. */
int group_by_parse(const char *name);
const char *group_by_name(enum group_by by);
/* Whether samples are summed up, of whatever stack. */
static inline bool groups_of_samples(enum group_by by)
{
	return by >= BY_THREAD;
}
static inline bool groups_of_sessions(enum group_by by)
{
	return by >= BY_PROCESS;
}
/* Of what blocks are; LABEL_KINDS: none of that. */
static inline enum label_kind groups_label(enum group_by by)
{
	return by == BY_TYPE ? LABEL_TYPE : by == BY_HOLDER ? LABEL_HOLDER : LABEL_KINDS;
}
static inline enum class_kind groups_class(enum group_by by)
{
	return by == BY_SIZE        ? CLASS_SIZE
	       : by == BY_LIFETIME  ? CLASS_LIFETIME
	       : by == BY_RESIDENCY ? CLASS_RESIDENCY
	                            : CLASS_NONE;
}

struct group {
	char *name; /* function, "+0xoffset" where none is known, file, "file:line", path of the module, or name of the
	               thread, maybe "" */
	uint32_t image; /* 0: none, or those of several; of a type, its enum dump_type_source */
	struct estimate_sum inclusive[FIGURE_COUNT], exclusive[FIGURE_COUNT];
	struct slack slack_inclusive, slack_exclusive;
	struct estimate_sum lost_inclusive[2], lost_exclusive[2];
	double part[2]; /* of the error of the lower ends of what groups are chosen by, live and allocated (estimate.h):
	                   the own sums, of samples all; 0: they stand in an order of their own */
	size_t last_row; /* the row that was counted last, + 1: recursion counts once */
	/* Of a thread: */
	uint32_t tid; /* 0: not known which */
	int32_t pid;
	bool others; /* all beyond THREADS_MAX; of sizes and lifetimes: those that are not known any more */
	/* Of sessions: its number in the order in which groups came; how many; and the growth of their processes'
	 * private memory, in bytes. */
	uint32_t number;
	unsigned sessions;
	double private_growth;
	/* Of sizes and lifetimes, in bytes or seconds: low <= value < high, which may be INFINITY. Low is an enum
	 * residency where that is asked for. */
	double low, high;
};

struct groups {
	struct group *list; /* the largest own sum first; sizes and lifetimes in their order */
	size_t count;
	struct map group_of; /* hash of image and name; collisions step by one */
};

struct report;
struct recorded_session;

/* Fills what part of the error each has. groups_make does. */
void groups_share_error(struct groups *groups, const struct report *report, enum group_by by);
/* By what stands in the stacks of the report's rows. -ENOMEM. */
int groups_make(struct groups *groups, const struct report *report) WARN_UNUSED;
/* Adds the threads of a session; rate: its largest. Then groups_sort. -ENOMEM. */
int groups_add_threads(struct groups *groups, const struct threads *threads, int32_t pid, uint64_t rate) WARN_UNUSED;
/* The classes that are not empty, and what of the total is in none of them. -ENOMEM. */
int groups_add_classes(struct groups *groups, const struct classes *classes, enum group_by by,
                       const struct report_row *total) WARN_UNUSED;
/* Adds what a session has of each type or holder; rate: its largest. -ENOMEM. */
int groups_add_labels(struct groups *groups, const struct labels_of *labels, uint64_t rate) WARN_UNUSED;
/* When all sessions were added: what of the total is in none of these. -ENOMEM. */
int groups_add_gone(struct groups *groups, const struct report_row *total) WARN_UNUSED;
/* The first session of which types or holders are not all known, or NULL. */
const struct labels_look *groups_unknown(const struct recorded_session *sessions, size_t count, enum group_by by);
/* The one of this image and name, a new one if there is none. NULL: no memory. */
struct group *groups_named(struct groups *groups, uint32_t image, const char *name);
void groups_sort(struct groups *groups, enum report_figure sort, enum group_by by);
void groups_done(struct groups *groups);
