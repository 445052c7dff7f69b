/* SPDX-License-Identifier: MIT */
/*
 * The figures of rows that are shown one after the other. Intervals cost more than writing them, so while the caller is
 * at some rows, a second thread works out those of the next ones. Nothing but the time it takes depends on it.
 */
#ifndef MEMATTACH_FIGURES_H
#define MEMATTACH_FIGURES_H

#include <pthread.h>

#include "report.h"

#define FIGURES_CHUNK 256

struct figures_chunk {
	const struct report *report;
	size_t first, count;
	struct estimate list[FIGURES_CHUNK][FIGURE_COUNT];
};

struct figures {
	size_t shown; /* rows 0 … shown - 1 are asked for */
	struct figures_chunk chunks[2];
	struct figures_chunk *now, *next;
	pthread_t thread;
	bool running; /* it fills next */
};

/* The report must outlive the figures and stand still. */
void figures_init(struct figures *figures, const struct report *report, size_t shown);
/* The FIGURE_COUNT estimates of a row; rows in ascending order. Valid until the next call. */
const struct estimate *figures_of(struct figures *figures, size_t row);
void figures_done(struct figures *figures);

#endif
