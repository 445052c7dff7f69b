/* SPDX-License-Identifier: MIT */
/*
 * What each thread of a session has allocated that is live. Samples carry the id of their thread; a record in the dump
 * gives an id its name, the last one if there are several. What was allocated in all is kept for stacks only, so it is
 * not known of threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "base/map.h"
#include "input/rows.h"

/* Of more threads of a dump, or of a report, the figures are kept together. */
#define THREADS_MAX 65536u

struct thread_sum {
	uint32_t tid;                                     /* 0: the samples whose thread is not known */
	bool others;                                      /* those beyond THREADS_MAX */
	char name[sizeof((struct dump_thread *)0)->name]; /* "": none was recorded */
	struct estimate_sum sum[2];                       /* FIGURE_LIVE_BYTES, FIGURE_LIVE_COUNT */
	struct slack slack;
};

struct threads {
	struct thread_sum *list;
	size_t count;
	struct map thread_of; /* tid -> index */
};

/* The thread's sums, new ones if there are none yet; valid until the next call. NULL if out of memory. */
struct thread_sum *threads_get(struct threads *threads, uint32_t tid);
/* Takes the names of these threads from the dump. */
int threads_read_names(struct threads *threads, struct dump *dump) WARN_UNUSED;
void threads_done(struct threads *threads);
