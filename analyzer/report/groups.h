/* SPDX-License-Identifier: MIT */
/*
 * Rows summed up by function or by module: exclusive where it called the allocator itself, inclusive where it is
 * anywhere in the stack. Or live samples by thread, which are inclusive.
 */
#ifndef MEMATTACH_GROUPS_H
#define MEMATTACH_GROUPS_H

#include <stddef.h>

#include "images.h"
#include "progress.h"
#include "rows.h"
#include "symbols.h"
#include "threads.h"

enum group_by { BY_STACK, BY_FUNCTION, BY_MODULE, BY_THREAD };

struct group {
	char *name; /* function, "+0xoffset" where none is known, path of the module, or name of the thread, maybe "" */
	uint32_t image; /* 0: none */
	struct estimate_sum inclusive[FIGURE_COUNT], exclusive[FIGURE_COUNT];
	struct slack slack_inclusive, slack_exclusive;
	uint64_t lost_live_inclusive, lost_live_exclusive;
	size_t last_row; /* the row that was counted last, + 1: recursion counts once */
	/* Of a thread: */
	uint32_t tid; /* 0: not known which */
	int32_t pid;
	bool others; /* all beyond THREADS_MAX */
};

struct groups {
	struct group *list; /* the largest inclusive first */
	size_t count;
	struct map group_of; /* hash of image and name; collisions step by one */
};

/* -ENOMEM. symbols may be NULL. */
int groups_make(struct groups *groups, const struct rows *rows, const struct images *images, struct symbols *symbols,
                enum group_by by, enum report_figure sort, struct progress *progress) WARN_UNUSED;
/* Adds the threads of a session; rate: its largest. Then groups_sort. -ENOMEM. */
int groups_add_threads(struct groups *groups, const struct threads *threads, int32_t pid, uint64_t rate) WARN_UNUSED;
void groups_sort(struct groups *groups, enum report_figure sort);
void groups_done(struct groups *groups);

#endif
