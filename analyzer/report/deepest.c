/* SPDX-License-Identifier: MIT */
#include "report/deepest.h"

#include <stdlib.h>
#include <string.h>

#include "report/folding.h"
#include "base/grow.h"

struct candidate {
	uint64_t place;
	const struct location *location;
	double below;  /* what was allocated below it */
	double levels; /* the same times the number of functions that are nearer to the allocation */
	size_t last_row;
};

struct search {
	const struct report *report;
	enum report_figure figure;
	struct folded_stack stack;
	struct candidate *list;
	size_t count;
	struct map candidate_of; /* hash of image and name -> index in list; collisions step by one */
};

static struct candidate *candidate_of(struct search *s, const struct folded_frame *f)
{
	uint64_t hash = map_mix(PLACE_IMAGE(f->place) + 1u);
	const uint32_t *known;

	for (const char *c = f->location->function; *c; c++)
		hash = map_mix(hash ^ (unsigned char)*c);
	for (; (known = map_find(&s->candidate_of, hash)); hash++) {
		struct candidate *c = &s->list[*known];
		if (PLACE_IMAGE(c->place) == PLACE_IMAGE(f->place) &&
		    !strcmp(c->location->function, f->location->function))
			return c;
	}
	if (!grow_list(s->list, s->count) || map_put(&s->candidate_of, hash, (uint32_t)s->count))
		return NULL;
	s->list[s->count] = (struct candidate){ .place = f->place, .location = f->location };
	return &s->list[s->count++];
}

/* Of a function that calls itself the innermost call counts. */
static int add_row(struct search *s, const struct report_row *row, size_t number)
{
	size_t inner = report_inner(s->report, row), end = 0;
	double value = row->sum[s->figure].value;

	if (folded_stack_make(&s->stack, s->report, row))
		return -ENOMEM;
	while (end < s->stack.count && s->stack.list[end].frame < inner)
		end++;
	for (size_t i = 0; i + 1 < end; i++) {
		const struct folded_frame *f = &s->stack.list[i];
		if (f->name[0] || !f->location->function)
			continue;
		struct candidate *c = candidate_of(s, f);
		if (!c)
			return -ENOMEM;
		if (c->last_row == number)
			continue;
		c->last_row = number;
		c->below += value;
		c->levels += value * (double)i;
	}
	return 0;
}

static void choose(const struct search *s, struct deepest *d)
{
	double all = s->report->total.sum[s->figure].value, least = 0;

	*d = (struct deepest){ 0 };
	for (size_t i = 0; i < s->count; i++) {
		const struct candidate *c = &s->list[i];
		if (!(c->below > all / 2) || (d->location && c->levels / c->below >= least))
			continue;
		*d = (struct deepest){ c->place, c->location, c->below / all };
		least = c->levels / c->below;
	}
}

int deepest_find(const struct report *r, enum report_figure figure, struct deepest *d)
{
	struct search s = { .report = r, .figure = figure };
	size_t rows = r->rows.count < DEEPEST_ROWS ? r->rows.count : DEEPEST_ROWS;
	int e = 0;

	for (size_t i = 0; !e && i < rows; i++) {
		const struct report_row *row = &r->rows.list[i];
		report_want_symbols(r, i, rows);
		if (row->frame_count && row->sum[figure].value > 0)
			e = add_row(&s, row, i + 1);
	}
	if (!e)
		choose(&s, d);
	folded_stack_done(&s.stack);
	map_done(&s.candidate_of);
	free(s.list);
	return e;
}
