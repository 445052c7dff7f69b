/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include <signal.h>

static void *fill(void *arg)
{
	struct figures_chunk *c = arg;

	for (size_t i = 0; i < c->count; i++)
		for (int f = 0; f < FIGURE_COUNT; f++)
			c->list[i][f] = report_estimate(c->report, &c->report->rows.list[c->first + i], f);
	return NULL;
}

static void set_range(const struct figures *f, struct figures_chunk *chunk, size_t first)
{
	size_t left = first < f->shown ? f->shown - first : 0;

	chunk->first = first;
	chunk->count = left < FIGURES_CHUNK ? left : FIGURES_CHUNK;
}

void figures_init(struct figures *f, const struct report *report, size_t shown)
{
	f->shown = shown;
	f->running = false;
	f->now = &f->chunks[0];
	f->next = &f->chunks[1];
	f->now->report = f->next->report = report;
	f->now->first = f->now->count = 0;
	set_range(f, f->next, 0);
}

/* Without a thread next is filled when it is asked for. */
static void advance(struct figures *f)
{
	struct figures_chunk *filled = f->next;
	sigset_t all, before;

	if (f->running)
		pthread_join(f->thread, NULL);
	else
		fill(filled);
	f->next = f->now;
	f->now = filled;
	set_range(f, f->next, filled->first + filled->count);
	/* Signals are for the first thread: one that ends the program takes the line of progress away, which nobody may
	 * write again. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	f->running = f->next->count && !pthread_create(&f->thread, NULL, fill, f->next);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

const struct estimate *figures_of(struct figures *f, size_t row)
{
	while (row >= f->now->first + f->now->count && f->next->count)
		advance(f);
	return f->now->list[row - f->now->first];
}

void figures_done(struct figures *f)
{
	if (f->running)
		pthread_join(f->thread, NULL);
	f->running = false;
}
